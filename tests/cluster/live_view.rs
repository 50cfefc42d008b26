//! The live view on the port of the controller: a user sees and does what the API server allows, and nothing else. The page
//! itself is tested by `tests/view`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Deref;

use serde_json::{Value, json};

use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;

/// A ServiceAccount in a namespace, with a token.
fn user(namespace: &str, name: &str, roles: &[&str]) -> String {
    plane().kubectl_ok(&["-n", namespace, "create", "serviceaccount", name]);
    for role in roles {
        let (binding, role) = (format!("{name}-{role}"), format!("--clusterrole={role}"));
        plane().bind(namespace, &binding, &role, name);
    }
    plane().kubectl_ok(&["-n", namespace, "create", "token", name, "--duration=1h"]).trim().to_owned()
}

/// A replica with the live view beside the shared controller. They share the shards, so it works for other tests too. Dropping it
/// drains it, and no operation of another test is interrupted.
struct Viewing(Controller);

impl Viewing {
    fn start() -> Self {
        let viewing = Self(Controller::launch_with(plane(), &["--ui"]));
        wait_until("the view is served", LIMIT, || viewing.http("/ui/").is_some_and(|(status, _)| status == 200));
        viewing
    }
}

impl Deref for Viewing {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.0
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        self.0.terminate(plane());
    }
}

/// Sends a request, and returns its status and its JSON.
fn send(controller: &Controller, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", controller.port())).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} /ui/api/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\
         Authorization: Bearer {token}\r\n\r\n{body}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let status = response.split_whitespace().nth(1).unwrap().parse().unwrap();
    let body = response.split_once("\r\n\r\n").unwrap().1;
    // Long bodies are sent in chunks: the JSON is in one line.
    let json = body.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    (status, serde_json::from_str(json).unwrap_or_default())
}

fn get(controller: &Controller, path: &str, token: &str) -> (u16, Value) {
    send(controller, "GET", path, token, "")
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect()
}

