mod families;
mod records;

use super::*;
use crate::execute::Written;
use crate::reconcile::time::Time;
use engine::load::{MovedFrom, Reference};
use model::{Holder, Intent, Operation, Path, PlannedObject, Record, RecordedObject, Step, Uid};

fn resource(name: &str, generation: i64, references: &[&str]) -> Instance {
    let references = references.iter().map(|target| Reference {
        target: Address::single(*target),
        at: Path::default(),
        explicit: true,
        selector: None,
        segments: Arc::default(),
    });
    Instance {
        uid: format!("uid-of-{name}").into(),
        generation,
        references: references.collect(),
        service_account: "default".into(),
        ..Instance::plain(Address::single(name), "terraform_data")
    }
}

/// The Resource with former names.
fn renamed(resource: Instance, from: &[&str]) -> Instance {
    let moved_from = from.iter().map(|name| MovedFrom::annotation(Address::single(*name))).collect();
    Instance { moved_from, ..resource }
}

fn applied(instance: Instance) -> Event {
    Event::ResourceApplied(ObservedResource {
        instance: Arc::new(instance),
        published: PublishedStatus::default(),
        version: Version(0),
        meta: Arc::default(),
    })
}

fn marked(mut instance: Instance) -> Instance {
    instance.has_finalizer = true;
    instance.record_annotation = instance.uid.clone();
    instance
}

fn record(name: &str, version: u64, used: &[&str]) -> Stored {
    let uid: Uid = format!("uid-of-{name}").into();
    let mut record = Record::empty("shop".into(), Address::single(name), uid, "terraform_data".into());
    record.current = Some(Arc::new(RecordedObject {
        dependencies: used.iter().map(|name| Address::single(*name)).collect(),
        ..RecordedObject::default()
    }));
    Stored { record: Arc::new(record), version: Version(version) }
}

fn step() -> Work {
    let step = Step { address: Address::single("a"), deposed: None, operation: Operation::Create, replaces: false };
    Work::Step(StepStart { step, at: Time::default(), desired_digest: 0, shared_fingerprint: 0 })
}

fn index(events: impl IntoIterator<Item = Event>) -> Index {
    let mut index = Index::new("shop".into(), 0);
    for event in events {
        index.apply(event);
    }
    index.take_changes();
    index
}

#[track_caller]
fn wakes(index: &mut Index, event: Event, expected: &[&str]) {
    index.apply(event);
    let names = index.take_changes().names;
    assert_eq!(names.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), expected);
}

fn component(index: &Index, name: &str) -> Vec<String> {
    index.component([name.into()]).iter().map(ToString::to_string).collect()
}

#[test]
fn a_new_generation_is_planned_and_own_marks_are_not() {
    let mut index = index([applied(resource("a", 1, &[]))]);
    wakes(&mut index, applied(marked(resource("a", 1, &[]))), &[]);
    wakes(&mut index, applied(marked(resource("a", 2, &[]))), &["a"]);
    wakes(&mut index, applied(Instance { suspended: true, ..marked(resource("a", 2, &[])) }), &["a"]);
}

#[test]
fn a_removed_finalizer_is_planned_only_if_a_record_exists() {
    let mut index = index([applied(Instance { has_finalizer: true, ..resource("a", 1, &[]) })]);
    wakes(&mut index, applied(resource("a", 1, &[])), &[]);
    index.apply(applied(marked(resource("a", 1, &[]))));
    wakes(&mut index, Event::RecordApplied(record("a", 5, &[])), &["a"]);
    wakes(&mut index, applied(resource("a", 1, &[])), &["a"]);
}

#[test]
fn a_removed_annotation_is_planned_without_a_record() {
    let mut index = index([applied(marked(resource("a", 1, &[])))]);
    wakes(&mut index, applied(resource("a", 1, &[])), &["a"]);
}

