//! Runs the scripts of `examples/ci` as the runner of the service does, with the real `purlin` and substitutes of the
//! service's own programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::installation::*;
use crate::pages::root;
use crate::previews::Pipeline;

fn example(file: &str) -> Value {
    let text = fs::read_to_string(root().join("examples/ci").join(file)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// A program that writes its arguments and the file that they name into the file `posted`.
fn poster(bin: &Path, name: &str) {
    let script = "#!/bin/sh\necho \"$*\" > posted\nfor word; do file=${word#body@}; [ ! -f \"$file\" ] || cat \"$file\" \
         >> posted; done\n";
    fs::write(bin.join(name), script).unwrap();
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a script. Returns its success and what was posted.
fn run(pipeline: &Pipeline, script: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let directory = pipeline.directory.path();
    let bin = directory.join("bin");
    fs::create_dir_all(&bin).unwrap();
    poster(&bin, "gh");
    poster(&bin, "curl");
    let program = Path::new(env!("CARGO_BIN_EXE_purlin")).parent().unwrap();
    let path = format!("{}:{}:{}", bin.display(), program.display(), std::env::var("PATH").unwrap());
    // As both services run scripts.
    let mut command = Command::new("bash");
    command.args(["-eo", "pipefail", "-c", script]).current_dir(directory).env("PATH", path);
    command.env("RUNNER_TEMP", directory).env("GITHUB_STEP_SUMMARY", directory.join("summary"));
    command.envs(variables.iter().copied()).env_remove("KUBECONFIG");
    let output = command.output().unwrap();
    let posted = fs::read_to_string(directory.join("posted")).unwrap_or_default();
    assert!(output.status.success() || output.status.code() == Some(1), "{output:?}");
    (output.status.success(), posted)
}

/// The namespace `shop` of the examples, with an object that the manifests change and one that they do not contain.
fn pipeline(namespace: &str) -> Pipeline {
    let labelled =
        |name: &str, input: &str| data(name, input, "").replace("metadata: {", "metadata: { labels: { app: shop },");
    plane().apply(&["-n", namespace], &(labelled("site", "one") + &labelled("old", "one")));
    wait_ready(namespace, &["site", "old"]);
    let pipeline = Pipeline::new(namespace);
    fs::create_dir(pipeline.directory.path().join("deploy")).unwrap();
    pipeline.write("deploy/site.yaml", &labelled("site", "two"));
    pipeline
}

fn check(posted: &str) {
    for part in ["1 to update, 0 to replace, 1 to destroy", "> - `old` will be destroyed", "```mermaid"] {
        assert!(posted.contains(part), "{part}: {posted}");
    }
}

#[test]
fn the_workflow_of_github_actions_comments_on_a_pull_request() {
    let _guard = shared();
    let pipeline = pipeline(&plane().namespace("github"));
    let workflow = example("github-actions.yaml");
    let kubeconfig = fs::read_to_string(&pipeline.kubeconfig).unwrap();
    let steps = workflow["jobs"]["preview"]["steps"].as_array().unwrap();
    let scripts: Vec<String> = steps.iter().filter_map(|step| step["run"].as_str()).map(str::to_owned).collect();
    assert_eq!(scripts.len(), 2);
    let script = |script: &str| script.replace("-n shop", &format!("-n {}", pipeline.namespace));
    let variables = [("PREVIEW_KUBECONFIG", kubeconfig.as_str()), ("NUMBER", "7"), ("GH_TOKEN", "-")];
    assert!(run(&pipeline, &script(&scripts[0]), &variables).0, "changes are no failure");
    check(&fs::read_to_string(pipeline.directory.path().join("summary")).unwrap());
    let (success, posted) = run(&pipeline, &script(&scripts[1]), &variables);
    assert!(success && posted.starts_with("pr comment 7 "), "{posted}");
    check(&posted);

    pipeline.write("deploy/wrong.yaml", &data("wrong", "\"${missing.id}\"", ""));
    assert!(!run(&pipeline, &script(&scripts[0]), &variables).0, "errors are");
    let (_, posted) = run(&pipeline, &script(&scripts[1]), &variables);
    assert!(posted.contains("**Error**: deploy/wrong.yaml:"), "{posted}");
}

#[test]
fn the_job_of_gitlab_comments_on_a_merge_request() {
    let _guard = shared();
    let pipeline = pipeline(&plane().namespace("gitlab"));
    let job = example("gitlab-ci.yaml")["preview"].clone();
    let lines: Vec<&str> = job["script"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let script = lines.join("\n").replace("-n shop", &format!("-n {}", pipeline.namespace));
    let variables = [
        ("PREVIEW_KUBECONFIG", pipeline.kubeconfig.to_str().unwrap()),
        ("PREVIEW_TOKEN", "-"),
        ("CI_API_V4_URL", "api"),
        ("CI_PROJECT_ID", "3"),
        ("CI_MERGE_REQUEST_IID", "7"),
    ];
    let (success, posted) = run(&pipeline, &script, &variables);
    assert!(success && posted.contains("api/projects/3/merge_requests/7/notes"), "{posted}");
    check(&posted);
    pipeline.write("deploy/wrong.yaml", &data("wrong", "\"${missing.id}\"", ""));
    assert!(!run(&pipeline, &script, &variables).0, "errors are a failure");
}
