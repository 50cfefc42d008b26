//! What provider processes of different namespaces share, and what a confined provider can reach.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use purlin::driver::{CallContext, Confinement, Driver as _, Preparation, ProviderOptions};
use purlin::model::Value;
use purlin::plugin::{Launch, Sandbox};
use serde_json::json;

use super::corner::Corner;
use super::driver::Bench;
use super::{is_running, launch};

/// The value that no other provider may read.
const TOKEN: &str = "hunter2";

#[tokio::test]
async fn two_namespaces_share_no_process() {
    let bench = Bench::new();
    // The process that returned the schema has seen no value of a namespace, so it serves the first one.
    bench.prepare().await;
    let call = async |namespace: &str| {
        let context = CallContext { namespace: namespace.into(), ..bench.context(Duration::from_mins(1)) };
        bench.providers.validate(&context, &Value::map::<&str>([])).await.unwrap();
    };
    call("shop").await;
    assert_eq!(bench.started().len(), 1);
    call("bank").await;
    call("shop").await;
    call("bank").await;
    let started = bench.started();
    assert_eq!(started.len(), 2, "the same configuration in another namespace is another process");
    assert!(started.iter().all(|process| is_running(*process)));
    let folders: Vec<PathBuf> = started.iter().map(|process| private_folder(*process)).collect();
    assert_ne!(folders[0], folders[1]);
    bench.providers.close().await;
}

#[tokio::test]
async fn without_landlock_no_provider_starts() {
    let unavailable = |options: ProviderOptions| ProviderOptions { confinement: Confinement::Unavailable, ..options };
    let bench = Bench::with_options(json!({}), unavailable);
    let needed = std::slice::from_ref(&bench.provider);
    let checked = Preparation { namespace: None, version: 0, needed, current: &[], configurations: &[] };
    bench.providers.prepare(checked).await;
    let expected = "the provider `corner` does not start: the kernel has no Landlock, which separates providers (hint: run \
                    the controller on nodes with Landlock (Linux 5.13 or later, enabled), or, if all tenants trust each \
                    other, set --allow-unconfined-providers)";
    assert_eq!(bench.providers.preparation_error(&bench.provider).unwrap().line(), expected);
    let context = bench.context(Duration::from_mins(1));
    let refused = bench.providers.validate(&context, &Value::map::<&str>([])).await.unwrap_err();
    assert_eq!(refused.line(), expected);
    assert!(bench.started().is_empty() && !bench.providers.is_unconfined());
}

/// A confined provider whose program is in a package of a cache, as the controller starts it.
async fn confined(root: &Path, more: &[&str]) -> Corner {
    let package = root.join("cache/acme/corner/1.0.0/linux_amd64");
    if !package.exists() {
        fs::create_dir_all(&package).unwrap();
        fs::copy(launch("corner").program, package.join("corner")).unwrap();
        fs::write(package.join("LICENSE"), "").unwrap();
    }
    let mut confine = Sandbox::system();
    confine.read.push(package.clone());
    confine.read.extend(more.iter().map(PathBuf::from));
    let launch = Launch {
        program: package.join("corner"),
        runtime_dir: root.join("run"),
        sandbox: Some(confine),
        ..launch("corner")
    };
    Corner::with(launch, json!({})).await
}

/// Lets the provider do something while it plans, and returns its report.
async fn attempt(corner: &Corner, what: &str) -> String {
    let config = corner.value("corner_trouble", json!({ "on_plan": what }));
    let planned = corner.plan("corner_trouble", None, &config).await.unwrap();
    let [report] = &planned.diagnostics[..] else { panic!("{what}: {:?}", planned.diagnostics) };
    report.detail.clone()
}

fn is_refused(report: &str) -> bool {
    ["permission denied", "operation not permitted"].iter().any(|refusal| report.ends_with(refusal))
}