#[test]
fn a_new_name_is_connected_with_its_dependents() {
    let mut index = index([applied(resource("app", 1, &["db"])), applied(resource("other", 1, &[]))]);
    wakes(&mut index, applied(resource("db", 1, &[])), &["db"]);
    assert_eq!(component(&index, "db"), ["app", "db"]);
    assert_eq!(component(&index, "other"), ["other"]);
}

#[test]
fn the_dependencies_of_an_open_intent_are_connected() {
    let mut cut = Record::clone(&record("app", 3, &[]).record);
    cut.current = None;
    let recorded = RecordedObject { dependencies: [Address::single("db")].into(), ..RecordedObject::default() };
    cut.intent = Some(Box::new(Intent {
        operation: Operation::Create,
        operation_id: "op".into(),
        holder: Holder { pod: "".into(), process: "".into() },
        epoch: 1,
        started: jiff::Timestamp::UNIX_EPOCH,
        deadline: jiff::Timestamp::UNIX_EPOCH,
        deposed: None,
        import: None,
        cause: model::Cause::default(),
        planned: Some(PlannedObject {
            config: Value::Null,
            planned: Value::Unknown,
            private: [].into(),
            recorded: Box::new(recorded),
        }),
    }));
    let stored = Stored { record: Arc::new(cut), version: Version(3) };
    let index = index([applied(resource("db", 1, &[])), Event::RecordApplied(stored)]);
    assert_eq!(component(&index, "db"), ["app", "db"]);
}

#[test]
fn the_desired_digest_changes_with_the_resource_and_not_with_records() {
    let mut index = index([applied(resource("a", 1, &["b"])), applied(resource("b", 1, &[]))]);
    let before = index.desired_digest("a");
    index.apply(Event::RecordApplied(record("a", 5, &["b"])));
    index.apply(Event::RecordApplied(record("b", 6, &[])));
    index.apply(applied(marked(resource("a", 1, &["b"]))));
    assert_eq!(index.desired_digest("a"), before);
    index.apply(applied(marked(resource("a", 2, &["b"]))));
    let newer = index.desired_digest("a");
    assert_ne!(newer, before);
    index.apply(Event::ResourceDeleted("a".into()));
    assert_ne!(index.desired_digest("a"), newer);
}

/// A destroy that waits must not start once another Resource claims the object, and must not wait for ever afterwards:
/// each change of the digest plans the name.
#[test]
fn the_desired_digest_changes_with_the_claims_of_other_resources() {
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("a", 5, &[]))]);
    let free = index.desired_digest("a");
    wakes(&mut index, applied(renamed(resource("b", 1, &[]), &["a"])), &["a", "b"]);
    let claimed = index.desired_digest("a");
    assert_ne!(claimed, free);
    index.apply(Event::RecordApplied(record("b", 6, &[])));
    index.apply(Event::RecordDeleted(Address::single("b"), Version(7)));
    assert_eq!(index.desired_digest("a"), claimed, "steps do not change it");
    index.take_changes();
    wakes(&mut index, applied(renamed(resource("b", 2, &[]), &["other"])), &["a", "b", "other"]);
    assert_eq!(index.desired_digest("a"), free, "the claim was corrected");
    index.apply(applied(renamed(resource("b", 3, &[]), &["a"])));
    index.take_changes();
    let deleting = Instance { deleting: true, ..renamed(resource("b", 1, &[]), &["a"]) };
    wakes(&mut index, applied(deleting), &["a", "b"]);
    assert_eq!(index.desired_digest("a"), free);
    wakes(&mut index, Event::ResourceDeleted("b".into()), &["a"]);
    assert_eq!(index.desired_digest("a"), free);
    index.apply(applied(renamed(resource("b", 1, &[]), &["a"])));
    index.take_changes();
    let successor = Instance { uid: "uid-of-the-next".into(), ..resource("b", 1, &[]) };
    wakes(&mut index, applied(successor), &["a", "b"]);
    assert_eq!(index.desired_digest("a"), free, "the watch has omitted the deletion");
    index.apply(applied(renamed(resource("b", 1, &[]), &["a"])));
    index.take_changes();
    wakes(&mut index, Event::ResourceDeleted("b".into()), &["a", "b"]);
    assert_eq!(index.desired_digest("a"), free);
    index.apply(Event::ResourceDeleted("a".into()));
    let abandoned = index.desired_digest("a");
    index.apply(applied(renamed(resource("b", 1, &[]), &["a"])));
    assert_ne!(index.desired_digest("a"), abandoned);
}

