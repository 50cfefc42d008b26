//! Ephemeral resources of Terraform configurations, with the sessions of the provider `cloud`.

use super::sandbox::{CommandResult, Sandbox};
use super::terraform::mirror_of;
use crate::providers;

const PROVIDERS: &str = r#"
terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}
provider "cloud" { region = "north" }
"#;

struct Bench {
    sandbox: Sandbox,
    flags: Vec<String>,
}

impl Bench {
    fn new(configuration: &str) -> Self {
        let sandbox = Sandbox::new();
        let flags = mirror_of(&sandbox, "cloud", &providers::program("cloud"));
        let bench = Self { sandbox, flags };
        bench.write(configuration);
        assert_eq!(bench.run(&["init"]).code, Some(0));
        bench
    }

    fn write(&self, configuration: &str) {
        self.sandbox.write("tf/main.tf", &format!("{PROVIDERS}{configuration}"));
    }

    fn run(&self, command: &[&str]) -> CommandResult {
        let arguments: Vec<&str> = command.iter().copied().chain(self.flags.iter().map(String::as_str)).collect();
        self.sandbox.run_in("tf", &arguments)
    }

    /// Runs a command, and returns what happened to sessions meanwhile. No file but their log may contain a token.
    fn sessions(&self, command: &[&str]) -> Vec<String> {
        let log = self.sandbox.path("tf/sessions.log");
        let _ = std::fs::remove_file(&log);
        let ran = self.run(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
        assert!(!ran.stdout.contains("token-") && !ran.stderr.contains("token-"), "{ran:?}");
        let happened = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        for entry in std::fs::read_dir(self.sandbox.path("tf")).unwrap().map(Result::unwrap) {
            let content = std::fs::read(entry.path()).unwrap_or_default();
            let has_token = content.windows(6).any(|part| part == b"token-");
            assert!(!has_token, "{} after {command:?}", entry.path().display());
        }
        happened.lines().map(str::to_owned).collect()
    }
}

const SESSIONS: &str = r#"
variable "user" { default = "ann" }
variable "token_version" { default = 1 }
provider "cloud" {
  alias  = "inside"
  region = "south"
  token  = ephemeral.cloud_session.main.token
}
ephemeral "cloud_session" "main" {
  user = var.user
  lifecycle {
    postcondition {
      condition     = self.token != ""
      error_message = "no token"
    }
  }
}
resource "cloud_network" "net" {
  name = "net"
  cidr = "10.0.0.0/16"
}
ephemeral "cloud_session" "late" { user = cloud_network.net.name == "net" ? cloud_network.net.id : "" }
locals { token = "x-${ephemeral.cloud_session.main.token}" }
resource "cloud_server" "app" {
  name          = "app"
  image         = "base"
  token         = local.token
  token_version = var.token_version
}
resource "cloud_server" "late" {
  name          = "late"
  image         = "base"
  token         = ephemeral.cloud_session.late.token
  token_version = 1
}
resource "cloud_network" "inside" {
  provider = cloud.inside
  name     = "inside"
  cidr     = "10.1.0.0/16"
}
"#;

/// What is left of lines when the names that the cloud chose and the numbers of tokens are removed.
fn simple(lines: &[String]) -> Vec<String> {
    let word = |word: &str| match word {
        word if word.starts_with("network-") => "NET".to_owned(),
        word if word.contains("token-") && word.contains("network-") => "LATE-TOKEN".to_owned(),
        word if word.contains("token-") => "TOKEN".to_owned(),
        word => word.to_owned(),
    };
    lines.iter().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect()
}

/// A value is there as soon as its configuration is known, for the provider that it configures and for write-only arguments.
#[test]
fn an_ephemeral_resource_is_opened_once_in_a_run_and_closed_at_its_end() {
    let bench = Bench::new(SESSIONS);
    let opened = ["open ann in north", "configured with TOKEN"];
    assert_eq!(simple(&bench.sessions(&["plan"])), [&opened[..], &["close ann"]].concat());
    let applied = simple(&bench.sessions(&["apply", "--yes"]));
    assert_eq!(applied[..2], opened, "{applied:?}");
    let late: Vec<&String> = applied.iter().filter(|line| line.contains("NET") || line.contains("LATE")).collect();
    assert_eq!(late, ["open NET in north", "cloud_server has LATE-TOKEN", "close NET"]);
    for line in ["cloud_server has TOKEN", "close ann"] {
        assert_eq!(applied.iter().filter(|other| *other == line).count(), 1, "{line}: {applied:?}");
    }
}

/// Each run has another token, which changes nothing by itself.
#[test]
fn another_value_in_the_next_run_is_no_change() {
    let bench = Bench::new(SESSIONS);
    bench.sessions(&["apply", "--yes"]);
    let plan = bench.run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    let _ = std::fs::remove_file(bench.sandbox.path("tf/sessions.log"));
    bench.sessions(&["plan", "--out", "saved", "--var", "token_version=2"]);
    let applied = simple(&bench.sessions(&["apply", "saved"]));
    assert!(applied.contains(&"cloud_server has TOKEN".to_owned()), "opened again: {applied:?}");
    assert_eq!(bench.run(&["plan", "--detailed-exitcode", "--var", "token_version=2"]).code, Some(0));
    let destroyed = simple(&bench.sessions(&["destroy", "--yes"]));
    assert!(destroyed.contains(&"configured with TOKEN".to_owned()), "{destroyed:?}");
}

/// The token of a session is not recorded, so a provider that it configures gets a new one to destroy what is no longer written.
/// Without one, it may say that the object is gone.
#[test]
fn what_a_session_configures_is_destroyed_with_a_session() {
    let configured = |token: &str, rest: &str| {
        format!(
            r#"
variable "user" {{ default = "ann" }}
ephemeral "cloud_session" "main" {{ user = var.user }}
provider "cloud" {{
  alias = "inside"
  token = {token}
}}
{rest}
"#
        )
    };
    let network =
        "resource \"cloud_network\" \"n\" {\n  provider = cloud.inside\n  name = \"n\"\n  cidr = \"10.0.0.0/16\"\n}\n";
    let by_session = "ephemeral.cloud_session.main.token";
    let bench = Bench::new(&configured(by_session, network));
    bench.sessions(&["apply", "--yes"]);
    let locked = bench.run(&["destroy", "--yes", "--var", "user=locked"]);
    assert_eq!(locked.code, Some(1), "{locked:?}");
    assert!(locked.stderr.contains("ephemeral values, which are not recorded"), "{locked:?}");
    bench.write("");
    let gone = bench.run(&["apply", "--yes"]);
    assert!(gone.code == Some(1) && gone.stderr.contains("keep its block"), "{gone:?}");
    bench.write(&configured(by_session, ""));
    let destroyed = simple(&bench.sessions(&["apply", "--yes"]));
    assert!(destroyed.contains(&"configured with TOKEN".to_owned()), "{destroyed:?}");
    assert!(std::fs::read_dir(bench.sandbox.path("tf/objects/cloud_network")).unwrap().next().is_none());

    // The default configuration, whose last object is removed, is no other one.
    let default = "provider \"cloud\" {\n  token = \"plain\"\n}\n";
    let bench = Bench::new("");
    let write = |rest: &str| {
        let required = PROVIDERS.split("provider \"cloud\"").next().unwrap();
        bench.sandbox.write("tf/main.tf", &format!("{required}{default}{rest}"));
    };
    write(&network.replace("  provider = cloud.inside\n", ""));
    bench.sessions(&["apply", "--yes"]);
    write("");
    assert_eq!(bench.sessions(&["apply", "--yes"]), ["configured with plain"]);
}

/// A command with a token prints it. What is recorded of an operation that was cut off has none.
#[test]
fn no_output_and_no_label_shows_an_ephemeral_value() {
    let session = "ephemeral \"cloud_session\" \"main\" {\n  user = \"ann\"\n}\n";
    let command = "echo ${ephemeral.cloud_session.main.token}; exit 1";
    let bench = Bench::new(&format!(
        "{session}resource \"terraform_data\" \"a\" {{\n  provisioner \"local-exec\" {{\n    command = \"{command}\"\n  }}\n}}\n"
    ));
    let failed = bench.run(&["apply", "--yes"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let shown = format!("{}{}", failed.stdout, failed.stderr);
    assert!(!shown.contains("token-") && shown.contains("the output is not shown"), "{shown}");
    let server = "resource \"cloud_server\" \"a\" {\n  name = \"a\"\n  image = \"i\"\n  dynamic \"volume\" {\n    for_each = [1]\n    \
                  labels = [ephemeral.cloud_session.main.token]\n    content {\n      gigabytes = 1\n    }\n  }\n}\n";
    let bench = Bench::new(&format!("{session}{server}"));
    assert!(bench.run(&["plan"]).one_error().contains("Invalid dynamic block label"));
}

/// The value of an ephemeral variable is given again when a saved plan is applied.
#[test]
fn a_saved_plan_has_no_ephemeral_variable() {
    let server = "resource \"cloud_server\" \"a\" {\n  name = \"a\"\n  image = \"i\"\n  token = var.secret\n  token_version = 1\n}\n";
    let bench = Bench::new(&format!("variable \"secret\" {{\n  ephemeral = true\n}}\n{server}"));
    bench.sessions(&["plan", "--out", "saved", "--var", "secret=token-of-eve"]);
    let missing = bench.run(&["apply", "saved"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("No value for required variable"), "{missing:?}");
    assert_eq!(bench.sessions(&["apply", "saved", "--var", "secret=token-of-eve"]), ["cloud_server has token-of-eve"]);
}

/// What fails to open in the run is reported with the object that needs it.
#[test]
fn a_session_that_fails_to_open_in_the_run_says_why() {
    let bench = Bench::new(
        r#"
resource "cloud_network" "n" {
  name = "n"
  cidr = "10.0.0.0/16"
}
ephemeral "cloud_session" "late" { user = cloud_network.n.version > 0 ? "locked" : "x" }
resource "cloud_server" "a" {
  name          = "a"
  image         = "i"
  token         = ephemeral.cloud_session.late.token
  token_version = 1
}
"#,
    );
    let ran = bench.run(&["apply", "--yes"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the account of locked is locked"), "{ran:?}");
    assert!(!bench.sandbox.path("tf/objects/cloud_server").exists());
}

/// While it is used, the session is renewed.
#[test]
fn an_ephemeral_resource_is_renewed_while_it_is_open() {
    let wait = "while ! grep -q renew sessions.log; do sleep 0.05; done";
    let bench = Bench::new(&format!(
        r#"
ephemeral "cloud_session" "main" {{
  user  = "ann"
  lasts = 0.2
}}
resource "terraform_data" "wait" {{
  provisioner "local-exec" {{ command = "{wait}" }}
}}
"#
    ));
    assert_eq!(bench.sessions(&["apply", "--yes"]), ["open ann in north", "renew ann", "close ann"]);
}

/// An error is reported at the block, and nothing is changed. What was opened before is closed.
#[test]
fn an_ephemeral_resource_that_cannot_be_opened_is_an_error_of_its_block() {
    let server = "resource \"cloud_server\" \"app\" {\n  name = \"app\"\n  image = \"base\"\n  token_version = 1\n";
    for (user, why) in [("nobody", "nobody has no session"), ("locked", "the account of locked is locked")] {
        let session = format!("ephemeral \"cloud_session\" \"main\" {{\n  user = \"{user}\"\n}}\n");
        let bench = Bench::new(&format!("{session}{server}  token = ephemeral.cloud_session.main.token\n}}\n"));
        let ran = bench.run(&["apply", "--yes"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let error = ran.one_error();
        assert!(error.contains(why) && error.contains("main.tf:8") && error.contains("cloud_session.main"), "{error}");
        assert!(!bench.sandbox.path("tf/objects").exists());
    }
    let kept = format!("{server}  user_data = ephemeral.cloud_session.main.token\n}}\n");
    let bench = Bench::new(&format!("ephemeral \"cloud_session\" \"main\" {{\n  user = \"ann\"\n}}\n{kept}"));
    let error = bench.run(&["plan"]);
    assert!(error.one_error().contains("cannot come from an ephemeral value"), "{error:?}");
}

/// `validate` asks no provider for a value.
#[test]
fn validate_opens_no_ephemeral_resource() {
    let bench = Bench::new(SESSIONS);
    assert_eq!(bench.sessions(&["validate"]), [""; 0]);
}
