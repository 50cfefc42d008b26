//! The documentation of the functions: generated from their table, with every example tried.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cty::{Marks, Value, convert};
use hcl::{FileId, Source};
use language::functions::{Function, topics};
use language::{Budget, Effects, FileError, Files, Scope, evaluate};

struct Examples;

impl Files for Examples {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        match path {
            "hello.txt" => Ok(b"Hello".to_vec()),
            "hello.tftpl" => Ok(b"Hello, ${name}!".to_vec()),
            _ => Err(FileError::Missing),
        }
    }

    fn list(&self, _: &str) -> Result<Vec<String>, FileError> {
        Ok(vec!["hello.txt".to_owned(), "hello.tftpl".to_owned()])
    }

    fn absolute(&self, _: &str) -> String {
        "/b".to_owned()
    }

    fn home(&self) -> Option<String> {
        Some("/home/me".to_owned())
    }
}

impl Effects for Examples {
    fn now(&self) -> String {
        "2026-03-04T05:06:07Z".to_owned()
    }

    fn uuid(&self) -> String {
        "2ed6657d-e927-568b-95e1-2665a8aea6a2".to_owned()
    }

    fn salt(&self) -> [u8; 16] {
        [7; 16]
    }
}

fn value(source: &str) -> Value {
    let budget = Budget::default();
    let scope = Scope {
        files: &Examples,
        budget: &budget,
        plan_time: Some("2026-03-04T05:06:07Z"),
        effects: Some(&Examples),
        template_depth: 0,
    };
    let parsed = hcl::parse_expression(Source::new(FileId(0), "example", source));
    let evaluated = evaluate(&parsed.value, &BTreeMap::<Arc<str>, Value>::new(), &scope);
    let problems: Vec<_> = parsed.diagnostics.iter().chain(&evaluated.diagnostics).collect();
    assert!(problems.is_empty(), "{source}: {problems:?}");
    evaluated.value
}

#[test]
fn every_example_gives_its_result() {
    for function in topics().iter().flat_map(|(_, functions)| functions.iter()) {
        let (call, result) = function.example;
        if call.is_empty() {
            assert!(["list", "map", "rsadecrypt"].contains(&function.name), "{} has no example", function.name);
            continue;
        }
        let given = value(call).unmarked_deep(&mut Marks::default());
        let wanted = convert(&value(result), given.ty()).unwrap();
        assert_eq!(given.equals(&wanted), Value::TRUE, "{call} gives {given:?}");
    }
}

fn signature(function: &Function) -> String {
    let mut parameters: Vec<String> = function.parameters.iter().map(|parameter| parameter.name.to_owned()).collect();
    if let Some(rest) = function.rest {
        parameters.push(format!("{}...", rest.name));
    }
    format!("{}({})", function.name, parameters.join(", "))
}

fn page() -> String {
    let mut page = String::from(
        "# Functions\n\nThe functions of Terraform's language, as OpenTofu 1.12 has them. Each is also known as \
         `core::NAME`. File functions read files of the module only; the examples have a file `hello.txt` with `Hello` \
         and a file `hello.tftpl` with `Hello, ${name}!`.\n",
    );
    for (title, functions) in topics() {
        page.push_str(&format!("\n## {title}\n"));
        let mut functions: Vec<&Function> = functions.iter().collect();
        functions.sort_by_key(|function| function.name);
        for function in functions {
            page.push_str(&format!("\n### {}\n\n`{}`", function.name, signature(function)));
            if let Some(ty) = function.result() {
                page.push_str(&format!(" gives {ty}."));
            }
            page.push_str(&format!("\n\n{}\n", function.description));
            let (call, result) = function.example;
            if !call.is_empty() {
                page.push_str(&format!("\n```\n{call}\n= {result}\n```\n"));
            }
        }
    }
    page
}

#[test]
fn the_page_of_the_functions_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("FUNCTIONS.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == page(), "run the test with UPDATE_EXPECT=1");
}