#[test]
fn components_follow_configuration_and_records() {
    let mut index = index([
        applied(resource("a", 1, &[])),
        applied(resource("b", 1, &["a"])),
        Event::RecordApplied(record("c", 3, &["b"])),
    ]);
    assert_eq!(component(&index, "a"), ["a", "b", "c"]);
    index.apply(applied(resource("b", 2, &[])));
    assert_eq!(component(&index, "a"), ["a"]);
    wakes(&mut index, Event::RecordDeleted(Address::single("c"), Version(9)), &["b", "c"]);
    assert_eq!(component(&index, "b"), ["b"]);
}

#[test]
fn a_new_list_removes_missing_objects_except_newer_own_writes() {
    let mut index = index([
        applied(resource("a", 1, &[])),
        Event::RecordApplied(record("a", 5, &[])),
        Event::RecordApplied(record("b", 6, &[])),
    ]);
    index.apply(Event::Relisting(ListedKind::Records));
    index.apply(Event::Relisting(ListedKind::Resources));
    index.begin(&Address::single("b"), step());
    index.end(&Address::single("b"), Written::Record(record("b", 8, &[])));
    index.apply(Event::Listed(ListedKind::Records));
    index.apply(Event::Listed(ListedKind::Resources));
    assert_eq!(index.records().keys().map(ToString::to_string).collect::<Vec<_>>(), ["b"]);
    assert!(index.instance("a").is_none());
}

