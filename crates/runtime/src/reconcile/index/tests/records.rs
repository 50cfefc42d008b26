//! Events of records, own writes and reads.

use super::*;
use model::DeposedKey;

#[test]
fn events_up_to_the_own_version_are_ignored() {
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
fn a_write_of_another_process_during_a_step_counts_after_it() {
    let mut index = index([]);
    let address = Address::single("a");
    index.begin(&address, None);
    index.apply(Event::RecordApplied(record("a", 9, &["b"])));
    index.end(&address, Some(&record("a", 7, &[])));
    let (names, foreign) = index.take_changes();
    assert!(names.contains("a") && foreign.contains(&address));
    assert_eq!(index.records()[&address].version, Version(9));
}

#[test]
fn a_record_that_a_step_did_not_know_exists_after_it() {
    let mut index = index([applied(resource("a", 1, &[])), Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    // It was written between the plan and the step, which fails because of it.
    index.begin(&address, None);
    index.end(&address, None);
    assert_eq!(index.records()[&address].version, Version(5));
    wakes(&mut index, Event::RecordApplied(record("a", 6, &[])), &["a"]);
    // The same, with an older version that the step did know and removes.
    index.begin(&address, Some(Version(4)));
    index.end(&address, None);
    assert_eq!(index.records()[&address].version, Version(6));
}

#[test]
fn late_events_do_not_restore_an_erased_record() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, Some(Version(5)));
    index.end(&address, None);
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
    index.begin(&address, Some(Version(5)));
    index.apply(Event::RecordDeleted(address.clone(), Version(7)));
    index.apply(Event::RecordsRelisting);
    index.apply(Event::RecordsListed);
    index.end(&address, None);
    assert!(index.records().is_empty());
    wakes(&mut index, Event::RecordApplied(record("a", 8, &[])), &["a"]);
    assert_eq!(index.records()[&address].version, Version(8));
}

#[test]
fn a_list_removes_a_record_that_a_running_step_has_written() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, Some(Version(5)));
    index.apply(Event::RecordApplied(record("a", 6, &[])));
    index.apply(Event::RecordsRelisting);
    index.apply(Event::RecordsListed);
    index.end(&address, Some(&record("a", 6, &[])));
    assert!(index.records().is_empty());
    // The record of a create.
    index.begin(&address, None);
    index.apply(Event::RecordApplied(record("a", 8, &[])));
    index.apply(Event::RecordsRelisting);
    index.apply(Event::RecordsListed);
    index.end(&address, Some(&record("a", 8, &[])));
    assert!(index.records().is_empty());
}

#[test]
fn a_read_corrects_what_the_watch_did_not_deliver() {
    let address = Address::single("a");
    let read = |known, found| Event::RecordRead { address: Address::single("a"), known, found };
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let known = index.known_record(&address);
    wakes(&mut index, read(known, None), &["a"]);
    assert!(index.records().is_empty());
    wakes(&mut index, read(known, Some(record("a", 5, &[]))), &[]);
    assert!(index.records().is_empty(), "the index has changed since the read began");
    let unknown = index.known_record(&address);
    wakes(&mut index, read(unknown, Some(record("a", 5, &[]))), &[]);
    assert!(index.records().is_empty(), "the watch may have delivered the deletion of what was read");

    index.apply(Event::RecordApplied(record("a", 7, &[])));
    index.begin(&address, Some(Version(7)));
    index.end(&address, None);
    let erased = index.known_record(&address);
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
    index.apply(Event::RecordsRelisting);
    index.begin(&address, None);
    index.end(&address, Some(&record("a", 5, &[])));
    index.begin(&address, Some(Version(5)));
    index.end(&address, None);
    index.apply(Event::RecordsListed);
    index.take_changes();
    wakes(&mut index, Event::RecordApplied(record("a", 5, &[])), &[]);
    assert!(index.take_unconfirmed().is_empty(), "a late event");
    index.apply(Event::RecordsRelisting);
    assert_eq!(index.known_record(&address), KnownRecord::Unknown, "the list shows the removal");
    index.apply(Event::RecordsListed);

    index.apply(Event::RecordApplied(record("a", 7, &[])));
    index.begin(&address, Some(Version(7)));
    index.end(&address, None);
    index.take_changes();
    wakes(&mut index, Event::RecordApplied(record("a", 9, &[])), &[]);
    assert!(index.records().is_empty());
    assert_eq!(index.take_unconfirmed(), BTreeSet::from([address.clone()]));
    let known = index.known_record(&address);
    let read = Event::RecordRead { address: address.clone(), known, found: Some(record("a", 9, &[])) };
    wakes(&mut index, read, &["a"]);
    assert_eq!(index.records()[&address].version, Version(9));
}

#[test]
fn a_late_deletion_does_not_remove_a_newer_own_record() {
    let mut index = index([Event::RecordApplied(record("a", 5, &[]))]);
    let address = Address::single("a");
    index.begin(&address, Some(Version(5)));
    index.end(&address, None);
    index.begin(&address, None);
    index.end(&address, Some(&record("a", 9, &[])));
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
    index.begin(&app, Some(Version(3)));
    index.end(&app, Some(&Stored { version: Version(4), ..current }));
    let (names, _) = index.take_changes();
    assert!(names.contains("db"), "{names:?}");
}

fn object(stored: &Stored) -> RecordedObject {
    stored.record.current.as_deref().unwrap().clone()
}
