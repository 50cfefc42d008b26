//! The JSON output of the CLI (`docs/formats.md`), except plans and graphs, which `plan::render` and `graph::render`
//! write.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::inputs::OtherSources;
use super::outputs::StoredOutput;
use model::{Address, DeposedKey, Diagnostic, Operation};
use runtime::execute::{Progress, ProgressKind, Summary};

use engine::plan::render::json::OneDiagnostic;
pub use engine::plan::render::json::{Diagnostics, FORMAT_VERSION};

pub fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// A diagnostic in the event stream.
#[derive(Serialize)]
pub struct DiagnosticEvent<'a> {
    event: &'static str,
    #[serde(flatten)]
    diagnostic: OneDiagnostic<'a>,
}

impl<'a> DiagnosticEvent<'a> {
    pub fn new(diagnostic: &'a Diagnostic) -> Self {
        Self { event: "diagnostic", diagnostic: OneDiagnostic(diagnostic) }
    }
}

/// The error of a step that is withdrawn because a newer desired generation is known.
pub const WITHDRAWN: &str = "the configuration changed after this step was planned";

/// The error of a step that is stopped while it waits for readiness.
pub const NOT_READY: &str = "the object is not ready yet; the next run continues to wait for it";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepEvent<'a> {
    event: &'static str,
    node: String,
    address: &'a Address,
    operation: Operation,
    deposed_key: Option<DeposedKey>,
    #[serde(serialize_with = "with_microseconds")]
    at: Timestamp,
    error: Option<String>,
}

impl<'a> StepEvent<'a> {
    pub fn new(progress: &'a Progress) -> Self {
        let (event, error) = match &progress.kind {
            // Hooks and warnings are reported as diagnostics.
            ProgressKind::Started | ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_) => {
                ("started", None)
            }
            // The object is created or updated; only the wait for readiness was stopped.
            ProgressKind::WaitInterrupted => ("finished", Some(NOT_READY.to_owned())),
            ProgressKind::Superseded => ("failed", Some(WITHDRAWN.to_owned())),
            ProgressKind::Finished => ("finished", None),
            ProgressKind::Failed { message, .. } => ("failed", Some(message.clone())),
            ProgressKind::Skipped { because_of } => {
                ("skipped", because_of.as_ref().map(|step| format!("`{}` failed", step.id())))
            }
        };
        let step = &progress.step;
        Self {
            event,
            node: step.id(),
            address: &step.address,
            operation: step.operation,
            deposed_key: step.deposed,
            at: progress.at,
            error,
        }
    }
}

/// A fixed number of digits, so that readers can compare times as strings.
fn with_microseconds<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.6}"))
}

/// The last line of the event stream.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryEvent {
    event: &'static str,
    #[serde(flatten)]
    summary: Summary,
    other_sources: OtherSources,
}

impl SummaryEvent {
    pub fn new(summary: Summary, other_sources: OtherSources) -> Self {
        Self { event: "summary", summary, other_sources }
    }
}

/// The outputs of a Terraform configuration after an apply.
#[derive(Serialize)]
pub struct OutputsEvent<'a> {
    event: &'static str,
    outputs: BTreeMap<&'a str, OutputEntry<'a>>,
}

/// An output. A sensitive one has no value here.
#[derive(Serialize)]
struct OutputEntry<'a> {
    sensitive: bool,
    #[serde(rename = "type")]
    ty: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a RawValue>,
}

impl<'a> OutputsEvent<'a> {
    /// # Errors
    /// If a value or type is not JSON.
    pub fn new(outputs: &'a [StoredOutput]) -> serde_json::Result<Self> {
        let entries = outputs.iter().map(|output| {
            let value = (!output.is_sensitive).then(|| serde_json::from_str(&output.json)).transpose()?;
            let entry = OutputEntry { sensitive: output.is_sensitive, ty: serde_json::from_str(&output.ty)?, value };
            Ok((output.name.as_str(), entry))
        });
        Ok(Self { event: "outputs", outputs: entries.collect::<serde_json::Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Reason, Source, Step};

    fn written(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn events_have_every_field_and_six_digits() {
        let step = Step {
            address: "web[0]".parse().unwrap(),
            deposed: Some(DeposedKey(0x8e7c_df03)),
            operation: Operation::Destroy,
            replaces: true,
        };
        let at = Timestamp::from_millisecond(1_700_000_000_500).unwrap();
        let event = Progress { step, at, kind: ProgressKind::Started };
        assert_eq!(
            written(&StepEvent::new(&event)),
            r#"{"event":"started","node":"web[0] destroy (deposed 8e7cdf03)","address":"web[0]","operation":"destroy","deposedKey":"8e7cdf03","at":"2023-11-14T22:13:20.500000Z","error":null}"#
        );
        assert_eq!(
            written(&SummaryEvent::new(Summary { created: 1, ..Summary::default() }, OtherSources::default())),
            r#"{"event":"summary","imported":0,"created":1,"updated":0,"destroyed":0,"failed":0,"skipped":0,"otherSources":{"unchanged":0,"takenOver":0}}"#
        );
    }

    #[test]
    fn the_detail_of_a_diagnostic_contains_its_source() {
        let address: Address = "db".parse().unwrap();
        let diagnostic = Diagnostic::error(&address, Reason::InvalidConfig, "no such argument")
            .from_source(Some(Source { file: "app.yaml".into(), line: 7 }))
            .hint("remove it");
        assert_eq!(
            written(&DiagnosticEvent::new(&diagnostic)),
            r#"{"event":"diagnostic","severity":"error","address":"db","summary":"no such argument","detail":"at app.yaml:7; hint: remove it"}"#
        );
    }
}
