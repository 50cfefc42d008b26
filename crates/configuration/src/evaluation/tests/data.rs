//! What delays the read of a data source.

use super::run;

/// What delays a read, with `*` if what it depends on does too.
fn reads_after(files: &[(&str, &str)], address: &str) -> Vec<String> {
    let run = run(files);
    assert_eq!(run.errors, [""; 0]);
    let object = run.all.iter().find(|object| object.address.to_string() == address).unwrap();
    let all = object.reads_after.iter();
    all.map(|after| format!("{}{}", after.dependency, if after.transitive { "*" } else { "" })).collect()
}

const MAIN: &str = r#"
    resource "thing_a" "a" { name = "a" }
    resource "thing_a" "many" { count = 2 }
    data "thing_a" "other" { name = thing_a.a.id }
    locals { name = thing_a.a.name }
    module "m" {
      source     = "./m"
      name       = thing_a.a.name
      depends_on = [thing_a.many]
    }
"#;

const M: &str = r#"
    variable "name" {}
    data "thing_a" "inside" { name = var.name }
    resource "thing_a" "inside" {}
"#;

fn of(block: &str) -> Vec<String> {
    reads_after(&[("main.tf", &format!("{MAIN}{block}")), ("m/main.tf", M)], "data.thing_a.x")
}

#[test]
fn a_read_waits_for_what_the_block_itself_names() {
    assert_eq!(of(r#"data "thing_a" "x" { name = thing_a.a.name }"#), ["thing_a.a"]);
    assert_eq!(of(r#"data "thing_a" "x" { name = local.name }"#), [""; 0], "a local names it");
    assert_eq!(of(r#"data "thing_a" "x" { name = data.thing_a.other.name }"#), [""; 0], "data sources change nothing");
    assert_eq!(of(r#"data "thing_a" "x" { name = thing_a.many[0].name }"#), ["thing_a.many"], "the whole block");
    let keys = r#"data "thing_a" "x" {
      name = local.name
      lifecycle { enabled = thing_a.many[0].name == null }
    }"#;
    assert_eq!(of(keys), ["thing_a.many"], "the expression of the keys counts");
}

#[test]
fn a_read_waits_for_everything_behind_modules_and_conditions() {
    let named = r#"data "thing_a" "x" {
      name       = local.name
      depends_on = [thing_a.many, module.m]
    }"#;
    assert_eq!(of(named), ["thing_a.many", "module.m*"]);
    let checked = r#"data "thing_a" "x" {
      name = local.name
      lifecycle {
        precondition {
          condition     = local.name != ""
          error_message = "no"
        }
      }
    }"#;
    assert_eq!(of(checked), ["thing_a.a*"]);
    let files = [("main.tf", MAIN), ("m/main.tf", M)];
    assert_eq!(reads_after(&files, "module.m.data.thing_a.inside"), ["thing_a.many*"]);
}