#[test]
fn marks_count_as_written_until_the_watch_confirms_them() {
    let mut index = index([applied(resource("a", 1, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.end(&address, Written::Record(record("a", 5, &[])));
    index.apply(applied(resource("a", 2, &[])));
    assert!(index.instance("a").unwrap().has_finalizer);
    index.apply(applied(marked(resource("a", 2, &[]))));
    wakes(&mut index, applied(resource("a", 2, &[])), &["a"]);
    assert!(!index.instance("a").unwrap().has_finalizer);
}

/// The finalizer of a new Resource is not the one that was removed before the record of its predecessor.
#[test]
fn a_removed_record_says_nothing_about_the_next_resource_of_the_name() {
    let mut index = index([applied(marked(resource("a", 1, &[]))), Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.apply(Event::ResourceDeleted("a".into()));
    let next = Instance { uid: "uid-of-the-next".into(), has_finalizer: true, ..resource("a", 1, &[]) };
    index.apply(applied(next));
    index.end(&address, Written::Erased);
    assert!(index.instance("a").unwrap().has_finalizer);
}

#[test]
fn the_marks_of_a_resource_that_has_adopted_a_record_count_as_removed_with_it() {
    let next = marked(Instance { uid: "uid-of-the-next".into(), ..resource("a", 1, &[]) });
    let mut index = index([applied(next), Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    assert!(!index.instance("a").unwrap().has_finalizer);
}

#[test]
fn the_fingerprint_changes_only_with_the_dependencies_of_an_object() {
    let mut index = index([applied(resource("a", 1, &["b"])), Event::RecordApplied(record("b", 5, &[]))]);
    let before = index.fingerprint(&Address::single("a"));
    index.apply(Event::RecordApplied(record("c", 6, &[])));
    index.apply(applied(marked(resource("a", 1, &["b"]))));
    assert_eq!(index.fingerprint(&Address::single("a")), before);
    index.apply(Event::RecordApplied(record("b", 7, &[])));
    assert_ne!(index.fingerprint(&Address::single("a")), before);
}

#[test]
fn a_changed_namespace_plans_everything_once() {
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("b", 5, &[]))]);
    let namespace = Event::Namespace { value: Value::Null, terminating: Some(Version(1)) };
    wakes(&mut index, namespace.clone(), &["a", "b"]);
    wakes(&mut index, namespace, &[]);
}

#[test]
fn a_planned_deletion_does_not_plan_neighbors_that_are_being_deleted() {
    let [a, b] = [resource("a", 1, &[]), resource("b", 1, &["a"])]
        .map(|resource| applied(Instance { deleting: true, ..resource }));
    let mut index = index([a, b, applied(resource("c", 1, &["a"]))]);
    index.apply(Event::ResourceDeleted("a".into()));
    let Changes { names, removed, .. } = index.take_changes();
    assert_eq!((names, removed), (["c".into()].into(), ["a".into()].into()));
    index.apply(Event::RecordApplied(record("b", 4, &[])));
    index.take_changes();
    wakes(&mut index, Event::ResourceDeleted("b".into()), &["a", "b"]);
}

#[test]
fn a_moved_name_is_connected_with_its_previous_name() {
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("a", 5, &[]))]);
    wakes(&mut index, applied(renamed(resource("b", 1, &[]), &["a"])), &["a", "b"]);
    assert_eq!(index.component(["a".into()]).len(), 2);
    let before = index.fingerprint(&Address::single("b"));
    index.apply(Event::RecordApplied(record("a", 6, &[])));
    assert_ne!(index.fingerprint(&Address::single("b")), before);
    index.take_changes();
    wakes(&mut index, applied(resource("b", 1, &[])), &["a", "b"]);
    assert_eq!(index.component(["a".into()]).len(), 1, "the move is no longer declared");
    let mut moving = record("a", 7, &[]);
    Arc::make_mut(&mut moving.record).moving_to = Some(Box::new(Address::single("b")));
    index.apply(Event::RecordApplied(moving));
    assert_eq!(index.component(["b".into()]).len(), 2, "the record has the new address");
    index.apply(Event::Relisting(ListedKind::Resources));
    assert!(index.is_relisting());
    index.apply(Event::Listed(ListedKind::Resources));
    assert!(!index.is_relisting());
}

#[test]
fn a_misspelled_move_is_connected_with_similar_names() {
    let deleting = applied(Instance { deleting: true, ..resource("database", 1, &[]) });
    let misspelled = applied(renamed(resource("orders", 1, &[]), &["databse"]));
    let mut index = index([deleting.clone(), Event::RecordApplied(record("database", 5, &["disk"]))]);
    wakes(&mut index, misspelled.clone(), &["database", "databse", "orders"]);
    assert_eq!(component(&index, "orders"), ["database", "databse", "disk", "orders"]);
    assert_eq!(component(&index, "database"), ["database", "databse", "disk", "orders"]);
    index.apply(applied(resource("database", 1, &[])));
    assert_eq!(component(&index, "database"), ["database", "disk"], "it is desired again");
    index.apply(deleting);
    index.take_changes();
    let other = applied(renamed(resource("orders", 1, &[]), &["storage"]));
    wakes(&mut index, other, &["database", "databse", "orders", "storage"]);
    assert_eq!(component(&index, "database"), ["database", "disk"]);
    index.apply(misspelled.clone());
    index.apply(Event::RecordApplied(record("orders", 6, &[])));
    assert_eq!(component(&index, "database"), ["database", "disk"], "it has its own record");
    index.apply(Event::RecordDeleted(Address::single("orders"), Version(7)));
    index.take_changes();
    wakes(&mut index, Event::ResourceDeleted("orders".into()), &["database", "databse", "orders"]);
    index.apply(misspelled);
    index.apply(Event::ResourceDeleted("database".into()));
    let orders = component(&index, "orders");
    assert_eq!(orders, ["database", "databse", "disk", "orders"], "its record is abandoned");
    index.apply(Event::RecordApplied(record("databse", 8, &[])));
    assert_eq!(component(&index, "orders"), ["databse", "orders"], "the name is not misspelled");
}

fn reader(name: &str, key: &str) -> Instance {
    let object = input_key().object;
    let input = engine::load::inputs::Input { name: "x".into(), object, key: key.into(), optional: false, position: 0 };
    Instance { inputs: engine::load::Inputs::declared(vec![input]), ..resource(name, 1, &[]) }
}

fn input_key() -> InputKey {
    let object = model::DataRef { kind: model::DataKind::ConfigMap, name: "site".into() };
    InputKey { service_account: "default".into(), object }
}

fn holding(entries: &[(&str, &str)]) -> Event {
    let texts = entries.iter().map(|(key, text)| (Arc::from(*key), Arc::from(*text))).collect();
    Event::Input(input_key(), DataLookup::Present(Arc::new(texts)))
}

#[test]
fn a_changed_input_plans_the_readers_of_the_changed_key() {
    let mut index = Index::new("shop".into(), 0);
    wakes(&mut index, applied(reader("a", "one")), &["a"]);
    wakes(&mut index, applied(reader("b", "two")), &["b"]);
    assert_eq!(index.take_desired_inputs(), Some(BTreeSet::from([input_key()])), "one object, read once for both");
    assert_eq!(index.instance("a").unwrap().inputs.problems[0].reason, model::Reason::Waiting);
    let unread = index.fingerprint(&Address::single("a"));
    wakes(&mut index, holding(&[("one", "1"), ("two", "2")]), &["a", "b"]);
    assert_eq!(index.instance("a").unwrap().inputs.problems, []);
    let read = index.fingerprint(&Address::single("a"));
    assert_ne!(read, unread);
    wakes(&mut index, holding(&[("one", "1"), ("two", "3")]), &["b"]);
    wakes(&mut index, holding(&[("one", "1"), ("two", "3")]), &[]);
    wakes(&mut index, Event::Input(input_key(), DataLookup::Missing), &["a", "b"]);
    assert_ne!(index.fingerprint(&Address::single("a")), read, "an object whose input changed is not up to date");
    assert_eq!(index.take_desired_inputs(), None);
    index.apply(Event::ResourceDeleted("a".into()));
    assert_eq!(index.take_desired_inputs(), None);
    wakes(&mut index, applied(Instance { deleting: true, ..reader("b", "two") }), &["a", "b"]);
    assert_eq!(index.take_desired_inputs(), Some(BTreeSet::new()), "a Resource that is being deleted needs no inputs");
}

#[test]
fn a_restart_reads_inputs_again() {
    let mut index = Index::new("shop".into(), 0);
    index.apply(applied(reader("a", "one")));
    index.apply(holding(&[("one", "1")]));
    index.take_desired_inputs();
    index.restart(|_, _| false);
    assert_eq!(index.take_desired_inputs(), Some(BTreeSet::from([input_key()])));
    assert_eq!(index.instance("a").unwrap().inputs.problems[0].reason, model::Reason::Waiting);
}

/// The event of a `ProviderConfig` with this resource version.
pub fn observed_provider_config(object: serde_json::Value, version: u64) -> Event {
    let object = serde_json::from_value(object).unwrap();
    let config =
        engine::load::provider_config_from_raw(&object, &"default".into(), &mut engine::load::Interner::default());
    Event::ProviderConfigApplied(ObservedProviderConfig::of(config, &object, Version(version)))
}

/// A `ProviderConfig` with one attribute, with this resource version and generation.
fn provider_config(name: &str, version: u64, generation: i64, setting: &str) -> Event {
    let object = serde_json::json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": name, "namespace": "shop", "uid": "u", "generation": generation},
        "spec": {"provider": {"name": "cloud"}, "config": {"address": setting}},
    });
    observed_provider_config(object, version)
}

