use std::sync::Arc;

use expect_test::expect;
use futures::future::join_all;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use testkit::records::typical;

fn holder(process: &str) -> Holder {
    Holder { pod: "".into(), process: process.into() }
}

fn open(directory: &TempDir) -> StateFile {
    StateFile::open(&directory.path().join("purlin.db"), "shop", holder("p1")).unwrap()
}

/// The message of an error without its variable parts.
fn message<T>(directory: &TempDir, outcome: Result<T, StateError>) -> String {
    let text = outcome.err().unwrap().to_string();
    text.replace(&format!("{}/", directory.path().display()), "").replace(&std::process::id().to_string(), "PID")
}

fn stored(record: &Arc<Record>, version: Version) -> Stored {
    Stored { record: record.clone(), version }
}

#[tokio::test]
async fn a_written_record_is_loaded_after_reopening() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    let record = Arc::new(typical(1));
    let version = state.intend(record.clone(), None).await.unwrap();
    drop(state);
    let loaded = open(&directory).load_all().unwrap();
    let stored = &loaded.records[&record.address];
    assert_eq!((&stored.record, stored.version), (&record, version));
    assert!(loaded.unreadable.is_empty());
}

#[tokio::test]
async fn a_write_on_an_old_version_is_a_conflict() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    let record = Arc::new(typical(1));
    let first = state.intend(record.clone(), None).await.unwrap();
    assert!(matches!(state.intend(record.clone(), None).await, Err(JournalError::Conflict { .. })));
    let second = state.record(record.clone(), stored(&record, first)).await.unwrap();
    assert!(second > first);
    assert!(matches!(state.record(record.clone(), stored(&record, first)).await, Err(JournalError::Conflict { .. })));
    assert!(matches!(state.erase(stored(&record, first)).await, Err(JournalError::Conflict { .. })));
    state.erase(stored(&record, second)).await.unwrap();
    assert!(matches!(state.record(record.clone(), stored(&record, second)).await, Err(JournalError::Conflict { .. })));
}

#[tokio::test]
async fn a_record_created_again_never_has_an_old_version() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    let record = Arc::new(typical(1));
    let old = state.intend(record.clone(), None).await.unwrap();
    state.erase(stored(&record, old)).await.unwrap();
    drop(state);
    assert!(open(&directory).intend(record, None).await.unwrap() > old);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_writers_at_once_lose_nothing() {
    let directory = TempDir::new().unwrap();
    let state = Arc::new(open(&directory));
    let writers = (0..100).map(|number| {
        let state = state.clone();
        async move {
            let record = Arc::new(typical(number));
            let mut version = state.intend(record.clone(), None).await.unwrap();
            for _ in 0..10 {
                version = state.record(record.clone(), stored(&record, version)).await.unwrap();
            }
            version
        }
    });
    let versions: Vec<_> = join_all(writers).await;
    let loaded = state.load_all().unwrap();
    assert_eq!(loaded.records.len(), 100);
    for (number, version) in versions.into_iter().enumerate() {
        assert_eq!(loaded.records[&typical(number).address].version, version);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_writers_on_one_version_one_wins() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    let record = Arc::new(typical(1));
    let base = state.intend(record.clone(), None).await.unwrap();
    let outcomes = join_all((0..50).map(|_| state.record(record.clone(), stored(&record, base)))).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
}

#[test]
fn a_second_writer_gets_an_error_that_names_the_holder() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    let second = StateFile::open(&directory.path().join("purlin.db"), "shop", holder("p2"));
    expect![
        "state file `purlin.db` is in use by process PID (hint: wait until that process has ended; stop `purlin dev` with Ctrl-C)"
    ]
    .assert_eq(&message(&directory, second));
    drop(state);
    open(&directory);
}

