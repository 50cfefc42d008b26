mod shown;

use super::*;
use crate::load::{Instance, Reference, Template};
use crate::plan::{Plan, PlannedObject, PreparedStep};
use model::kube_names::generated_suffix;
use model::{ApprovalKind, Name, Path, ReadResult, RecordedObject, ReplaceOrder, Stem, Stored, Version};

fn change(action: Action, before: Option<Value>, after: Option<Value>) -> Change {
    Change { before, after, ..Change::plain(Address::single("a"), "thing", action) }
}

fn object(entries: &[(&str, Value)]) -> Value {
    Value::map(entries.iter().map(|(name, value)| (*name, value.clone())))
}

/// A Resource with a configuration of expressions.
fn instance(name: &str, config: &serde_json::Value) -> (Address, Arc<Instance>) {
    let address = Address::single(name);
    let at = Path::of(&["spec", "config"]);
    let (template, references, _) = Template::parse_json(config, &at, &[]);
    let instance =
        Instance { config: template, references: references.into(), ..Instance::plain(address.clone(), "thing") };
    (address, Arc::new(instance))
}

/// A Resource `a` with a configuration of expressions.
fn configured(config: &serde_json::Value) -> Config {
    with_others(config, &[])
}

/// As [`configured`], beside other Resources.
fn with_others(config: &serde_json::Value, others: &[(&str, serde_json::Value)]) -> Config {
    let others = others.iter().map(|(name, config)| instance(name, config));
    Config { instances: others.chain([instance("a", config)]).collect(), ..Config::default() }
}

fn plain(name: &str, action: Action) -> Change {
    Change::plain(Address::single(name), "thing", action)
}

fn digest_in(config: &Config, change: &Change) -> ChangeDigest {
    Digester::new(b"s", &Plan::default(), config, &Value::Null).change(change).0
}

/// Whether the change still waits for an approval.
fn is_held(approved: &ChangeDigest, change: Change, config: &Config) -> bool {
    guarded(vec![approved.clone()], change, config, &Recorded::new()).unwrap().held().is_some()
}

fn digest(salt: &[u8], change: &Change) -> ChangeDigest {
    Digester::new(salt, &Plan::default(), &Config::default(), &Value::Null).change(change).0
}

fn update(from: i64, to: impl Into<Value>) -> Change {
    let [before, after] =
        [Value::from(from), to.into()].map(|size| Some(object(&[("size", size), ("name", "x".into())])));
    change(Action::Update, before, after)
}

fn prepared(config: Value) -> PreparedStep {
    PreparedStep {
        prior: None,
        replaced: None,
        config,
        planned: Value::Null,
        private: Arc::default(),
        destroy_private: Arc::default(),
        entropy: [0; 16],
        replace_paths: Vec::new(),
        requires_update: false,
        identity: None,
        publish_again: false,
        recorded: RecordedObject::default(),
        deposed_key: model::DeposedKey(0),
        record_only: false,
        is_drift_reported: false,
    }
}

fn approved_changes(changes: impl IntoIterator<Item = ChangeDigest>) -> BTreeMap<Address, Vec<ApprovedChange>> {
    let mut approved: BTreeMap<Address, Vec<ApprovedChange>> = BTreeMap::new();
    for change in changes {
        let of_plan = ApprovedChange { change: change.clone(), approver: Approver::default() };
        approved.entry(change.address).or_default().push(of_plan);
    }
    approved
}

/// A plan in which `a` has a prepared step.
fn prepared_plan(prepared: PreparedStep) -> Plan {
    let object = PlannedObject { prepared: Some(Arc::new(prepared)), ..PlannedObject::default() };
    Plan { objects: BTreeMap::from([(Address::single("a"), Box::new(object))]), ..Plan::default() }
}

