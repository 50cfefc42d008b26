//! What happens to everybody once: odd files, full disks, habits from Terraform.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::sandbox::{Sandbox, manifest};

#[test]
fn a_named_pipe_among_the_manifests_does_not_hang() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    assert!(Command::new("mkfifo").arg(sandbox.path("files/pipe.yaml")).status().unwrap().success());
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("files cannot be read: `pipe.yaml` is neither a file nor a directory"), "{ran:?}");
}

#[test]
fn text_that_is_not_utf_8_is_reported_with_its_line() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("files/objects.yaml"), b"a: 1\nb: 2\nc: \xff\n").unwrap();
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("files/objects.yaml cannot be read: line 3 is not valid UTF-8"), "{ran:?}");
}

#[test]
fn a_full_standard_output_is_not_a_full_disk() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.args(["plan", "-f", "files"]).current_dir(sandbox.path("")).stdin(Stdio::null());
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("error: standard output cannot be written: No space left on device"), "{errors}");
}

#[test]
fn an_existing_state_file_becomes_private() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let state = sandbox.path("purlin.db");
    fs::set_permissions(&state, Permissions::from_mode(0o644)).unwrap();
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_command_of_terraform_is_answered_with_what_to_use_instead() {
    let sandbox = Sandbox::new();
    let commands = [("modules", "purlin init"), ("workspace", "--state")];
    let more = [("refresh", "purlin apply --refresh-only"), ("taint", "purlin state taint")];
    for (command, instead) in commands.into_iter().chain(more) {
        let ran = sandbox.run(&[command, "x"]);
        assert_eq!(ran.one_error(), format!("error: there is no command `{command}`"));
        assert_eq!(ran.stderr.lines().count(), 2, "{ran:?}");
        assert!(ran.stderr.lines().any(|line| line.starts_with("hint: ") && line.contains(instead)), "{ran:?}");
    }
    assert!(sandbox.run(&["aply"]).stderr.contains("apply"));
}

#[test]
fn the_result_counts_imported_objects() {
    let sandbox = Sandbox::new();
    let import = "\n  import: { id: known }\n";
    sandbox.write("files/objects.yaml", &(manifest("a", &[]).trim_end().to_owned() + import));
    let out = sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(out.contains("Applied: 1 imported, 0 created, 1 updated, 0 destroyed."), "{out}");
}

#[test]
fn a_data_source_is_not_created() {
    let sandbox = Sandbox::new();
    let data =
        "apiVersion: purlin.dev/v1alpha1\nkind: DataSource\nmetadata: { name: x }\nspec: { type: no_such_type }\n";
    sandbox.write("files/objects.yaml", data);
    let out = sandbox.run(&["explain", "data.x", "-f", "files"]).stdout;
    assert!(out.contains("State:       read with each plan, and not recorded"), "{out}");
}

#[test]
fn a_deposed_object_can_be_restored() {
    let sandbox = Sandbox::new();
    let object = |trigger: &str, hook: &str| {
        format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: a }}\nspec:\n  type: terraform_data\n  \
             config: {{ triggers_replace: {trigger} }}\n  lifecycle: {{ createBeforeDestroy: true }}\n  hooks: [{{ name: \
             h, when: BeforeDestroy, exec: {{ command: [{hook}] }} }}]\n"
        )
    };
    sandbox.write("files/objects.yaml", &object("1", "\"false\""));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let rows = || sandbox.json(&["state", "list", "-o", "json"])["objects"].as_array().unwrap().clone();
    let old = rows()[0]["values"]["id"].clone();
    sandbox.write("files/objects.yaml", &object("2", "\"false\""));
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    assert_eq!(rows().len(), 2);
    let key = rows()[1]["deposedKey"].as_str().unwrap().to_owned();
    assert!(sandbox.run(&["state", "restore", "a", "00000000"]).one_error().contains("no deposed object `00000000`"));
    sandbox.ok(&["state", "restore", "a", &key]);
    assert_eq!((&rows()[0]["values"]["id"], rows().len()), (&old, 2));
    // The next apply destroys the object that was current.
    sandbox.write("files/objects.yaml", &object("1", "\"true\""));
    let out = sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(out.contains("Applied: 0 created, 0 updated, 1 destroyed."), "{out}");
    assert_eq!((&rows()[0]["values"]["id"], rows().len()), (&old, 1));
}