#[tokio::test]
async fn readers_need_no_lock_and_detect_a_writer() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("purlin.db");
    assert!(StateFile::read(&path).unwrap().is_none());
    let state = open(&directory);
    state.intend(typical(1).into(), None).await.unwrap();
    let during = StateFile::read(&path).unwrap().unwrap();
    assert_eq!((during.loaded.records.len(), during.in_use), (1, true));
    drop(state);
    let after = StateFile::read(&path).unwrap().unwrap();
    assert_eq!((after.namespace.as_deref(), after.in_use), (Some("shop"), false));
}

#[tokio::test]
async fn a_state_file_holds_one_namespace() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("purlin.db");
    drop(open(&directory));
    let state = StateFile::open(&path, "blog", holder("p2")).unwrap();
    state.intend(typical(1).into(), None).await.unwrap();
    drop(state);
    expect!["state file `purlin.db` holds the records of namespace `blog`, not of `shop` (hint: use a separate state file for each namespace, and select it with `--state`)"].assert_eq(&message(&directory, StateFile::open(&path, "shop", holder("p3"))));
}

#[tokio::test]
async fn an_unreadable_record_does_not_affect_the_others() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    for number in 0..3 {
        state.intend(typical(number).into(), None).await.unwrap();
    }
    let other = Connection::open(directory.path().join("purlin.db")).unwrap();
    let of_one = "WHERE address = 'resource-1'";
    let body = other.query_row(&format!("SELECT body FROM record {of_one}"), [], |row| row.get(0));
    let mut body: Vec<u8> = body.unwrap();
    // A format of the future.
    body[0] = 127;
    other.execute(&format!("UPDATE record SET body = ?1 {of_one}"), [body]).unwrap();
    other.execute("UPDATE record SET body = 'text' WHERE address = 'resource-2'", []).unwrap();
    let loaded = state.load_all().unwrap();
    assert_eq!(loaded.records.len(), 1);
    let messages: Vec<_> = loaded.unreadable.iter().map(ToString::to_string).collect();
    expect![[r#"
        the record of resource-1 cannot be read: a newer version of Purlin wrote it (format 127; this version reads formats up to 1) (hint: use the version that wrote it, or a later one)
        the record of resource-2 cannot be read: it is damaged: its column is not a blob (hint: restore it from a backup)"#]].assert_eq(&messages.join("\n"));
}

#[test]
fn a_file_that_is_not_a_state_file_is_left_unchanged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("purlin.db");
    std::fs::write(&path, "these are notes, and certainly no database at all").unwrap();
    expect!["`purlin.db` is not a state file (hint: select the state file with `--state`)"]
        .assert_eq(&message(&directory, StateFile::open(&path, "shop", holder("p1"))));
    expect!["`purlin.db` is not a state file (hint: select the state file with `--state`)"]
        .assert_eq(&message(&directory, StateFile::read(&path)));
    std::fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE photos (name TEXT)").unwrap();
    expect!["`purlin.db` is not a state file (hint: select the state file with `--state`)"]
        .assert_eq(&message(&directory, StateFile::open(&path, "shop", holder("p1"))));
}

#[test]
fn a_state_file_of_a_newer_version_is_rejected() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("purlin.db");
    drop(open(&directory));
    Connection::open(&path).unwrap().execute("UPDATE meta SET value = 2 WHERE key = 'format'", []).unwrap();
    expect!["state file `purlin.db` was created by a newer version of Purlin (hint: use that version)"]
        .assert_eq(&message(&directory, StateFile::open(&path, "shop", holder("p1"))));
}

#[test]
fn a_missing_directory_is_reported_with_a_hint() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("none/purlin.db");
    expect!["state file `none/purlin.db` cannot be opened: No such file or directory (os error 2) (hint: check that the directory exists and that you have access)"].assert_eq(&message(&directory, StateFile::open(&path, "shop", holder("p1"))));
}

#[tokio::test]
async fn damaged_pages_are_reported_as_damage() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("purlin.db");
    let state = open(&directory);
    join_all((0..200).map(|number| state.intend(typical(number).into(), None))).await;
    drop(state);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8192..].fill(0xab);
    std::fs::write(&path, bytes).unwrap();
    expect!["state file `purlin.db` is damaged: database disk image is malformed (hint: restore it from a backup; Purlin keeps a copy from before the last changes in `purlin.db.backup`)"]
        .assert_eq(&message(&directory, StateFile::read(&path)));
}