/// A plan in which objects depend on others.
fn dependent_plan(changes: impl IntoIterator<Item = Change>, uses: &[(&str, &Address)]) -> Plan {
    let mut plan = Plan::from_iter(changes);
    for (name, used) in uses {
        let object = plan.objects.entry(Address::single(*name)).or_default();
        object.dependencies = Some([(*used).clone()].into());
    }
    plan
}

/// The changes of `a` that need an approval, if updates, replacements and creates do.
fn guarded(approved: Vec<ChangeDigest>, change: Change, config: &Config, recorded: &Recorded) -> Option<Guarded> {
    let kinds = [ApprovalKind::Update, ApprovalKind::Replace];
    let required = RequiredApprovals::from_iter(kinds);
    let approvals = Approvals { required, changes: approved_changes(approved), ..Approvals::default() };
    let plan = Plan::from_iter([change]);
    approvals.guarded(&Digester::new(b"s", &plan, config, &Value::Null), recorded, &BTreeSet::from(["a".into()]))
}

/// The changes of these Resources that need an approval.
fn guarded_of(approvals: &Approvals, plan: &Plan, names: &BTreeSet<Name>) -> Guarded {
    let config = Config::default();
    let digester = Digester::new(b"s", plan, &config, &Value::Null);
    approvals.guarded(&digester, &Recorded::new(), names).unwrap()
}

/// The waiting changes beside those without an approval, as lines.
fn blocks(guarded: &Guarded, plan: &Plan, recorded: &Recorded) -> Vec<String> {
    let offer = Offer { plan: "p".into(), state: OfferState::Open };
    let blocks = followers::blocks(guarded, plan, recorded, &offer).into_iter();
    blocks.map(|(address, block)| format!("{address}: {}", block.message)).collect()
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
        Digester::new(b"s", &Plan::default(), &config, &Value::Null).change(&change).0.digest
    };
    let known = with(Action::Update, "staging", "app");
    assert_ne!(with(Action::Update, "production", "app"), known);
    assert_ne!(with(Action::Update, "staging", "admin"), known);
    assert_eq!(with(Action::Destroy, "staging", "app"), with(Action::Destroy, "production", "app"));
}

#[test]
fn a_sensitive_value_is_part_of_the_digest() {
    let [a, b] = ["a", "b"].map(|text| digest(b"s", &update(1, Value::from(text).into_sensitive())).digest);
    assert_ne!(a, b);
}

#[test]
fn an_unknown_value_may_become_known() {
    let approved = digest(b"s", &update(1, Value::Unknown));
    assert_eq!(approved.unknown_paths, [Path::of(&["size"])]);
    let approvals = Approvals {
        required: RequiredApprovals::from_iter([ApprovalKind::Update]),
        changes: approved_changes([approved]),
        ..Approvals::default()
    };
    let is_approved = |change: Change| {
        let plan = Plan::from_iter([change]);
        let names = BTreeSet::from(["a".into()]);
        let guarded = guarded_of(&approvals, &plan, &names);
        guarded.held().is_none()
    };
    assert!(is_approved(update(1, Value::Unknown)) && is_approved(update(1, Value::from(5))));
    let mut other = update(1, Value::from(5));
    other.after = other.after.map(|after| after.with("name", "y".into()));
    assert!(!is_approved(other), "another attribute changes");
}

#[test]
fn the_random_part_of_a_name_does_not_count() {
    let [first, second] = [1, 2].map(|entropy| {
        let name = format!("db-{}", generated_suffix([entropy; 16]));
        let change = change(Action::Create, None, Some(object(&[("name", Value::from(name.as_str()))])));
        let plan = prepared_plan(PreparedStep { entropy: [entropy; 16], ..prepared(Value::Null) });
        Digester::new(b"s", &plan, &Config::default(), &Value::Null).change(&change).0.digest
    });
    assert_eq!(first, second);
}

