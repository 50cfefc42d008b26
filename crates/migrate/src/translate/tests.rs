//! Expressions of HCL with their translations.

use serde_json::json;

use super::*;
use crate::configuration::Folder;

/// A configuration with variables, locals, modules and resources.
const MAIN: &str = r#"
variable "region" { default = "eu" }
variable "size" { default = 2 }
variable "loud" { default = true }
variable "tags" { default = { a = "1" } }
variable "token" {
  type      = string
  sensitive = true
}
locals {
  prefix = "shop-${var.region}"
  zones  = ["a", "b"]
}
resource "cloud_disk" "one" {}
resource "cloud_disk" "many" { count = 2 }
resource "cloud_disk" "none" { count = 0 }
resource "cloud_disk" "off" {
  lifecycle { enabled = false }
}
resource "cloud_disk" "keyed" { for_each = { x = 1, y = 2 } }
module "app" {
  source   = "./app"
  for_each = { blue = 1, green = 2 }
  name     = "${each.key}-${each.value}"
}
"#;

const APP: &str = r#"
variable "name" {}
resource "cloud_disk" "this" {}
output "id" { value = "${cloud_disk.this.id}/${var.name}" }
"#;

fn resources() -> NamedResources {
    let named = |name: &str, keys: Option<Vec<InstanceKey>>| NamedResource { name: name.into(), keys };
    let key = |key: &str| InstanceKey::Key(key.into());
    let step = |key: &str| vec![("app".to_owned(), Some(Key::Key(key.into())))];
    NamedResources {
        by_address: BTreeMap::from([
            ("cloud_disk.one".into(), named("one", None)),
            ("cloud_disk.many".into(), named("my-many", Some(vec![InstanceKey::Index(0), InstanceKey::Index(1)]))),
            ("cloud_disk.keyed".into(), named("keyed", Some(vec![key("x"), key("y")]))),
            ("module.app[\"blue\"].cloud_disk.this".into(), named("app-blue-this", None)),
            ("module.app[\"green\"].cloud_disk.this".into(), named("app-green-this", None)),
        ]),
        modules: [step("blue"), step("green")].into(),
    }
}

fn translated(expression: &str) -> Result<Json, Untranslated> {
    let read = |_: &str| {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        Ok(Folder::from([file("main.tf", MAIN), file("app/main.tf", APP), file("terraform.tfvars", "token = \"t\"")]))
    };
    let configuration = Configuration::read(&read, &[]).unwrap();
    let resources = resources();
    let translator = Translator { configuration: &configuration, resources: Some(&resources) };
    let place = Place::new(&[], Repetition::Family(true));
    let expression: Expression = expression.parse().unwrap();
    Ok(translator.expression(&expression, &place)?.to_argument()?.to_json())
}

