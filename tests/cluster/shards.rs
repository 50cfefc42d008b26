//! Several replicas share the namespaces. Every object has a generated name, so one that is created twice exists twice.

use std::fs;
use std::path::Path;

use crate::controller::{Controller, SHARDS};
use crate::controlplane::wait_until;
use crate::hostile::corner_config;
use crate::installation::*;
use crate::providers::{provider, typed};

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

/// The calls that the provider has counted, without the IDs, and how many objects they were about.
fn counted(world: &Path) -> (Vec<String>, usize) {
    let text = fs::read_to_string(world.join("calls")).unwrap();
    let (mut calls, mut ids): (Vec<String>, Vec<&str>) =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(call, id)| (call.to_owned(), id)).unzip();
    calls.sort();
    ids.sort_unstable();
    ids.dedup();
    (calls, ids.len())
}

/// The provider can neither find an object by its operation nor create it twice, so a result that is lost or a call that
/// is repeated shows.
#[test]
fn an_outage_of_the_api_server_cuts_and_repeats_no_call() {
    let _guard = exclusive();
    let namespaces: Vec<String> = (0..3).map(|number| plane().namespace(&format!("shard-away-{number}"))).collect();
    let worlds: Vec<_> = namespaces.iter().map(|namespace| plane().scratch().join(namespace)).collect();
    let all = [(); 3].map(|()| Controller::launch(plane()));
    plane().apply(&[], &provider("corner", "corner"));
    wait_shared(&all.each_ref());
    for (namespace, world) in namespaces.iter().zip(&worlds) {
        fs::create_dir_all(world).unwrap();
        fs::write(world.join("calls"), "").unwrap();
        let slow = typed("slow", "corner_trouble", "{ on_create: slow }", "");
        let next = typed("next", "corner_thing", "{ name: '${slow.id}' }", "");
        plane().apply(&["-n", namespace], &[corner_config(world), slow, next].concat());
    }
    wait_until("a create runs in each namespace", LIMIT, || worlds.iter().all(|world| world.join("started").exists()));
    plane().stop_api_server();
    wait_until("no replica holds a shard", LIMIT, || all.iter().all(|controller| controller.shards_held() == 0));
    // The calls end while their results cannot be recorded.
    worlds.iter().for_each(|world| fs::write(world.join("release"), "").unwrap());
    plane().start_api_server();
    wait_shared(&all.each_ref());
    for (namespace, world) in namespaces.iter().zip(&worlds) {
        wait_ready(namespace, &["slow", "next"]);
        assert_eq!(counted(world), (vec!["create".to_owned(); 2], 2), "each object was created once");
        plane().kubectl_ok(&["-n", namespace, "delete", "pres", "--all", "--wait=false"]);
    }
    for (namespace, world) in namespaces.iter().zip(&worlds) {
        wait_empty(namespace);
        assert_eq!(counted(world), (["create", "create", "destroy", "destroy"].map(str::to_owned).to_vec(), 2));
        assert!(records(namespace).is_empty(), "no record is left");
    }
}