#[test]
fn dependents_that_change_wait_too() {
    let changes = [
        plain("a", Action::Update),
        plain("b", Action::NoOp),
        plain("c", Action::Create),
        plain("d", Action::Update),
        plain("e", Action::Destroy),
    ];
    let [a, b] = ["a", "b"].map(Address::single);
    let plan = dependent_plan(changes, &[("b", &a), ("c", &b), ("e", &a)]);
    let approvals =
        Approvals { required: RequiredApprovals::from_iter([ApprovalKind::Update]), ..Approvals::default() };
    let names = BTreeSet::from(["a".into()]);
    let guarded = guarded_of(&approvals, &plan, &names);
    let blocks = blocks(&guarded, &plan, &Recorded::new());
    assert_eq!(blocks, ["c: depends on `a`, whose change waits for an approval"]);
}

#[test]
fn the_differences_name_the_objects() {
    let approved = [
        ("a", Action::Update, "1"),
        ("b", Action::Update, "1"),
        ("c", Action::Update, "1"),
        ("e", Action::Create, "1"),
    ];
    let due = [
        ("a", Action::Update, "1"),
        ("b", Action::Update, "2"),
        ("c", Action::Replace, "3"),
        ("d", Action::Destroy, "4"),
    ];
    let [approved, due] = [approved, due].map(|changes| {
        changes.map(|(name, action, digest)| ChangeDigest {
            address: Address::single(name),
            action,
            digest: digest.to_owned(),
            unknown_paths: Vec::new(),
            applied: false,
        })
    });
    assert_eq!(
        differences(&approved, &due.iter().collect::<Vec<_>>()),
        [
            "b: other attributes change than were approved",
            "c: to be replaced, but the approval is for it to be updated",
            "d: to be destroyed, which the approval does not contain",
        ]
    );
}

/// A literal in the place of an expression, another expression, and an argument that was not configured: none of them was
/// approved.
#[test]
fn an_unknown_value_may_become_known_only_from_its_source() {
    let after = |size: Value, zone: Value| {
        let (before, after) = ([("size", Value::from(1))], [("size", size), ("zone", zone)]);
        change(Action::Update, Some(object(&before)), Some(object(&after)))
    };
    let shown = after(Value::Unknown, Value::Unknown);
    let config = configured(&serde_json::json!({ "size": "${db.size}" }));
    let approved = digest_in(&config, &shown);
    assert_eq!(approved.unknown_paths, [Path::of(&["size"]), Path::of(&["zone"])]);
    let known = after(Value::from(7), Value::from("z"));
    assert!(!is_held(&approved, shown.clone(), &config));
    assert!(!is_held(&approved, known.clone(), &config));
    let with_null = configured(&serde_json::json!({ "size": "${db.size}", "zone": null }));
    assert!(!is_held(&approved, known.clone(), &with_null));
    for other in [
        serde_json::json!({ "size": 7 }),
        serde_json::json!({}),
        serde_json::json!({ "size": "${db.other}" }),
        serde_json::json!({ "size": "${db.size + 1}" }),
        serde_json::json!({ "size": "x${db.size}" }),
        serde_json::json!({ "size": "${db.size}", "zone": "z" }),
    ] {
        assert!(is_held(&approved, known.clone(), &configured(&other)), "{other}");
        assert!(is_held(&approved, shown.clone(), &configured(&other)), "{other}");
    }
    let mut of_other_object = known;
    of_other_object.before = Some(object(&[("size", Value::from(1)), ("id", "other".into())]));
    assert!(is_held(&approved, of_other_object, &config));
}

