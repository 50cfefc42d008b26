//! Several replicas share the namespaces. Every object has a generated name, so one that is created twice exists twice.

use crate::controller::{Controller, SHARDS};
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::trouble::with_rights;

/// Enough that each of three replicas has some, whatever their names are.
const NAMESPACES: usize = 6;

fn wait_shared(controllers: &[&Controller]) {
    wait_until("each replica holds its share", LIMIT, || {
        let shares: Vec<usize> = controllers.iter().map(|controller| controller.shards_held()).collect();
        shares.iter().sum::<usize>() == SHARDS && shares.iter().all(|share| *share >= SHARDS / controllers.len() - 1)
    });
}

fn apply(namespaces: &[String], name: &str) {
    for namespace in namespaces {
        let manifest = format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
             kubernetes_object\n  config:\n    manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ generateName: \
             {name}- }}, data: {{ a: b }} }}\n"
        );
        plane().apply(&["-n", namespace], &manifest);
    }
}

#[test]
fn replicas_share_the_namespaces_while_they_come_and_go() {
    let _guard = exclusive();
    let namespaces: Vec<String> = (0..NAMESPACES).map(|number| with_rights(&format!("shard-{number}"))).collect();
    let [first, second, mut third] = [(); 3].map(|()| Controller::start(plane()));
    wait_shared(&[&first, &second, &third]);
    apply(&namespaces, "one");
    // The objects of the first one are created while it is killed, or by the others.
    first.kill(plane());
    apply(&namespaces, "two");
    wait_shared(&[&second, &third]);
    // Longer than its lease: the other one takes its shards, and it must notice when it continues.
    second.signal("STOP");
    apply(&namespaces, "three");
    wait_shared(&[&third]);
    second.signal("CONT");
    wait_shared(&[&second, &third]);
    let fourth = Controller::start(plane());
    wait_shared(&[&second, &third, &fourth]);
    apply(&namespaces, "four");
    assert_eq!(third.terminate(plane()), Some(0));
    wait_shared(&[&second, &fourth]);
    for namespace in &namespaces {
        wait_ready(namespace, &["one", "two", "three", "four"]);
        let all = plane().get(&["-n", namespace, "configmaps"])["items"].as_array().unwrap().clone();
        let ours = all.iter().filter(|object| object["metadata"]["name"].as_str() != Some("kube-root-ca.crt"));
        assert_eq!(ours.count(), 4, "each object was created once: {all:?}");
        plane().kubectl_ok(&["-n", namespace, "delete", "pres", "--all", "--wait=false"]);
    }
    namespaces.iter().for_each(|namespace| wait_empty(namespace));
    assert!(namespaces.iter().all(|namespace| records(namespace).is_empty()), "no record is left");
}
