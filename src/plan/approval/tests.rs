use super::*;
use crate::load::Instance;
use crate::model::ApprovalKind;
use crate::plan::PreparedStep;

fn change(action: Action, before: Option<Value>, after: Option<Value>) -> Change {
    Change { before, after, ..Change::plain(Address::single("a"), "thing", action) }
}

fn object(entries: &[(&str, Value)]) -> Value {
    Value::map(entries.iter().map(|(name, value)| (*name, value.clone())))
}

fn digest(salt: &[u8], change: &Change) -> ChangeDigest {
    Digester::new(salt, &Plan::default(), &Config::default()).change(change)
}

fn update(from: i64, to: impl Into<Value>) -> Change {
    let side = |size: Value| object(&[("size", size), ("name", "x".into())]);
    change(Action::Update, Some(side(Value::from(from))), Some(side(to.into())))
}

#[test]
fn a_digest_covers_what_changes_and_nothing_else() {
    let known = digest(b"s", &update(1, Value::from(2)));
    assert_eq!(digest(b"s", &update(1, Value::from(2))), known);
    assert_ne!(digest(b"s", &update(1, Value::from(3))).digest, known.digest);
    assert_ne!(
        digest(b"s", &update(0, Value::from(2))).digest,
        known.digest,
        "the present value is part of the change"
    );
    assert_ne!(digest(b"t", &update(1, Value::from(2))).digest, known.digest, "it has a salt");
    // An attribute that the service changes, such as a counter, and that is not part of the change.
    let mut other = update(1, Value::from(2));
    for side in [&mut other.before, &mut other.after] {
        *side = side.as_ref().map(|value| value.with("counter", Value::from(7)));
    }
    assert_eq!(digest(b"s", &other).digest, known.digest);
    let replacement = Change { action: Action::Replace, ..update(1, Value::from(2)) };
    assert_ne!(digest(b"s", &replacement).digest, known.digest);
}

#[test]
fn the_credentials_of_a_change_are_part_of_the_digest() {
    let with = |action: Action, provider_config: &str, service_account: &str| {
        let address = Address::single("a");
        let provider_config = Some(provider_config.into());
        let plain = Instance::plain(address.clone(), "thing");
        let instance = Instance { provider_config, service_account: service_account.into(), ..plain };
        let config = Config { instances: BTreeMap::from([(address, Arc::new(instance))]), ..Config::default() };
        let change = Change { action, ..update(1, Value::from(2)) };
        Digester::new(b"s", &Plan::default(), &config).change(&change).digest
    };
    let known = with(Action::Update, "staging", "app");
    assert_ne!(with(Action::Update, "production", "app"), known);
    assert_ne!(with(Action::Update, "staging", "admin"), known);
    assert_eq!(with(Action::Destroy, "staging", "app"), with(Action::Destroy, "production", "app"));
}

#[test]
fn a_sensitive_value_is_part_of_the_digest() {
    let secret = |text: &str| update(1, Value::from(text).into_sensitive());
    assert_ne!(digest(b"s", &secret("a")).digest, digest(b"s", &secret("b")).digest);
}

#[test]
fn an_unknown_value_may_become_known() {
    let approved = digest(b"s", &update(1, Value::Unknown));
    assert_eq!(approved.unknown_paths, [Path::of(&["size"])]);
    let approvals = Approvals {
        required: RequiredApprovals::from_iter([ApprovalKind::Update]),
        changes: BTreeMap::from([(Address::single("a"), vec![ApprovedChange { change: approved, by: None }])]),
        ..Approvals::default()
    };
    let is_approved = |change: Change| {
        let plan = Plan { changes: vec![change], ..Plan::default() };
        let names = BTreeSet::from(["a".into()]);
        let guarded = approvals.guarded(b"s", &plan, &Config::default(), &Recorded::new(), &names).unwrap();
        guarded.held().is_none()
    };
    assert!(is_approved(update(1, Value::Unknown)) && is_approved(update(1, Value::from(5))));
    let mut other = update(1, Value::from(5));
    other.after = other.after.map(|after| after.with("name", "y".into()));
    assert!(!is_approved(other), "another attribute changes");
}

#[test]
fn the_random_part_of_a_name_does_not_count() {
    let planned = |entropy: u8| {
        let name = format!("db-{}", generated_suffix([entropy; 16]));
        let change = change(Action::Create, None, Some(object(&[("name", Value::from(name.as_str()))])));
        let prepared = PreparedStep {
            prior: None,
            replaced: None,
            config: Value::Null,
            planned: Value::Null,
            private: Arc::default(),
            destroy_private: Arc::default(),
            entropy: [entropy; 16],
            replace_paths: Vec::new(),
            requires_update: false,
            identity: None,
            publish_again: false,
            recorded: crate::model::RecordedObject::default(),
            deposed_key: crate::model::DeposedKey(0),
            record_only: false,
        };
        let prepared = BTreeMap::from([(Address::single("a"), prepared)]);
        let plan = Plan { prepared, ..Plan::default() };
        Digester::new(b"s", &plan, &Config::default()).change(&change).digest
    };
    assert_eq!(planned(1), planned(2));
}

#[test]
fn dependents_that_change_wait_too() {
    let of = |name: &str, action| Change::plain(Address::single(name), "thing", action);
    let uses = |name: &str, used: &str| (Address::single(name), Arc::from([Address::single(used)]));
    let plan = Plan {
        changes: vec![
            of("a", Action::Update),
            of("b", Action::NoOp),
            of("c", Action::Create),
            of("d", Action::Update),
            of("e", Action::Destroy),
        ],
        dependencies: BTreeMap::from([uses("b", "a"), uses("c", "b"), uses("e", "a")]),
        ..Plan::default()
    };
    let approvals =
        Approvals { required: RequiredApprovals::from_iter([ApprovalKind::Update]), ..Approvals::default() };
    let names = BTreeSet::from(["a".into()]);
    let guarded = approvals.guarded(b"s", &plan, &Config::default(), &Recorded::new(), &names).unwrap();
    let blocks = guarded.blocks_of_dependents(&plan);
    assert_eq!(blocks.iter().map(|(address, _)| address.to_string()).collect::<Vec<_>>(), ["c"]);
    assert_eq!(blocks[0].1.message, "depends on `a`, whose change waits for an approval");
}

#[test]
fn the_differences_name_the_objects() {
    let one = |name: &str, action, digest: &str| ChangeDigest {
        address: Address::single(name),
        action,
        digest: digest.to_owned(),
        unknown_paths: Vec::new(),
        applied: false,
    };
    let approved = [
        one("a", Action::Update, "1"),
        one("b", Action::Update, "1"),
        one("c", Action::Update, "1"),
        one("e", Action::Create, "1"),
    ];
    let due = [
        one("a", Action::Update, "1"),
        one("b", Action::Update, "2"),
        one("c", Action::Replace, "3"),
        one("d", Action::Destroy, "4"),
    ];
    assert_eq!(
        differences(&approved, &due.iter().collect::<Vec<_>>()),
        [
            "b: other attributes change than were approved",
            "c: to be replaced, but the approval is for it to be updated",
            "d: to be destroyed, which the approval does not contain",
        ]
    );
}