/// A limit on the size of the database simulates a full disk.
#[tokio::test]
async fn a_full_disk_loses_only_the_failed_write() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory).with_retry_timeout(Duration::ZERO);
    let version = state.intend(typical(1).into(), None).await.unwrap();
    let path = state.path.clone();
    drop(state);
    let (connection, counter) = schema::open_for_writing(&path, "shop", &holder("p1")).unwrap();
    connection.pragma_update(None, "max_page_count", 5).unwrap();
    let writer = Writer::start(&path, connection, counter).unwrap();
    let mut refused = None;
    for number in 2..200 {
        if let Err(refusal) = writer.submit(Change::put(&typical(number), None).unwrap()).await {
            refused = Some(refusal);
            break;
        }
    }
    assert!(matches!(refused, Some(WriteError::Failed(message)) if message.contains("disk is full")));
    drop(writer);
    let loaded = open(&directory).load_all().unwrap();
    assert_eq!(loaded.records[&typical(1).address].version, version);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    state.intend(typical(1).into(), None).await.unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[test]
fn the_owner_stays_when_the_file_moves() {
    let directory = TempDir::new().unwrap();
    let (path, elsewhere) = (directory.path().join("purlin.db"), directory.path().join("moved.db"));
    let owner = open(&directory).owner().clone();
    assert_eq!(&*owner, "state:p1");
    std::fs::rename(&path, &elsewhere).unwrap();
    assert_eq!(StateFile::open(&elsewhere, "shop", holder("p2")).unwrap().owner(), &owner);
    assert_eq!(StateFile::read(&elsewhere).unwrap().unwrap().owner, *owner);
}

#[tokio::test]
async fn objects_of_an_earlier_version_keep_their_owner() {
    let directory = TempDir::new().unwrap();
    let (path, elsewhere) = (directory.path().join("purlin.db"), directory.path().join("moved.db"));
    let state = open(&directory);
    state.intend(Arc::new(typical(1)), None).await.unwrap();
    drop(state);
    Connection::open(&path).unwrap().execute("DELETE FROM meta WHERE key = 'owner'", []).unwrap();
    let by_place = format!("file:{}", path.display());
    assert_eq!(StateFile::read(&path).unwrap().unwrap().owner, by_place);
    assert_eq!(**open(&directory).owner(), by_place);
    std::fs::rename(&path, &elsewhere).unwrap();
    assert_eq!(**StateFile::open(&elsewhere, "shop", holder("p2")).unwrap().owner(), by_place);
}

#[tokio::test]
async fn refresh_times_are_stored_until_the_object_is_due_or_removed() {
    let directory = TempDir::new().unwrap();
    let state = open(&directory);
    let (first, second) = (Arc::new(typical(1)), Arc::new(typical(2)));
    let version = state.intend(first.clone(), None).await.unwrap();
    state.intend(second.clone(), None).await.unwrap();
    assert!(state.load_all().unwrap().reads.is_empty(), "a file without refresh times can be read");
    let both = BTreeSet::from([first.address.clone(), second.address.clone()]);
    let at = |second| Timestamp::from_second(second).unwrap();
    state.record_reads(&both, &BTreeSet::new(), at(7)).unwrap();
    state.record_reads(&BTreeSet::new(), &BTreeSet::from([second.address.clone()]), at(8)).unwrap();
    let reads = state.load_all().unwrap().reads;
    assert_eq!(reads, [(first.address.clone(), at(7))].into(), "an object that is due has no refresh time");
    state.erase(stored(&first, version)).await.unwrap();
    state.record_reads(&BTreeSet::from([second.address.clone()]), &BTreeSet::new(), at(9)).unwrap();
    assert_eq!(state.load_all().unwrap().reads, [(second.address.clone(), at(9))].into());
}
