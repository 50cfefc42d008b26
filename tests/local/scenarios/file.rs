//! The format of a scenario file.
//!
//! Lines of `== script`:
//! - `<address> <call>: <response>, ...`: the responses of the driver. Calls: `validate`, `plan`, `read`, `import`,
//!   `move`, `create`, `update`, `ready` (the wait for readiness), `destroy`, `hook`. Responses: `ok`,
//!   `fail [kind] [message]`, `partly [kind] [message]` (an error with an object), `crash before`, `crash after`,
//!   `hold` (until after the next `meanwhile` section), `gone`, `warn <message>` (and `ok`), `unready` (`ok`, with a
//!   wait for readiness), `invalid`. Kinds: `transient`, `terminal`, `invalidConfig`, `forbidden`, `alreadyExists`.
//! - `journal: crash|fail before|after intend|record|erase <address>`: a single fault.
//! - `world: lose <address>`, `world: lose deposed of <address>`, `world: put <id> <json>`,
//!   `world: change <address> <attribute> <json>`: changes by another client before the round.
//! - `copy <kind>/<name>: foreign|changed|lost|crash after|fail`: another client creates, changes or removes a
//!   published copy, or the next write of it crashes or fails.
//! - `world: configure <hash>`: changes the configuration of the driver.
//! - `record <address>: tainted|interrupted|unprotected`: edits the record before the round.
//! - `recovery: repeat|find|unknown`: how the driver recovers creates; only in the first round.
//! - `clock: <seconds>`: advances the clock before the round.
//!
//! Lines of `== options`: `mode: destroy`, `mode: refresh only`, `refresh: none`, `replace: <address>`,
//! `target: <address>`, `parallel: <n>`, `failed creates: <limit>`, `holder: unknown` (of open intents), `cluster`
//! (Resources have UIDs and annotations, and records without a Resource are abandoned), `deleting: <address>`,
//! `other source: <name>` (the records of this name belong to a source that is not given), `show: values`.

use purlin::model::Address;
use purlin::store::memory;
use serde_json::{Value as Json, json};
use testkit::scripted::{Operation, Script, ScriptLine, ScriptedOutcome};

#[derive(Debug, Default)]
pub(super) struct Scenario {
    pub title: String,
    pub trap: String,
    pub rounds: Vec<Round>,
}

/// The start of a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Applied before the first round without errors, and not shown.
    Applied(String),
    Desired(String),
    Again,
    MeanwhileDesired(String),
    MeanwhileStop,
}

/// The input of a round.
#[derive(Debug)]
pub(super) struct Round {
    pub start: Start,
    pub script: String,
    pub options: String,
}

/// A line of a script.
#[derive(Debug)]
pub(super) enum Cue {
    Driver(ScriptLine),
    Journal(Fault),
    Lose(Address),
    LoseDeposed(Address),
    Put(String, Json),
    Change(Address, String, Json),
    Record(Address, String),
    Copy(String, String),
    Recovery(Box<Script>),
    Clock(u64),
    Configure(String),
}

/// A single fault of the journal.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub verdict: memory::FaultAction,
    pub moment: memory::Moment,
    pub operation: memory::Operation,
    pub address: Address,
}

/// The options of a round.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub destroy: bool,
    pub refresh_only: bool,
    pub refresh_none: bool,
    pub replace: Vec<Address>,
    pub target: Vec<Address>,
    pub parallel: Option<usize>,
    pub failed_creates: Option<u32>,
    pub holder_unknown: bool,
    pub cluster: bool,
    pub deleting: Vec<Address>,
    pub other_sources: Vec<String>,
    pub show_values: bool,
    /// The running steps end while the new plan is computed, for which the run is paused.
    pub paused: bool,
}

pub(super) fn parse(text: &str) -> Result<Scenario, String> {
    let mut sections = text.split("\n== ");
    let head = sections.next().unwrap_or_default();
    let (title, trap) = head.split_once('\n').ok_or("a title and a trap are required")?;
    let mut scenario = Scenario { title: title.to_owned(), trap: trap.trim().to_owned(), rounds: Vec::new() };
    for section in sections {
        let (name, body) = section.split_once('\n').unwrap_or((section, ""));
        let body = body.trim_end().to_owned();
        let start = match name.trim() {
            "applied" => Start::Applied(body),
            "desired" => Start::Desired(body),
            "again" => Start::Again,
            "meanwhile desired" => Start::MeanwhileDesired(body),
            "meanwhile stop" => Start::MeanwhileStop,
            input @ ("script" | "options") => {
                let round = scenario.rounds.last_mut().ok_or("a round starts with `== desired` or `== again`")?;
                *(if input == "script" { &mut round.script } else { &mut round.options }) = body;
                continue;
            }
            expected if super::render::SECTIONS.contains(&expected) => continue,
            unknown => return Err(format!("unknown section `{unknown}`")),
        };
        scenario.rounds.push(Round { start, script: String::new(), options: String::new() });
    }
    Ok(scenario)
}

impl Round {
    pub(super) fn cues(&self) -> Result<Vec<Cue>, String> {
        self.script.lines().filter(|line| !line.trim().is_empty()).map(cue).collect()
    }