fn clouds() -> Event {
    let cloud = Arc::new(engine::load::ProviderSpec::named("cloud"));
    Event::Providers(Arc::new(BTreeMap::from([(Arc::from("cloud"), cloud)])))
}

fn served(name: &str, by: &str) -> Instance {
    Instance { provider_config: Some(by.into()), ..resource(name, 1, &[]) }
}

#[test]
fn a_provider_config_plans_its_dependents_when_its_spec_changes() {
    let events =
        [clouds(), provider_config("own", 1, 1, "a"), applied(served("disk", "own")), applied(resource("b", 1, &[]))];
    let mut index = index(events);
    wakes(&mut index, provider_config("own", 2, 1, "a"), &[]);
    assert!(index.take_provider_configs_touched());
    wakes(&mut index, provider_config("own", 3, 2, "b"), &["disk"]);
    // A watch event may be older than the last own write.
    wakes(&mut index, provider_config("own", 2, 1, "a"), &[]);
    let view = index.provider_configs(&BTreeMap::new()).remove(0);
    assert_eq!(view.configuration.unwrap().configuration.get("address"), Some(&Value::from("b")));
}

#[test]
fn an_input_is_read_by_a_provider_config_and_by_a_resource_of_the_same_name() {
    let object = serde_json::json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": "own", "namespace": "shop", "uid": "u", "generation": 1},
        "spec": {
            "provider": {"name": "cloud"},
            "inputs": [{"name": "token", "configMapKeyRef": {"name": "site", "key": "two"}}],
            "config": {"address": "${inputs.token}"},
        },
    });
    let config = observed_provider_config(object, 1);
    let mut index = index([clouds(), config, applied(served("disk", "own")), applied(reader("own", "one"))]);
    assert_eq!(index.take_desired_inputs(), Some(BTreeSet::from([input_key()])));
    assert_eq!(evaluated(&index), "Waiting: spec.inputs[0]: ConfigMap `site` is being read");
    wakes(&mut index, holding(&[("one", "1"), ("two", "2")]), &["disk", "own"]);
    assert_eq!(evaluated(&index), r#"{"address":"2"}"#);
    wakes(&mut index, Event::ProviderConfigDeleted("own".into()), &["disk"]);
    wakes(&mut index, holding(&[("one", "1"), ("two", "3")]), &[]);
    wakes(&mut index, holding(&[("one", "3"), ("two", "3")]), &["own"]);
    index.apply(Event::ResourceDeleted("own".into()));
    assert_eq!(index.take_desired_inputs(), Some(BTreeSet::new()));
}

