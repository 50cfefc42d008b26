//! Helm: `--wait` waits for the Resources of a release, and for their objects when it is uninstalled.

use super::{color, example, text};
use crate::installation::*;

#[test]
fn helm_waits_until_the_changes_of_a_release_are_made() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("helm");
    plane.apply(&["-n", &ns], &example("kubernetes/rbac.yaml"));
    let directory = tempfile::tempdir().expect("a directory");
    let chart = directory.path();
    std::fs::create_dir(chart.join("templates")).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.0.0\n").unwrap();
    let shop = example("kubernetes/shop.yaml").replace("color: green", "color: {{ .Values.color }}");
    std::fs::write(chart.join("templates/shop.yaml"), shop).unwrap();
    let chart = chart.to_str().expect("UTF-8");
    let release = |color: &str| {
        let value = format!("color={color}");
        let wait = ["--wait", "--timeout", "90s", "--set", &value];
        plane.helm(&[&["upgrade", "--install", "shop", chart, "-n", &ns][..], &wait].concat())
    };
    let installed = release("green");
    assert!(installed.status.success(), "{}", text(&installed));
    for name in ["site", "web", "address"] {
        assert!(is_ready(&resource(&ns, name).unwrap()), "{name} is ready when Helm ends");
    }
    // Only one Resource changes; Helm waits for the Deployment that follows it, too.
    for value in ["blue", "red", "white"] {
        let upgraded = release(value);
        assert!(upgraded.status.success(), "{}", text(&upgraded));
        assert_eq!(color(&ns), value);
    }
    let uninstalled = plane.helm(&["uninstall", "shop", "-n", &ns, "--wait", "--timeout", "90s"]);
    assert!(uninstalled.status.success(), "{}", text(&uninstalled));
    assert!(plane.get(&["-n", &ns, "pres"])["items"].as_array().unwrap().is_empty());
    assert!(!plane.kubectl(&["-n", &ns, "get", "deployment", "web"]).status.success());
}