#[test]
fn expressions_are_translated() {
    let cases = [
        ("1.5", json!(1.5)),
        ("null", Json::Null),
        (r#""a $${b} ${1 + 2}""#, json!("a $${b} 3")),
        ("var.region", json!("${inputs.region}")),
        ("var.size + 1", json!("${json.unmarshal(inputs.size) + 1}")),
        ("var.size / 2", json!("${double(json.unmarshal(inputs.size)) / double(2)}")),
        ("var.loud ? 1 : 2", json!("${(inputs.loud == \"true\") ? 1 : 2}")),
        ("var.loud ? 1 : 1", json!(1)),
        ("true ? cloud_disk.one.id : var.unknown", json!("${one.id}")),
        ("var.token", json!("${inputs.token}")),
        ("merge(var.tags, { b = var.region })", json!({"a": "1", "b": "${inputs.region}"})),
        (r#""${local.prefix}-x""#, json!("shop-${inputs.region}-x")),
        ("local.zones[1]", json!("b")),
        ("cloud_disk.one.rule[0][\"a b\"]", json!("${one.rule[0][\"a b\"]}")),
        ("cloud_disk.many[count.index].id", json!("${my_many[count.index].id}")),
        ("cloud_disk.many[*].id", json!("${my_many.map(it, it.id)}")),
        ("cloud_disk.one[*].id", json!(["${one.id}"])),
        ("cloud_disk.none[*].id", json!([])),
        ("length(cloud_disk.none) > 0 ? cloud_disk.none[0].id : null", Json::Null),
        ("try(cloud_disk.none[0].id, \"none\")", json!("none")),
        ("cloud_disk.off == null ? \"none\" : cloud_disk.off.id", json!("none")),
        ("try(cloud_disk.off.id, \"none\")", json!("none")),
        ("cloud_disk.off[*].id", json!([])),
        ("cloud_disk.keyed[each.key].id", json!("${keyed[each.key].id}")),
        ("[for disk in cloud_disk.keyed : disk.id]", json!("${keyed.map(key, keyed[key].id)}")),
        ("[for k, disk in cloud_disk.keyed : k]", json!("${keyed.map(k, k)}")),
        (
            "[for one in cloud_disk.many : one.id if one.size > 1]",
            json!("${my_many.filter(one_, one_.size > 1).map(one_, one_.id)}"),
        ),
        ("{ for k, v in { a = 1, b = 2 } : upper(k) => v * 2 if v > 1 }", json!({"B": 4})),
        ("{ for zone in local.zones : zone => cloud_disk.one.id }", json!({"a": "${one.id}", "b": "${one.id}"})),
        ("module.app[\"blue\"].id", json!("${app_blue_this.id}/blue-1")),
        ("values(module.app)[*].id", json!(["${app_blue_this.id}/blue-1", "${app_green_this.id}/green-2"])),
        (
            "module.app[each.key].id",
            json!(
                "${{\"blue\": string(app_blue_this.id) + \"/blue-1\", \"green\": string(app_green_this.id) + \"/green-2\"}[each.key]}"
            ),
        ),
        ("each.value.size", json!("${each.value.size}")),
        ("toset([\"b\", \"a\", \"b\"])", json!(["a", "b"])),
        ("join(\"-\", [\"a\", var.region])", json!("${[\"a\", inputs.region].join(\"-\")}")),
        ("format(\"%s-%d%%\", var.region, 3)", json!("${inputs.region}-3%")),
        ("coalesce(\"\", null, cloud_disk.one.id)", json!("${one.id}")),
        ("flatten([[1], [2, [3]]])", json!([1, 2, 3])),
        ("upper(\"a\")", json!("A")),
        (
            "substr(cloud_disk.one.id, 2, 3)",
            json!("${one.id.substring(math.least(size(one.id), 2), math.least(size(one.id), 5))}"),
        ),
        ("substr(cloud_disk.one.id, 0, -1)", json!("${one.id.substring(0, size(one.id))}")),
        ("jsonencode({ a = cloud_disk.one.id })", json!("${json.marshal({\"a\": one.id})}")),
        (r#""%{if var.loud}yes%{else}no%{endif}""#, json!("${string((inputs.loud == \"true\") ? \"yes\" : \"no\")}")),
        (r#""%{for zone in local.zones}${zone};%{endfor}""#, json!("a;b;")),
    ];
    for (expression, expected) in cases {
        assert_eq!(translated(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn what_has_no_counterpart_is_named() {
    let cases = [
        ("md5(cloud_disk.one.id)", "`md5()` has no counterpart"),
        ("format(\"%05d\", 1)", "the format `%05d` has no counterpart"),
        ("terraform.workspace", "`terraform.workspace` has no counterpart"),
        ("module.app", "the whole module `app` has no counterpart"),
        ("{ for disk in cloud_disk.many : disk.id => 1 }", "a map that is made by a loop has no counterpart"),
        ("var.unknown", "the variable `unknown` has no value"),
        ("cloud_disk.other.id", "`cloud_disk.other` is not migrated"),
        ("provider::time::rfc3339(\"x\")", "the function `rfc3339` of a provider has no counterpart"),
    ];
    for (expression, why) in cases {
        assert_eq!(translated(expression), Err(why.to_owned()), "{expression}");
    }
}
