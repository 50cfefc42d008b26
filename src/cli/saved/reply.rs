//! Replies of drivers as a saved plan holds them.

use std::str::FromStr as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::model::{
    Diagnostic, Diagnostics, DriverError, ErrorKind, ObjectState, Path, PlanResponse, Reason, Severity, Value,
};
use crate::store::codec::{self, CodecError};

/// What a driver replied.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// To `validate`.
    Checked(Vec<Problem>),
    /// To `read` and `import`.
    Object(Option<State>),
    /// To `plan`.
    Planned(Answer),
    /// To `read_data`.
    Data(String),
    /// To `expect_data`.
    Expected(Vec<Problem>, String),
    /// To `configuration`.
    Configuration(String),
    /// An error, to anything.
    Failed(Refusal),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    error: bool,
    reason: String,
    address: Option<String>,
    path: Option<String>,
    summary: String,
    detail: String,
    hint: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    value: String,
    private: String,
    identity: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    planned: String,
    requires_replace: Vec<String>,
    private: String,
    identity: Option<String>,
    #[serde(default)]
    checked: bool,
    #[serde(default)]
    tells: bool,
    #[serde(default)]
    until_ready: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    kind: Kind,
    message: String,
    path: Option<String>,
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Transient,
    Terminal,
    InvalidConfig,
    Forbidden,
    AlreadyExists,
    Unavailable,
}

/// Something that a driver replies, which can be kept.
pub trait Kept: Sized {
    /// Its form in the file; `None` for a value that cannot be kept.
    fn keep(&self) -> Option<Reply>;

    /// The same from the file; `None` for what was damaged.
    fn recall(reply: &Reply) -> Option<Self>;
}

impl Kept for Diagnostics {
    fn keep(&self) -> Option<Reply> {
        Some(Reply::Checked(keep_problems(self)))
    }

    fn recall(reply: &Reply) -> Option<Self> {
        let Reply::Checked(problems) = reply else { return None };
        recall_problems(problems)
    }
}

impl Kept for Value {
    fn keep(&self) -> Option<Reply> {
        Some(Reply::Data(keep_value(self).ok()?))
    }

    fn recall(reply: &Reply) -> Option<Self> {
        let Reply::Data(value) = reply else { return None };
        recall_value(value).ok()
    }
}

impl Kept for Arc<str> {
    fn keep(&self) -> Option<Reply> {
        Some(Reply::Configuration(self.to_string()))
    }

    fn recall(reply: &Reply) -> Option<Self> {
        let Reply::Configuration(digest) = reply else { return None };
        Some(digest.as_str().into())
    }
}

impl Kept for (Diagnostics, Value) {
    fn keep(&self) -> Option<Reply> {
        Some(Reply::Expected(keep_problems(&self.0), keep_value(&self.1).ok()?))
    }

    fn recall(reply: &Reply) -> Option<Self> {
        let Reply::Expected(problems, value) = reply else { return None };
        Some((recall_problems(problems)?, recall_value(value).ok()?))
    }
}

impl Kept for Option<ObjectState> {
    fn keep(&self) -> Option<Reply> {
        let Some(state) = self else { return Some(Reply::Object(None)) };
        Some(Reply::Object(Some(State {
            value: keep_value(&state.value).ok()?,
            private: BASE64_STANDARD.encode(&state.private),
            identity: state.identity.as_ref().map(keep_value).transpose().ok()?,
        })))
    }

    fn recall(reply: &Reply) -> Option<Self> {
        let Reply::Object(state) = reply else { return None };
        let Some(state) = state else { return Some(None) };
        Some(Some(ObjectState {
            value: recall_value(&state.value).ok()?,
            private: recall_bytes(&state.private)?,
            identity: state.identity.as_deref().map(recall_value).transpose().ok()?,
        }))
    }
}

impl Kept for PlanResponse {
    fn keep(&self) -> Option<Reply> {
        Some(Reply::Planned(Answer {
            planned: keep_value(&self.planned).ok()?,
            requires_replace: self.requires_replace.iter().map(ToString::to_string).collect(),
            private: BASE64_STANDARD.encode(&self.private),
            identity: self.identity.as_ref().map(keep_value).transpose().ok()?,
            tells: self.tells,
            until_ready: self.until_ready.as_ref().map(keep_value).transpose().ok()?,
            checked: self.checked,
        }))
    }

