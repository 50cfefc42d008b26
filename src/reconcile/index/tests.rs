use super::*;
use crate::load::Reference;
use crate::model::{Holder, Intent, Operation, Path, PlannedObject, Record, RecordedObject};

fn resource(name: &str, generation: i64, references: &[&str]) -> Instance {
    let reference = |target: &&str| Reference {
        target: Address::single(*target),
        at: Path::default(),
        explicit: true,
        choice: None,
    };
    Instance {
        uid: format!("uid-of-{name}").into(),
        generation,
        references: references.iter().map(reference).collect(),
        service_account: "default".into(),
        ..Instance::plain(Address::single(name), "terraform_data")
    }
}

fn applied(instance: Instance) -> Event {
    Event::ResourceApplied(Observed {
        instance: Arc::new(instance),
        published: Published::default(),
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
    let uid: Arc<str> = format!("uid-of-{name}").into();
    let mut record = Record::empty("shop".into(), Address::single(name), uid, "terraform_data".into());
    record.current = Some(Arc::new(RecordedObject {
        dependencies: used.iter().map(|name| Address::single(*name)).collect(),
        ..RecordedObject::default()
    }));
    Stored { record: Arc::new(record), version: Version(version) }
}

fn index(events: impl IntoIterator<Item = Event>) -> Index {
    let mut index = Index::new("shop".into(), 0);
    for event in events {
        index.apply(event);
    }
    index.take_woken();
    index
}

#[track_caller]
fn wakes(index: &mut Index, event: Event, expected: &[&str]) {
    index.apply(event);
    let (names, _) = index.take_woken();
    assert_eq!(names.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), expected);
}

fn component(index: &Index, name: &str) -> Vec<String> {
    index.component([Arc::from(name)]).iter().map(ToString::to_string).collect()
}

#[test]
fn a_new_generation_wakes_and_our_own_marks_do_not() {
    let mut index = index([applied(resource("a", 1, &[]))]);
    wakes(&mut index, applied(marked(resource("a", 1, &[]))), &[]);
    wakes(&mut index, applied(marked(resource("a", 2, &[]))), &["a"]);
    wakes(&mut index, applied(Instance { suspended: true, ..marked(resource("a", 2, &[])) }), &["a"]);
}

#[test]
fn a_finalizer_taken_off_by_hand_wakes_only_while_there_is_a_record() {
    let finalizer_only = |instance: Instance| Instance { has_finalizer: true, ..instance };
    let mut index = index([applied(finalizer_only(resource("a", 1, &[])))]);
    wakes(&mut index, applied(resource("a", 1, &[])), &[]);
    index.apply(applied(marked(resource("a", 1, &[]))));
    wakes(&mut index, Event::RecordApplied(record("a", 5, &[])), &["a"]);
    wakes(&mut index, applied(resource("a", 1, &[])), &["a"]);
}

#[test]
fn an_annotation_taken_off_by_hand_wakes_though_there_is_no_record_any_more() {
    let mut index = index([applied(marked(resource("a", 1, &[])))]);
    wakes(&mut index, applied(resource("a", 1, &[])), &["a"]);
}

#[test]
fn who_waits_for_a_name_is_found_when_it_appears() {
    let mut index = index([applied(resource("app", 1, &["db"])), applied(resource("other", 1, &[]))]);
    wakes(&mut index, applied(resource("db", 1, &[])), &["db"]);
    assert_eq!(component(&index, "db"), ["app", "db"]);
    assert_eq!(component(&index, "other"), ["other"]);
}

#[test]
fn what_an_open_intent_was_about_to_use_is_connected_with_it() {
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
fn a_wish_is_another_one_when_somebody_changes_it_and_not_when_steps_go_on() {
    let mut index = index([applied(resource("a", 1, &["b"])), applied(resource("b", 1, &[]))]);
    let wish = index.wish("a");
    index.apply(Event::RecordApplied(record("a", 5, &["b"])));
    index.apply(Event::RecordApplied(record("b", 6, &[])));
    index.apply(applied(marked(resource("a", 1, &["b"]))));
    assert_eq!(index.wish("a"), wish);
    index.apply(applied(marked(resource("a", 2, &["b"]))));
    let newer = index.wish("a");
    assert_ne!(newer, wish);
    index.apply(Event::ResourceDeleted("a".into()));
    assert_ne!(index.wish("a"), newer);
}

#[test]
fn components_follow_configuration_and_records_and_fall_apart_again() {
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
fn events_of_our_own_version_or_older_are_ignored() {
    let mut index = index([applied(resource("a", 1, &[]))]);
    let address = Address::single("a");
    index.begin(&address, None);
    wakes(&mut index, Event::RecordApplied(record("a", 5, &[])), &[]);
    index.end(&address, Some(&record("a", 7, &[])));
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &[]);
    wakes(&mut index, Event::RecordApplied(record("a", 7, &[])), &[]);
    assert_eq!(index.records()[&address].version, Version(7));
    wakes(&mut index, Event::RecordApplied(record("a", 8, &[])), &["a"]);
}

#[test]
fn a_foreign_write_during_a_step_counts_after_it() {
    let mut index = index([]);
    let address = Address::single("a");
    index.begin(&address, None);
    index.apply(Event::RecordApplied(record("a", 9, &["b"])));
    index.end(&address, Some(&record("a", 7, &[])));
    let (names, foreign) = index.take_woken();
    assert!(names.contains("a") && foreign.contains(&address));
    assert_eq!(index.records()[&address].version, Version(9));
}

#[test]
fn a_record_that_a_step_knew_nothing_of_is_still_there_after_it() {
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    // It came between the plan and the step, which has failed for that.
    index.begin(&address, None);
    index.end(&address, None);
    assert_eq!(index.records()[&address].version, Version(5));
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &["a"]);
    // The same, beside an older one that the step did know and was to remove.
    index.begin(&address, Some(Version(4)));
    index.end(&address, None);
    assert_eq!(index.records()[&address].version, Version(6));
}

#[test]
fn an_erased_record_does_not_come_back_by_late_events() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, Some(Version(5)));
    index.end(&address, None);
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &[]);
    assert!(index.records().is_empty());
    assert!(!index.is_empty(), "an index that is opened for the next late event would take it for a new record");
    // The end of the record that was there before this one.
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(4)), &[]);
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &[]);
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(7)), &[]);
    wakes(&mut index, Event::RecordApplied(record("a", 8, &[])), &["a"]);
}