/// An author of a label or of the object that a data source reads would decide what `a` becomes.
#[test]
fn what_is_read_beside_an_unknown_value_is_covered() {
    let config = configured(&serde_json::json!({ "size": "${db.size} ${ns.labels.tier} ${data.setup.value}" }));
    let update =
        change(Action::Update, Some(object(&[("size", "1 a b".into())])), Some(object(&[("size", Value::Unknown)])));
    let digest = |tier: &str, value: &str| {
        let value = object(&[("value", value.into())]);
        let reading = ReadResult { config: Value::Null, provider: None, service_account: "".into(), value };
        let read = PlannedObject { reading: Some(Arc::new(reading)), ..PlannedObject::default() };
        let plan = Plan { objects: [(Address::data("setup"), Box::new(read))].into(), ..Plan::default() };
        let namespace = object(&[("labels", object(&[("tier", tier.into())]))]);
        Digester::new(b"s", &plan, &config, &namespace).change(&update).0.digest
    };
    let approved = digest("one", "two");
    assert_eq!(approved, digest("one", "two"));
    assert_ne!(approved, digest("other", "two"));
    assert_ne!(approved, digest("one", "other"));
}

/// What an expression reads decides about its value: the author of another object would decide what `a` becomes.
#[test]
fn an_unknown_value_comes_only_from_what_its_expression_reads() {
    let json = serde_json::json!({ "size": "${db.size}", "zone": "${net.zone}" });
    let of = |db: &str, below: &str, net: &str| {
        let others = [
            ("db", serde_json::json!({ "size": db, "class": "${below.class}" })),
            ("below", serde_json::json!({ "class": below, "up": "${db.size}" })),
            ("net", serde_json::json!({ "zone": net })),
        ];
        with_others(&json, &others)
    };
    let known = of("1", "x", "eu");
    let [before, unknown, after] = [Value::from(0), Value::Unknown, Value::from(7)]
        .map(|size| Some(object(&[("size", size), ("zone", "eu".into())])));
    let approved = digest_in(&known, &change(Action::Update, before.clone(), unknown));
    let update = change(Action::Update, before, after);
    let is_approved = |config: &Config| !is_held(&approved, update.clone(), config);
    assert!(is_approved(&known));
    assert!(!is_approved(&of("2", "x", "eu")), "what it reads has changed");
    assert!(!is_approved(&of("1", "y", "eu")), "and what this reads; that both read each other is an error of its own");
    assert!(is_approved(&of("1", "x", "us")), "only another argument reads it");
    let mut moved = of("1", "x", "eu");
    let other =
        Instance { provider_config: Some("other".into()), ..Instance::clone(&moved.instances[&Address::single("db")]) };
    moved.instances.insert(Address::single("db"), Arc::new(other));
    assert!(!is_approved(&moved), "it is read with other credentials");
    moved.instances.remove(&Address::single("db"));
    assert!(!is_approved(&moved));
}

