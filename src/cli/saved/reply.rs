//! The replies of drivers, in the format of a saved plan.

use std::str::FromStr as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use model::{
    Diagnostic, Diagnostics, DriverError, ErrorKind, Health, ImportRequest, ObjectState, Path, PlanResponse, Reason,
    Refusal, Remedy, Severity, Value,
};
use runtime::store::codec::{self, CodecError};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// To `validate`.
    Checked(Vec<DiagnosticReply>),
    /// To `read` and `import`.
    Object(Option<ObjectReply>),
    /// To `plan`.
    Planned(PlanReply),
    /// To `read_data`.
    Data(String),
    /// To `plan_data`.
    Expected(Vec<DiagnosticReply>, String),
    /// To `configuration`.
    Configuration(String),
    /// An error of any call.
    Failed(ErrorReply),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiagnosticReply {
    error: bool,
    reason: String,
    address: Option<String>,
    path: Option<String>,
    summary: String,
    detail: String,
    hint: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObjectReply {
    value: String,
    private: String,
    identity: Option<String>,
    #[serde(default)]
    health: Option<Health>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct RefusalReply {
    error: ErrorReply,
    remedies: Vec<RemedyReply>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RemedyReply {
    Applied(String),
    Removed(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReply {
    planned: String,
    requires_replace: Vec<String>,
    private: String,
    identity: Option<String>,
    #[serde(default)]
    checked: bool,
    #[serde(default)]
    refusal: Option<RefusalReply>,
    /// The import ID.
    #[serde(default)]
    adopts: Option<String>,
    #[serde(default)]
    requires_update: bool,
    #[serde(default)]
    until_ready: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorReply {
    kind: ErrorKind,
    message: String,
    path: Option<String>,
    hint: Option<String>,
}

/// A reply of a driver that can be saved.
pub trait Replayable: Sized {
    /// Returns `None` for a value that cannot be encoded.
    fn to_reply(&self) -> Option<Reply>;

    /// Returns `None` if the saved data is corrupt.
    fn from_reply(reply: &Reply) -> Option<Self>;
}

impl Replayable for Diagnostics {
    fn to_reply(&self) -> Option<Reply> {
        Some(Reply::Checked(encode_diagnostics(self)))
    }

    fn from_reply(reply: &Reply) -> Option<Self> {
        let Reply::Checked(problems) = reply else { return None };
        decode_diagnostics(problems)
    }
}

impl Replayable for Value {
    fn to_reply(&self) -> Option<Reply> {
        Some(Reply::Data(encode_value(self).ok()?))
    }

    fn from_reply(reply: &Reply) -> Option<Self> {
        let Reply::Data(value) = reply else { return None };
        decode_value(value).ok()
    }
}

impl Replayable for Arc<str> {
    fn to_reply(&self) -> Option<Reply> {
        Some(Reply::Configuration(self.to_string()))
    }

    fn from_reply(reply: &Reply) -> Option<Self> {
        let Reply::Configuration(digest) = reply else { return None };
        Some(digest.as_str().into())
    }
}

impl Replayable for (Diagnostics, Value) {
    fn to_reply(&self) -> Option<Reply> {
        Some(Reply::Expected(encode_diagnostics(&self.0), encode_value(&self.1).ok()?))
    }

    fn from_reply(reply: &Reply) -> Option<Self> {
        let Reply::Expected(problems, value) = reply else { return None };
        Some((decode_diagnostics(problems)?, decode_value(value).ok()?))
    }
}

impl Replayable for Option<ObjectState> {
    fn to_reply(&self) -> Option<Reply> {
        let Some(state) = self else { return Some(Reply::Object(None)) };
        Some(Reply::Object(Some(ObjectReply {
            value: encode_value(&state.value).ok()?,
            private: BASE64_STANDARD.encode(&state.private),
            identity: state.identity.as_ref().map(encode_value).transpose().ok()?,
            health: state.health.clone(),
        })))
    }

    fn from_reply(reply: &Reply) -> Option<Self> {
        let Reply::Object(state) = reply else { return None };
        let Some(state) = state else { return Some(None) };
        Some(Some(ObjectState {
            value: decode_value(&state.value).ok()?,
            private: decode_bytes(&state.private)?,
            identity: state.identity.as_deref().map(decode_value).transpose().ok()?,
            health: state.health.clone(),
        }))
    }
}

impl Replayable for PlanResponse {
    fn to_reply(&self) -> Option<Reply> {
        Some(Reply::Planned(PlanReply {
            planned: encode_value(&self.planned).ok()?,
            requires_replace: self.requires_replace.iter().map(ToString::to_string).collect(),
            private: BASE64_STANDARD.encode(&self.private),
            identity: self.identity.as_ref().map(encode_value).transpose().ok()?,
            requires_update: self.requires_update,
            until_ready: self.until_ready.as_ref().map(encode_value).transpose().ok()?,
            checked: self.checked,
            refusal: self.refusal.as_ref().map(refusal_reply).transpose().ok()?,
            adopts: match &self.adopts {
                Some(ImportRequest::Id(id)) => Some(id.to_string()),
                Some(ImportRequest::Identity(_)) => return None,
                None => None,
            },
        }))
    }

    fn from_reply(reply: &Reply) -> Option<Self> {
        let Reply::Planned(answer) = reply else { return None };
        Some(Self {
            planned: decode_value(&answer.planned).ok()?,
            requires_replace: answer
                .requires_replace
                .iter()
                .map(|path| Path::from_str(path).ok())
                .collect::<Option<_>>()?,
            private: decode_bytes(&answer.private)?,
            identity: answer.identity.as_deref().map(decode_value).transpose().ok()?,
            requires_update: answer.requires_update,
            until_ready: answer.until_ready.as_deref().map(decode_value).transpose().ok()?,
            checked: answer.checked,
            refusal: match &answer.refusal {
                Some(refusal) => Some(refusal.recall()?),
                None => None,
            },
            adopts: answer.adopts.as_deref().map(|id| ImportRequest::Id(id.into())),
        })
    }
}

fn refusal_reply(refusal: &Refusal) -> Result<RefusalReply, CodecError> {
    let remedy = |remedy: &Remedy| match remedy {
        Remedy::Applied(part) => Ok(RemedyReply::Applied(encode_value(part)?)),
        Remedy::Removed(part) => Ok(RemedyReply::Removed(encode_value(part)?)),
    };
    let remedies = refusal.remedies.iter().map(remedy).collect::<Result<_, CodecError>>()?;
    Ok(RefusalReply { error: ErrorReply::new(&refusal.error), remedies })
}

impl RefusalReply {
    fn recall(&self) -> Option<Refusal> {
        let remedy = |remedy: &RemedyReply| match remedy {
            RemedyReply::Applied(part) => decode_value(part).map(Remedy::Applied),
            RemedyReply::Removed(part) => decode_value(part).map(Remedy::Removed),
        };
        let remedies = self.remedies.iter().map(remedy).collect::<Result<_, _>>().ok()?;
        Some(Refusal { error: self.error.recall(), remedies })
    }
}

pub fn error_reply(error: &DriverError) -> Reply {
    Reply::Failed(ErrorReply::new(error))
}

impl ErrorReply {
    fn new(error: &DriverError) -> Self {
        let path = error.path.as_ref().map(ToString::to_string);
        Self { kind: error.kind, message: error.message.clone(), path, hint: error.hint.clone() }
    }

    pub fn recall(&self) -> DriverError {
        let path = self.path.as_ref().and_then(|path| path.parse().ok());
        DriverError { kind: self.kind, message: self.message.clone(), path, hint: self.hint.clone() }
    }
}

fn encode_diagnostics(problems: &Diagnostics) -> Vec<DiagnosticReply> {
    let problem = |problem: &Diagnostic| DiagnosticReply {
        error: problem.severity == Severity::Error,
        reason: problem.reason.to_string(),
        address: problem.address.as_ref().map(ToString::to_string),
        path: problem.path.as_ref().map(ToString::to_string),
        summary: problem.summary.clone(),
        detail: problem.detail.clone(),
        hint: problem.hint.clone(),
    };
    problems.iter().map(problem).collect()
}

fn decode_diagnostics(problems: &[DiagnosticReply]) -> Option<Diagnostics> {
    let problem = |problem: &DiagnosticReply| {
        let DiagnosticReply { error, reason, address, path, summary, detail, hint } = problem.clone();
        Some(Diagnostic {
            severity: if error { Severity::Error } else { Severity::Warning },
            reason: *Reason::ALL.iter().find(|known| known.as_str() == reason)?,
            address: address.map(|text| text.parse()).transpose().ok()?,
            path: path.map(|text| text.parse()).transpose().ok()?,
            source: None,
            summary,
            detail,
            hint,
        })
    };
    problems.iter().map(problem).collect()
}

fn encode_value(value: &Value) -> Result<String, CodecError> {
    Ok(BASE64_STANDARD.encode(codec::encode_content(value)?))
}

fn decode_value(text: &str) -> Result<Value, CodecError> {
    codec::decode_content(&BASE64_STANDARD.decode(text).unwrap_or_default())
}

fn decode_bytes(text: &str) -> Option<Arc<[u8]>> {
    Some(BASE64_STANDARD.decode(text).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_restored_from_the_file() {
        let value = Value::map([("a", Value::Unknown), ("b", Value::from("x").into_sensitive()), ("c", Value::Null)]);
        let (private, identity): (Arc<[u8]>, _) = (Arc::from([0, 255]), Some(Value::from(1)));
        let health = Some(Health::Terminating(vec!["a/b".to_owned()]));
        let state =
            Some(ObjectState { value: value.clone(), private: private.clone(), identity: identity.clone(), health });
        assert_eq!(Option::<ObjectState>::from_reply(&state.to_reply().unwrap()).unwrap(), state);
        let requires_replace = vec![Path::default().name("rule").index(0).name("port")];
        let until_ready = Some(value.clone());
        let refusal = Some(Refusal {
            error: DriverError { kind: ErrorKind::Transient, message: "no".into(), path: None, hint: None },
            remedies: vec![Remedy::Applied(value.clone()), Remedy::Removed(Value::from("x"))],
        });
        let adopts = Some(ImportRequest::Id("v1/ConfigMap/shop/site".into()));
        let answer = PlanResponse {
            planned: value,
            requires_replace,
            private,
            identity,
            until_ready,
            refusal,
            adopts,
            ..PlanResponse::default()
        };
        let recalled = PlanResponse::from_reply(&answer.to_reply().unwrap()).unwrap();
        assert_eq!(format!("{recalled:?}"), format!("{answer:?}"));
        let address = "web[0]".parse().unwrap();
        let problem = Diagnostic::error(&address, Reason::InvalidConfig, "no").at(Path::default().name("x")).hint("do");
        let problems = vec![problem];
        assert_eq!(Diagnostics::from_reply(&problems.to_reply().unwrap()).unwrap(), problems);
        let expected = (problems, Value::Unknown);
        assert_eq!(<(Diagnostics, Value)>::from_reply(&expected.to_reply().unwrap()).unwrap(), expected);
        let read = Value::from("x").into_sensitive();
        assert_eq!(Value::from_reply(&read.to_reply().unwrap()).unwrap(), read);
        let error = DriverError { kind: ErrorKind::Forbidden, message: "no".into(), path: None, hint: None };
        let Reply::Failed(refusal) = error_reply(&error) else { panic!() };
        assert_eq!(format!("{:?}", refusal.recall()), format!("{error:?}"));
    }
}