#[test]
fn a_late_deletion_does_not_remove_what_we_made_anew() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, Some(Version(5)));
    index.end(&address, None);
    index.begin(&address, None);
    index.end(&address, Some(&record("a", 9, &[])));
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(7)), &[]);
    assert_eq!(index.records()[&address].version, Version(9));
}

#[test]
fn what_a_new_list_lacks_is_gone_but_not_what_we_wrote_meanwhile() {
    let mut index = index([
        applied(resource("a", 1, &[])),
        Event::RecordApplied(record("a", 5, &[])),
        Event::RecordApplied(record("b", 6, &[])),
    ]);
    index.apply(Event::RecordsRelisting);
    index.apply(Event::ResourcesRelisting);
    index.begin(&Address::single("b"), Some(Version(6)));
    index.end(&Address::single("b"), Some(&record("b", 8, &[])));
    index.apply(Event::RecordsListed);
    index.apply(Event::ResourcesListed);
    assert_eq!(index.records().keys().map(ToString::to_string).collect::<Vec<_>>(), ["b"]);
    assert!(index.instance("a").is_none());
}

#[test]
fn marks_count_as_written_until_the_watch_shows_them() {
    let mut index = index([applied(resource("a", 1, &[]))]);
    let address = Address::single("a");
    index.begin(&address, None);
    index.end(&address, Some(&record("a", 5, &[])));
    index.apply(applied(resource("a", 2, &[])));
    assert!(index.instance("a").unwrap().has_finalizer);
    index.apply(applied(marked(resource("a", 2, &[]))));
    wakes(&mut index, applied(resource("a", 2, &[])), &["a"]);
    assert!(!index.instance("a").unwrap().has_finalizer);
}

#[test]
fn the_fingerprint_moves_with_what_an_object_depends_on_and_nothing_else() {
    let mut index = index([applied(resource("a", 1, &["b"])), Event::RecordApplied(record("b", 5, &[]))]);
    let before = index.fingerprint(&Address::single("a"));
    index.apply(Event::RecordApplied(record("c", 6, &[])));
    index.apply(applied(marked(resource("a", 1, &["b"]))));
    assert_eq!(index.fingerprint(&Address::single("a")), before);
    index.apply(Event::RecordApplied(record("b", 7, &[])));
    assert_ne!(index.fingerprint(&Address::single("a")), before);
}