    fn recall(reply: &Reply) -> Option<Self> {
        let Reply::Planned(answer) = reply else { return None };
        Some(Self {
            planned: recall_value(&answer.planned).ok()?,
            requires_replace: answer
                .requires_replace
                .iter()
                .map(|path| Path::from_str(path).ok())
                .collect::<Option<_>>()?,
            private: recall_bytes(&answer.private)?,
            identity: answer.identity.as_deref().map(recall_value).transpose().ok()?,
            tells: answer.tells,
            until_ready: answer.until_ready.as_deref().map(recall_value).transpose().ok()?,
            checked: answer.checked,
        })
    }
}

/// The form of an error.
pub fn refused(error: &DriverError) -> Reply {
    let kind = match error.kind {
        ErrorKind::Transient => Kind::Transient,
        ErrorKind::Terminal => Kind::Terminal,
        ErrorKind::InvalidConfig => Kind::InvalidConfig,
        ErrorKind::Forbidden => Kind::Forbidden,
        ErrorKind::AlreadyExists => Kind::AlreadyExists,
        ErrorKind::Unavailable => Kind::Unavailable,
    };
    let path = error.path.as_ref().map(ToString::to_string);
    Reply::Failed(Refusal { kind, message: error.message.clone(), path, hint: error.hint.clone() })
}

impl Refusal {
    /// The error.
    pub fn recall(&self) -> DriverError {
        let kind = match self.kind {
            Kind::Transient => ErrorKind::Transient,
            Kind::Terminal => ErrorKind::Terminal,
            Kind::InvalidConfig => ErrorKind::InvalidConfig,
            Kind::Forbidden => ErrorKind::Forbidden,
            Kind::AlreadyExists => ErrorKind::AlreadyExists,
            Kind::Unavailable => ErrorKind::Unavailable,
        };
        let path = self.path.as_ref().and_then(|path| path.parse().ok());
        DriverError { kind, message: self.message.clone(), path, hint: self.hint.clone() }
    }
}

fn keep_problems(problems: &Diagnostics) -> Vec<Problem> {
    let problem = |problem: &Diagnostic| Problem {
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

fn recall_problems(problems: &[Problem]) -> Option<Diagnostics> {
    let problem = |problem: &Problem| {
        let Problem { error, reason, address, path, summary, detail, hint } = problem.clone();
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

fn keep_value(value: &Value) -> Result<String, CodecError> {
    Ok(BASE64_STANDARD.encode(codec::encode_value(value)?))
}

fn recall_value(text: &str) -> Result<Value, CodecError> {
    codec::decode_value(&BASE64_STANDARD.decode(text).unwrap_or_default())
}

fn recall_bytes(text: &str) -> Option<Arc<[u8]>> {
    Some(BASE64_STANDARD.decode(text).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_pass_through_the_file_without_loss() {
        let value = Value::map([("a", Value::Unknown), ("b", Value::from("x").into_sensitive()), ("c", Value::Null)]);
        let (private, identity): (Arc<[u8]>, _) = (Arc::from([0, 255]), Some(Value::from(1)));
        let state = Some(ObjectState { value: value.clone(), private: private.clone(), identity: identity.clone() });
        assert_eq!(Option::<ObjectState>::recall(&state.keep().unwrap()).unwrap(), state);
        let requires_replace = vec![Path::default().name("rule").index(0).name("port")];
        let until_ready = Some(value.clone());
        let answer = PlanResponse {
            planned: value,
            requires_replace,
            private,
            identity,
            until_ready,
            ..PlanResponse::default()
        };
        let recalled = PlanResponse::recall(&answer.keep().unwrap()).unwrap();
        assert_eq!(format!("{recalled:?}"), format!("{answer:?}"));
        let address = "web[0]".parse().unwrap();
        let problem = Diagnostic::error(&address, Reason::InvalidConfig, "no").at(Path::default().name("x")).hint("do");
        let problems = vec![problem];
        assert_eq!(Diagnostics::recall(&problems.keep().unwrap()).unwrap(), problems);
        let expected = (problems, Value::Unknown);
        assert_eq!(<(Diagnostics, Value)>::recall(&expected.keep().unwrap()).unwrap(), expected);
        let read = Value::from("x").into_sensitive();
        assert_eq!(Value::recall(&read.keep().unwrap()).unwrap(), read);
        let error = DriverError { kind: ErrorKind::Forbidden, message: "no".into(), path: None, hint: None };
        let Reply::Failed(refusal) = refused(&error) else { panic!() };
        assert_eq!(format!("{:?}", refusal.recall()), format!("{error:?}"));
    }
}
