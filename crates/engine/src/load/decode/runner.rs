//! `spec.runner` of a `Provider` and of a `ProviderConfig`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{invalid, spec_path};
use crate::load::{Runner, duration};
use api::RunnerKind;
use model::kube_names::is_subdomain;
use model::{Diagnostics, OWN_VARIABLES, PodRunner};

/// Decodes a runner. One with an error starts no process, because its document cannot be used.
pub fn decode(written: &api::ProviderRunner, problems: &mut Diagnostics) -> Runner {
    if written.kind == RunnerKind::InProcess {
        let unused = api::ProviderRunner { kind: RunnerKind::InProcess, ..api::ProviderRunner::default() };
        if *written != unused {
            let what = "the other fields have no effect with the kind `InProcess`";
            problems.push(invalid(spec_path(&["runner", "kind"]), what, "write `kind: Pod`, or remove them"));
        }
        return Runner::InProcess;
    }
    if let Some(account) = written.service_account_name.as_deref().filter(|account| !is_subdomain(account)) {
        let what = format!("`{account}` is not a valid name of a service account");
        problems.push(invalid(spec_path(&["runner", "serviceAccountName"]), what, ""));
    }
    for (index, api::RunnerVariable { name, .. }) in written.env.iter().enumerate() {
        let what = if name.is_empty() || name.contains('=') {
            "the name of an environment variable is missing or invalid".to_owned()
        } else if name.starts_with(OWN_VARIABLES) {
            format!("names that begin with `{OWN_VARIABLES}` are those of Purlin")
        } else {
            continue;
        };
        problems.push(invalid(spec_path(&["runner", "env"]).index(index).name("name"), what, ""));
    }
    let idle_timeout = written.idle_timeout.as_deref().and_then(|text| {
        let parsed = duration::parse(text);
        if parsed.is_none() {
            let what = format!("`{text}` is not a valid duration");
            problems.push(invalid(spec_path(&["runner", "idleTimeout"]), what, "write a duration such as `30m`"));
        }
        parsed
    });
    let resources = written.resources.as_ref().and_then(|resources| serde_json::to_value(resources).ok());
    let environment: BTreeMap<String, String> =
        written.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect();
    Runner::Pod(Arc::new(PodRunner {
        creator: Arc::default(),
        service_account: written.service_account_name.as_deref().map(Arc::from),
        resources: resources.unwrap_or_default(),
        node_selector: written.node_selector.clone(),
        tolerations: written
            .tolerations
            .iter()
            .filter_map(|toleration| serde_json::to_value(toleration).ok())
            .collect(),
        environment,
        idle_timeout,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(runner: serde_json::Value) -> (Runner, Vec<String>) {
        let mut problems = Diagnostics::new();
        let runner = decode(&serde_json::from_value(runner).unwrap(), &mut problems);
        (runner, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_runner_has_the_fields_of_its_pod() {
        let written = serde_json::json!({
            "kind": "Pod", "serviceAccountName": "cloud", "resources": {"limits": {"memory": "1Gi"}},
            "tolerations": [{"key": "spot", "operator": "Exists"}], "env": [{"name": "A", "value": "b"}],
            "idleTimeout": "30m",
        });
        let (Runner::Pod(runner), problems) = decoded(written) else { panic!("not a Pod") };
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(runner.service_account.as_deref(), Some("cloud"));
        assert_eq!(runner.resources, serde_json::json!({"limits": {"memory": "1Gi"}}));
        assert_eq!(runner.tolerations, [serde_json::json!({"key": "spot", "operator": "Exists"})]);
        assert_eq!(runner.environment, BTreeMap::from([("A".to_owned(), "b".to_owned())]));
        assert_eq!(runner.idle_timeout, Some(std::time::Duration::from_mins(30)));
    }

    #[test]
    fn fields_that_have_no_effect_or_no_meaning_are_errors() {
        let problem = |runner| decoded(runner).1.join("; ");
        let unused = problem(serde_json::json!({"kind": "InProcess", "idleTimeout": "5m"}));
        assert!(unused.contains("have no effect with the kind `InProcess`"), "{unused}");
        let wrong = serde_json::json!({
            "kind": "Pod", "serviceAccountName": "../x", "env": [{"name": "a=b"}, {"name": "PURLIN_RUNNER_KEY"}],
            "idleTimeout": "soon",
        });
        let wrong = problem(wrong);
        for field in ["spec.runner.serviceAccountName", "env[0].name", "env[1].name", "spec.runner.idleTimeout"] {
            assert!(wrong.contains(field), "{field}: {wrong}");
        }
    }
}