#[test]
fn a_changed_namespace_wakes_everything_once() {
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("b", 5, &[]))]);
    let namespace = Event::Namespace { value: Value::Null, terminating: Some(Version(1)) };
    wakes(&mut index, namespace.clone(), &["a", "b"]);
    wakes(&mut index, namespace, &[]);
}

#[test]
fn what_we_have_destroyed_goes_without_planning_its_neighbours_that_go_too() {
    let deleting = |name, references: &[&str]| Instance { deleting: true, ..resource(name, 1, references) };
    let mut index =
        index([applied(deleting("a", &[])), applied(deleting("b", &["a"])), applied(resource("c", 1, &["a"]))]);
    wakes(&mut index, Event::ResourceDeleted("a".into()), &["c"]);
    assert_eq!(index.take_gone().into_iter().collect::<Vec<_>>(), ["a".into()]);
    index.apply(Event::RecordApplied(record("b", 4, &[])));
    index.take_woken();
    wakes(&mut index, Event::ResourceDeleted("b".into()), &["a", "b"]);
}

#[test]
fn what_was_another_name_before_belongs_together_with_it() {
    let renamed = |generation, from: &[&str]| Instance {
        moved_from: from.iter().map(|name| Address::single(*name)).collect(),
        ..resource("b", generation, &[])
    };
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("a", 5, &[]))]);
    wakes(&mut index, applied(renamed(1, &["a"])), &["a", "b"]);
    assert_eq!(index.component(["a".into()]).len(), 2);
    let before = index.fingerprint(&Address::single("b"));
    index.apply(Event::RecordApplied(record("a", 6, &[])));
    assert_ne!(index.fingerprint(&Address::single("b")), before);
    index.take_woken();
    wakes(&mut index, applied(renamed(1, &[])), &["a", "b"]);
    assert_eq!(index.component(["a".into()]).len(), 1, "it says so no more");
    let mut leaving = record("a", 7, &[]);
    Arc::make_mut(&mut leaving.record).moving_to = Some(Box::new(Address::single("b")));
    index.apply(Event::RecordApplied(leaving));
    assert_eq!(index.component(["b".into()]).len(), 2, "the record says where it goes");
    index.apply(Event::ResourcesRelisting);
    assert!(index.is_relisting());
    index.apply(Event::ResourcesListed);
    assert!(!index.is_relisting());
}

#[test]
fn what_may_be_meant_by_a_misspelt_name_belongs_together_with_who_says_it() {
    let deleting = || Instance { deleting: true, ..resource("database", 1, &[]) };
    let says = |from: &str| Instance { moved_from: [Address::single(from)].into(), ..resource("orders", 1, &[]) };
    let together = |index: &Index, name: &str| {
        let all: Vec<_> = index.component([name.into()]).into_iter().collect();
        all.join(" ")
    };
    let mut index = index([applied(deleting()), Event::RecordApplied(record("database", 5, &["disk"]))]);
    wakes(&mut index, applied(says("databse")), &["database", "databse", "orders"]);
    assert_eq!(together(&index, "orders"), "database databse disk orders");
    assert_eq!(together(&index, "database"), "database databse disk orders");
    index.apply(applied(resource("database", 1, &[])));
    assert_eq!(together(&index, "database"), "database disk", "it is wanted again");
    index.apply(applied(deleting()));
    index.take_woken();
    wakes(&mut index, applied(says("storage")), &["database", "databse", "orders", "storage"]);
    assert_eq!(together(&index, "database"), "database disk");
    index.apply(applied(says("databse")));
    index.apply(Event::RecordApplied(record("orders", 6, &[])));
    assert_eq!(together(&index, "database"), "database disk", "it has something of its own");
    index.apply(Event::RecordDeleted(Address::single("orders"), Version(7)));
    index.take_woken();
    wakes(&mut index, Event::ResourceDeleted("orders".into()), &["database", "databse", "orders"]);
    index.apply(applied(says("databse")));
    index.apply(Event::ResourceDeleted("database".into()));
    assert_eq!(together(&index, "orders"), "database databse disk orders", "its record is abandoned");
    index.apply(Event::RecordApplied(record("databse", 8, &[])));
    assert_eq!(together(&index, "orders"), "databse orders", "it is no misspelt name");
}

fn reader(name: &str, key: &str) -> Instance {
    let object = input_key().object;
    let input = crate::load::inputs::Input { name: "x".into(), object, key: key.into(), optional: false, position: 0 };
    Instance { inputs: crate::load::Inputs::declared(vec![input]), ..resource(name, 1, &[]) }
}

