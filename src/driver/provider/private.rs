//! The bytes that the engine keeps for the driver, beside the values: what a provider wants back, and what the engine's
//! form of a value does not tell.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::cty::schema::Block;
use crate::cty::{self, DynamicTypes, Value};
use crate::model::{DriverError, ErrorKind};

/// The first byte when the provider's bytes follow and there is nothing else to know, as with nearly every object.
const BARE: u8 = 0;

/// The first byte when a JSON text follows.
const WHOLE: u8 = 1;

/// What is kept with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The provider's own bytes.
    pub private: Vec<u8>,
    /// The types of what stands at dynamic places of the state.
    pub dynamic: DynamicTypes,
    /// The version of the schema of the identity.
    pub identity_version: i64,
    /// What the provider was told last and does not keep; `None`: its type has nothing of that kind, or nobody knows.
    pub told: Option<Told>,
}

/// Tells whether write-only arguments are still those that the provider was told last. No plan shows that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// Drawn for the object, so that the same secret of two objects has two fingerprints.
    salt: String,
    /// `None`: there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl Told {
    /// What a configuration tells the provider, under the salt that the object has already or else by these bytes.
    pub fn of(block: &Block, config: &Value, before: Option<&Self>, entropy: &[u8]) -> Self {
        let salt = before.map_or_else(|| BASE64_STANDARD.encode(entropy), |before| before.salt.clone());
        let fingerprint = cty::write_only_fingerprint(block, config, salt.as_bytes());
        Self { salt, fingerprint: fingerprint.map(|print| BASE64_STANDARD.encode(&print[..16])) }
    }
}

/// What is kept between a plan and its apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Planned {
    /// The provider's own bytes.
    pub private: Vec<u8>,
    /// The planned state, exactly as it came: unknown places in it may promise something.
    pub state: Vec<u8>,
    /// The planned identity, as it came.
    pub identity: Option<Vec<u8>>,
    /// The provider does not keep to the rules of plans.
    pub legacy: bool,
    /// What the provider is told and does not keep.
    pub told: Option<Told>,
}

#[derive(Serialize, Deserialize)]
struct KeptText {
    private: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    dynamic: String,
    #[serde(default)]
    identity_version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
}

#[derive(Serialize, Deserialize)]
struct PlannedText {
    private: String,
    state: String,
    identity: Option<String>,
    legacy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
}

fn damaged() -> DriverError {
    let message = "what is recorded for the provider is damaged".to_owned();
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

fn bytes(text: &str) -> Result<Vec<u8>, DriverError> {
    BASE64_STANDARD.decode(text).map_err(|_| damaged())
}

impl Kept {
    /// As bytes.
    pub fn encode(&self) -> Arc<[u8]> {
        if self.dynamic.is_empty() && self.identity_version == 0 && self.told.is_none() {
            if self.private.is_empty() {
                return Arc::from([]);
            }
            return [BARE].iter().chain(&self.private).copied().collect();
        }
        let dynamic = if self.dynamic.is_empty() { String::new() } else { self.dynamic.to_json() };
        let private = BASE64_STANDARD.encode(&self.private);
        text(&KeptText { private, dynamic, identity_version: self.identity_version, told: self.told.clone() })
    }

    /// From such bytes; none are those of an object that was recorded by somebody else.
    pub fn decode(recorded: &[u8]) -> Result<Self, DriverError> {
        match recorded.split_first() {
            None => Ok(Self::default()),
            Some((&BARE, private)) => Ok(Self { private: private.to_vec(), ..Self::default() }),
            Some((&WHOLE, json)) => {
                let kept: KeptText = serde_json::from_slice(json).map_err(|_| damaged())?;
                let dynamic = match kept.dynamic.as_str() {
                    "" => DynamicTypes::default(),
                    types => DynamicTypes::from_json(types.as_bytes()).map_err(|_| damaged())?,
                };
                let KeptText { identity_version, told, .. } = kept;
                Ok(Self { private: bytes(&kept.private)?, dynamic, identity_version, told })
            }
            Some(_) => Err(damaged()),
        }
    }
}

impl Planned {
    /// As bytes.
    pub fn encode(&self) -> Arc<[u8]> {
        let encode = |bytes: &Vec<u8>| BASE64_STANDARD.encode(bytes);
        text(&PlannedText {
            private: encode(&self.private),
            state: encode(&self.state),
            identity: self.identity.as_ref().map(encode),
            legacy: self.legacy,
            told: self.told.clone(),
        })
    }

    /// From such bytes.
    pub fn decode(kept: &[u8]) -> Result<Self, DriverError> {
        let Some((&WHOLE, json)) = kept.split_first() else { return Err(damaged()) };
        let planned: PlannedText = serde_json::from_slice(json).map_err(|_| damaged())?;
        Ok(Self {
            private: bytes(&planned.private)?,
            state: bytes(&planned.state)?,
            identity: planned.identity.as_deref().map(bytes).transpose()?,
            legacy: planned.legacy,
            told: planned.told,
        })
    }
}

fn text(value: &impl Serialize) -> Arc<[u8]> {
    // Texts and numbers always have a JSON form.
    let json = serde_json::to_vec(value).unwrap_or_default();
    [WHOLE].iter().chain(&json).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cty::Type;

    #[test]
    fn what_is_kept_comes_back() {
        let value = Value::object([("any", Value::dynamic(Type::String, Value::string("x")))]);
        let dynamic = DynamicTypes::of(&value, &Type::object([("any", Type::Dynamic)]));
        let bare = Kept { private: vec![1, 2], ..Kept::default() };
        let told = Some(Told { salt: "s".into(), fingerprint: Some("f".into()) });
        for kept in [Kept::default(), bare.clone(), Kept { dynamic, identity_version: 2, told: told.clone(), ..bare }] {
            assert_eq!(Kept::decode(&kept.encode()).unwrap(), kept);
        }
        let planned = Planned { private: vec![0], state: vec![0xc0], identity: Some(vec![1]), legacy: true, told };
        assert_eq!(Planned::decode(&planned.encode()).unwrap(), planned);
        for damaged in [&[7u8][..], b"\x01{", b"\x01{\"private\":\"?\"}"] {
            assert!(Kept::decode(damaged).is_err());
            assert!(Planned::decode(damaged).is_err());
        }
    }
}
