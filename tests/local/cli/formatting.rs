//! `purlin fmt`.

use std::fs;

use super::sandbox::Sandbox;

const LOOSE: &str = "variable \"a\" {\ntype=\"list\"\n  default   = [ 1,2 ]\n}\n";
const TIGHT: &str = "variable \"a\" {\n  type    = list(string)\n  default = [1, 2]\n}\n";

#[test]
fn files_are_formatted_and_named() {
    let sandbox = Sandbox::new();
    for name in ["a.tf", "b.tfvars", "sub/c.tf", ".hidden/d.tf", "e.txt"] {
        sandbox.write(&format!("files/{name}"), LOOSE);
    }
    let read = |name: &str| fs::read_to_string(sandbox.path(&format!("files/{name}"))).unwrap();
    let ran = sandbox.run(&["fmt", "-check", "files"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "files/a.tf\nfiles/b.tfvars\n"));
    assert_eq!(read("a.tf"), LOOSE, "nothing is written");
    assert_eq!(sandbox.ok(&["fmt", "files"]), "files/a.tf\nfiles/b.tfvars\n");
    assert_eq!((read("a.tf").as_str(), read("sub/c.tf").as_str()), (TIGHT, LOOSE));
    let ran = sandbox.run_in("files", &["fmt", "-recursive", "-diff", "-list=false"]);
    let diff = "--- old/sub/c.tf\n+++ new/sub/c.tf\n@@ -1,4 +1,4 @@\n variable \"a\" {\n-type=\"list\"\n-  default   = [ 1,2 ]\n+  type    = list(string)\n+  default = [1, 2]\n }\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), diff));
    assert_eq!(sandbox.ok(&["fmt", "-recursive", "-check", "files"]), "");
    assert_eq!((read(".hidden/d.tf").as_str(), read("e.txt").as_str()), (LOOSE, LOOSE));
}

#[test]
fn standard_input_is_formatted_to_standard_output() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(&["fmt", "-"], LOOSE);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), TIGHT));
}

#[test]
fn a_file_with_an_error_stays_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.tf", "locals {\n  a = [1 2]\n  b = [3 4]\n}\n");
    sandbox.write("files/b.tf", LOOSE);
    let ran = sandbox.run(&["fmt", "files"]);
    let errors: Vec<&str> = ran.errors();
    assert!(errors[0].starts_with("error: files/a.tf:2: Missing item separator: "), "{ran:?}");
    assert!(errors[1].starts_with("error: files/a.tf:3: Missing item separator: "), "{ran:?}");
    assert_eq!((ran.code, errors.len()), (Some(1), 2), "{ran:?}");
    assert_eq!(ran.stdout, "files/b.tf\n", "other files are formatted");
    let ran = sandbox.run(&["fmt", "files/none.txt"]);
    assert!(ran.one_error().contains("No such file"), "{ran:?}");
    let ran = sandbox.run(&["fmt", "purlin.yaml"]);
    assert_eq!(ran.code, Some(1));
}
