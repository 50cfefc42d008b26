//! Expressions as a user of Terraform would write them.

use expect_test::expect;

use super::{Template, check, evaluate, parse};
use crate::load::expression::terraform;

#[test]
fn a_subtraction_of_objects_is_a_name_with_hyphens() {
    check(
        &[
            "${app-key.id}",
            "${app-key}",
            "${'id ' + app-key.list[0].x}",
            "${data.my-image.id}",
            "${web-1.id}",
            "${my-for.id}",
            "${my-app-for-2.id}",
            "${resources.my-app.id}",
            "${ns.labels.my-team}",
            "${app_key.my-id}",
            "${app_key.bits - later}",
            "${[1].map(x, x - app_key)}",
            "${[1].map(x, x - 1)}",
            "${app_key.bits-app_key.bits}",
            "${1 - app_key}",
        ],
        expect![[r#"
            ${app-key.id}  =>  spec.config.a: `${app-key.id}` at column 1: `-` subtracts, and `app` is not a number (hint: write `app-key` as `app_key`: `app_key.id`)
            ${app-key}  =>  spec.config.a: `${app-key}` at column 1: `-` subtracts, and `app` is not a number (hint: write `app-key` as `app_key`: `app_key`)
            ${'id ' + app-key.list[0].x}  =>  spec.config.a: `${'id ' + app-key.list[0].x}` at column 1: `-` subtracts, and `app` is not a number (hint: write `app-key` as `app_key`: `app_key.list[0].x`)
            ${data.my-image.id}  =>  spec.config.a: `${data.my-image.id}` at column 1: `-` subtracts, and `data.my` is not a number (hint: write `my-image` as `my_image`: `data.my_image.id`)
            ${web-1.id}  =>  spec.config.a: `${web-1.id}` at column 1: `-` subtracts, and `web` is not a number (hint: write `web-1` as `web_1`: `web_1.id`)
            ${my-for.id}  =>  spec.config.a: `${my-for.id}` at column 1: `-` subtracts, and `my` is not a number (hint: write `my-for` as `my_for`: `my_for.id`)
            ${my-app-for-2.id}  =>  spec.config.a: `${my-app-for-2.id}` at column 1: `-` subtracts, and `my` is not a number (hint: write `my-app-for-2` as `my_app_for_2`: `my_app_for_2.id`)
            ${resources.my-app.id}  =>  spec.config.a: `${resources.my-app.id}` at column 1: `-` subtracts, and `resources.my` is not a number (hint: write the key `my-app` in brackets: `resources["my-app"].id`)
            ${ns.labels.my-team}  =>  spec.config.a: `${ns.labels.my-team}` at column 1: `-` subtracts, and `team` is not a number (hint: write the key `my-team` in brackets: `ns.labels["my-team"]`)
            ${app_key.my-id}  =>  spec.config.a: `${app_key.my-id}` at column 1: `-` subtracts, and `id` is not a number (hint: write the key `my-id` in brackets: `app_key["my-id"]`)
            ${app_key.bits - later}  =>  spec.config.a: `${app_key.bits - later}` at column 1: `-` subtracts, and `later` is not a number
            ${[1].map(x, x - app_key)}  =>  spec.config.a: `${[1].map(x, x - app_key)}` at column 1: `-` subtracts, and `app_key` is not a number
            ${[1].map(x, x - 1)}  =>  [0]
            ${app_key.bits-app_key.bits}  =>  0
            ${1 - app_key}  =>  spec.config.a: `${1 - app_key}` at column 1: `-` subtracts, and `app_key` is not a number
        "#]],
    );
}

#[test]
fn a_syntax_of_terraform_has_a_hint() {
    check(
        &[
            "${var.region}",
            "${'x' + var.region}",
            "${var}",
            "${var[\"my-region\"]}",
            "${[for x in zones.names : x]}",
            "${app_key.list[*].x}",
            "${json.marshal({a = 1})}",
            "${jsonencode(app_key.tags)}",
            "${upper(app_key.id)}",
            "${join(\",\", zones.names)}",
            "${sha256(app_key.id)}",
        ],
        expect![[r#"
            ${var.region}  =>  spec.config.a: `${var.region}` at column 1: `var` is not available in expressions (hint: declare `region` in `spec.inputs`, and write `${inputs.region}`)
            ${'x' + var.region}  =>  spec.config.a: `${'x' + var.region}` at column 1: `var` is not available in expressions (hint: declare `region` in `spec.inputs`, and write `${inputs.region}`)
            ${var}  =>  spec.config.a: `${var}` at column 1: `var` is not available in expressions (hint: declare each value in `spec.inputs`, and write `${inputs.NAME}`)
            ${var["my-region"]}  =>  spec.config.a: `${var["my-region"]}` at column 1: `var` is not available in expressions (hint: declare `my-region` in `spec.inputs`, and write `${inputs.my_region}`)
            ${[for x in zones.names : x]}  =>  spec.config.a: `${[for x in zones.names : x]}` at column 1: `for` is not available in expressions (hint: loop with `items.map(x, x.id)`, and select with `items.filter(x, x.id != "")`)
            ${app_key.list[*].x}  =>  spec.config.a: `${app_key.list[*].x}` at column 16: unexpected token (hint: write `app_key.list.map(x, x.x)`)
            ${json.marshal({a = 1})}  =>  spec.config.a: `${json.marshal({a = 1})}` at column 19: expected ':' in map entry (hint: write a map as `{"key": value}`)
            ${jsonencode(app_key.tags)}  =>  spec.config.a: `${jsonencode(app_key.tags)}` at column 1: there is no function `jsonencode` (hint: write `json.marshal(value)`)
            ${upper(app_key.id)}  =>  spec.config.a: `${upper(app_key.id)}` at column 1: there is no function `upper` (hint: write `s.upperAscii()`)
            ${join(",", zones.names)}  =>  spec.config.a: `${join(",", zones.names)}` at column 1: `join` is not called like this (hint: write `items.join(",")`)
            ${sha256(app_key.id)}  =>  spec.config.a: `${sha256(app_key.id)}` at column 1: there is no function `sha256` (hint: expressions are CEL: they have operators, macros such as `map`, and functions such as `size` and `string`)
        "#]],
    );
}

/// The expressions in the hints, with the names that they use.
#[test]
fn every_function_that_replaces_one_of_terraform_exists() {
    let mut checked = 0;
    for (name, instead) in terraform::FUNCTIONS {
        assert!(evaluate(&format!("${{{name}(app_key)}}")).contains(instead), "{name}");
        let Some(written) = instead.strip_prefix("write ") else { continue };
        for expression in written.split('`').skip(1).step_by(2) {
            let (_, _, problems): (Template, _, _) = parse(&format!("${{{expression}}}"));
            assert_eq!(problems, [], "{name}: {expression}");
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} expressions found");
}

#[test]
fn the_documentation_has_every_function_of_terraform() {
    let text = include_str!("../../../../../../docs/expressions.md");
    for (name, instead) in terraform::FUNCTIONS {
        let row = format!("| `{name}` | {} |", instead.strip_prefix("write ").unwrap_or(instead));
        assert!(text.contains(&row), "docs/expressions.md lacks: {row}");
    }
}
