//! Events of records, own writes and reads.

use super::*;
use model::DeposedKey;

#[test]
fn events_up_to_the_own_version_are_ignored() {
    let mut index = index([applied(resource("a", 1, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    wakes(&mut index, Event::RecordApplied(record("a", 5, &[])), &[]);
    index.end(&address, Written::Record(record("a", 7, &[])));
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &[]);
    wakes(&mut index, Event::RecordApplied(record("a", 7, &[])), &[]);
    assert_eq!(index.records()[&address].version, Version(7));
    wakes(&mut index, Event::RecordApplied(record("a", 8, &[])), &["a"]);
}

#[test]
fn a_write_of_another_process_during_a_step_counts_after_it() {
    let mut index = index([]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.apply(Event::RecordApplied(record("a", 9, &["b"])));
    index.end(&address, Written::Record(record("a", 7, &[])));
    assert!(index.take_changes().names.contains("a") && index.take_changed_records().contains(&address));
    assert_eq!(index.records()[&address].version, Version(9));
}

#[test]
fn only_changes_that_no_step_made_outdate_what_was_planned() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    let outdated = |index: &mut Index| !index.take_changed_records().is_empty();
    assert!(outdated(&mut index));
    index.begin(&address, step());
    index.end(&address, Written::Record(record("a", 6, &["b"])));
    index.apply(Event::RecordApplied(record("a", 7, &["b"])));
    assert!(!outdated(&mut index), "it was written again as it is");
    index.begin(&address, Work::Recovery);
    index.apply(Event::RecordApplied(record("a", 8, &["b"])));
    index.end(&address, Written::Nothing);
    assert!(!outdated(&mut index));
    index.begin(&address, Work::Recovery);
    index.end(&address, Written::Record(record("a", 9, &[])));
    assert!(outdated(&mut index));
    index.begin(&address, Work::Recovery);
    index.end(&address, Written::Missing);
    assert!(outdated(&mut index) && index.records().is_empty());
}

#[test]
fn records_of_the_same_object_are_found_until_their_object_changes() {
    let with_id = |name: &str, id: &str, version| {
        let mut stored = record(name, version, &[]);
        let value = Value::map([("id", Value::String(id.into()))]);
        let object = Arc::new(RecordedObject { value, ..RecordedObject::default() });
        Arc::make_mut(&mut stored.record).current = Some(object);
        stored
    };
    let [a, b, c] = [("a", "1"), ("b", "2"), ("c", "1")].map(|(name, id)| with_id(name, id, 5));
    let mut index = index([&a, &b, &c].map(|stored| Event::RecordApplied(stored.clone())));
    let others = |index: &Index, record: &Stored| {
        let others = index.records().others_of_object(&record.record);
        others.map(|stored| stored.record.address.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((others(&index, &a), others(&index, &b)), (vec!["c".to_owned()], Vec::new()));
    index.apply(Event::RecordApplied(with_id("b", "1", 6)));
    index.apply(Event::RecordDeleted(Address::single("c"), Version(6)));
    assert_eq!(others(&index, &a), ["b"]);
    assert_eq!(index.records().objects().values().collect::<Vec<_>>(), [&2]);
    ["a", "b"].into_iter().for_each(|name| index.apply(Event::RecordDeleted(Address::single(name), Version(7))));
    assert!(index.records().objects().is_empty() && others(&index, &a).is_empty());
}

#[test]
fn late_events_do_not_restore_an_erased_record() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &[]);
    assert!(index.records().is_empty());
    assert!(!index.is_empty(), "a new index would take the next late event for a new record");
    // The deletion of the previous record of the object.
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(4)), &[]);
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &[]);
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(7)), &[]);
    wakes(&mut index, Event::RecordApplied(record("a", 8, &[])), &["a"]);
}

#[test]
fn a_record_that_is_deleted_and_listed_during_a_step_and_restored_later_exists() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.apply(Event::RecordDeleted(address.clone(), Version(7)));
    index.apply(Event::Relisting(ListedKind::Records));
    index.apply(Event::Listed(ListedKind::Records));
    index.end(&address, Written::Erased);
    assert!(index.records().is_empty());
    wakes(&mut index, Event::RecordApplied(record("a", 8, &[])), &["a"]);
    assert_eq!(index.records()[&address].version, Version(8));
}