#[test]
fn a_user_sees_and_does_what_the_api_server_allows() {
    let guard = shared();
    // Beside the leader: a standby serves the view too.
    let viewing = Viewing::start();
    assert_eq!(guard.controller().http("/ui/").map(|(status, _)| status), Some(404), "it is off by default");
    let namespace = plane().namespace("live-view");
    let other = plane().namespace("live-view-other");
    let author = user(&namespace, "author", &["edit"]);
    let approver = user(&namespace, "approver", &["view", "purlin-approver"]);
    let stranger = user(&namespace, "stranger", &[]);
    plane().kubectl_ok(&[
        "-n",
        &namespace,
        "create",
        "role",
        "resources",
        "--verb=get,list,watch",
        "--resource=resources.purlin.dev",
    ]);
    let reader = user(&namespace, "reader", &[]);
    plane().bind(&namespace, "reader", "--role=resources", "reader");

    let store = |input: &str| data("store", input, "approval: { requireFor: [Update] }");
    plane().apply(&["-n", &namespace], &store("1"));
    wait_ready(&namespace, &["store"]);
    plane().apply(&["-n", &namespace], &store("2"));
    wait_reason(&namespace, "store", "Ready", "ApprovalRequired");

    let graph = format!("graph?namespace={namespace}");
    let object = format!("object?namespace={namespace}&name=store");
    for token in ["", "made-up", "a.b.c"] {
        assert_eq!(get(&viewing, &graph, token).0, 401, "{token}");
        assert_eq!(get(&viewing, &object, token).0, 401, "{token}");
    }
    let (status, refused) = get(&viewing, &graph, &stranger);
    assert_eq!(
        (status, &refused["error"]),
        (403, &json!(format!("you may not list Resources in the namespace `{namespace}`")))
    );
    assert_eq!(get(&viewing, &object, &stranger).0, 403);
    for token in [&author, &approver, &reader] {
        assert_eq!(get(&viewing, &format!("graph?namespace={other}"), token).0, 403, "another namespace");
    }
    for path in ["graph?namespace=..%2F..", "object?namespace=default&name=..%2Fx", "plan?namespace=a%2Fb&name=c"] {
        assert_eq!(get(&viewing, path, &author).0, 400, "{path}");
    }

    let (status, part) = get(&viewing, &graph, &reader);
    assert_eq!((status, names(&part["objects"])), (200, vec!["store"]));
    assert!(names(&part["plans"]).is_empty());
    assert_eq!(
        part["notes"],
        json!(["DataSources are not shown: you may not list them", "Plans are not shown: you may not list them"])
    );
    let (_, detail) = get(&viewing, &object, &reader);
    assert!(detail["events"]["note"].as_str().unwrap().contains("events is forbidden"), "{detail}");
    assert!(detail["history"]["note"].as_str().unwrap().contains("cannot be read"), "{detail}");

    let plan = wait_for("the Plan is shown", LIMIT, || {
        let (_, whole) = get(&viewing, &graph, &author);
        assert_eq!(whole["mayDecide"], false);
        names(&whole["plans"]).first().map(|&name| name.to_owned())
    });
    wait_until("the Plan shows its changes", LIMIT, || {
        plane().get(&["-n", &namespace, "plan", &plan])["status"]["result"].is_string()
    });
    let uid = get(&viewing, &format!("plan?namespace={namespace}&name={plan}"), &author).1["uid"].clone();
    let decision =
        |uid: &Value| json!({ "namespace": namespace, "plan": plan, "uid": uid, "decision": "approve" }).to_string();
    let (status, refused) = send(&viewing, "POST", "decision", &author, &decision(&uid));
    assert!(status >= 400 && refused["error"].as_str().unwrap().contains("you may not approve"), "{status} {refused}");
    assert_eq!(send(&viewing, "POST", "decision", &reader, &decision(&uid)).0, 403);
    assert_eq!(send(&viewing, "POST", "decision", &approver, &decision(&json!("another"))).0, 409);
    assert_eq!(get(&viewing, &graph, &approver).1["mayDecide"], true);
    let (status, done) = send(&viewing, "POST", "decision", &approver, &decision(&uid));
    assert_eq!((status, &done["message"]), (200, &json!(format!("The changes of `{plan}` are approved."))));
    wait_ready(&namespace, &["store"]);
    let status = &plane().get(&["-n", &namespace, "plan", &plan])["status"];
    assert_eq!(status["decidedBy"], format!("system:serviceaccount:{namespace}:approver"));

    // The watch of the reader goes on, but its right is gone.
    plane().kubectl_ok(&["-n", &namespace, "delete", "rolebinding", "reader"]);
    wait_until("the withdrawn right has an effect", LIMIT, || get(&viewing, &graph, &reader).0 == 403);
    assert!(!viewing.log().contains(&approver), "no token is in the log");
}

#[test]
fn the_history_is_shown_to_users_who_may_read_records() {
    let _guard = shared();
    let viewing = Viewing::start();
    let namespace = plane().namespace("live-view-history");
    let account = format!("--serviceaccount={namespace}:admin");
    let token = user(&namespace, "admin", &["admin"]);
    plane().kubectl_ok(&["-n", NAMESPACE, "create", "role", &namespace, "--verb=get", "--resource=secrets"]);
    plane().kubectl_ok(&[
        "-n",
        NAMESPACE,
        "create",
        "rolebinding",
        &namespace,
        &format!("--role={namespace}"),
        &account,
    ]);
    plane().apply(&["-n", &namespace], &data("one", "1", ""));
    plane().apply(&["-n", &namespace], &data("many", "\"${count.index}\"", "count: 2"));
    wait_ready(&namespace, &["one", "many"]);
    let rows = |name: &str| {
        let (status, detail) = get(&viewing, &format!("object?namespace={namespace}&name={name}"), &token);
        assert_eq!((status, &detail["history"]["note"]), (200, &Value::Null), "{detail}");
        let row = |one: &Value| format!("{} {} {}", text(&one["address"]), text(&one["action"]), text(&one["result"]));
        let mut rows: Vec<String> = detail["history"]["items"].as_array().unwrap().iter().map(row).collect();
        rows.sort();
        rows
    };
    assert_eq!(rows("one"), ["one create succeeded"]);
    assert_eq!(rows("many"), ["many[0] create succeeded", "many[1] create succeeded"]);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
