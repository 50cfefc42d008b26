//! `purlin state rm` for families that have lost records or their index, on a simulated API server.

use apiserver::NoFaults;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::*;
use crate::cli::args::ColorChoice;
use crate::cli::cluster::{Connection, edited_records};
use crate::cli::options;
use crate::cli::output::Console;
use crate::cli::state::command;
use crate::cli::state::records::{Editor, Records};
use model::{RecordedObject, Uid, Value};
use runtime::store::secrets::{family_name, record_name};

const HOME: &str = "purlin-system";
const INSTANCES: [&str; 3] = ["fam[0]", "fam[1]", "fam[2]"];

struct Fixture {
    cluster: apiserver::Cluster,
    connection: Connection,
    target: options::Cluster,
}

/// A family of three recorded instances.
async fn fixture() -> Fixture {
    let cluster = apiserver::Cluster::new(Timestamp::from_second(1_800_000_000).unwrap(), NoFaults);
    let resource = cluster.with(|server, now| {
        for name in ["shop", HOME] {
            server.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
        let spec = json!({"type": "terraform_data", "count": 3, "config": {}});
        let metadata = json!({"name": "fam", "namespace": "shop"});
        let resource =
            json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": metadata, "spec": spec});
        server.insert(now, resource)
    });
    let connection =
        Connection { client: cluster.client("user"), namespace: "shop".to_owned(), context: "test".to_owned() };
    let target =
        options::Cluster { kubeconfig: None, context: None, namespace: None, controller_namespace: HOME.to_owned() };
    let fixture = Fixture { cluster, connection, target };
    let view = RecordSnapshot { recorded: BTreeSet::new(), indexed: BTreeSet::new(), resource: None };
    let secrets = fixture.connection.secrets(&fixture.target);
    let journal = ClusterJournal::new(secrets.clone(), Arc::new(view));
    let uid: Uid = resource.value["metadata"]["uid"].as_str().unwrap().into();
    for address in INSTANCES {
        let object = RecordedObject { value: Value::map([("id", address.into())]), ..RecordedObject::default() };
        let record = Record::empty("shop".into(), address.parse().unwrap(), uid.clone(), "terraform_data".into());
        let record = Record { current: Some(Arc::new(object)), ..record };
        secrets.put(&record, None, RetryPolicy::SHORT).await.unwrap();
        journal.mark(&record).await.unwrap();
    }
    fixture
}

impl Fixture {
    /// Loses a Secret: its record, or the index of the family.
    fn lose(&self, secret: &str) {
        let name = match secret {
            "index" => family_name("shop", &"fam".into()),
            address => record_name("shop", &address.parse().unwrap()),
        };
        let path = format!("/api/v1/namespaces/{HOME}/secrets/{name}");
        assert!(self.cluster.with(|server, now| server.erase(now, &path)), "{secret}");
    }

    /// Makes a record unreadable.
    fn damage(&self, address: &str) {
        let path = format!("/api/v1/namespaces/{HOME}/secrets/{}", record_name("shop", &address.parse().unwrap()));
        self.cluster.with(|server, now| server.modify(now, &path, &json!({"data": {"record": "AAAA"}}))).unwrap();
    }

    /// What the index of the family lists, and whether it was written again after a loss.
    async fn listed(&self) -> Option<(Vec<String>, bool)> {
        let secrets = self.connection.secrets(&self.target);
        let family = secrets.get_family("shop", &"fam".into(), RetryPolicy::SHORT).await.unwrap()?;
        Some((family.instances.iter().map(ToString::to_string).collect(), family.rebuilt))
    }

    /// The controller has written a lost index again from the records.
    async fn rebuild(&self) {
        let secrets = self.connection.secrets(&self.target);
        let instances = self.records().await.recorded.keys().cloned().collect();
        let (namespace, name, uid) = ("shop".into(), "fam".into(), Uid::default());
        let family = Family { namespace, name, uid, instances, rebuilt: true, version: None };
        secrets.put_family(&family, None, RetryPolicy::SHORT).await.unwrap();
    }

    async fn records(&self) -> Records {
        let (loaded, editor) = edited_records(&self.connection, &self.target).await.unwrap();
        Records { recorded: loaded.records, unreadable: loaded.unreadable, editor: Editor::Cluster(Box::new(editor)) }
    }

    async fn forget(&self, address: &str) -> anyhow::Result<()> {
        let console = Console::new(ColorChoice::Never, "");
        command::forget(&self.records().await, &address.parse()?, (true, false), console).await
    }

    /// The finalizers of the Resource, its annotations, and the number of Secrets.
    fn marks(&self) -> (Json, Json, usize) {
        self.cluster.with(|server, _| {
            let resource = server.object("purlin.dev", "resources", "shop", "fam").unwrap().value.clone();
            let metadata = &resource["metadata"];
            let secrets = server.objects("", "secrets").count();
            (metadata["finalizers"].clone(), metadata["annotations"].clone(), secrets)
        })
    }

    fn is_unmarked(&self) -> bool {
        let (finalizers, annotations, secrets) = self.marks();
        let is_empty = |value: &Json| value.as_array().is_none_or(Vec::is_empty);
        is_empty(&finalizers) && annotations[api::RECORD].is_null() && secrets == 0
    }
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_family_forgets_all_of_it_with_one_command() {
    let losses: [&[&str]; 6] =
        [&[], &["index"], &["fam[1]"], &["fam[1]", "index"], &["fam[0]", "fam[1]", "fam[2]"], &["fam[2]", "index"]];
    for lost in losses {
        for is_rebuilt in [false, true] {
            let fixture = fixture().await;
            assert!(!fixture.is_unmarked());
            lost.iter().for_each(|secret| fixture.lose(secret));
            if is_rebuilt && lost.contains(&"index") {
                fixture.rebuild().await;
            }
            fixture.forget("fam").await.unwrap();
            assert!(fixture.is_unmarked(), "{lost:?} {is_rebuilt}: {:?}", fixture.marks());
            assert!(fixture.forget("fam").await.is_err(), "nothing is left");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_address_of_an_instance_forgets_no_other_one() {
    for lost in [None, Some("index"), Some("fam[1]")] {
        let fixture = fixture().await;
        if let Some(secret) = lost {
            fixture.lose(secret);
        }
        fixture.forget("fam[0]").await.unwrap();
        let (finalizers, annotations, _) = fixture.marks();
        assert_eq!(finalizers, json!([api::FINALIZER]), "{lost:?}");
        assert!(annotations[api::RECORD].is_string(), "{lost:?}");
        let rest = fixture.records().await.recorded;
        let expected = INSTANCES.iter().filter(|address| **address != "fam[0]" && Some(**address) != lost);
        assert!(rest.keys().map(ToString::to_string).eq(expected.map(|address| (*address).to_owned())), "{lost:?}");
    }
}

/// What was lost beside the records that are forgotten may still have an object: only its own name, or that of the family,
/// forgets it.
#[tokio::test(start_paused = true)]
async fn the_last_record_leaves_the_marks_of_what_was_lost() {
    let losses: [&[&str]; 6] =
        [&[], &["index"], &["fam[1]"], &["fam[1]", "index"], &["fam[1]", "fam[2]"], &["fam[1]", "fam[2]", "index"]];
    for lost in losses {
        for is_rebuilt in [false, true] {
            let fixture = fixture().await;
            lost.iter().for_each(|secret| fixture.lose(secret));
            if is_rebuilt && lost.contains(&"index") {
                fixture.rebuild().await;
            }
            for address in INSTANCES.iter().filter(|address| !lost.contains(address)) {
                fixture.forget(address).await.unwrap();
            }
            assert_eq!(fixture.is_unmarked(), lost.is_empty(), "{lost:?} {is_rebuilt}: {:?}", fixture.marks());
            if !lost.is_empty() {
                let (finalizers, annotations, _) = fixture.marks();
                assert_eq!(finalizers, json!([api::FINALIZER]), "{lost:?}");
                assert!(annotations[api::RECORD].is_string(), "{lost:?}");
                fixture.forget("fam").await.unwrap();
                assert!(fixture.is_unmarked(), "{lost:?} {is_rebuilt}: {:?}", fixture.marks());
            }
        }
    }
}

/// An index that is written again lists a record that cannot be read: its object exists.
#[tokio::test(start_paused = true)]
async fn a_new_index_lists_a_record_that_cannot_be_read() {
    let fixture = fixture().await;
    fixture.damage("fam[1]");
    fixture.lose("index");
    fixture.forget("fam[0]").await.unwrap();
    let listed = fixture.listed().await;
    assert_eq!(listed, Some((vec!["fam[1]".to_owned(), "fam[2]".to_owned()], true)));
    fixture.forget("fam[2]").await.unwrap();
    assert_eq!(fixture.marks().0, json!([api::FINALIZER]));
    fixture.forget("fam[1]").await.unwrap();
    assert_eq!(fixture.marks().0, json!([api::FINALIZER]), "others may have been lost with the index");
    fixture.forget("fam").await.unwrap();
    assert!(fixture.is_unmarked(), "{:?}", fixture.marks());
}

/// A damaged record is not missing: what it says is unknown, and the marks are all that shows it.
#[tokio::test(start_paused = true)]
async fn the_name_of_a_family_does_not_forget_a_record_that_cannot_be_read() {
    for is_index_lost in [false, true] {
        let fixture = fixture().await;
        fixture.damage("fam[1]");
        if is_index_lost {
            fixture.lose("index");
        }
        assert_eq!(fixture.records().await.unreadable.len(), 1);
        fixture.forget("fam").await.unwrap();
        assert!(fixture.forget("fam").await.is_err(), "it is named by its address");
        let (finalizers, _, _) = fixture.marks();
        assert_eq!(finalizers, json!([api::FINALIZER]), "{is_index_lost}");
        assert_eq!(fixture.records().await.unreadable.len(), 1);
    }
}