/// Plans an object `a` with these lines in its `spec`. Returns standard error without the first line.
fn planned(lines: &str) -> String {
    let sandbox = Sandbox::new();
    let family = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: f }\nspec: { type: terraform_data, \
                  forEach: [x] }\n";
    let object = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: a }\nspec:\n  type: \
                  terraform_data\n";
    sandbox.write("files/objects.yaml", &format!("{family}{object}{lines}\n"));
    let stderr = sandbox.run(&["plan", "-f", "files"]).stderr;
    stderr.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn frequent_mistakes_have_a_hint() {
    let input = |value: &str| planned(&format!("  config:\n    input: {value}"));
    let cases = [
        (planned("  count: 1.5"), "must be a whole number, not 1.5\nhint: round it: `int(x)`"),
        (input("0644"), "hint: quote it if it is a string, such as a file mode; otherwise write `644` or `420`"),
        (input("${in.id}"), "hint: `in` is an operator; write `resources[\"in\"]`"),
        (planned("  config:\n\tinput: 1"), "hint: indent with spaces"),
        (input("${f.id}"), "hint: `f` is a family, which has `f[\"x\"]`"),
        (input("${ {'a': 1} }"), "hint: put an expression that contains `: ` in quotes: `'${...}'`"),
        (input("a: b"), "hint: put a value that contains `: ` in quotes"),
        (input("${a +* b}"), "`${a +* b}` at column 6: unexpected token\n"),
        (input("${10.0 / 3}"), "hint: convert both to the same type: `double(x)`"),
        (input("'${ {\"a\": 1} + {\"b\": 2} }'"), "hint: write one map with the keys of both"),
        (input("'x ${[f]}'"), "the value is a list, which cannot be part of a string"),
        (
            planned("  inputs: [{ name: p, secretKeyRef: { name: s, key: k } }]"),
            "hint: create it, or set `optional: true`; on files, its manifest must be in the files of -f",
        ),
    ];
    for (stderr, expected) in cases {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
    // The hint for an expression in YAML works.
    assert_eq!(input("'${ {\"a\": 1} }'"), "");
}

#[test]
fn a_list_in_a_string_is_not_valid() {
    let sandbox = Sandbox::new();
    let text = manifest("a", &[]) + &manifest("b", &["a"]).replace("${a.id}", "x ${[a.id]}");
    sandbox.write("files/objects.yaml", &text);
    let ran = sandbox.run(&["validate", "-f", "files"]);
    assert!(ran.one_error().contains("the value is a list, which cannot be part of a string"), "{ran:?}");
}

#[test]
fn two_namespaces_in_one_folder_are_an_error() {
    let sandbox = Sandbox::new();
    let namespaces =
        ["one", "two"].map(|name| format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{ name: {name} }}\n"));
    sandbox.write("files/objects.yaml", &(namespaces.concat() + &manifest("a", &[])));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.one_error().contains("the files contain several Namespaces (`one`, `two`)"), "{ran:?}");
    assert!(sandbox.recorded().is_empty());
}

#[test]
fn what_an_unreadable_file_may_contain_is_not_missing() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &["b"]), ("c", &["a"])]);
    sandbox.write("files/reader.yaml", &(manifest("reader", &[]) + INPUT));
    sandbox.write("files/b.yaml", &(manifest("b", &[]) + SETTINGS));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let bytes = [(manifest("b", &[]) + SETTINGS).as_bytes(), b"\xff\n"].concat();
    fs::write(sandbox.path("files/b.yaml"), bytes).unwrap();
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("files/b.yaml cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("  4 objects wait for this: a, b, c, reader\n"), "{ran:?}");
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("reader: spec.inputs[0]: there is no ConfigMap `settings`"), "{ran:?}");
}

const INPUT: &str = "  inputs: [{ name: size, configMapKeyRef: { name: settings, key: size } }]\n";

const SETTINGS: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: settings }\ndata: { size: small }\n";

#[test]
fn a_directory_that_cannot_be_written_can_be_read() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    // The superuser can write all the same.
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o555)).unwrap();
    let plan = sandbox.run(&["plan", "-f", "files"]);
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o755)).unwrap();
    assert!(plan.code == Some(0) && plan.stdout.contains("No changes"), "{plan:?}");
}
