use serde_json::json;

use super::*;

fn invalid(causes: &[(&str, &str)]) -> ApiError {
    let causes: Vec<Json> = causes
        .iter()
        .map(|(field, message)| json!({"reason": "FieldValueInvalid", "field": field, "message": message}))
        .collect();
    ApiError::new(422, &json!({"reason": "Invalid", "message": "X is invalid", "details": {"causes": causes}}), None)
}

fn attempt(sensitive: bool) -> ErrorContext<'static> {
    ErrorContext {
        verb: "update",
        object: "Secret `shop/site`".to_owned(),
        resource: "secrets".to_owned(),
        service_account: "deployer",
        namespace: "shop",
        object_namespace: "shop".to_owned(),
        sensitive,
    }
}

#[test]
fn immutable_fields_are_recognized_by_the_message() {
    for (field, message) in [
        ("spec.clusterIPs[0]", r#"Invalid value: ["10.0.0.2"]: may not change once set"#),
        ("spec.clusterIPs", r#"Invalid value: ["None"]: primary clusterIP can not be unset"#),
        ("spec.template", "Invalid value: {...}: field is immutable"),
        ("spec.selector", r#"Invalid value: {"matchLabels":{"app":"b"}}: field is immutable"#),
        ("data", "Forbidden: field is immutable when `immutable` is set"),
        ("spec", "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName"),
        ("roleRef", r#"Invalid value: {"kind":"Role","name":"b"}: cannot change roleRef"#),
        ("spec", "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden"),
        ("spec", "Forbidden: pod updates may not change fields other than `spec.containers[*].image`"),
        ("parameters", "Forbidden: updates to parameters are forbidden."),
        ("value", "Forbidden: may not be changed in an update."),
        ("spec.zone", "Invalid value: \"b\": Value is immutable"),
    ] {
        assert_eq!(invalid(&[(field, message)]).immutable_fields(), Some(vec![field.to_owned()]), "{message}");
    }
}

#[test]
fn an_invalid_field_beside_an_immutable_field_is_an_error() {
    let both = [("data", "Forbidden: field is immutable when `immutable` is set"), ("x", "Required value")];
    assert_eq!(invalid(&both).immutable_fields(), None);
    assert_eq!(
        invalid(&[("spec.replicas", "Invalid value: -1: must be greater than or equal to 0")]).immutable_fields(),
        None
    );
}

#[test]
fn a_uid_mismatch_is_not_an_immutable_field() {
    let api_error = invalid(&[("metadata.uid", r#"Invalid value: "a": field is immutable"#)]);
    assert!(api_error.is_uid_mismatch());
    assert_eq!(api_error.immutable_fields(), None);
    let gone = "uid mismatch: the provided object specified uid a, and no existing object was found";
    assert!(ApiError::new(409, &json!({"message": gone}), None).is_uid_mismatch());
    assert!(!ApiError::new(409, &json!({"message": "the object has been modified"}), None).is_uid_mismatch());
}

#[test]
fn a_webhook_may_report_an_immutable_field() {
    let message = r#"admission webhook "x.io" denied the request: spec.zone is immutable"#;
    let api_error = ApiError::new(403, &json!({"message": message}), None);
    assert_eq!(api_error.immutable_fields(), Some(vec![String::new()]));
    assert_eq!(to_driver_error(&RequestError::Api(Box::new(api_error)), &attempt(false)).kind, ErrorKind::Terminal);
}

#[test]
fn a_field_path_ends_where_the_manifest_ends() {
    let manifest =
        Value::from_json(json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "ports": [{"port": 1}]},
        "metadata": {"annotations": {"example.com/a.b": "x"}}, "data": {"a.b": "x"}}));
    for (field, path) in [
        ("spec.selector", "manifest.spec.selector"),
        ("spec.ports[0].nodePort", "manifest.spec.ports[0]"),
        ("spec.clusterIPs[0]", "manifest.spec"),
        ("metadata.annotations[example.com/a.b]", r#"manifest.metadata.annotations["example.com/a.b"]"#),
        ("data[a.b]", r#"manifest.data["a.b"]"#),
        ("roleRef", "manifest"),
        ("", "manifest"),
    ] {
        assert_eq!(manifest_path(&manifest, field).to_string(), path, "{field}");
    }
}

#[test]
fn a_conflict_is_forced_only_for_fields_of_the_previous_apply() {
    let applied = Value::from_json(json!({"data": {"a.b": "x"}, "spec": {"replicas": 1,
        "containers": [{"name": "web", "image": "i"}], "ports": [{"port": 80}]}, "finalizers": ["x"]}));
    for field in [
        ".data.a.b",
        ".spec.replicas",
        r#".spec.containers[name="web"].image"#,
        r#".spec.ports[port=80,protocol="TCP"].port"#,
        r#".finalizers[="x"]"#,
    ] {
        assert!(sets(&applied, field), "{field}");
    }
    for field in [".data.a", ".spec.paused", r#".spec.containers[name="db"].image"#, r#".finalizers[="y"]"#] {
        assert!(!sets(&applied, field), "{field}");
    }
}

#[test]
fn a_conflict_names_the_manager_and_the_field() {
    let body = json!({"reason": "Conflict", "message": "Apply failed with 1 conflict", "details": {"causes": [{
        "reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": r#"conflict with "hpa" using apps/v1"#}]}});
    let error = to_driver_error(&RequestError::Api(Box::new(ApiError::new(409, &body, None))), &attempt(false));
    assert_eq!(error.kind, ErrorKind::Terminal);
    assert_eq!(error.message, "cannot update Secret `shop/site`: `.spec.replicas` is managed by `hpa`");
    assert_eq!(error.hint.unwrap(), "remove `.spec.replicas` from the manifest, or make `hpa` release it");
}

#[test]
fn errors_of_sensitive_objects_do_not_quote_values() {
    let api_error = ApiError {
        message: "Secret \"site\" is invalid: data: Invalid value: \"hunter2\"".to_owned(),
        ..invalid(&[("data", "Invalid value: \"hunter2\": bad")])
    };
    let failure = RequestError::Api(Box::new(api_error));
    assert!(to_driver_error(&failure, &attempt(false)).message.contains("hunter2"));
    assert_eq!(
        to_driver_error(&failure, &attempt(true)).message,
        "cannot update Secret `shop/site`: the API server rejected it (HTTP 422) because of `data` \
         (FieldValueInvalid); its message is hidden because it may quote sensitive values"
    );
}

fn kind(code: u16, message: &str) -> ErrorKind {
    to_driver_error(
        &RequestError::Api(Box::new(ApiError::new(code, &json!({"message": message}), None))),
        &attempt(false),
    )
    .kind
}

#[test]
fn status_codes_determine_the_error_kind() {
    assert_eq!(kind(403, "secrets is forbidden: User \"x\" cannot patch resource"), ErrorKind::Forbidden);
    assert_eq!(kind(403, "pods \"x\" is forbidden: exceeded quota: q"), ErrorKind::Transient);
    assert_eq!(kind(404, "namespaces \"x\" not found"), ErrorKind::Transient);
    assert_eq!(kind(409, "the object has been modified"), ErrorKind::Transient);
    assert_eq!(kind(422, "X is invalid"), ErrorKind::InvalidConfig);
    assert_eq!(
        kind(500, "failed to create typed patch object: .spec.x: field not declared in schema"),
        ErrorKind::InvalidConfig
    );
    assert_eq!(kind(503, "apiserver not ready"), ErrorKind::Transient);
    assert_eq!(to_driver_error(&RequestError::Timeout, &attempt(false)).kind, ErrorKind::Transient);
}

#[test]
fn a_forbidden_request_names_the_missing_role() {
    let body = json!({"message": "secrets \"site\" is forbidden: User \"system:serviceaccount:shop:deployer\" cannot \
        patch resource \"secrets\" in API group \"\" in the namespace \"shop\""});
    let error = to_driver_error(&RequestError::Api(Box::new(ApiError::new(403, &body, None))), &attempt(true));
    assert_eq!(error.message, "cannot update Secret `shop/site`: the service account may not patch secrets");
    assert_eq!(
        error.hint.unwrap(),
        "bind a Role in namespace `shop` to the service account `deployer` that allows get, list, watch, create, patch \
         and delete of `secrets`"
    );
    let detailed = "roles \"r\" is forbidden: User \"ann\" cannot get resource \"roles\" in API group \"x\" in the namespace \
        \"shop\": RBAC: role \"y\" not found";
    assert_eq!(denial(detailed).unwrap(), "the user `ann` may not get roles: RBAC: role \"y\" not found");
}

#[test]
fn a_create_in_its_own_terminating_namespace_is_not_retried() {
    let text =
        "configmaps \"m\" is forbidden: unable to create new content in namespace shop because it is being terminated";
    let api_error =
        || RequestError::Api(Box::new(ApiError { code: 403, message: text.to_owned(), ..ApiError::default() }));
    assert_eq!(to_driver_error(&api_error(), &attempt(false)).kind, ErrorKind::Terminal);
    let elsewhere = ErrorContext { object_namespace: "other".to_owned(), ..attempt(false) };
    assert_eq!(to_driver_error(&api_error(), &elsewhere).kind, ErrorKind::Transient, "the namespace may be recreated");
    let locally = ErrorContext { service_account: "", ..attempt(false) };
    assert_eq!(to_driver_error(&api_error(), &locally).kind, ErrorKind::Transient);
}
