//! The view of a cluster: `purlin ui` with the credentials of users, and the port of the controller.

use std::sync::OnceLock;

use crate::browser::browser;
use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::files::Place;
use crate::installation::{LIMIT, data, plane, resource, wait_ready, wait_reason};

/// The controller with the view. It is not dropped: it ends with this process.
fn controller() -> &'static Controller {
    static CONTROLLER: OnceLock<Controller> = OnceLock::new();
    CONTROLLER.get_or_init(|| {
        let controller = Controller::launch_with(plane(), &["--ui"]);
        wait_until("the controller is ready", LIMIT, || {
            controller.http("/readyz").is_some_and(|(code, _)| code == 200)
        });
        controller
    })
}

/// A new ServiceAccount with a ClusterRole in the namespace: its kubeconfig and a token.
fn user(namespace: &str, name: &str, role: &str) -> (String, String) {
    plane().kubectl_ok(&["-n", namespace, "create", "serviceaccount", name]);
    let role = format!("--clusterrole={role}");
    plane().bind(namespace, name, &role, name);
    let token = plane().kubectl_ok(&["-n", namespace, "create", "token", name, "--duration=1h"]);
    let kubeconfig = plane().service_account_kubeconfig(namespace, name).display().to_string();
    (kubeconfig, token.trim().to_owned())
}

fn guarded(input: &str) -> String {
    data("store", input, "approval: { requireFor: [Update] }")
}

/// A namespace in which an update of `store` waits for an approval, and `app` for `store`; and the name of the Plan.
fn held(prefix: &str) -> (String, String) {
    controller();
    let namespace = plane().namespace(prefix);
    plane().apply(&["-n", &namespace], &guarded("1"));
    plane().apply(&["-n", &namespace], &data("app", "${store.output}", ""));
    wait_ready(&namespace, &["store", "app"]);
    plane().apply(&["-n", &namespace], &guarded("2"));
    wait_reason(&namespace, "store", "Ready", "ApprovalRequired");
    let plan = wait_for("a Plan waits", LIMIT, || {
        let plans = plane().get(&["-n", &namespace, "plans"]);
        let waiting = plans["items"].as_array()?.iter().find(|plan| plan["status"]["approval"] == "Waiting")?;
        Some(waiting["metadata"]["name"].as_str()?.to_owned())
    });
    (namespace, plan)
}

#[test]
fn an_approver_approves_with_a_click_and_an_author_cannot() {
    let Some(mut page) = browser("approval with `purlin ui`") else { return };
    let (namespace, plan) = held("view-approval");
    let (author, _) = user(&namespace, "author", "edit");
    let (approver, _) = user(&namespace, "approver", "purlin-approver");
    plane().bind(&namespace, "approver-views", "--clusterrole=view", "approver");
    let place = Place::new();

    let mut view = place.purlin(&["ui", "-n", &namespace, "--kubeconfig", &author]);
    page.open(&view.address());
    page.wait_text("#plans", "You may not approve here");
    assert_eq!(page.value("document.querySelectorAll('.approve').length"), 0);
    page.wait_text("#user", &format!("system:serviceaccount:{namespace}:author"));
    drop(view);

    let mut view = place.purlin(&["ui", "-n", &namespace, "--kubeconfig", &approver]);
    page.open(&view.address());
    page.wait_text("#states", "needs approval 1");
    page.wait("purlin.graph.position('store').column < purlin.graph.position('app').column");
    page.click_node("store");
    page.wait_text("#panel", "ApprovalRequired");
    page.wait_text("#panel pre", "# store will be updated in place");
    page.wait_text("#panel .entries", "Created");
    page.wait_text("#panel", "a Secret in the namespace `purlin-system`, which cannot be read");
    page.keep("ui-approval");
    page.click(".plan .approve");
    page.wait_text("#confirm[open]", "# store will be updated in place");
    page.document("ui-approve");
    page.click("#confirm-no");
    page.wait("!document.querySelector('#confirm').open");
    assert_eq!(plane().get(&["-n", &namespace, "plan", &plan])["spec"].get("approved"), None, "Cancel changes nothing");
    page.click(".plan .approve");
    page.click("#confirm-yes");
    page.wait_text("#states", "ready 2");
    wait_until("the changes are applied", LIMIT, || {
        let plan = plane().get(&["-n", &namespace, "plan", &plan]);
        let user = format!("system:serviceaccount:{namespace}:approver");
        plan["status"]["approval"] == "Applied" && plan["status"]["decidedBy"] == user
    });
    assert_eq!(resource(&namespace, "app").unwrap()["status"]["attributes"]["output"], 2);
    page.wait("document.querySelector('#plans').hidden");
    page.assert_no_problems();
}

#[test]
fn users_of_the_controllers_port_sign_in_with_their_token() {
    let Some(mut page) = browser("the port of the controller") else { return };
    let (namespace, plan) = held("view-port");
    let (_, stranger) = user(&namespace, "stranger", "purlin-no-such-role");
    let (_, approver) = user(&namespace, "approver", "purlin-approver");
    let admin = plane().bind(&namespace, "approver-edits", "--clusterrole=edit", "approver");
    assert!(admin.contains("created"));
    let url = format!("http://127.0.0.1:{}/ui/#/{namespace}/store", controller().port());

    page.open(&url);
    page.wait_text("#sign-in[open]", "Enter a token of the API server");
    page.keep("ui-sign-in");
    let sign_in = |page: &mut crate::browser::Browser, token: &str| {
        page.click("#token");
        page.type_text(token);
        page.key("Enter");
    };
    sign_in(&mut page, "not-a-token");
    page.wait_text("#sign-in-error", "the API server does not accept the token");
    sign_in(&mut page, &stranger);
    page.wait_text("#empty", &format!("you may not list Resources in the namespace `{namespace}`"));
    assert_eq!(page.text("#rows"), "", "nothing is shown to a user without rights");

    page.value("sessionStorage.clear()");
    page.open(&url);
    page.wait_text("#sign-in[open]", "Enter a token of the API server");
    sign_in(&mut page, &approver);
    page.wait_text("#panel h2", "store");
    page.wait_text("#panel pre", "# store will be updated in place");
    page.click(".plan .reject");
    page.wait_text("#confirm-title", "Do you want to reject these changes?");
    page.click("#confirm-yes");
    wait_until("the Plan is rejected", LIMIT, || {
        plane().get(&["-n", &namespace, "plan", &plan])["status"]["approval"] == "Rejected"
    });
    page.wait_text("#plans", "Rejected");
    // A new namespace of the address is shown without a new document.
    page.value("location.hash = '#/default'");
    page.wait_text("#empty", "you may not list Resources in the namespace `default`");
    page.wait("!document.querySelector('.row') && document.querySelector('#plans').hidden");
    page.wait("!document.querySelector('#empty').hidden");
    page.assert_no_problems();

    let kubeconfig = plane().kubeconfig().display().to_string();
    let mut view = Place::new().purlin(&["ui", "-n", "no-such-namespace", "--kubeconfig", &kubeconfig]);
    page.open(&view.address());
    page.wait_text("#empty", "there is no namespace `no-such-namespace`");
}
