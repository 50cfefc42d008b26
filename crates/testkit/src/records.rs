//! Test records: arbitrary ones, and the typical one of the benchmarks.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use model::{
    Address, ApprovedObject, Cause, ChangeKind, ChangeOutcome, ConfigDigest, DataKind, DataRef, DeposedKey, History,
    HistoryEntry, Holder, HookKind, ImportRequest, InstanceKey, Intent, Number, ObjectStatus, ObservedTrigger,
    OnFailure, Operation, Package, Path, PlannedObject, PodRunner, Provider, ProviderUse, PublishedCopy, Readiness,
    Record, RecordedHook, RecordedObject, Resolution, Revision, Stem, Triggers, Value,
};

/// A `terraform_data` object as in the performance budgets: two dependencies, about 300 bytes.
pub fn typical(number: usize) -> Record {
    let mut record = Record::empty(
        "shop".into(),
        Address::single(format!("resource-{number}")),
        "2f1c7a64-93b5-4c8a-8d1e-b0a6f4b1c9d2".into(),
        "terraform_data".into(),
    );
    let text = Value::from(format!("{number}-the-input-of-this-one-and-of-two-others-before-it").as_str());
    record.epoch = 1;
    record.current = Some(Arc::new(RecordedObject {
        value: Value::map([
            ("id", Value::from("0d5e2f36-5f0b-4f65-a0a7-5a2f6d6b7c10")),
            ("input", text.clone()),
            ("output", text),
            ("triggers_replace", Value::Null),
        ]),
        dependencies: [number / 2, number / 3].map(|n| Address::single(format!("resource-{n}"))).into(),
        create_before_destroy: number.is_multiple_of(10),
        service_account: "default".into(),
        ..RecordedObject::default()
    }));
    record
}

fn text<T: From<String> + Debug>() -> impl Strategy<Value = T> {
    prop_oneof!["[a-z]{0,8}", ".{0,12}", "x{600}"].prop_map(T::from)
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::Int),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Number::Float),
        "-?[1-9][0-9]{20,40}(\\.[0-9]{1,20})?".prop_map(|digits| Number::Decimal(digits.into())),
    ]
}

pub fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(Value::Unknown),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::list),
            btree_map(text(), inner.clone(), 0..6).prop_map(|map| Value::Map(map.into())),
            inner.prop_map(Value::into_sensitive),
        ]
    })
}

fn address() -> impl Strategy<Value = Address> {
    let key = prop_oneof![
        Just(InstanceKey::None),
        Just(InstanceKey::All),
        any::<u64>().prop_map(InstanceKey::Index),
        text().prop_map(InstanceKey::Key)
    ];
    ("[a-z]([a-z0-9-]{0,20}[a-z0-9])?", key).prop_map(|(name, key)| Stem::from(name).instance(key))
}

fn bytes() -> impl Strategy<Value = Arc<[u8]>> {
    vec(any::<u8>(), 0..200).prop_map(Arc::from)
}

fn triggers() -> impl Strategy<Value = Triggers> {
    let seen = (text(), vec((address(), any::<u64>()), 0..3));
    let seen = seen.prop_map(|(entry, targets)| ObservedTrigger { entry, targets });
    (any::<u64>(), vec(seen, 0..3)).prop_map(|(salt, seen)| Triggers { salt, entries: seen })
}

fn hook() -> impl Strategy<Value = RecordedHook> {
    let kind = prop_oneof![Just(HookKind::Exec), Just(HookKind::Job)];
    let on_failure = prop_oneof![Just(OnFailure::Fail), Just(OnFailure::Continue)];
    (text(), kind, on_failure, value()).prop_map(|(name, kind, on_failure, definition)| RecordedHook {
        name,
        kind,
        on_failure,
        definition,
    })
}

