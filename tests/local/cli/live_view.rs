//! `purlin ui` on files, without a browser: `tests/view` tests the page.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value as Json, json};

use super::sandbox::{RunningCommand, Sandbox, manifest};

/// The view of the sandbox's files, with its port and token.
struct View {
    running: RunningCommand,
    port: u16,
    token: String,
}

struct Answer {
    status: u16,
    tag: String,
    body: Json,
}

impl View {
    fn start(sandbox: &Sandbox) -> Self {
        Self::of(sandbox, "files")
    }

    fn of(sandbox: &Sandbox, directory: &str) -> Self {
        let mut running = sandbox.start(&["ui", "-f", directory]);
        running.wait_until("the address is printed", |view| view.out().ends_with('\n'));
        let address = running.out();
        let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
        let (port, rest) = rest.split_once("/ui/#token=").unwrap();
        let token = rest.split('&').next().unwrap().to_owned();
        Self { running, port: port.parse().unwrap(), token }
    }

    fn send(&self, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET /ui/{path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap_or_default().to_owned();
        Answer { status, tag, body: serde_json::from_str(body).unwrap_or_default() }
    }

    fn get(&self, path: &str) -> Answer {
        self.get_after(path, "")
    }

    /// Waits for a version other than that of the tag.
    fn get_after(&self, path: &str, tag: &str) -> Answer {
        let Self { port, token, .. } = self;
        let seen = if tag.is_empty() { String::new() } else { format!("If-None-Match: {tag}\r\n") };
        self.send(path, &format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n{seen}"))
    }
}

/// The objects with their states and actions.
fn objects(snapshot: &Json) -> Vec<(&str, &str, &str)> {
    let all = snapshot["objects"].as_array().unwrap().iter();
    all.map(|one| (one["name"].as_str().unwrap(), one["state"].as_str().unwrap(), one["action"].as_str().unwrap()))
        .collect()
}

#[test]
fn the_graph_changes_with_files_and_records() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("network", &[]), ("app", &["network"])]);
    let view = View::start(&sandbox);
    let first = view.get("api/graph?namespace=default");
    assert_eq!(first.status, 200);
    assert_eq!(objects(&first.body), [("app", "waiting", "Create"), ("network", "waiting", "Create")]);
    let depends =
        json!([{ "from": "app", "to": "network", "why": "app depends on network", "waits": true, "depends": true }]);
    assert_eq!(first.body["edges"], depends);
    let steps: Vec<&str> =
        first.body["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
    assert_eq!(steps, ["network create", "app create"]);

    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let mut answer = first;
    while objects(&answer.body).iter().any(|(_, state, _)| *state != "ready") {
        answer = view.get_after("api/graph?namespace=default", &answer.tag);
        assert_eq!(answer.status, 200, "it waits for a change");
    }
    assert_eq!(answer.body["steps"], json!([]));
    assert_eq!(answer.body["edges"][0]["waits"], false);

    sandbox.objects(&[("network", &[]), ("app", &["network"]), ("dns", &["app"])]);
    // The first change can still be one of the records.
    while objects(&answer.body).len() < 3 {
        answer = view.get_after("api/graph?namespace=default", &answer.tag);
    }
    assert_eq!(objects(&answer.body)[1], ("dns", "waiting", "Create"));
    let detail = view.get("api/object?namespace=default&name=app").body;
    assert_eq!(detail["history"]["items"][0]["result"], "succeeded");
    assert_eq!(detail["events"]["note"], "events exist only in a cluster");
    let planned = view.get("api/object?namespace=default&name=dns").body;
    assert!(planned["diffs"][0]["text"].as_str().unwrap().contains("# dns will be created"), "{planned}");
    assert_eq!(view.get("api/object?namespace=default&name=none").status, 404);

    sandbox.write("files/broken.yaml", "not: [closed\n");
    while answer.body["notes"][0].is_null() {
        answer = view.get_after("api/graph?namespace=default", &answer.tag);
    }
    assert!(answer.body["notes"][0].as_str().unwrap().contains("files/broken.yaml"), "{:#}", answer.body["notes"]);
    view.running.signal("INT");
    assert_eq!(view.running.end().code(), Some(0));
}