fn input_key() -> InputKey {
    let object = crate::model::DataRef { kind: crate::model::DataKind::ConfigMap, name: "site".into() };
    InputKey { service_account: "default".into(), object }
}

fn holding(entries: &[(&str, &str)]) -> Event {
    let texts = entries.iter().map(|(key, text)| (Arc::from(*key), Arc::from(*text))).collect();
    Event::Input(input_key(), Data::Present(Arc::new(texts)))
}

#[test]
fn a_changed_input_wakes_those_that_read_what_changed() {
    let mut index = Index::new("shop".into(), 0);
    wakes(&mut index, applied(reader("a", "one")), &["a"]);
    wakes(&mut index, applied(reader("b", "two")), &["b"]);
    assert_eq!(index.take_wanted_inputs(), Some(BTreeSet::from([input_key()])), "one object, read once for both");
    assert_eq!(index.instance("a").unwrap().inputs.problems[0].reason, crate::model::Reason::Waiting);
    let unread = index.fingerprint(&Address::single("a"));
    wakes(&mut index, holding(&[("one", "1"), ("two", "2")]), &["a", "b"]);
    assert_eq!(index.instance("a").unwrap().inputs.problems, []);
    let read = index.fingerprint(&Address::single("a"));
    assert_ne!(read, unread);
    wakes(&mut index, holding(&[("one", "1"), ("two", "3")]), &["b"]);
    wakes(&mut index, holding(&[("one", "1"), ("two", "3")]), &[]);
    wakes(&mut index, Event::Input(input_key(), Data::Missing), &["a", "b"]);
    assert_ne!(index.fingerprint(&Address::single("a")), read, "an object whose input changed is not settled");
    assert_eq!(index.take_wanted_inputs(), None);
    index.apply(Event::ResourceDeleted("a".into()));
    assert_eq!(index.take_wanted_inputs(), None);
    wakes(&mut index, applied(Instance { deleting: true, ..reader("b", "two") }), &["a", "b"]);
    assert_eq!(index.take_wanted_inputs(), Some(BTreeSet::new()), "what is being deleted needs no values");
}

#[test]
fn a_new_task_reads_inputs_anew() {
    let mut index = Index::new("shop".into(), 0);
    index.apply(applied(reader("a", "one")));
    index.apply(holding(&[("one", "1")]));
    index.take_wanted_inputs();
    index.begin_again(|_| false);
    assert_eq!(index.take_wanted_inputs(), Some(BTreeSet::from([input_key()])));
    assert_eq!(index.instance("a").unwrap().inputs.problems[0].reason, crate::model::Reason::Waiting);
}

fn family(instances: &[u64], version: u64) -> crate::store::secrets::Family {
    let at = |index: &u64| Address { name: "web".into(), key: crate::model::InstanceKey::Index(*index) };
    crate::store::secrets::Family {
        namespace: "shop".into(),
        name: "web".into(),
        uid: "u".into(),
        instances: instances.iter().map(at).collect(),
        rebuilt: false,
        version: Some(Version(version)),
    }
}

fn indexed(index: &Index) -> Vec<String> {
    index.indexed(&BTreeSet::from(["web".into()])).map(ToString::to_string).collect()
}

fn record_at(address: &str, version: u64) -> Stored {
    let mut stored = record("web", version, &[]);
    Arc::make_mut(&mut stored.record).address = address.parse().unwrap();
    stored
}

#[test]
fn an_instance_that_left_the_index_of_its_family_wakes_it() {
    let mut index = index([applied(resource("web", 1, &[]))]);
    wakes(&mut index, Event::FamilyApplied(family(&[0], 3)), &[]);
    wakes(&mut index, Event::FamilyApplied(family(&[0, 1], 5)), &[]);
    assert_eq!(indexed(&index), ["web[0]", "web[1]"]);
    wakes(&mut index, Event::FamilyApplied(family(&[1], 6)), &["web"]);
    wakes(&mut index, Event::FamilyDeleted("web".into(), Version(4)), &[]);
    wakes(&mut index, Event::FamilyUnreadable("web".into(), "damaged".into()), &["web"]);
    let config = index.config(&BTreeSet::from(["web".into()]));
    assert_eq!(config.instances[&Address::single("web")].problems[0].reason, crate::model::Reason::RecordUnreadable);
    index.apply(Event::RecordsRelisting);
    wakes(&mut index, Event::RecordsListed, &["web"]);
    assert_eq!(indexed(&index), Vec::<String>::new());
}