    pub(super) fn options(&self) -> Result<Options, String> {
        let mut options = Options::default();
        for line in self.options.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line.split_once(':').map_or((line, ""), |(name, value)| (name, value.trim()));
            match (name.trim(), value) {
                ("mode", "destroy") => options.destroy = true,
                ("mode", "refresh only") => options.refresh_only = true,
                ("refresh", "none") => options.refresh_none = true,
                ("replace", value) => options.replace.push(address(value)?),
                ("target", value) => options.target.push(address(value)?),
                ("parallel", value) => {
                    options.parallel = Some(value.parse().map_err(|_| format!("no number: {value}"))?);
                }
                ("failed creates", value) => {
                    options.failed_creates = Some(value.parse().map_err(|_| format!("no number: {value}"))?);
                }
                ("holder", "unknown") => options.holder_unknown = true,
                ("cluster", "") => options.cluster = true,
                ("deleting", value) => options.deleting.push(address(value)?),
                ("other source", name) => options.other_sources.push(name.to_owned()),
                ("show", "values") => options.show_values = true,
                ("paused", "") => options.paused = true,
                _ => return Err(format!("unknown option `{line}`")),
            }
        }
        Ok(options)
    }
}

fn address(text: &str) -> Result<Address, String> {
    text.trim().parse().map_err(|error| format!("{error}"))
}

fn cue(line: &str) -> Result<Cue, String> {
    let unknown = || format!("unknown line of a script: `{line}`");
    let (subject, rest) = line.split_once(':').ok_or_else(unknown)?;
    let rest = rest.trim();
    let words: Vec<&str> = rest.split_whitespace().collect();
    match (subject.trim(), words.as_slice()) {
        ("journal", [verdict, moment, operation, of]) => Ok(Cue::Journal(Fault {
            verdict: match *verdict {
                "crash" => memory::FaultAction::Crash,
                "fail" => memory::FaultAction::Fail,
                _ => return Err(unknown()),
            },
            moment: match *moment {
                "before" => memory::Moment::Before,
                "after" => memory::Moment::After,
                _ => return Err(unknown()),
            },
            operation: match *operation {
                "intend" => memory::Operation::Intend,
                "record" => memory::Operation::Record,
                "erase" => memory::Operation::Erase,
                _ => return Err(unknown()),
            },
            address: address(of)?,
        })),
        ("world", ["lose", "deposed", "of", of]) => Ok(Cue::LoseDeposed(address(of)?)),
        ("world", ["lose", of]) => Ok(Cue::Lose(address(of)?)),
        ("world", ["put", id, json @ ..]) => Ok(Cue::Put((*id).to_owned(), json_of(&json.join(" "))?)),
        ("world", ["change", of, attribute, json @ ..]) => {
            Ok(Cue::Change(address(of)?, (*attribute).to_owned(), json_of(&json.join(" "))?))
        }
        ("world", ["configure", configuration]) => Ok(Cue::Configure((*configuration).to_owned())),
        ("recovery", [recovery]) => {
            let script = serde_json::from_value(json!({ "createRecovery": recovery })).map_err(|_| unknown())?;
            Ok(Cue::Recovery(Box::new(script)))
        }
        ("clock", [seconds]) => Ok(Cue::Clock(seconds.parse().map_err(|_| unknown())?)),
        (subject, _) => match subject.split_once(' ') {
            Some(("copy", target)) => Ok(Cue::Copy(target.to_owned(), rest.to_owned())),
            Some(("record", of)) => Ok(Cue::Record(address(of)?, rest.to_owned())),
            Some((on, call)) => Ok(Cue::Driver(ScriptLine {
                on: on.to_owned(),
                operation: operation(call).ok_or_else(unknown)?,
                answers: rest
                    .split(',')
                    .map(|text| answer(subject, text.trim()).ok_or_else(unknown))
                    .collect::<Result<_, _>>()?,
            })),
            None => Err(unknown()),
        },
    }
}

fn json_of(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|error| format!("`{text}` is not valid JSON: {error}"))
}

fn operation(text: &str) -> Option<Operation> {
    Some(match text {
        "validate" => Operation::Validate,
        "plan" => Operation::Plan,
        "read" => Operation::Read,
        "import" => Operation::Import,
        "move" => Operation::Move,
        "create" => Operation::Create,
        "update" => Operation::Update,
        "destroy" => Operation::Destroy,
        "ready" => Operation::Ready,
        "hook" => Operation::Hook,
        _ => return None,
    })
}

/// Every call is held at a separate gate, so that the calls continue one after another.
fn answer(gate: &str, text: &str) -> Option<ScriptedOutcome> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match (word, rest) {
        ("ok", "") => ScriptedOutcome::Ok,
        ("crash", "before") => ScriptedOutcome::CrashBefore,
        ("crash", "after") => ScriptedOutcome::CrashAfter,
        ("hold", "") => ScriptedOutcome::Hold(gate.to_owned()),
        ("gone", "") => ScriptedOutcome::Lose,
        ("unready", "") => ScriptedOutcome::Unready,
        ("invalid", "") => ScriptedOutcome::InvalidPlan,
        ("warn", text) => ScriptedOutcome::Warn(text.trim().to_owned()),
        ("fail", rest) => failure("fail", rest)?,
        ("partly", rest) => failure("failPartly", rest)?,
        _ => return None,
    })
}

fn failure(form: &str, text: &str) -> Option<ScriptedOutcome> {
    let kinds = ["transient", "terminal", "invalidConfig", "forbidden", "alreadyExists"];
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (kind, message) = if kinds.contains(&word) { (word, rest) } else { ("transient", text) };
    let message = if message.is_empty() { "it broke" } else { message };
    serde_json::from_value(json!({ form: { "kind": kind, "message": message } })).ok()
}
