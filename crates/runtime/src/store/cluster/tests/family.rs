//! Families: their index, and the marks that their instances share.

use futures::future::join_all;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_family_has_an_index_and_one_pair_of_marks() {
    let scene = fixture();
    let intents: Vec<_> = (0..50).map(|number| first_intent(&format!("web[{number}]"))).collect();
    let versions = join_all(intents.iter().map(|intent| scene.journal.intend(intent.clone(), None))).await;
    let requests = scene.requests();
    assert_eq!(requests.matches("PATCH web").count(), 1, "{requests}");
    assert!(requests.matches("family").count() <= 2, "{requests}");
    let index = scene.journal.secrets().get_family("shop", &"web".into(), RetryPolicy::SHORT).await.unwrap().unwrap();
    assert_eq!(index.instances.len(), 50);
    *scene.view.recorded.lock().unwrap() = intents.iter().map(|intent| intent.address.clone()).collect();
    let mut lives = intents.into_iter().zip(versions);
    let (last, version) = lives.next().unwrap();
    let erased = join_all(lives.map(|(record, version)| scene.journal.erase(stored(&record, version.unwrap())))).await;
    assert!(erased.iter().all(Result::is_ok));
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (2, &json!([FINALIZER])));
    scene.journal.erase(stored(&last, version.unwrap())).await.unwrap();
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