fn object() -> impl Strategy<Value = RecordedObject> {
    let status = prop_oneof![Just(ObjectStatus::Ready), Just(ObjectStatus::Tainted), Just(ObjectStatus::Interrupted)];
    (
        (value(), bytes(), option::of(value()), any::<u64>(), status),
        vec(address(), 0..4),
        (any::<[bool; 5]>(), vec(hook(), 0..3)),
        (text(), text(), option::of((text(), text(), value()))),
        option::of((any::<u64>(), any::<u64>())),
        (option::of(triggers()), option::of(any::<[u8; 16]>()), option::of(readiness())),
    )
        .prop_map(
            |(own, dependencies, (flags, hooks), (provider_config, service_account, provider), revision, last)| {
                let (triggers, digest, readiness) = last;
                let (value, private, identity, schema_version, status) = own;
                let [create_before_destroy, prevent_destroy, skip_destroy, awaits_postconditions, hooks_pending] =
                    flags;
                RecordedObject {
                    value,
                    private,
                    identity,
                    schema_version,
                    status,
                    dependencies: dependencies.into(),
                    create_before_destroy,
                    prevent_destroy,
                    skip_destroy,
                    awaits_postconditions,
                    hooks: hooks.into(),
                    hooks_pending,
                    readiness,
                    provider_config,
                    service_account,
                    provider: provider.map(|(name, version, settings)| Arc::new(used(name, version, settings))),
                    revision: revision
                        .map_or_else(Revision::default, |(epoch, operation)| Revision { epoch, operation }),
                    triggers: triggers.map(Arc::new),
                    matching_config: digest.map(ConfigDigest),
                }
            },
        )
}

fn time() -> impl Strategy<Value = Timestamp> {
    (-1_000_000_000i64..4_000_000_000, 0..1_000_000_000i32)
        .prop_map(|(seconds, nanoseconds)| Timestamp::new(seconds, nanoseconds).unwrap())
}

fn readiness() -> impl Strategy<Value = Readiness> {
    (time(), any::<bool>(), option::of(any::<u32>())).prop_map(|(until, is_new, deposed)| Readiness {
        until,
        is_new,
        deposed: deposed.map(DeposedKey),
    })
}

fn used(name: Arc<str>, version: Arc<str>, settings: Value) -> ProviderUse {
    let provider = Provider {
        name: name.clone(),
        source: "registry.opentofu.org/hashicorp/random".into(),
        version: version.clone(),
        package: Package::Path("/bin/provider".into()),
        checksums: vec!["zh:00".into()],
        environment: BTreeMap::from([("REGION".into(), Some("x".into()))]),
        files: model::Files { read: vec!["/data".into()], write: Vec::new() },
        max_calls: 3,
        max_memory: Some(1 << 28),
    };
    let environment = BTreeMap::from([("A".to_owned(), version.to_string())]);
    let runner = PodRunner { creator: name.clone(), environment, ..PodRunner::default() };
    let runner = (!version.is_empty()).then(|| Arc::new(runner));
    ProviderUse::new(name, Arc::new(provider), settings).with_runner(runner)
}

fn intent() -> impl Strategy<Value = Intent> {
    use Operation::{Create, Destroy, Forget, Read, Record, Update, Wait};
    let operation = prop::sample::select(vec![Create, Update, Record, Destroy, Forget, Read, Wait]);
    let planned = (value(), value(), bytes(), object()).prop_map(|(config, planned, private, recorded)| {
        PlannedObject { config, planned, private, recorded: Box::new(recorded) }
    });
    let import = prop_oneof![text().prop_map(ImportRequest::Id), value().prop_map(ImportRequest::Identity)];
    // Strategies are large, and a thread of a test has a small stack.
    let planned = planned.boxed();
    let content = (option::of(planned), option::of(import.boxed()), cause().boxed());
    (operation, text(), (text(), text()), any::<u64>(), (time(), time()), any::<Option<u32>>(), content).prop_map(
        |(operation, operation_id, (pod, process), epoch, (started, deadline), deposed, (planned, import, cause))| {
            Intent {
                operation,
                operation_id,
                holder: Holder { pod, process },
                epoch,
                started,
                deadline,
                deposed: deposed.map(DeposedKey),
                planned,
                import,
                cause,
            }
        },
    )
}