fn private_folder(process: u32) -> PathBuf {
    let variables = fs::read_to_string(format!("/proc/{process}/environ")).unwrap();
    variables.split('\0').find_map(|variable| variable.strip_prefix("TMPDIR=")).unwrap().into()
}

#[tokio::test]
async fn a_confined_provider_reaches_nothing_of_others() {
    let root = tempfile::tempdir().unwrap();
    let token = root.path().join("secrets/token");
    fs::create_dir_all(token.parent().unwrap()).unwrap();
    fs::create_dir(root.path().join("run")).unwrap();
    fs::write(&token, TOKEN).unwrap();
    let (hostile, other) = (confined(root.path(), &[]).await, confined(root.path(), &[]).await);
    let own = private_folder(hostile.client.process_id().unwrap());
    let theirs = private_folder(other.client.process_id().unwrap());
    fs::write(theirs.join("file"), TOKEN).unwrap();
    assert_eq!(attempt(&hostile, &format!("write {}", own.display())).await, "done");
    assert_eq!(attempt(&hostile, &format!("read {}/written", own.display())).await, "written by a provider");

    let package = root.path().join("cache/acme/corner/1.0.0/linux_amd64");
    let another = root.path().join("cache/acme/another/linux_amd64");
    fs::create_dir_all(&another).unwrap();
    fs::write(another.join("another"), TOKEN).unwrap();
    let written = [package.join("LICENSE"), package.clone(), another.join("another"), another.clone(), token.clone()];
    for path in written.iter().chain([&theirs, &theirs.join("file"), &root.path().join("run")]) {
        let report = attempt(&hostile, &format!("write {}", path.display())).await;
        assert!(is_refused(&report), "write {}: {report}", path.display());
    }
    let mut read = vec![token, another.join("another"), another, theirs.join("file"), theirs, root.path().join("run")];
    let processes = [std::process::id(), other.client.process_id().unwrap()];
    for process in processes {
        let files = ["environ", "maps", "mem", "fd", "fd/1", "cmdline", "cwd", "root/etc/hostname"];
        read.extend(files.map(|file| PathBuf::from(format!("/proc/{process}/{file}"))));
    }
    for path in read {
        let report = attempt(&hostile, &format!("read {}", path.display())).await;
        assert!(is_refused(&report), "read {}: {report}", path.display());
    }
    assert!(attempt(&hostile, "read /proc/self/environ").await.contains("TF_PLUGIN_MAGIC_COOKIE"));
    for process in processes {
        let report = attempt(&hostile, &format!("signal {process}")).await;
        assert!(is_refused(&report) || !has_scopes(), "{report}");
    }
    assert_eq!(attempt(&hostile, &format!("signal {}", hostile.client.process_id().unwrap())).await, "done");
    tokio::join!(hostile.client.close(), other.client.close());
}

/// An administrator may allow `/proc` in `spec.files`. What the kernel protects from tracing remains inaccessible.
#[tokio::test]
async fn landlock_protects_the_memory_of_others_also_if_a_provider_can_read_proc() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("run")).unwrap();
    let (hostile, other) = (confined(root.path(), &["/proc"]).await, confined(root.path(), &[]).await);
    for process in [std::process::id(), other.client.process_id().unwrap()] {
        assert!(attempt(&hostile, &format!("read /proc/{process}/stat")).await.starts_with(&process.to_string()));
        // Since Linux 6.17, a root user with CAP_PERFMON can read the others. The Pod of the controller has neither.
        let of_users: &[&str] = if rustix::process::getuid().is_root() { &[] } else { &["environ", "maps"] };
        for file in [&["mem", "fd/1", "root/etc/hostname"], of_users].concat() {
            let report = attempt(&hostile, &format!("read /proc/{process}/{file}")).await;
            assert!(is_refused(&report), "/proc/{process}/{file}: {report}");
        }
    }
    tokio::join!(hostile.client.close(), other.client.close());
}

/// Whether the kernel confines signals: Linux 6.12 or later.
fn has_scopes() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).filter_map(|number| number.trim().parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}
