//! Resources under the clients of GitOps tools, with the tools' own code (`tests/gitops`): kstatus, Flux, Argo CD, Helm
//! and kro.

mod argocd;
mod flux;
mod helm;
mod kro;
mod kstatus;

use std::path::PathBuf;
use std::process::Output;

use crate::installation::plane;
use crate::pages::root;
use crate::programs::{Program, ensure};

const GITOPS: Program = Program { module: "gitops", package: ".", name: "gitops" };

fn program() -> PathBuf {
    ensure(&GITOPS)
}

/// Runs the program of `tests/gitops`.
fn gitops(args: &[&str]) -> Output {
    plane().command(&program()).args(args).output().expect("the program runs")
}

/// The output of a command, and its error messages.
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn example(path: &str) -> String {
    std::fs::read_to_string(root().join("examples").join(path)).expect("an example")
}

/// The color in the settings that the Deployment of `examples/kubernetes` uses.
fn color(namespace: &str) -> String {
    let web = plane().get(&["-n", namespace, "deployment", "web"]);
    let settings = &web["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"];
    let settings = plane().get(&["-n", namespace, "configmap", settings.as_str().expect("a name")]);
    settings["data"]["color"].as_str().expect("a color").to_owned()
}