#[test]
fn a_provider_config_that_references_a_family_waits_for_all_instances() {
    let family = serde_json::json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
        "metadata": {"name": "web", "namespace": "shop", "uid": "w", "generation": 1},
        "spec": {"type": "terraform_data", "count": "${size.input}", "config": {}},
    });
    let family = serde_json::from_value(family).unwrap();
    let family = engine::load::from_raw(&family, &"default".into(), &mut engine::load::Interner::default());
    let settings = provider_config("own", 1, 1, "${web.map(w, w.id).join(',')}");
    let mut index = index([clouds(), settings, applied(family), applied(resource("size", 1, &[]))]);
    assert!(evaluated(&index).starts_with("DependencyNotReady: "));
    index.apply(recorded("web[0]", 1, ("id", "a".into())));
    assert!(evaluated(&index).starts_with("DependencyNotReady: "), "the number of instances is unknown");
    index.apply(recorded("size", 1, ("input", Value::from(2))));
    assert!(evaluated(&index).starts_with("DependencyNotReady: "));
    index.apply(recorded("web[1]", 1, ("id", "b".into())));
    // An instance that will be destroyed is not included.
    index.apply(recorded("web[2]", 1, ("id", "c".into())));
    assert_eq!(evaluated(&index), r#"{"address":"a,b"}"#);
}