#[test]
fn a_list_removes_a_record_that_a_running_step_has_written() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.apply(Event::RecordApplied(record("a", 6, &[])));
    index.apply(Event::Relisting(ListedKind::Records));
    index.apply(Event::Listed(ListedKind::Records));
    index.end(&address, Written::Record(record("a", 6, &[])));
    assert!(index.records().is_empty());
    // The record of a create.
    index.begin(&address, step());
    index.apply(Event::RecordApplied(record("a", 8, &[])));
    index.apply(Event::Relisting(ListedKind::Records));
    index.apply(Event::Listed(ListedKind::Records));
    index.end(&address, Written::Record(record("a", 8, &[])));
    assert!(index.records().is_empty());
}

#[test]
fn a_read_corrects_what_the_watch_did_not_deliver() {
    let address = Address::single("a");
    let read = |known, found| Event::RecordRead { address: Address::single("a"), known, found };
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let known = index.records().known(&address);
    wakes(&mut index, read(known, None), &["a"]);
    assert!(index.records().is_empty());
    wakes(&mut index, read(known, Some(record("a", 5, &[]))), &[]);
    assert!(index.records().is_empty(), "the index has changed since the read began");
    let unknown = index.records().known(&address);
    wakes(&mut index, read(unknown, Some(record("a", 5, &[]))), &[]);
    assert!(index.records().is_empty(), "the watch may have delivered the deletion of what was read");

    index.apply(Event::RecordApplied(record("a", 7, &[])));
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    let erased = index.records().known(&address);
    assert_eq!(erased, KnownRecord::Erased(Version(7)));
    wakes(&mut index, read(erased, Some(record("a", 9, &[]))), &["a"]);
    assert_eq!(index.records()[&address].version, Version(9));
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(8)), &[]);
    assert_eq!(index.records()[&address].version, Version(9), "the deletion of the earlier record");
}

/// A list that began before the step lacks the record, so its deletion is never delivered.
#[test]
fn an_event_about_an_erased_record_causes_a_read() {
    let mut index = index([]);
    let address = Address::single("a");
    index.apply(Event::Relisting(ListedKind::Records));
    index.begin(&address, step());
    index.end(&address, Written::Record(record("a", 5, &[])));
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    index.apply(Event::Listed(ListedKind::Records));
    index.take_changes();
    wakes(&mut index, Event::RecordApplied(record("a", 5, &[])), &[]);
    assert!(index.take_unconfirmed().is_empty(), "a late event");
    index.apply(Event::Relisting(ListedKind::Records));
    assert_eq!(index.records().known(&address), KnownRecord::Unknown, "the list shows the removal");
    index.apply(Event::Listed(ListedKind::Records));

    index.apply(Event::RecordApplied(record("a", 7, &[])));
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    index.take_changes();
    wakes(&mut index, Event::RecordApplied(record("a", 9, &[])), &[]);
    assert!(index.records().is_empty());
    assert_eq!(index.take_unconfirmed(), BTreeSet::from([address.clone()]));
    let known = index.records().known(&address);
    let read = Event::RecordRead { address: address.clone(), known, found: Some(record("a", 9, &[])) };
    wakes(&mut index, read, &["a"]);
    assert_eq!(index.records()[&address].version, Version(9));
}

#[test]
fn a_late_deletion_does_not_remove_a_newer_own_record() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, step());
    index.end(&address, Written::Erased);
    index.begin(&address, step());
    index.end(&address, Written::Record(record("a", 9, &[])));
    wakes(&mut index, Event::RecordDeleted(address.clone(), Version(7)), &[]);
    assert_eq!(index.records()[&address].version, Version(9));
}

/// Its dependency was create-before-destroy because of the deposed object only.
#[test]
fn the_dependencies_of_a_destroyed_deposed_object_are_planned() {
    let current = record("app", 3, &["db"]);
    let old = RecordedObject { create_before_destroy: true, ..object(&record("app", 3, &["db"])) };
    let mut replaced = Record::clone(&current.record);
    replaced.deposed.insert(DeposedKey(1), Arc::new(old));
    let replaced = Stored { record: Arc::new(replaced), version: Version(3) };
    let events = [applied(marked(resource("app", 1, &[]))), applied(resource("db", 1, &[]))];
    let mut index = index(events.into_iter().chain([Event::RecordApplied(replaced)]));
    let app = Address::single("app");
    index.begin(&app, step());
    index.end(&app, Written::Record(Stored { version: Version(4), ..current }));
    let names = index.take_changes().names;
    assert!(names.contains("db"), "{names:?}");
}

fn object(stored: &Stored) -> RecordedObject {
    stored.record.current.as_deref().unwrap().clone()
}
