//! Who may act as which ServiceAccount, and who may change records: the admission policies of the chart, and what the
//! controller itself rejects, and what a controller without rights says.

use std::process::Output;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::hostile::ready;
use crate::installation::*;
use crate::kubernetes_objects::object;

/// The message of a request that was rejected; `None` if it was accepted.
fn rejection(output: &Output) -> Option<String> {
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs `kubectl create` as a user, without an effect.
fn try_create(namespace: &str, user: &str, manifest: &str) -> Option<String> {
    let arguments = ["create", "--as", user, "-n", namespace, "--dry-run=server", "-f", "-"];
    rejection(&plane().kubectl_with_stdin(&arguments, manifest))
}

/// Grants `rule` in a namespace to a subject, with a Role and a RoleBinding of this name.
fn grant(namespace: &str, name: &str, rule: &str, subject: &str) {
    let group = "rbac.authorization.k8s.io";
    let manifests = format!(
        "{{ apiVersion: {group}/v1, kind: Role, metadata: {{ name: {name} }}, rules: [{rule}] }}\n---\n\
         {{ apiVersion: {group}/v1, kind: RoleBinding, metadata: {{ name: {name} }}, subjects: [{subject}], roleRef: \
         {{ apiGroup: {group}, kind: Role, name: {name} }} }}\n"
    );
    plane().apply(&["-n", namespace], &manifests);
}

/// One object of each kind that can name a ServiceAccount. `field`: the line with the account.
fn objects(field: &str) -> [String; 3] {
    let beginning = "apiVersion: purlin.dev/v1alpha1\nmetadata: { name: named }\n";
    [
        data("named", "one", field),
        format!("{beginning}kind: DataSource\nspec:\n  type: some_type\n  {field}\n"),
        format!("{beginning}kind: ProviderConfig\nspec:\n  provider: {{ name: none }}\n  {field}\n"),
    ]
}

#[test]
fn an_author_needs_a_right_on_the_service_account_that_an_object_names() {
    let _guard = shared();
    let ns = plane().namespace("authors");
    for user in ["mallory", "uses", "impersonates"] {
        let rule = "{ apiGroups: [purlin.dev], resources: ['*'], verbs: ['*'] }";
        grant(&ns, &format!("author-{user}"), rule, &format!("{{ kind: User, name: {user} }}"));
    }
    for verb in ["use", "impersonate"] {
        let rule =
            format!("{{ apiGroups: [''], resources: [serviceaccounts], resourceNames: [deployer], verbs: [{verb}] }}");
        grant(&ns, verb, &rule, &format!("{{ kind: User, name: {verb}s }}"));
    }

    let refusal = "you may not use the ServiceAccount deployer here (hint: ask for a Role with the verb use on";
    for manifest in objects("serviceAccountName: deployer") {
        wait_until("the policy rejects it", LIMIT, || {
            try_create(&ns, "mallory", &manifest).is_some_and(|message| message.contains(refusal))
        });
        for user in ["uses", "impersonates"] {
            wait_until("the right suffices", LIMIT, || try_create(&ns, user, &manifest).is_none());
        }
    }
    for manifest in objects("serviceAccountName: owner") {
        let message = try_create(&ns, "uses", &manifest).expect("the right is for another account");
        assert!(message.contains("the ServiceAccount owner"), "{message}");
    }
    for manifest in ["", "serviceAccountName: default"].iter().flat_map(|field| objects(field)) {
        assert_eq!(try_create(&ns, "mallory", &manifest), None, "everyone may name the default account");
    }

    let runner = |account: &str| {
        format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: pods }}\nspec:\n  \
             runner: {{ kind: Pod, serviceAccountName: {account} }}\n"
        )
    };
    let message = try_create(&ns, "mallory", &runner("deployer")).expect("the provider would get the token");
    assert!(message.contains("you may not use the ServiceAccount deployer here"), "{message}");
    assert_eq!(try_create(&ns, "uses", &runner("deployer")), None);
    assert_eq!(try_create(&ns, "mallory", &runner("default")), None);

    // The controller adds its finalizer and annotation, and others may do the same.
    plane().apply(&["-n", &ns], &data("web", "one", "serviceAccountName: deployer"));
    wait_ready(&ns, &["web"]);
    let patch = |user: &str, change: &str| {
        let what = ["patch", "pres", "web", "--type=merge", "--dry-run=server", "-p", change];
        rejection(&plane().kubectl(&[&["--as", user, "-n", &ns], &what[..]].concat()))
    };
    assert_eq!(patch("mallory", r#"{"metadata":{"labels":{"team":"a"},"finalizers":[]}}"#), None);
    assert_eq!(patch("mallory", r#"{"spec":{"serviceAccountName":null}}"#), None);
    let change = r#"{"spec":{"config":{"input":"two"}}}"#;
    let message =
        patch("mallory", change).expect("the controller would act as the account for the author of the change");
    assert!(message.contains(refusal), "{message}");
    assert_eq!(patch("uses", change), None);
    plane().kubectl_ok(&["--as=mallory", "-n", &ns, "delete", "pres", "web", "--timeout=60s"]);
}

#[test]
fn no_object_acts_as_the_controller() {
    let _guard = shared();
    for manifest in objects("serviceAccountName: purlin") {
        plane().apply(&["-n", NAMESPACE], &manifest);
    }
    let expected = "InvalidManifest: spec.serviceAccountName: `purlin` is the service account of the controller";
    for object in ["pres/named", "datasources/named", "providerconfigs/named"] {
        wait_until(&format!("{object} has its error"), LIMIT, || ready(NAMESPACE, object).starts_with(expected));
    }
    plane().kubectl_ok(&["-n", NAMESPACE, "delete", "pres/named", "datasources/named", "providerconfigs/named"]);

    // An object that another account has created is not destroyed by the controller itself.
    plane().kubectl_ok(&["-n", NAMESPACE, "create", "serviceaccount", "maker"]);
    plane().bind(NAMESPACE, "maker", "--clusterrole=edit", "maker");
    let map = |account: &str| {
        let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: made } }";
        object("made", manifest, &format!("serviceAccountName: {account}"))
    };
    plane().apply(&["-n", NAMESPACE], &map("maker"));
    wait_ready(NAMESPACE, &["made"]);
    plane().apply(&["-n", NAMESPACE], &map("purlin"));
    wait_reason(NAMESPACE, "made", "Ready", "InvalidManifest");
    plane().kubectl_ok(&["-n", NAMESPACE, "delete", "pres", "made", "--wait=false"]);
    wait_until("its destroy fails", LIMIT, || {
        resource(NAMESPACE, "made").is_some_and(|made| made["status"].to_string().contains("no service account is set"))
    });
    plane().apply(&["-n", NAMESPACE], &map("maker"));
    wait_empty(NAMESPACE);
    plane().kubectl_ok(&["-n", NAMESPACE, "delete", "rolebinding/maker", "serviceaccount/maker"]);
}

/// A user with every right on the Secrets of the controller's namespace, and their kubeconfig.
struct User {
    namespace: String,
    kubeconfig: String,
}

impl User {
    fn new() -> Self {
        let namespace = with_rights("records");
        let user = Self {
            kubeconfig: plane().service_account_kubeconfig(&namespace, "default").display().to_string(),
            namespace,
        };
        user.grant("secrets", "{ apiGroups: [''], resources: [secrets], verbs: ['*'] }");
        user
    }

    /// Grants a right in the namespace of the controller.
    fn grant(&self, name: &str, rule: &str) {
        let subject = format!("{{ kind: ServiceAccount, name: default, namespace: {} }}", self.namespace);
        grant(NAMESPACE, &format!("{name}-{}", self.namespace), rule, &subject);
    }

    fn kubectl(&self, arguments: &[&str]) -> Option<String> {
        rejection(&plane().kubectl(&[&["--kubeconfig", &self.kubeconfig, "-n", NAMESPACE], arguments].concat()))
    }

    fn write(&self, verb: &str, manifest: &serde_json::Value) -> Option<String> {
        let arguments = ["--kubeconfig", &self.kubeconfig, "-n", NAMESPACE, verb, "-f", "-"];
        rejection(&plane().kubectl_with_stdin(&arguments, &manifest.to_string()))
    }

    fn purlin(&self, arguments: &[&str]) -> Option<String> {
        let target = ["--kubeconfig", &self.kubeconfig, "-n", &self.namespace];
        rejection(&crate::command_line::purlin(&[arguments, &target[..]].concat()))
    }
}

#[test]
fn records_are_changed_only_with_the_right_on_records() {
    let _guard = shared();
    let user = User::new();
    let ns = &user.namespace;
    plane().apply(&["-n", ns], &data("item", "one", ""));
    wait_ready(ns, &["item"]);
    let record = records(ns).remove(0);
    let name = record["metadata"]["name"].as_str().unwrap();
    let is = |message: Option<String>, part: &str| message.is_some_and(|message| message.contains(part));
    let (unchanged, kept) = ("you may not change it", "only its controller deletes it");
    wait_until("the user may read it", LIMIT, || user.kubectl(&["get", "secret", name]).is_none());
    for change in [
        &["annotate", "secret", name, "purlin.dev/forgotten=true"][..],
        &["label", "secret", name, "purlin.dev/record-"],
        &["patch", "secret", name, "-p", r#"{"data":{"record":""}}"#],
        &["patch", "secret", name, "-p", r#"{"immutable":true}"#],
        &["patch", "secret", name, "-p", r#"{"metadata":{"finalizers":["a.test/b"]}}"#],
    ] {
        let message = user.kubectl(change);
        assert!(is(message.clone(), unchanged), "{change:?}: {message:?}");
    }
    let mut copy = record.clone();
    copy["metadata"] = serde_json::json!({ "name": "purlin-record-copy", "labels": record["metadata"]["labels"] });
    assert!(is(user.write("create", &copy), unchanged), "a record cannot be forged");
    assert_eq!(user.write("replace", &record), None, "a write without a change is accepted");
    assert!(is(user.purlin(&["state", "taint", "item"]), unchanged));
    assert_eq!(
        user.kubectl(&["create", "secret", "generic", &format!("other-{ns}")]),
        None,
        "only records are protected"
    );

    // Administrators, and the controllers of Kubernetes, have every right. Only a deletion needs more.
    let cleaner = "--as=system:serviceaccount:kube-system:namespace-controller";
    for by in [&[][..], &[cleaner]] {
        let output = plane().kubectl(&[&["-n", NAMESPACE, "delete", "secret", name], by].concat());
        assert!(is(rejection(&output), kept), "{by:?}");
    }

    user.grant("records", "{ apiGroups: [purlin.dev], resources: [records], verbs: [create, update, delete] }");
    let id = resource(ns, "item").unwrap()["status"]["id"].clone();
    wait_until("the right suffices", LIMIT, || user.purlin(&["state", "taint", "item"]).is_none());
    wait_until("the controller replaces the object", LIMIT, || {
        resource(ns, "item").is_some_and(|item| is_ready(&item) && item["status"]["id"] != id)
    });
    assert!(is(user.kubectl(&["delete", "secret", name]), kept), "the right alone deletes nothing");
    plane().kubectl_ok(&["-n", ns, "patch", "pres", "item", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    wait_reason(ns, "item", "Synced", "Suspended");
    assert_eq!(user.purlin(&["state", "rm", "item", "--yes"]), None);
    assert!(records(ns).is_empty());
}

/// Changes and deletes a Resource with a controller of this release.
fn try_release(release: &str, values: &[&str]) {
    let ns = plane().namespace("renamed");
    let controller = Controller::start_release(plane(), release, values);
    plane().apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    plane().apply(&["-n", &ns], &data("item", "two", ""));
    wait_until("the change is applied", LIMIT, || {
        resource(&ns, "item").is_some_and(|item| is_ready(&item) && item["status"]["attributes"]["output"] == "two")
    });
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "item", "--timeout=60s"]);
    assert!(records(&ns).is_empty());
    controller.kill(plane());
}

#[test]
fn a_renamed_release_and_another_release_change_the_records_of_the_first() {
    let _guard = exclusive();
    let plane = plane();
    let ns = plane.namespace("kept");
    let first = Controller::start(plane);
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    first.kill(plane);
    let name = records(&ns)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let in_place = |release: &'static str| [release, chart(), "-n", NAMESPACE, "--wait", "--set", "replicas=0"];

    let renamed = ["--set", "fullnameOverride=other"];
    plane.helm_ok(&[&["upgrade"], &in_place("purlin")[..], &renamed].concat());
    try_release("purlin", &renamed);

    plane.helm_ok(&["uninstall", "purlin", "-n", NAMESPACE, "--wait"]);
    let old = format!("--as=system:serviceaccount:{NAMESPACE}:other");
    for by in [&[][..], &[old.as_str()]] {
        assert!(!plane.kubectl(&[&["-n", NAMESPACE, "delete", "secret", &name][..], by].concat()).status.success());
    }
    plane.helm_ok(&[&["install", "--take-ownership"], &in_place("second")[..]].concat());
    try_release("second", &[]);
    plane.helm_ok(&["uninstall", "second", "-n", NAMESPACE, "--wait"]);

    // As docs/upgrade.md has it, except that the namespace remains.
    let policy = format!("purlin-records-{NAMESPACE}");
    let kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
    plane.kubectl_ok(&["delete", kinds, &policy]);
    wait_until("an administrator removes the record", LIMIT, || {
        plane.kubectl(&["-n", NAMESPACE, "delete", "secret", &name]).status.success()
    });
    plane.helm_ok(&[&["install", "--take-ownership"], &in_place("purlin")[..]].concat());
    // Its Resource refers to a record that no longer exists.
    crate::command_line::ok(&["state", "release", "--all", "--yes", "-n", &ns]);
}

/// A Plan with these types and ServiceAccounts.
fn plan(types: &[String], accounts: &[&str]) -> String {
    let preview = serde_json::json!({ "manifests": "", "types": types, "serviceAccountNames": accounts });
    let plan = serde_json::json!({ "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan",
        "metadata": { "name": "named" }, "spec": { "preview": preview } });
    plan.to_string()
}

#[test]
fn an_author_of_a_plan_needs_the_rights_of_an_author_of_its_manifests() {
    let _guard = shared();
    let ns = plane().namespace("planners");
    let typed = ["-s", "templates/policies.yaml", "--set", "fullnameOverride=typed,typeAuthorization.enabled=true"];
    let others = ["--set", "protectRecords=false,serviceAccountAuthorization.enabled=false"];
    let policies = plane().helm_ok(&[&["template", "typed", chart()], &typed[..], &others].concat());
    // Only for this namespace, because tests share the cluster.
    let only = format!(
        "validationActions: [Deny]\n  matchResources: {{ namespaceSelector: {{ matchLabels: {{ \
         kubernetes.io/metadata.name: {ns} }} }} }}"
    );
    plane().apply(&[], &policies.replace("validationActions: [Deny]", &only));

    let rule = |group: &str, resources: &str, verb: &str| {
        format!("{{ apiGroups: ['{group}'], resources: [{resources}], verbs: ['{verb}'] }}")
    };
    for (user, rule) in [
        ("planner", rule("purlin.dev", "plans", "create")),
        ("typist", rule("purlin.dev", "plans", "create")),
        ("typist-types", rule("types.purlin.dev", "aws_vpc, aws_subnet", "use")),
        ("all", rule("purlin.dev", "plans", "create")),
        ("all-types", rule("types.purlin.dev", "'*'", "use")),
        ("all-accounts", rule("", "serviceaccounts", "use")),
    ] {
        let subject = user.split('-').next().unwrap();
        grant(&ns, user, &rule, &format!("{{ kind: User, name: {subject} }}"));
    }
    let types = |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
    let one = |name: &str| plan(&types(&[name]), &[]);
    wait_until("the policies apply", LIMIT, || {
        try_create(&ns, "planner", &one("aws_vpc"))
            .is_some_and(|message| message.contains("you may not use the type aws_vpc"))
    });
    wait_until("the right suffices", LIMIT, || {
        try_create(&ns, "typist", &plan(&types(&["aws_vpc", "aws_subnet"]), &[])).is_none()
    });
    let message = try_create(&ns, "typist", &plan(&types(&["aws_vpc", "aws_subnet", "aws_iam_role"]), &[]));
    assert!(message.is_some_and(|message| message.contains("the type aws_iam_role")));

    // The cost limit of the API server allows the checks of as many types as the policy does.
    let mut many: Vec<String> = (0..19).map(|number| format!("aws_vpc{number}")).collect();
    many.push("aws_iam_role".to_owned());
    for name in &many[..19] {
        grant(
            &ns,
            &format!("typist-{name}").replace('_', "-"),
            &rule("types.purlin.dev", name, "use"),
            "{ kind: User, name: typist }",
        );
    }
    wait_until("the last one is checked", LIMIT, || {
        try_create(&ns, "typist", &plan(&many, &[])).is_some_and(|message| message.contains("the type aws_iam_role"))
    });
    wait_until("19 are accepted", LIMIT, || try_create(&ns, "typist", &plan(&many[..19], &[])).is_none());
    let more: Vec<String> = many.iter().cloned().chain(["aws_lb".to_owned()]).collect();
    let message = try_create(&ns, "typist", &plan(&more, &[])).expect("too many");
    assert!(message.contains("at most 20 types") || message.contains("aws_iam_role"), "{message}");
    let hundred: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    wait_until("who may use all types needs no list", LIMIT, || try_create(&ns, "all", &plan(&hundred, &[])).is_none());

    let accounts = |user: &str, names: &[&str]| try_create(&ns, user, &plan(&[], names));
    assert_eq!(accounts("planner", &["default"]), None);
    let message = accounts("planner", &["default", "deployer"]).expect("no right");
    assert!(message.contains("you may not use the ServiceAccount deployer here"), "{message}");
    let rule = "{ apiGroups: [''], resources: [serviceaccounts], resourceNames: [deployer], verbs: [use] }";
    grant(&ns, "use-deployer", rule, "{ kind: User, name: planner }");
    wait_until("the right suffices", LIMIT, || accounts("planner", &["deployer"]).is_none());
    assert!(
        accounts("planner", &["deployer", "owner"]).is_some_and(|message| message.contains("ServiceAccount owner"))
    );
    let names: Vec<String> = (0..50).map(|number| format!("account-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    wait_until("who may use all accounts needs no list", LIMIT, || accounts("all", &names).is_none());
    let message = accounts("planner", &names).expect("no right");
    assert!(message.contains("ServiceAccount account-0"), "{message}");
}

/// A finalizer that the controller adds later can come too late: a deletion that has already begun removes the Resource.
#[test]
fn a_new_resource_has_the_finalizer_before_the_controller_sees_it() {
    let _guard = shared();
    let (plane, ns) = (plane(), plane().namespace("finalizer"));
    let kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
    let adds = ["-s", "templates/policies.yaml", "-a", kind, "--set", "finalizerOnCreate.enabled=true"];
    let others = "protectRecords=false,serviceAccountAuthorization.enabled=false,approvalAuthorization.enabled=false";
    // Only for this namespace, because tests share the cluster.
    let only = format!("controller.watchNamespaces={{{ns}}},fullnameOverride=finalizer,{others}");
    plane.apply(&[], &plane.helm_ok(&[&["template", "finalizer", chart()], &adds[..], &["--set", &only]].concat()));
    let try_create = |manifest: &str, more: &[&str]| {
        let path = "-o=jsonpath={.metadata.finalizers}";
        plane.kubectl_with_stdin(&[&["-n", &ns, "create", path, "-f", "-"], more].concat(), manifest)
    };
    let create = |manifest: &str, more: &[&str]| {
        let created = try_create(manifest, more);
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        String::from_utf8(created.stdout).unwrap()
    };
    // Before, the API server ignores the policy, or does not know the schema of Resources yet and rejects them.
    wait_until("the policy applies", LIMIT, || {
        try_create(&data("tried", "one", ""), &["--dry-run=server"]).stdout == br#"["purlin.dev/destroy"]"#
    });
    let own = data("own", "one", "").replace("name: own", "name: own, finalizers: [example.com/hold]");
    assert_eq!(create(&own, &["--dry-run=server"]), r#"["example.com/hold","purlin.dev/destroy"]"#);

    // Each is deleted at another moment of its first create.
    for number in 0..20 {
        let name = format!("short{number}");
        create(&data(&name, "one", ""), &[]);
        std::thread::sleep(std::time::Duration::from_millis(5 * number));
        plane.kubectl_ok(&["-n", &ns, "delete", "pres", &name, "--wait=false"]);
    }
    // One that can never be planned needs no object to be deleted.
    create(&data("unknown", "one", "").replace("terraform_data", "unknown_type"), &[]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "unknown", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty(), "{:?}", records(&ns));
}

#[test]
fn a_controller_that_may_read_nothing_says_so_once_and_waits_longer_each_time() {
    let _guard = exclusive();
    plane().kubectl_ok(&["-n", NAMESPACE, "create", "serviceaccount", "powerless"]);
    let elected = "create role leases --verb=* --resource=leases.coordination.k8s.io";
    plane().kubectl_ok(&[&["-n", NAMESPACE], &elected.split(' ').collect::<Vec<_>>()[..]].concat());
    plane().bind(NAMESPACE, "leases", "--role=leases", "powerless");
    let controller = Controller::launch_over(plane(), &[], plane().service_account_kubeconfig(NAMESPACE, "powerless"));
    let errors = || {
        let metrics = controller.metrics();
        let counted = metrics.lines().filter(|line| line.starts_with("purlin_watch_errors_total"));
        counted.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u32>().ok()).sum::<u32>()
    };
    wait_until("each watch has failed several times", LIMIT, || errors() >= 30);
    wait_until("it says what it cannot read", LIMIT, || {
        let (status, text) = controller.http("/readyz").unwrap_or_default();
        let says = ["waiting for the first response of", "resources: ", "is forbidden", "records: "];
        status == 503 && says.iter().all(|expected| text.contains(expected))
    });
    let log = controller.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("watch")).collect();
    // Once each, and again when it begins with the shards of this replica.
    assert!(lines.len() <= 15, "{} lines: {lines:#?}", lines.len());
    assert!(!log.contains("ErrorResponse") && !log.contains("Status {"), "{log}");
    drop(controller);
    plane().kubectl_ok(&["-n", NAMESPACE, "delete", "rolebinding", "leases"]);
    plane().kubectl_ok(&["-n", NAMESPACE, "delete", "role", "leases"]);
    plane().kubectl_ok(&["-n", NAMESPACE, "delete", "serviceaccount", "powerless"]);
}