fn published() -> impl Strategy<Value = PublishedCopy> {
    let kind = prop_oneof![Just(DataKind::ConfigMap), Just(DataKind::Secret)];
    (kind, (text(), text(), text(), text()), value()).prop_map(|(kind, (name, uid, owner, service_account), data)| {
        PublishedCopy { target: DataRef { kind, name }, uid, owner, service_account, data }
    })
}

fn cause() -> impl Strategy<Value = Cause> {
    (text(), vec(text(), 0..3), any::<u32>(), any::<i64>(), any::<bool>(), text(), text()).prop_map(
        |(because, attributes, more_attributes, generation, replaces, approved_by, approval)| Cause {
            because,
            attributes: attributes.into(),
            more_attributes,
            generation,
            replaces,
            approved_by,
            approval,
        },
    )
}

fn approved_object() -> ApprovedObject {
    let unknown_paths = vec![Path::default(), Path::of(&["size"]).index(1)];
    ApprovedObject { digest: "d".into(), unknown_paths, by: "eve".into(), uses: "u".into() }
}

fn history() -> impl Strategy<Value = History> {
    use ChangeKind::{Create, Destroy, Forget, Hooks, Import, Update};
    use Resolution::{Effective, NoEffect, Read};
    let kind = prop::sample::select(vec![Create, Update, Destroy, Forget, Import, Hooks]);
    let outcome = prop_oneof![
        Just(ChangeOutcome::Succeeded),
        Just(ChangeOutcome::NotReady),
        text().prop_map(ChangeOutcome::Failed),
        prop::sample::select(vec![Effective, NoEffect, Read, Resolution::Hooks]).prop_map(ChangeOutcome::Recovered),
    ];
    let entry = (kind, any::<Option<u32>>(), cause(), (time(), time(), time()), outcome, text(), 1..4u32).prop_map(
        |(kind, deposed, cause, (began, first, now), outcome, operation_id, count)| {
            let entry = HistoryEntry::new(kind, cause, began, now, outcome);
            let first = if count == 1 {
                entry.began
            } else {
                HistoryEntry::new(kind, Cause::default(), first, now, ChangeOutcome::Succeeded).began
            };
            HistoryEntry { deposed: deposed.map(DeposedKey), first, count, operation_id, ..entry }
        },
    );
    vec(entry, 0..3).prop_map(History::from_entries)
}

pub fn record() -> impl Strategy<Value = Record> {
    (
        (text(), address(), text(), text(), text()),
        option::of(object()),
        btree_map(any::<u32>().prop_map(DeposedKey), object().prop_map(Arc::new), 0..3),
        (option::of(intent()), vec(published(), 0..3), history().boxed()),
        (any::<u64>(), any::<u32>(), any::<bool>()),
    )
        .prop_map(
            |(names, current, deposed, (intent, published, history), (epoch, failed_creates, replacement_pending))| {
                let (namespace, address, uid, type_name, handled_replace_request) = names;
                let moving_to = replacement_pending.then(|| Box::new(Address::single("elsewhere")));
                Record {
                    namespace,
                    address,
                    uid,
                    type_name,
                    current: current.map(Arc::new),
                    deposed,
                    published,
                    intent: intent.map(Box::new),
                    epoch,
                    failed_creates,
                    failed_generation: i64::from(failed_creates),
                    replacement_pending,
                    approved_object: replacement_pending.then(|| Box::new(approved_object())),
                    handled_import: if epoch % 3 == 0 { "v1/ConfigMap/a".into() } else { "".into() },
                    handled_replace_request,
                    moving_to,
                    moved_from: (epoch % 2 == 1).then(|| Address::single("before")).into_iter().collect(),
                    history,
                    source: None,
                }
            },
        )
}
