use serde_json::json;

use super::*;

fn invalid(causes: &[(&str, &str)]) -> Refusal {
    let causes: Vec<Json> = causes
        .iter()
        .map(|(field, message)| json!({"reason": "FieldValueInvalid", "field": field, "message": message}))
        .collect();
    Refusal::new(422, &json!({"reason": "Invalid", "message": "X is invalid", "details": {"causes": causes}}), None)
}

fn attempt(sensitive: bool) -> Attempt<'static> {
    Attempt {
        verb: "update",
        object: "Secret `shop/site`".to_owned(),
        resource: "secrets".to_owned(),
        service_account: "deployer",
        namespace: "shop",
        place: "shop".to_owned(),
        sensitive,
    }
}

#[test]
fn immutable_fields_are_known_by_the_words_of_the_server() {
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
fn a_mistake_beside_an_immutable_field_is_a_mistake() {
    let both = [("data", "Forbidden: field is immutable when `immutable` is set"), ("x", "Required value")];
    assert_eq!(invalid(&both).immutable_fields(), None);
    assert_eq!(
        invalid(&[("spec.replicas", "Invalid value: -1: must be greater than or equal to 0")]).immutable_fields(),
        None
    );
}

#[test]
fn another_object_of_that_name_is_no_immutable_field() {
    let refusal = invalid(&[("metadata.uid", r#"Invalid value: "a": field is immutable"#)]);
    assert!(refusal.is_uid_mismatch());
    assert_eq!(refusal.immutable_fields(), None);
    let gone = "uid mismatch: the provided object specified uid a, and no existing object was found";
    assert!(Refusal::new(409, &json!({"message": gone}), None).is_uid_mismatch());
    assert!(!Refusal::new(409, &json!({"message": "the object has been modified"}), None).is_uid_mismatch());
}

#[test]
fn a_webhook_may_say_it_too() {
    let message = r#"admission webhook "x.io" denied the request: spec.zone is immutable"#;
    let refusal = Refusal::new(403, &json!({"message": message}), None);
    assert_eq!(refusal.immutable_fields(), Some(vec![String::new()]));
    assert_eq!(error(&Failure::Refused(Box::new(refusal)), &attempt(false)).kind, ErrorKind::Terminal);
}

#[test]
fn a_field_leads_as_deep_into_the_manifest_as_the_manifest_goes() {
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
fn a_conflict_is_ours_to_settle_where_we_had_set_the_field() {
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
fn a_conflict_names_manager_and_field() {
    let body = json!({"reason": "Conflict", "message": "Apply failed with 1 conflict", "details": {"causes": [{
        "reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": r#"conflict with "hpa" using apps/v1"#}]}});
    let error = error(&Failure::Refused(Box::new(Refusal::new(409, &body, None))), &attempt(false));
    assert_eq!(error.kind, ErrorKind::Terminal);
    assert_eq!(error.message, "cannot update Secret `shop/site`: `.spec.replicas` is managed by `hpa`");
    assert_eq!(error.hint.unwrap(), "leave `.spec.replicas` out of the manifest, or let `hpa` give it up");
}

#[test]
fn errors_about_sensitive_objects_quote_nothing() {
    let refusal = Refusal {
        message: "Secret \"site\" is invalid: data: Invalid value: \"hunter2\"".to_owned(),
        ..invalid(&[("data", "Invalid value: \"hunter2\": bad")])
    };
    let failure = Failure::Refused(Box::new(refusal));
    assert!(error(&failure, &attempt(false)).message.contains("hunter2"));
    assert_eq!(
        error(&failure, &attempt(true)).message,
        "cannot update Secret `shop/site`: the API server refused it (HTTP 422) because of `data` (FieldValueInvalid); \
         its text may quote sensitive values"
    );
}

#[test]
fn codes_tell_what_trying_again_means() {
    let kind = |code: u16, message: &str| {
        error(&Failure::Refused(Box::new(Refusal::new(code, &json!({"message": message}), None))), &attempt(false)).kind
    };
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
    assert_eq!(error(&Failure::OutOfTime, &attempt(false)).kind, ErrorKind::Transient);
}

#[test]
fn who_lacks_a_right_is_told_which_role_gives_it() {
    let body = json!({"message": "secrets \"site\" is forbidden: User \"system:serviceaccount:shop:deployer\" cannot \
        patch resource \"secrets\" in API group \"\" in the namespace \"shop\""});
    let error = error(&Failure::Refused(Box::new(Refusal::new(403, &body, None))), &attempt(true));
    assert!(error.message.contains("cannot patch resource"), "{}", error.message);
    assert_eq!(
        error.hint.unwrap(),
        "bind a Role of namespace `shop` to the service account `deployer` of namespace `shop` that allows get, list, \
         watch, create, patch and delete of `secrets`"
    );
}

#[test]
fn a_create_in_the_own_namespace_that_goes_is_not_tried_again() {
    let text =
        "configmaps \"m\" is forbidden: unable to create new content in namespace shop because it is being terminated";
    let refusal = || Failure::Refused(Box::new(Refusal { code: 403, message: text.to_owned(), ..Refusal::default() }));
    assert_eq!(error(&refusal(), &attempt(false)).kind, ErrorKind::Terminal);
    let elsewhere = Attempt { place: "other".to_owned(), ..attempt(false) };
    assert_eq!(error(&refusal(), &elsewhere).kind, ErrorKind::Transient, "it may be made again");
    let locally = Attempt { service_account: "", ..attempt(false) };
    assert_eq!(error(&refusal(), &locally).kind, ErrorKind::Transient);
}