/// A record of an object with one attribute.
fn recorded(address: &str, version: u64, attribute: (&str, Value)) -> Event {
    let address: Address = address.parse().unwrap();
    let mut stored = record(address.name(), version, &[]);
    let record = Arc::make_mut(&mut stored.record);
    record.address = address;
    record.current = Some(Arc::new(RecordedObject { value: Value::map([attribute]), ..RecordedObject::default() }));
    Event::RecordApplied(stored)
}

/// The configuration of the first `ProviderConfig`, or why it cannot be evaluated.
fn evaluated(index: &Index) -> String {
    match index.provider_configs(&BTreeMap::new()).remove(0).configuration {
        Ok(used) => used.configuration.to_public_json().to_string(),
        Err((reason, message)) => format!("{reason}: {message}"),
    }
}

#[test]
fn a_provider_config_is_used_by_resources_and_by_records() {
    let events = [
        clouds(),
        provider_config("own", 1, 1, "a"),
        provider_config("cloud", 1, 1, "b"),
        applied(served("disk", "own")),
    ];
    let mut index = index(events);
    let used = index.provider_configs(&BTreeMap::new()).remove(1).configuration.unwrap();
    assert_eq!(&*used.name, "own");
    let mut left = record("left", 3, &[]);
    let record = Arc::make_mut(&mut left.record);
    record.current = Some(Arc::new(RecordedObject { provider: Some(used), ..RecordedObject::default() }));
    index.apply(Event::RecordApplied(left));
    let by_prefix = Instance { type_name: "cloud_disk".into(), ..resource("by-prefix", 1, &[]) };
    index.apply(applied(by_prefix));
    let users: Vec<Vec<String>> = index
        .provider_configs(&BTreeMap::new())
        .iter()
        .map(|view| view.users.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(users, [vec!["by-prefix"], vec!["disk", "left"]]);
}

#[test]
fn references_in_a_provider_config_use_recorded_values() {
    let mut index = index([clouds(), provider_config("own", 1, 1, "${server.id}")]);
    assert_eq!(evaluated(&index), "DependencyNotFound: the configuration references `server`, which does not exist");
    index.apply(applied(resource("server", 1, &[])));
    assert_eq!(
        evaluated(&index),
        "DependencyNotReady: the configuration depends on objects that do not exist yet: `server`"
    );
    index.apply(recorded("server", 4, ("id", "i-1".into())));
    assert_eq!(evaluated(&index), r#"{"address":"i-1"}"#);
    // Some instances of a family may exist before others.
    index.apply(provider_config("own", 2, 2, "${web[1].id}"));
    index.apply(applied(resource("web", 1, &[])));
    index.apply(recorded("web[0]", 5, ("id", "w-0".into())));
    assert_eq!(
        evaluated(&index),
        "DependencyNotReady: the configuration depends on objects that do not exist yet: `web`"
    );
    index.apply(recorded("web[1]", 6, ("id", "w-1".into())));
    assert_eq!(evaluated(&index), r#"{"address":"w-1"}"#);
}

#[test]
fn a_provider_config_that_a_new_list_lacks_no_longer_exists() {
    let configs = [clouds(), provider_config("own", 2, 1, "a"), provider_config("other", 2, 1, "a")];
    let mut index = index(configs.into_iter().chain([applied(served("disk", "own")), applied(served("b", "other"))]));
    index.apply(Event::Relisting(ListedKind::ProviderConfigs));
    // It is listed at the version of the last own write, or before.
    index.apply(provider_config("other", 1, 1, "a"));
    wakes(&mut index, Event::Listed(ListedKind::ProviderConfigs), &["disk"]);
}