#[test]
fn only_the_user_of_the_printed_address_sees_anything() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("network", &[])]);
    let view = View::start(&sandbox);
    let host = format!("Host: localhost:{}\r\n", view.port);
    let graph = "api/graph?namespace=default";
    assert_eq!(view.send(graph, &format!("{host}Authorization: Bearer {}\r\n", view.token)).status, 200);
    assert_eq!(view.send(graph, &host).status, 401);
    assert_eq!(view.send(graph, &format!("{host}Authorization: Bearer {}\r\n", "0".repeat(64))).status, 401);
    // A page of another site, whose name points to this computer.
    let rebound = format!("Host: evil.example:{}\r\nAuthorization: Bearer {}\r\n", view.port, view.token);
    assert_eq!(view.send(graph, &rebound).status, 403);
    assert_eq!(view.send("", &rebound).status, 403);
    let token = view.token.clone();
    drop(view);
    assert_ne!(View::start(&sandbox).token, token);
}

#[test]
fn the_view_needs_manifests_that_can_be_watched() {
    let sandbox = Sandbox::new();
    sandbox.write("purlin.db", "");
    assert!(sandbox.run(&["ui"]).one_error().contains("no files are specified"));
    assert!(sandbox.run(&["ui", "-f", "-"]).one_error().contains("standard input cannot be watched"));
}

#[test]
fn an_interrupted_step_is_not_shown_as_running() {
    let sandbox = Sandbox::new();
    let hook = "  hooks:\n  - name: wait\n    when: AfterCreate\n    exec: { command: [sh, -c, \"while test -e a.yaml; do sleep 0.05; done\"] }\n";
    sandbox.write("files/a.yaml", &(manifest("a", &[]) + hook));
    let mut applying = sandbox.start_as("apply-", &["apply", "-f", "files", "--yes"]);
    applying.wait_until("the hook runs", |_| sandbox.recorded() == ["a"]);
    let view = View::start(&sandbox);
    let graph = "api/graph?namespace=default";
    let mut answer = view.get(graph);
    assert_eq!(objects(&answer.body)[0].1, "running");
    drop(applying);
    // The next change of a file is planned without the process.
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    while objects(&answer.body).len() < 2 {
        answer = view.get_after(graph, &answer.tag);
    }
    assert_ne!(objects(&answer.body)[0].1, "running");
}

#[test]
fn a_terraform_configuration_is_shown_and_followed() {
    let sandbox = Sandbox::new();
    let main = "resource \"terraform_data\" \"a\" {}\nmodule \"m\" {\n  source = \"../m\"\n  id     = terraform_data.a.id\n}\n";
    sandbox.write("tf/main.tf", main);
    sandbox.write("m/main.tf", "variable \"id\" {}\nresource \"terraform_data\" \"b\" { input = var.id }\n");
    let view = View::of(&sandbox, "tf");
    let first = view.get("api/graph?namespace=default");
    let [inner, a] = ["module.m.terraform_data.b", "terraform_data.a"];
    assert_eq!(objects(&first.body), [(inner, "waiting", "Create"), (a, "waiting", "Create")]);
    assert_eq!(first.body["edges"][0]["from"], inner);
    sandbox.ok(&["apply", "-f", "tf", "--yes"]);
    let mut answer = first;
    while objects(&answer.body).iter().any(|(_, state, _)| *state != "ready") {
        answer = view.get_after("api/graph?namespace=default", &answer.tag);
    }
    // A module beside the directory is a part of the configuration.
    sandbox.write("m/main.tf", "variable \"id\" {}\n");
    while objects(&answer.body).iter().all(|(_, _, action)| *action != "Destroy") {
        answer = view.get_after("api/graph?namespace=default", &answer.tag);
    }
    assert_eq!(view.get(&format!("api/object?namespace=default&name={inner}")).status, 200);
}
