//! `spec.lifecycle` and `spec.hooks`, from the `lifecycle` and `provisioner` blocks of a configuration.

use serde_json::{Map, Value as Json, json};

use super::Writer;
use crate::configuration::{Condition, Lifecycle, Provisioner, ResourceBlock, Source};
use crate::gather::MigratedResource;
use crate::translate::{Cel, Place, Repetition, Translator, Untranslated};

/// Adds the settings that have a counterpart, and a note for each of the others.
pub fn add(
    writer: &Writer<'_>,
    one: &MigratedResource,
    block: &ResourceBlock,
    spec: &mut Map<String, Json>,
    notes: &mut Vec<String>,
) {
    let Some(translator) = &writer.translator else { return };
    let repetition = if one.is_family() { Repetition::Family(spec.contains_key("forEach")) } else { Repetition::None };
    let place = Place::new(&one.address.module, repetition);
    let leaves_out = writer.adjustments.settings.contains(&one.name);
    let mut settings = Settings { translator, place, address: one.address.to_string(), leaves_out, notes };
    let lifecycle = settings.lifecycle(&block.lifecycle);
    if !lifecycle.is_empty() {
        spec.insert("lifecycle".into(), Json::Object(lifecycle));
    }
    let hooks = settings.hooks(&block.provisioners);
    if !hooks.is_empty() {
        spec.insert("hooks".into(), Json::Array(hooks));
    }
}

struct Settings<'a> {
    translator: &'a Translator<'a>,
    place: Place,
    address: String,
    /// Expressions are left out, because the plan rejected them.
    leaves_out: bool,
    notes: &'a mut Vec<String>,
}

impl Settings<'_> {
    /// Returns the value, or adds a note that it is left out.
    fn kept<T>(&mut self, what: &str, value: Result<T, Untranslated>) -> Option<T> {
        let value = if self.leaves_out { Err("its plan is not valid".to_owned()) } else { value };
        value.map_err(|why| self.notes.push(format!("`{}`: {what} is left out: {why}", self.address))).ok()
    }

    fn translated(&self, source: &Source) -> Result<Json, Untranslated> {
        Ok(self.translator.source(source, &self.place)?.to_argument()?.to_json())
    }

    fn lifecycle(&mut self, from: &Lifecycle) -> Map<String, Json> {
        let mut found = Map::new();
        for name in &from.others {
            self.kept::<()>(&format!("`{name}`"), Err("Purlin has no such setting".to_owned()));
        }
        match from.prevent_destroy.as_ref().map(|source| (source.constant(), source)) {
            Some((Some(Json::Bool(true)), _)) => drop(found.insert("preventDestroy".into(), json!(true))),
            Some((None, source)) => {
                let condition = self.translated(source);
                let condition = self.kept("`prevent_destroy`", condition);
                found.extend(condition.map(|condition| ("preventDestroy".into(), condition)));
            }
            Some((Some(_), _)) | None => {}
        }
        if !from.ignore_changes.is_empty() {
            found.insert("ignoreChanges".into(), json!(from.ignore_changes));
        }
        let mut triggers = Vec::new();
        for expression in &from.replace_triggered_by {
            let entry = self.translator.expression(expression, &self.place).and_then(|found| match found {
                Cel::Code(text, true) => Ok(text),
                _ => Err("it is not a reference to a resource".to_owned()),
            });
            triggers.extend(self.kept("an entry of `replace_triggered_by`", entry));
        }
        if !triggers.is_empty() {
            found.insert("replaceTriggeredBy".into(), json!(triggers));
        }
        for (field, word, conditions, reads_itself) in [
            ("preconditions", "a precondition", &from.preconditions, false),
            ("postconditions", "a postcondition", &from.postconditions, true),
        ] {
            self.place.allows_self = reads_itself;
            let written: Vec<Json> = conditions.iter().filter_map(|one| self.condition(word, one)).collect();
            if !written.is_empty() {
                found.insert(field.into(), Json::Array(written));
            }
        }
        self.place.allows_self = false;
        found
    }

    fn condition(&mut self, word: &str, from: &Condition) -> Option<Json> {
        let condition = self.translator.source(&from.condition, &self.place);
        let written = condition.and_then(|condition| {
            let condition = format!("${{{}}}", condition.to_code()?);
            Ok(json!({"condition": condition, "errorMessage": self.translated(&from.message)?}))
        });
        self.kept(word, written)
    }

    fn hooks(&mut self, provisioners: &[Provisioner]) -> Vec<Json> {
        self.place.allows_self = true;
        let mut hooks = Vec::new();
        for (position, from) in provisioners.iter().enumerate() {
            let hook = self.hook(from, position + 1);
            hooks.extend(self.kept(&format!("the provisioner `{}`", from.kind), hook));
        }
        hooks
    }

    /// `local-exec` is a program. The other provisioners need a connection.
    fn hook(&self, from: &Provisioner, number: usize) -> Result<Json, Untranslated> {
        if from.kind != "local-exec" {
            return Err("Purlin has no connections to machines; use a hook of your own".to_owned());
        }
        let argument = |name: &str| {
            let value = from.arguments.get(name).map(|source| self.translated(source)).transpose()?;
            Ok::<_, Untranslated>(value.filter(|value| !value.is_null()))
        };
        let mut command: Vec<Json> = Vec::new();
        if let Some(directory) = argument("working_dir")? {
            command.extend([json!("env"), json!("-C"), directory]);
        }
        if let Some(variables) = argument("environment")? {
            if command.is_empty() {
                command.push(json!("env"));
            }
            let variables = variables.as_object().ok_or("its environment is not known")?;
            for (name, value) in variables.iter().filter(|(_, value)| !value.is_null()) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                command.push(json!(format!("{name}={text}")));
            }
        }
        match argument("interpreter")? {
            Some(Json::Array(words)) => command.extend(words),
            Some(_) => return Err("its interpreter is not known".to_owned()),
            None => command.extend([json!("/bin/sh"), json!("-c")]),
        }
        command.push(argument("command")?.ok_or("it has no command")?);
        let (when, word) = if from.before_destroy { ("BeforeDestroy", "destroy") } else { ("AfterCreate", "create") };
        let mut hook = json!({"name": format!("{word}-{number}"), "when": when, "exec": {"command": command}});
        if from.continues {
            hook["onFailure"] = json!("Continue");
        }
        Ok(hook)
    }
}
