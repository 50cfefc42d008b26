//! The quotas of a namespace.

use crate::controlplane::wait_until;
use crate::installation::*;

#[test]
fn a_namespace_at_its_quota_of_records_creates_nothing_until_objects_are_destroyed() {
    let _guard = shared();
    let ns = plane().namespace("quota");
    plane().kubectl_ok(&["annotate", "namespace", &ns, "purlin.dev/quota=record-bytes=100"]);
    // It is created only when the controller knows the annotation.
    let known = "\"${ns.annotations['purlin.dev/quota']}\"";
    plane().apply(&["-n", &ns], &data("first", known, ""));
    wait_ready(&ns, &["first"]);
    plane().apply(&["-n", &ns], &data("second", "two", ""));
    let refused = wait_reason(&ns, "second", "Ready", "QuotaExceeded");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("the annotation `purlin.dev/quota` of the Namespace"), "{message}");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "first", "--wait=true"]);
    wait_ready(&ns, &["second"]);
    plane().kubectl_ok(&["annotate", "namespace", &ns, "purlin.dev/quota=record-bytes=1Gi", "--overwrite"]);
    plane().apply(&["-n", &ns], &data("third", "three", ""));
    wait_until("the higher quota has an effect", LIMIT, || {
        resource(&ns, "third").is_some_and(|third| is_ready(&third))
    });
}
