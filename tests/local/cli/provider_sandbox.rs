//! A test provider in a sandbox, whose failures are configured.

use std::fs;

use serde_json::Value as Json;

use super::sandbox::{RunningCommand, Sandbox};
use crate::providers;

pub(super) const APPLY: &[&str] = &["apply", "-f", "files", "--yes", "--keep-going", "-o", "json"];

/// A sandbox with a test provider, whose objects are files in the directory `world`.
pub(super) struct ProviderSandbox {
    pub(super) sandbox: Sandbox,
    kind: &'static str,
}

impl ProviderSandbox {
    /// With the provider `corner` or `legacy`. Its ProviderConfig `second` uses another process.
    pub(super) fn new(kind: &'static str) -> Self {
        let bench = Self { sandbox: Sandbox::new(), kind };
        fs::create_dir(bench.sandbox.path("world")).unwrap();
        bench.provider(&providers::program(kind).display().to_string());
        bench
    }

    pub(super) fn provider(&self, program: &str) {
        self.provider_in(program, "");
    }

    /// The same, with additional fields in the spec of its Provider.
    pub(super) fn provider_in(&self, program: &str, more: &str) {
        let (kind, world) = (self.kind, self.sandbox.path("world"));
        let head = "---\napiVersion: purlin.dev/v1alpha1\nkind:";
        let configured = |name: &str, suffix: &str| {
            format!(
                "{head} ProviderConfig\nmetadata: {{ name: {name} }}\nspec: {{ provider: {{ name: {kind} }}, config: {{ folder: '{}{suffix}' }} }}\n",
                world.display()
            )
        };
        let text = format!(
            "{head} Provider\nmetadata: {{ name: {kind} }}\nspec: {{ source: purlin/{kind}, package: {{ path: '{program}' }}{more} }}\n{}{}",
            configured(kind, ""),
            // The same directory, in a different configuration.
            configured("second", "/.")
        );
        self.sandbox.write("files/provider.yaml", &text);
    }

    /// Replaces all Resources: names and specs.
    pub(super) fn resources(&self, resources: &[(&str, &str)]) {
        let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:";
        let text = resources.iter().map(|(name, spec)| format!("{head} {{ name: {name} }}\nspec: {{ {spec} }}\n"));
        self.sandbox.write("files/resources.yaml", &text.collect::<String>());
    }

    /// An object that fails as configured, one that depends on it, and two independent ones.
    pub(super) fn trouble(&self, config: &str, more: &str) {
        let kind = self.kind;
        let text = if config.contains("text:") { "" } else { "text: t, " };
        self.resources(&[
            ("bad", &format!("type: {kind}_trouble, config: {{ {text}{config} }} {more}")),
            ("after", "type: terraform_data, config: { input: '${bad.text}' }"),
            ("beside", &format!("type: {kind}_trouble, providerConfigRef: {{ name: second }}, config: {{ text: b }}")),
            ("apart", "type: terraform_data, config: { input: 1 }"),
        ]);
    }

    /// Applies, and returns the ended steps, the records and the number of existing objects.
    pub(super) fn apply(&self) -> String {
        let events = self.sandbox.events(APPLY);
        let text = |event: &Json, field: &str| event[field].as_str().unwrap_or("-").to_owned();
        let mut reported: Vec<String> = Vec::new();
        for event in &events {
            match event["event"].as_str().unwrap() {
                "diagnostic" => reported.push(format!(
                    "{} {}: {} ({})",
                    text(event, "address"),
                    text(event, "severity"),
                    text(event, "summary"),
                    text(event, "detail")
                )),
                "finished" | "skipped" => reported.push(format!("{} {}", text(event, "node"), text(event, "event"))),
                "failed" => reported.push(format!("{} failed: {}", text(event, "node"), text(event, "error"))),
                _ => {}
            }
        }
        reported.sort();
        let lines: String = reported.iter().map(|line| format!("{line}\n")).collect();
        format!("{lines}{}", self.summary())
    }

    /// Returns the records and the number of existing objects.
    pub(super) fn summary(&self) -> String {
        let list = self.sandbox.json(&["state", "list", "--state", "purlin.db", "-o", "json"]);
        let rows = list["objects"].as_array().unwrap().iter();
        let rows: Vec<String> = rows
            .map(|row| format!("{} {}", row["address"].as_str().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        format!("recorded: {}; exist: {}\n", rows.join(", "), self.objects().len())
    }

    /// The IDs of the existing objects.
    pub(super) fn objects(&self) -> Vec<String> {
        let markers = ["started", "release", "peace", "crash-before", "crash-after"];
        let names = fs::read_dir(self.sandbox.path("world")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !markers.contains(&name.as_str())).collect()
    }

    /// The ID of the only object with this text.
    pub(super) fn id_of(&self, text: &str) -> String {
        let content = |id: &String| fs::read_to_string(self.sandbox.path("world").join(id)).unwrap();
        let found: Vec<String> = self.objects().into_iter().filter(|id| content(id) == text).collect();
        let [id] = &found[..] else { panic!("{found:?}") };
        id.clone()
    }

    /// Turns off all configured failures.
    pub(super) fn disable_failures(&self) {
        fs::write(self.sandbox.path("world/peace"), "").unwrap();
    }

    pub(super) fn enable_failures(&self) {
        fs::remove_file(self.sandbox.path("world/peace")).unwrap();
    }

    /// Starts an `apply`, and waits until a call of the provider has reached its slow part.
    pub(super) fn slow(&self) -> RunningCommand {
        let mut running = self.sandbox.start(APPLY);
        running.wait_until("the call", |_| self.sandbox.path("world/started").exists());
        running
    }
}