#[test]
fn what_we_have_removed_ourselves_is_not_lost_though_a_late_index_still_names_it() {
    let mut index = index([
        applied(resource("web", 1, &[])),
        Event::RecordApplied(record_at("web[0]", 2)),
        Event::FamilyApplied(family(&[0], 3)),
    ]);
    let address: Address = "web[0]".parse().unwrap();
    index.begin(&address, Some(Version(2)));
    index.end(&address, None);
    assert_eq!(indexed(&index), Vec::<String>::new());
    index.apply(Event::FamilyDeleted("web".into(), Version(4)));
    index.apply(Event::RecordDeleted(address, Version(5)));
    assert_eq!(indexed(&index), Vec::<String>::new());
}

#[test]
fn the_marks_of_a_family_stay_until_its_last_record_goes() {
    let mut index = index([
        applied(marked(resource("web", 1, &[]))),
        Event::RecordApplied(record_at("web[0]", 2)),
        Event::RecordApplied(record_at("web[1]", 3)),
    ]);
    for (address, version, has_finalizer) in [("web[0]", 2, true), ("web[1]", 3, false)] {
        let address = address.parse().unwrap();
        index.begin(&address, Some(Version(version)));
        index.end(&address, None);
        assert_eq!(index.instance("web").unwrap().has_finalizer, has_finalizer);
    }
}

#[test]
fn what_becomes_of_one_instance_is_no_news_for_another() {
    let mut index = index([
        applied(resource("web", 1, &[])),
        Event::RecordApplied(record_at("web[0]", 2)),
        Event::RecordApplied(record_at("web[1]", 3)),
    ]);
    let [first, second]: [Address; 2] = ["web[0]", "web[1]"].map(|address| address.parse().unwrap());
    let before = (index.fingerprint(&first), index.fingerprint(&second));
    index.apply(Event::RecordApplied(record_at("web[1]", 4)));
    assert_eq!(index.fingerprint(&first), before.0);
    assert_ne!(index.fingerprint(&second), before.1);
}

/// A `ProviderConfig` with one setting, in this version of the API server and of its spec.
fn settings(name: &str, version: u64, generation: i64, setting: &str) -> Event {
    let object = serde_json::json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig",
        "metadata": {
            "name": name, "namespace": "shop", "uid": "u", "resourceVersion": version.to_string(),
            "generation": generation,
        },
        "spec": {"provider": {"name": "cloud"}, "config": {"address": setting}},
    });
    let object: crate::api::ProviderConfig = serde_json::from_value(object).unwrap();
    let account = Arc::from("default");
    Event::ProviderConfigApplied(crate::controller::watch::observe_settings(
        &object,
        &account,
        &mut crate::load::Interner::default(),
    ))
}

fn clouds() -> Event {
    let cloud = Arc::new(crate::load::ProviderSpec::named("cloud"));
    Event::Providers(Arc::new(BTreeMap::from([(Arc::from("cloud"), cloud)])))
}

fn served(name: &str, by: &str) -> Instance {
    Instance { provider_config: Some(by.into()), ..resource(name, 1, &[]) }
}

#[test]
fn settings_wake_whom_they_serve_when_they_change_and_not_when_their_status_does() {
    let events = [clouds(), settings("own", 1, 1, "a"), applied(served("disk", "own")), applied(resource("b", 1, &[]))];
    let mut index = index(events);
    wakes(&mut index, settings("own", 2, 1, "a"), &[]);
    assert!(index.take_settings_touched());
    wakes(&mut index, settings("own", 3, 2, "b"), &["disk"]);
    // A watch may tell of what was before our own write.
    wakes(&mut index, settings("own", 2, 1, "a"), &[]);
    let view = index.settings(&BTreeMap::new()).remove(0);
    assert_eq!(view.settled.unwrap().settings.get("address"), Some(&Value::from("b")));
}