/// A family whose objects read all objects of another one, and a chain of many objects.
#[test]
fn what_gives_an_unknown_value_is_found_in_bounded_time_and_depth() {
    let mut instances: BTreeMap<Address, Arc<Instance>> = BTreeMap::new();
    for number in 0..20_000_u64 {
        let used = format!("${{c{}.size}}", number + 1);
        instances.extend([instance(&format!("c{number}"), &serde_json::json!({ "size": used }))]);
    }
    let mut reader = Instance::clone(&instance("x", &serde_json::json!({ "size": "${web.map(one, one.size)}" })).1);
    let whole =
        reader.references.iter().map(|reference| Reference { target: Address::family("web"), ..reference.clone() });
    reader.references = whole.collect();
    let mut users = Vec::new();
    for number in 0..5_000 {
        let [web, user] = ["web", "user"].map(|name| Stem::from(name).instance(model::InstanceKey::Index(number)));
        instances.insert(web.clone(), Arc::new(Instance::plain(web, "thing")));
        instances.insert(user.clone(), Arc::new(Instance { address: user.clone(), ..reader.clone() }));
        users.push(user);
    }
    let config = Config { instances, ..Config::default() };
    let (plan, began) = (Plan::default(), std::time::Instant::now());
    let digester = Digester::new(b"s", &plan, &config, &Value::Null);
    let create = change(Action::Create, None, Some(object(&[("size", Value::Unknown)])));
    let digest_of = |address: Address| digester.change(&Change { address, ..create.clone() }).0.digest;
    let digests: BTreeSet<String> = users.into_iter().map(digest_of).collect();
    assert_eq!(digests.len(), 5_000);
    assert_ne!(digest_of(Address::single("c0")), digest_of(Address::single("c1")));
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn an_unknown_value_in_a_list_has_the_source_of_its_argument() {
    let [before, unknown, after] = [Value::from("0"), Value::Unknown, Value::from("9")].map(|id| {
        let rules = Value::list([object(&[("id", id), ("port", Value::from(1))])]);
        Some(object(&[("rules", rules)]))
    });
    let [known, other] = ["${a.b}", "${a.c}"]
        .map(|port| configured(&serde_json::json!({ "rules": [{ "id": "${db.id}", "port": port }] })));
    let approved = digest_in(&known, &change(Action::Update, before.clone(), unknown));
    assert_eq!(approved.unknown_paths[0].to_string(), "rules[0].id");
    let update = change(Action::Update, before, after);
    assert!(!is_held(&approved, update.clone(), &known) && is_held(&approved, update, &other));
}

#[test]
fn many_unknown_places_are_grouped() {
    let items = (0..2000).map(|number| object(&[("id", Value::Unknown), ("number", Value::from(number))]));
    let create = change(Action::Create, None, Some(object(&[("items", Value::list(items)), ("name", "x".into())])));
    assert_eq!(digest(b"s", &create).unknown_paths, [Path::of(&["items"])]);
}

#[test]
fn an_argument_that_the_service_does_not_return_is_part_of_the_digest() {
    let [first, same, other] = ["x", "x", "y"].map(|password| {
        let config = object(&[("password_wo", password.into()), ("size", Value::from(2))]);
        let plan = prepared_plan(prepared(config));
        Digester::new(b"s", &plan, &Config::default(), &Value::Null).change(&update(1, Value::from(2))).0.digest
    });
    assert_eq!(first, same);
    assert_ne!(first, other);
}

/// Each of these approves something else than it says.
#[test]
fn a_change_counts_only_as_it_was_shown() {
    let replaced = Change { action: Action::Replace, ..update(1, Value::Unknown) };
    let honest = digest(b"s", &replaced);
    assert!(!is_held(&honest, replaced.clone(), &Config::default()));
    let lies = [
        ChangeDigest { action: Action::Update, ..honest.clone() },
        ChangeDigest { unknown_paths: Vec::new(), ..honest.clone() },
        ChangeDigest { unknown_paths: vec![Path::default()], ..honest.clone() },
        ChangeDigest { address: Address::single("b"), ..honest.clone() },
    ];
    for lie in lies {
        assert!(is_held(&lie, replaced.clone(), &Config::default()), "{lie:?}");
        assert_ne!(digest_of([&lie]), digest_of([&honest]), "the digest of a Plan covers what it says: {lie:?}");
    }
    let made = ChangeDigest { applied: true, ..honest.clone() };
    assert_eq!(digest_of([&made]), digest_of([&honest]));
    let [shop, test] = ["shop", "test"].map(|namespace| {
        let config = Config { namespace: namespace.into(), ..Config::default() };
        digest_in(&config, &replaced).digest
    });
    assert_ne!(shop, test);
}

#[test]
fn the_digest_of_nothing_approves_nothing() {
    let digests = BTreeMap::from([(digest_of([]).into(), Approver::default())]);
    let required = RequiredApprovals::from_iter([ApprovalKind::Update]);
    let approvals = Approvals { required, digests, ..Approvals::default() };
    let plan = Plan::from_iter([update(1, Value::from(2))]);
    let names = BTreeSet::from(["a".into()]);
    let guarded = guarded_of(&approvals, &plan, &names);
    assert!(guarded.held().is_some());
}

/// The create after the destroy: as approved, with a value that has become known, and another one.
#[test]
fn the_second_half_of_a_replacement_creates_what_was_approved() {
    let address = Address::single("a");
    let config = configured(&serde_json::json!({ "size": "${db.size}" }));
    let other_source = configured(&serde_json::json!({ "size": 7 }));
    let new = |size: Value, name: &str| object(&[("size", size), ("name", name.into())]);
    let replacement = Change {
        order: Some(ReplaceOrder::DestroyFirst),
        ..change(Action::Replace, Some(new(Value::from(1), "x")), Some(new(Value::Unknown, "x")))
    };
    let approved = Digester::new(b"s", &Plan::default(), &config, &Value::Null).change(&replacement).0;
    let whole = guarded(vec![approved], replacement, &config, &Recorded::new()).unwrap();
    let object = whole.changes[0].approval.clone().unwrap().new_object.unwrap();
    let begun = |approved_object: Option<Box<ApprovedObject>>| {
        let mut record = Record::empty("shop".into(), address.clone(), "u".into(), "thing".into());
        (record.replacement_pending, record.approved_object) = (true, approved_object);
        Recorded::from([(address.clone(), Stored { record: Arc::new(record), version: Version(1) })])
    };
    let create = |size: Value, name: &str| change(Action::Create, None, Some(new(size, name)));
    let waits = |create: Change, config: &Config, recorded: &Recorded| {
        guarded(Vec::new(), create, config, recorded).is_some_and(|guarded| guarded.held().is_some())
    };
    let recorded = begun(Some(object));
    assert!(!waits(create(Value::Unknown, "x"), &config, &recorded));
    assert!(!waits(create(Value::from(7), "x"), &config, &recorded));
    assert!(waits(create(Value::from(7), "x"), &other_source, &recorded), "a literal");
    assert!(waits(create(Value::from(7), "y"), &config, &recorded), "another name");
    assert!(waits(create(Value::from(7), "x"), &config, &begun(None)), "it was begun without an approval");
    assert!(!waits(create(Value::from(7), "x"), &config, &Recorded::new()), "creates need none here");
}

/// `c` waits for an approval and uses `a`, so that `a` cannot be replaced; `b` depends on `a`.
#[test]
fn what_depends_on_a_replacement_that_cannot_begin_waits_too() {
    let a = Address::single("a");
    let blocked = |order: ReplaceOrder, action: Action| {
        let replacement = Change { order: Some(order), ..plain("a", Action::Replace) };
        let changes = [replacement, plain("b", Action::Update), plain("c", action)];
        let plan = dependent_plan(changes.clone(), &[("b", &a), ("c", &a)]);
        let waiting = Digester::new(b"s", &plan, &Config::default(), &Value::Null).change(&changes[2]).0;
        let changes = vec![GuardedChange { digest: waiting, proof: ChangeProof::default(), approval: None }];
        blocks(&Guarded { changes, digest: String::new(), unnamed: None }, &plan, &Recorded::new())
    };
    let both = [
        "a: must stay for `c`, whose change waits for an approval",
        "b: depends on `a`, which must stay because of `c`, whose change waits for an approval",
    ];
    assert_eq!(blocked(ReplaceOrder::DestroyFirst, Action::Update), both);
    assert!(blocked(ReplaceOrder::CreateFirst, Action::Update).is_empty(), "the new object can be created");
}

#[test]
fn what_depends_on_a_family_waits_for_each_of_its_instances() {
    let instance = Stem::from("a").instance(model::InstanceKey::Index(0));
    let changes = [instance, Address::single("b")].map(|address| Change::plain(address, "thing", Action::Update));
    let plan = dependent_plan(changes.clone(), &[("b", &Address::family("a"))]);
    let waiting = Digester::new(b"s", &plan, &Config::default(), &Value::Null).change(&changes[0]).0;
    let changes = vec![GuardedChange { digest: waiting, proof: ChangeProof::default(), approval: None }];
    let guarded = Guarded { changes, digest: String::new(), unnamed: None };
    assert_eq!(blocks(&guarded, &plan, &Recorded::new()), ["b: depends on `a[0]`, whose change waits for an approval"]);
}