async fn index(scene: &Fixture) -> Vec<String> {
    let family = scene.journal.secrets().get_family("shop", &"web".into(), RetryPolicy::SHORT).await.unwrap();
    family.iter().flat_map(|family| family.instances.iter().map(ToString::to_string)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_is_indexed_only_with_siblings() {
    let scene = fixture();
    let single = first_intent("web");
    let version = scene.journal.intend(single.clone(), None).await.unwrap();
    assert_eq!(index(&scene).await, Vec::<String>::new(), "a single object needs no index");
    let other = first_intent("web[1]");
    let its_version = scene.journal.intend(other.clone(), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web", "web[1]"]);
    scene.journal.erase(stored(&other, its_version)).await.unwrap();
    assert_eq!(index(&scene).await, Vec::<String>::new());
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    scene.journal.erase(stored(&single, version)).await.unwrap();
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_later_object_without_a_key_joins_and_leaves_the_index() {
    let scene = fixture();
    let other = first_intent("web[1]");
    scene.journal.intend(other.clone(), None).await.unwrap();
    // Another process, which knows only the watches, for a record that was lost meanwhile.
    *scene.view.indexed.lock().unwrap() = vec![other.address.clone()];
    let (own, _stop) = secrets(scene.journal.secrets().caller().client().clone());
    let journal = ClusterJournal::new(own, scene.view.clone());
    let version = journal.intend(first_intent("web"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web", "web[1]"]);
    journal.erase(stored(&first_intent("web"), version)).await.unwrap();
    assert_eq!(index(&scene).await, ["web[1]"]);
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]), "another instance had a record");
}

#[tokio::test(start_paused = true)]
async fn a_lost_object_without_a_key_stays_in_the_index_without_siblings() {
    let scene = fixture();
    let other = first_intent("web[1]");
    scene.journal.intend(first_intent("web"), None).await.unwrap();
    let version = scene.journal.intend(other.clone(), None).await.unwrap();
    // The record of `web` is lost, and another process takes over.
    let (own, _stop) = secrets(scene.journal.secrets().caller().client().clone());
    let journal = ClusterJournal::new(own, scene.view.clone());
    *scene.view.recorded.lock().unwrap() = vec![other.address.clone()];
    journal.erase(stored(&other, version)).await.unwrap();
    assert_eq!(index(&scene).await, ["web"]);
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    journal.release(&"shop".into(), &Address::single("web"), &"u1".into()).await.unwrap();
    assert_eq!(index(&scene).await, Vec::<String>::new());
    assert_eq!(scene.resource()["finalizers"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_a_record_can_be_released() {
    let scene = fixture();
    for address in ["web[0]", "web[1]"] {
        scene.journal.intend(first_intent(address), None).await.unwrap();
    }
    let (namespace, uid) = ("shop".into(), "u1".into());
    scene.journal.release(&namespace, &"web[0]".parse().unwrap(), &uid).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    scene.journal.release(&namespace, &"web[1]".parse().unwrap(), &uid).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_family_is_removed_in_the_reverse_order_of_its_creation() {
    let scene = fixture();
    let intents: Vec<_> = (0..3).map(|number| first_intent(&format!("web[{number}]"))).collect();
    let version = scene.journal.intend(intents[0].clone(), None).await.unwrap();
    assert_eq!(scene.requests(), "GET purlin family, POST secrets, POST secrets, PATCH web");
    let mut stored_intents = vec![stored(&intents[0], version)];
    for intent in &intents[1..] {
        stored_intents.push(stored(intent, scene.journal.intend(intent.clone(), None).await.unwrap()));
        assert_eq!(scene.requests(), "POST secrets, PUT purlin family");
    }
    scene.shows_server(&["web[0]", "web[1]", "web[2]"]);
    let erased = join_all(stored_intents.into_iter().map(|stored| scene.journal.erase(stored))).await;
    assert!(erased.iter().all(Result::is_ok), "{erased:?}");
    // The first removal does not wait; it leaves the others to the second, which makes sure that none was added.
    let requests = scene.requests();
    assert_eq!(
        requests,
        "PUT purlin family, DELETE purlin record, GET purlin family, PATCH web, DELETE purlin family, DELETE purlin \
         record, DELETE purlin record"
    );
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

impl Fixture {
    /// Loses a Secret: its record, or the index of the family.
    fn lose(&self, secret: &str) {
        let name = match secret {
            "index" => crate::store::secrets::family_name("shop", &"web".into()),
            address => crate::store::secrets::record_name("shop", &address.parse().unwrap()),
        };
        let lost =
            self.server.lock().unwrap().objects.remove(&format!("/api/v1/namespaces/purlin-system/secrets/{name}"));
        assert!(lost.is_some(), "{secret}");
    }

    /// Another client removes all finalizers or annotations of the Resource.
    fn remove_marks(&self, marks: &str) {
        let mut server = self.server.lock().unwrap();
        server.objects.get_mut(PATH).unwrap()["metadata"].as_object_mut().unwrap().remove(marks);
    }

    /// The watches show the present Resource and these records.
    fn shows_server(&self, recorded: &[&str]) {
        let meta = ResourceMeta::of(&serde_json::from_value(self.resource()).unwrap(), |text| text.into());
        *self.view.metadata.lock().unwrap() = Some(meta);
        *self.view.recorded.lock().unwrap() = recorded.iter().map(|address| address.parse().unwrap()).collect();
    }

    /// A journal of another process, which knows only the watches.
    fn other_process(&self) -> ClusterJournal {
        let (secrets, _stop) = secrets(self.journal.secrets().caller().client().clone());
        ClusterJournal::new(secrets, self.view.clone())
    }
}

/// A family with two instances that the watches show.
async fn family_of_two() -> Fixture {
    let scene = fixture();
    for address in ["web[0]", "web[1]"] {
        scene.journal.intend(first_intent(address), None).await.unwrap();
    }
    scene.shows_server(&["web[0]", "web[1]"]);
    scene
}

/// Requires that the create is refused with `RecordMissing`, and that no record of it remains. Returns the message.
async fn refused(scene: &Fixture, journal: &ClusterJournal, address: &str) -> String {
    let before = scene.resource();
    let outcome = journal.intend(first_intent(address), None).await;
    let Err(JournalError::Missing(diagnostic)) = outcome else { panic!("{address}: {outcome:?}") };
    let record = scene.journal.secrets().get("shop", &address.parse().unwrap(), RetryPolicy::SHORT).await.unwrap();
    assert!(record.is_none(), "{address}");
    assert_eq!(scene.resource(), before, "the marks stay");
    assert_eq!(diagnostic.reason, model::Reason::RecordMissing);
    diagnostic.message()
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_lost_its_record_is_not_created_again() {
    for index_is_lost in [false, true] {
        for is_same_process in [false, true] {
            let scene = family_of_two().await;
            scene.lose("web[1]");
            if index_is_lost {
                scene.lose("index");
            }
            let other = scene.other_process();
            let journal = if is_same_process { &scene.journal } else { &other };
            scene.shows_server(&["web[0]"]);
            for _ in 0..2 {
                let message = refused(&scene, journal, "web[1]").await;
                assert!(message.contains("purlin state rm 'web[1]'"), "{message}");
            }
            assert!(index(&scene).await.contains(&"web[0]".to_owned()), "the index is written again");
            let cli = scene.other_process();
            cli.release_missing(&"shop".into(), &"web[1]".parse().unwrap(), &"u1".into()).await.unwrap();
            assert_eq!(index(&scene).await, ["web[0]"]);
            journal.intend(first_intent("web[1]"), None).await.unwrap();
            assert_eq!(index(&scene).await, ["web[0]", "web[1]"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_lost_its_index_grows_after_a_user_has_confirmed_it() {
    for is_same_process in [false, true] {
        let scene = family_of_two().await;
        scene.lose("index");
        let other = scene.other_process();
        let journal = if is_same_process { &scene.journal } else { &other };
        for _ in 0..2 {
            let message = refused(&scene, journal, "web[2]").await;
            assert!(message.contains("purlin state rm 'web[2]'"), "{message}");
        }
        assert_eq!(index(&scene).await, ["web[0]", "web[1]"]);
        let cli = scene.other_process();
        cli.release_missing(&"shop".into(), &"web[2]".parse().unwrap(), &"u1".into()).await.unwrap();
        scene.requests();
        journal.intend(first_intent("web[2]"), None).await.unwrap();
        journal.intend(first_intent("web[3]"), None).await.unwrap();
        assert_eq!(index(&scene).await, ["web[0]", "web[1]", "web[2]", "web[3]"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_is_lost_although_a_user_has_removed_the_finalizer() {
    let scene = family_of_two().await;
    scene.lose("index");
    scene.remove_marks("finalizers");
    scene.shows_server(&["web[0]", "web[1]"]);
    refused(&scene, &scene.other_process(), "web[2]").await;
}

#[tokio::test(start_paused = true)]
async fn a_family_gets_its_marks_back() {
    let scene = family_of_two().await;
    *scene.view.indexed.lock().unwrap() = ["web[0]", "web[1]"].map(|address| address.parse().unwrap()).to_vec();
    scene.requests();
    let record = with_object(&first_intent("web[0]"));
    scene.journal.mark(&record).await.unwrap();
    assert_eq!(scene.requests(), "GET web", "another client may have removed them");
    for mark in ["finalizers", "annotations"] {
        scene.remove_marks(mark);
        scene.shows_server(&["web[0]", "web[1]"]);
        scene.journal.mark(&record).await.unwrap();
        assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
        assert_eq!(scene.resource()["annotations"], json!({"purlin.dev/record": "u1"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_lost_all_its_records_and_its_index_creates_nothing() {
    let scene = family_of_two().await;
    ["web[0]", "web[1]", "index"].iter().for_each(|secret| scene.lose(secret));
    scene.shows_server(&[]);
    let other = scene.other_process();
    for address in ["web[0]", "web[2]"] {
        refused(&scene, &other, address).await;
    }
    other.release_missing(&"shop".into(), &"web[0]".parse().unwrap(), &"u1".into()).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!([]));
    other.intend(first_intent("web[0]"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[0]"]);
}

/// Otherwise the Resource would be removed, and the lost object would remain without anything that shows it.
#[tokio::test(start_paused = true)]
async fn a_family_that_lost_its_index_keeps_its_marks_without_its_last_record() {
    for (is_rebuilt, is_same_process) in [(false, false), (false, true), (true, false), (true, true)] {
        let scene = family_of_two().await;
        ["web[1]", "index"].iter().for_each(|secret| scene.lose(secret));
        let other = scene.other_process();
        let journal = if is_same_process { &scene.journal } else { &other };
        scene.shows_server(&["web[0]"]);
        if is_rebuilt {
            refused(&scene, journal, "web[2]").await;
        }
        erase(journal, "web[0]").await;
        assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]), "{is_rebuilt} {is_same_process}");
        scene.shows_server(&[]);
        let cli = scene.other_process();
        cli.release_missing(&"shop".into(), &Address::single("web"), &"u1".into()).await.unwrap();
        assert_eq!(scene.resource()["finalizers"], json!([]), "{is_rebuilt} {is_same_process}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_was_empty_grows_although_the_watches_are_late() {
    let scene = fixture();
    let intent = first_intent("web[0]");
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    scene.shows_server(&["web[0]"]);
    scene.journal.erase(stored(&intent, version)).await.unwrap();
    // The watches still show the marks and the record.
    scene.requests();
    scene.journal.intend(intent.clone(), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[0]"]);
    scene.journal.intend(first_intent("web[1]"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[0]", "web[1]"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_gets_siblings_although_no_watch_shows_its_record() {
    let scene = fixture();
    scene.journal.intend(first_intent("web"), None).await.unwrap();
    scene.shows_server(&[]);
    scene.other_process().intend(first_intent("web[1]"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[1]"]);
}

async fn erase(journal: &ClusterJournal, address: &str) {
    let whose = address.parse().unwrap();
    let found = journal.secrets().get("shop", &whose, RetryPolicy::SHORT).await.unwrap().unwrap();
    let Ok(SecretContent::Record(stored)) = found else { panic!("{found:?}") };
    journal.erase(stored).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_instance_removes_the_marks_although_another_process_has_removed_the_others() {
    let scene = family_of_two().await;
    erase(&scene.other_process(), "web[0]").await;
    scene.shows_server(&["web[1]"]);
    erase(&scene.journal, "web[1]").await;
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn the_marks_stay_if_another_process_has_added_an_instance() {
    let scene = fixture();
    scene.journal.intend(first_intent("web[0]"), None).await.unwrap();
    scene.shows_server(&["web[0]"]);
    scene.other_process().intend(first_intent("web[1]"), None).await.unwrap();
    erase(&scene.journal, "web[0]").await;
    assert_eq!((index(&scene).await, &scene.resource()["finalizers"]), (vec!["web[1]".into()], &json!([FINALIZER])));
}

#[tokio::test(start_paused = true)]
async fn marks_that_another_process_has_removed_are_added_again() {
    let scene = family_of_two().await;
    let other = scene.other_process();
    for address in ["web[0]", "web[1]"] {
        erase(&other, address).await;
    }
    assert_eq!(scene.resource()["finalizers"], json!([]));
    scene.shows_server(&[]);
    scene.journal.forget(&"shop".into());
    scene.journal.intend(first_intent("web[0]"), None).await.unwrap();
    assert_eq!((index(&scene).await, &scene.resource()["finalizers"]), (vec!["web[0]".into()], &json!([FINALIZER])));
}