#[test]
fn settings_that_read_a_family_wait_for_all_of_it() {
    let family = serde_json::json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
        "metadata": {"name": "web", "namespace": "shop", "uid": "w", "generation": 1},
        "spec": {"type": "terraform_data", "count": "${size.input}", "config": {}},
    });
    let account = Arc::from("default");
    let from_json = |json: serde_json::Value| -> Instance {
        let resource: crate::api::Resource = serde_json::from_value(json).unwrap();
        crate::load::from_api(&resource, &account, &mut crate::load::Interner::default())
    };
    let made = |address: &str, value: Value| {
        let address: Address = address.parse().unwrap();
        let mut stored = record(&address.name, 1, &[]);
        let record = Arc::make_mut(&mut stored.record);
        record.address = address;
        record.current = Some(Arc::new(RecordedObject { value, ..RecordedObject::default() }));
        Event::RecordApplied(stored)
    };
    let id = |id: &str| Value::map([("id", Value::from(id))]);
    let told = |index: &Index| match index.settings(&BTreeMap::new()).remove(0).settled {
        Ok(used) => used.settings.to_public_json().to_string(),
        Err((reason, _)) => reason.to_string(),
    };
    let settings = settings("own", 1, 1, "${web.map(w, w.id).join(',')}");
    let mut index = index([clouds(), settings, applied(from_json(family)), applied(resource("size", 1, &[]))]);
    assert_eq!(told(&index), "DependencyNotReady");
    index.apply(made("web[0]", id("a")));
    assert_eq!(told(&index), "DependencyNotReady", "nobody knows how many there are to be");
    index.apply(made("size", Value::map([("input", Value::from(2))])));
    assert_eq!(told(&index), "DependencyNotReady");
    index.apply(made("web[1]", id("b")));
    // One that is still to go is none of them.
    index.apply(made("web[2]", id("c")));
    assert_eq!(told(&index), r#"{"address":"a,b"}"#);
}

#[test]
fn settings_are_used_by_those_they_serve_and_by_those_that_were_made_under_them() {
    let events = [clouds(), settings("own", 1, 1, "a"), settings("cloud", 1, 1, "b"), applied(served("disk", "own"))];
    let mut index = index(events);
    let used = index.settings(&BTreeMap::new()).remove(1).settled.unwrap();
    assert_eq!(&*used.name, "own");
    let mut left = record("left", 3, &[]);
    let record = Arc::make_mut(&mut left.record);
    record.current = Some(Arc::new(RecordedObject { provider: Some(used), ..RecordedObject::default() }));
    index.apply(Event::RecordApplied(left));
    let by_prefix = Instance { type_name: "cloud_disk".into(), ..resource("by-prefix", 1, &[]) };
    index.apply(applied(by_prefix));
    let users: Vec<Vec<String>> = index
        .settings(&BTreeMap::new())
        .iter()
        .map(|view| view.users.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(users, [vec!["by-prefix"], vec!["disk", "left"]]);
}

#[test]
fn settings_that_refer_to_objects_are_told_from_records() {
    let told = |index: &Index| match index.settings(&BTreeMap::new()).remove(0).settled {
        Ok(used) => format!("{:?}", used.settings.get("address").unwrap()),
        Err((reason, message)) => format!("{reason}: {message}"),
    };
    let mut index = index([clouds(), settings("own", 1, 1, "${server.id}")]);
    assert_eq!(told(&index), "DependencyNotFound: the settings refer to `server`, which does not exist");
    index.apply(applied(resource("server", 1, &[])));
    assert_eq!(told(&index), "DependencyNotReady: the settings hang on what is not there yet: `server`");
    let with_id = |stored: &mut Stored, id: &str| {
        let value = Value::map([("id", Value::from(id))]);
        let object = RecordedObject { value, ..RecordedObject::default() };
        Arc::make_mut(&mut stored.record).current = Some(Arc::new(object));
    };
    let mut made = record("server", 4, &[]);
    with_id(&mut made, "i-1");
    index.apply(Event::RecordApplied(made));
    assert_eq!(told(&index), format!("{:?}", Value::from("i-1")));
    // Of a family some instances may be there before others.
    index.apply(settings("own", 2, 2, "${web[1].id}"));
    index.apply(applied(resource("web", 1, &[])));
    let mut instance = |number: u64| {
        let mut stored = record("web", 5 + number, &[]);
        Arc::make_mut(&mut stored.record).address = format!("web[{number}]").parse().unwrap();
        with_id(&mut stored, &format!("w-{number}"));
        index.apply(Event::RecordApplied(stored));
        told(&index)
    };
    assert_eq!(instance(0), "DependencyNotReady: the settings hang on what is not there yet: `web`");
    assert_eq!(instance(1), format!("{:?}", Value::from("w-1")));
}
