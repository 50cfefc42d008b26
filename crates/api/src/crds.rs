//! The custom resource definitions of Purlin's kinds, which the files in `crds/` hold.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, ValidationRule,
};
use kube::CustomResourceExt as _;

use super::{DataSource, Module, PlanObject, Provider, ProviderConfig, Resource};

/// Returns every CRD as its file name in `crds/` and the content of that file.
pub fn crds() -> Vec<(&'static str, String)> {
    vec![
        ("datasources.purlin.dev.yaml", yaml(&data_source_crd())),
        ("modules.purlin.dev.yaml", yaml(&module_crd())),
        ("plans.purlin.dev.yaml", yaml(&plan_crd())),
        ("providerconfigs.purlin.dev.yaml", yaml(&provider_config_crd())),
        ("providers.purlin.dev.yaml", yaml(&provider_crd())),
        ("resources.purlin.dev.yaml", yaml(&resource_crd())),
    ]
}

/// Returns the CRD of [`Provider`] with all rules.
pub fn provider_crd() -> CustomResourceDefinition {
    with_common_rules(Provider::crd())
}

/// Returns the CRD of [`Module`] with all rules.
pub fn module_crd() -> CustomResourceDefinition {
    with_common_rules(Module::crd())
}

/// Returns the CRD of [`ProviderConfig`] with all rules.
pub fn provider_config_crd() -> CustomResourceDefinition {
    with_common_rules(ProviderConfig::crd())
}

/// Returns the CRD of `Plan` with all rules.
pub fn plan_crd() -> CustomResourceDefinition {
    with_common_rules(PlanObject::crd())
}

/// Adds the validation of names and the default status.
fn with_common_rules(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            root.x_kubernetes_validations = Some(vec![name_rule()]);
            set_default_status(root);
        }
    }
    crd
}

/// Returns the CRD of [`Resource`]. `Resource::crd()` lacks the rules for the whole object.
pub fn resource_crd() -> CustomResourceDefinition {
    let mut crd = Resource::crd();
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            add_resource_rules(root);
        }
    }
    crd
}

/// Returns the CRD of [`DataSource`] with the rules for the whole object.
pub fn data_source_crd() -> CustomResourceDefinition {
    with_common_rules(DataSource::crd())
}

/// Adds the validations that read the whole object, and the default status.
fn add_resource_rules(root: &mut JSONSchemaProps) {
    root.x_kubernetes_validations = Some(vec![
        name_rule(),
        rule(
            "!has(self.spec.dependsOn) || self.spec.dependsOn.all(d, d.name != self.metadata.name)",
            "spec.dependsOn must not name the Resource itself",
        ),
    ]);
    require_import_id(root);
    set_default_status(root);
}

/// Rejects `import.id: null`, which would import nothing and create a new object. `import: null` is no import.
fn require_import_id(root: &mut JSONSchemaProps) {
    fn property<'a>(of: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
        of.properties.as_mut()?.get_mut(name)
    }
    let import = property(root, "spec").and_then(|spec| property(spec, "import"));
    if let Some(id) = import.and_then(|import| property(import, "id")) {
        id.nullable = None;
    }
}

/// Names are used in expressions and addresses, so only DNS labels are allowed.
fn name_rule() -> ValidationRule {
    rule(
        "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name must be a DNS label: at most 63 lower-case letters, digits and '-', beginning and ending \
         with a letter or digit",
    )
}

fn set_default_status(root: &mut JSONSchemaProps) {
    if let Some(status) = root.properties.as_mut().and_then(|properties| properties.get_mut("status")) {
        // The generation of a new object is 1, so it never looks up to date before the first reconciliation.
        status.default = Some(JSON(serde_json::json!({"observedGeneration": -1})));
        status.nullable = None;
    }
}

fn rule(rule: &str, message: &str) -> ValidationRule {
    ValidationRule { rule: rule.to_owned(), message: Some(message.to_owned()), ..ValidationRule::default() }
}

fn yaml(crd: &CustomResourceDefinition) -> String {
    let text = serde_saphyr::to_string(crd).unwrap_or_default();
    format!("# Generated from crates/api by `purlin crds`; a test checks that it is up to date.\n{text}")
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    fn schema() -> Json {
        let crd = serde_json::to_value(resource_crd()).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    #[test]
    fn the_files_of_the_crds_are_up_to_date() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for dir in ["crds", "charts/purlin/files/crds"] {
            for (name, text) in crds() {
                let path = root.join(dir).join(name);
                if std::env::var_os("UPDATE_EXPECT").is_some() {
                    std::fs::write(&path, &text).unwrap();
                }
                let found = std::fs::read_to_string(&path).unwrap_or_default();
                assert!(found == text, "{dir}/{name} is out of date: run `UPDATE_EXPECT=1 cargo test -p purlin-api`");
            }
            let files = std::fs::read_dir(root.join(dir)).unwrap();
            let generated =
                files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "yaml"));
            assert_eq!(generated.count(), crds().len(), "{dir} has a file that nothing generates");
        }
    }

    #[test]
    fn the_files_in_crds_can_be_parsed() {
        for (_, text) in crds() {
            let crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(yaml(&crd), text);
        }
    }

    #[test]
    fn every_field_has_a_description() {
        fn walk(schema: &Json, at: &str, missing: &mut Vec<String>) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let at = format!("{at}.{name}");
                if field["description"].as_str().is_none_or(str::is_empty) && at != ".metadata" {
                    missing.push(at.clone());
                }
                walk(field, &at, missing);
                walk(&field["items"], &at, missing);
            }
        }
        let mut missing = Vec::new();
        walk(&schema(), "", &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn only_fields_without_a_type_keep_unknown_fields() {
        fn walk(schema: &Json, at: &str, found: &mut Vec<String>) {
            if schema["x-kubernetes-preserve-unknown-fields"] == true {
                found.push(at.to_owned());
            }
            assert!(schema.get("additionalProperties").is_none(), "{at}");
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                walk(field, &format!("{at}.{name}"), found);
            }
        }
        let mut found = Vec::new();
        walk(&schema(), "", &mut found);
        let free = [".spec.config", ".spec.enabled", ".spec.forEach", ".spec.import.identity"];
        let others = [".spec.lifecycle.preventDestroy", ".status.attributes"];
        assert_eq!(found, [&free[..], &others].concat());
    }

    #[test]
    fn the_definition_says_what_the_design_asks_for() {
        let crd = serde_json::to_value(resource_crd()).unwrap();
        let version = &crd["spec"]["versions"][0];
        assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
        assert_eq!(crd["spec"]["names"]["shortNames"], serde_json::json!(["pres"]));
        assert_eq!(crd["spec"]["names"]["categories"], serde_json::json!(["purlin", "managed"]));
        assert_eq!(version["selectableFields"], serde_json::json!([{"jsonPath": ".spec.type"}]));
        assert_eq!(version["subresources"], serde_json::json!({"status": {}}));
        let columns: Vec<_> = version["additionalPrinterColumns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        assert_eq!(columns, ["READY", "SYNCED", "REASON", "TYPE", "ID", "ACTION", "AGE", "MESSAGE"]);
        let schema = schema();
        assert_eq!(schema["properties"]["status"]["default"], serde_json::json!({"observedGeneration": -1}));
        let spec = &schema["properties"]["spec"]["properties"];
        assert_eq!(spec["type"]["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
        // The error for `dependsOn: [app]` names the field and what it expects; that of a list with keys does not.
        assert_eq!(spec["dependsOn"]["x-kubernetes-list-type"], "atomic");
        assert_eq!(schema["properties"]["spec"]["required"], serde_json::json!(["type"]));
    }
}
