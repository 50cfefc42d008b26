//! Families: their index, and the records of their instances.

use super::*;
use model::{Name, Stem};

fn family(instances: &[u64], version: u64) -> crate::store::secrets::Family {
    let instances = instances.iter().map(|index| Stem::from("web").instance(model::InstanceKey::Index(*index)));
    crate::store::secrets::Family {
        namespace: "shop".into(),
        name: "web".into(),
        uid: "u".into(),
        instances: instances.collect(),
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
fn a_family_is_planned_when_an_instance_leaves_its_index() {
    let mut index = index([applied(resource("web", 1, &[]))]);
    wakes(&mut index, Event::FamilyApplied(family(&[0], 3)), &[]);
    wakes(&mut index, Event::FamilyApplied(family(&[0, 1], 5)), &[]);
    assert_eq!(indexed(&index), ["web[0]", "web[1]"]);
    wakes(&mut index, Event::FamilyApplied(family(&[1], 6)), &["web"]);
    let rebuilt = crate::store::secrets::Family { rebuilt: true, ..family(&[1], 7) };
    wakes(&mut index, Event::FamilyApplied(rebuilt), &[]);
    wakes(&mut index, Event::FamilyApplied(family(&[1], 8)), &["web"]);
    wakes(&mut index, Event::FamilyDeleted("web".into(), Version(4)), &[]);
    wakes(&mut index, Event::FamilyUnreadable("web".into(), "damaged".into()), &["web"]);
    let config = index.config(&BTreeSet::from(["web".into()]));
    assert_eq!(config.instances[&Address::single("web")].problems[0].reason, model::Reason::RecordUnreadable);
    index.apply(Event::Relisting(ListedKind::Records));
    wakes(&mut index, Event::Listed(ListedKind::Records), &["web"]);
    assert_eq!(indexed(&index), Vec::<String>::new());
}

#[test]
fn a_removed_instance_in_a_late_index_is_not_lost() {
    let mut index = index([
        applied(resource("web", 1, &[])),
        Event::RecordApplied(record_at("web[0]", 2)),
        Event::FamilyApplied(family(&[0], 3)),
    ]);
    let address: Address = "web[0]".parse().unwrap();
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    assert_eq!(indexed(&index), Vec::<String>::new());
    index.apply(Event::FamilyDeleted("web".into(), Version(4)));
    index.apply(Event::RecordDeleted(address, Version(5)));
    assert_eq!(indexed(&index), Vec::<String>::new());
}

#[test]
fn a_family_keeps_its_marks_until_its_last_record_is_removed() {
    let mut index = index([
        applied(marked(resource("web", 1, &[]))),
        Event::RecordApplied(record_at("web[0]", 2)),
        Event::RecordApplied(record_at("web[1]", 3)),
        Event::FamilyApplied(family(&[0, 1], 4)),
    ]);
    for (address, has_finalizer) in [("web[0]", true), ("web[1]", false)] {
        let address = address.parse().unwrap();
        index.begin(&address, step());
        index.end(&address, Written::Erased);
        assert_eq!(index.instance("web").unwrap().has_finalizer, has_finalizer);
    }
}

#[test]
fn a_family_that_lost_its_index_keeps_its_marks_without_its_last_record() {
    for rebuilt in [None, Some(crate::store::secrets::Family { rebuilt: true, ..family(&[0], 3) })] {
        let mut index = index([applied(marked(resource("web", 1, &[]))), Event::RecordApplied(record_at("web[0]", 2))]);
        rebuilt.into_iter().for_each(|family| index.apply(Event::FamilyApplied(family)));
        let address = "web[0]".parse().unwrap();
        index.begin(&address, step());
        index.end(&address, Written::Erased);
        assert!(index.instance("web").unwrap().has_record_annotation());
    }
}

#[test]
fn one_instance_does_not_change_the_fingerprint_of_another() {
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

#[test]
fn a_family_that_no_list_shows_an_index_of_has_lost_it() {
    let name: Name = "web".into();
    let lost = |index: &Index| index.family_loss(&name).map(|(loss, at)| format!("{loss:?} {at}"));
    let mut index = index([applied(marked(resource("web", 1, &[]))), Event::RecordApplied(record_at("web[0]", 2))]);
    assert_eq!(lost(&index), None, "the index can be late");
    let stored = Event::RecordApplied(record_at("web[0]", 2));
    for event in [Event::Relisting(ListedKind::Records), stored.clone(), Event::Listed(ListedKind::Records)] {
        index.apply(event);
    }
    assert_eq!(lost(&index).as_deref(), Some("Index web[1]"));
    let family_index = Event::FamilyApplied(family(&[0], 5));
    for event in [Event::Relisting(ListedKind::Records), stored, family_index, Event::Listed(ListedKind::Records)] {
        index.apply(event);
    }
    assert_eq!(lost(&index), None);
    index.apply(Event::FamilyApplied(crate::store::secrets::Family { rebuilt: true, ..family(&[0], 6) }));
    assert_eq!(lost(&index).as_deref(), Some("Index web[1]"));
}
