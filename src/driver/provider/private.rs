//! Encodes the private data that is recorded with an object or a plan: the private bytes of the provider, and
//! information that the engine's form of a value lacks.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::cty::schema::Block;
use crate::cty::{self, DynamicTypes, Value};
use crate::model::{DriverError, ErrorKind};

/// The first byte if only the provider's bytes follow, as for most objects.
const BARE: u8 = 0;

/// The first byte if JSON follows.
const WHOLE: u8 = 1;

/// The private data of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectPrivate {
    /// The provider's own bytes.
    pub private: Vec<u8>,
    /// The types of the dynamic values in the state.
    pub dynamic: DynamicTypes,
    /// The schema version of the identity.
    pub identity_version: i64,
    /// The write-only arguments that were applied last; `None` if the type has none or they are unknown.
    pub write_only: Option<WriteOnlyFingerprint>,
}

/// Detects changes of write-only arguments, which no plan shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WriteOnlyFingerprint {
    /// Random for each object, so that the same secret has different fingerprints.
    salt: String,
    /// `None` if no write-only argument is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl WriteOnlyFingerprint {
    /// The fingerprint of a configuration, with the salt of the object or else a new one from `entropy`.
    pub fn of(block: &Block, config: &Value, before: Option<&Self>, entropy: &[u8]) -> Self {
        let salt = before.map_or_else(|| BASE64_STANDARD.encode(entropy), |before| before.salt.clone());
        let fingerprint = cty::write_only_fingerprint(block, config, salt.as_bytes());
        Self { salt, fingerprint: fingerprint.map(|print| BASE64_STANDARD.encode(&print[..16])) }
    }
}

/// The private data of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlanPrivate {
    /// The provider's own bytes.
    pub private: Vec<u8>,
    /// The planned state as encoded by the provider, since unknown values may carry refinements.
    pub state: Vec<u8>,
    /// The planned identity as encoded by the provider.
    pub identity: Option<Vec<u8>>,
    /// The provider uses the legacy type system.
    pub legacy: bool,
    /// The write-only arguments of the plan.
    pub write_only: Option<WriteOnlyFingerprint>,
}

#[derive(Serialize, Deserialize)]
struct ObjectPrivateJson {
    private: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    dynamic: String,
    #[serde(default)]
    identity_version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_only: Option<WriteOnlyFingerprint>,
}

#[derive(Serialize, Deserialize)]
struct PlanPrivateJson {
    private: String,
    state: String,
    identity: Option<String>,
    legacy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_only: Option<WriteOnlyFingerprint>,
}

fn damaged() -> DriverError {
    let message = "the recorded private data of the provider is damaged".to_owned();
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

fn bytes(text: &str) -> Result<Vec<u8>, DriverError> {
    BASE64_STANDARD.decode(text).map_err(|_| damaged())
}

impl ObjectPrivate {
    /// As bytes.
    pub fn encode(&self) -> Arc<[u8]> {
        if self.dynamic.is_empty() && self.identity_version == 0 && self.write_only.is_none() {
            if self.private.is_empty() {
                return Arc::from([]);
            }
            return [BARE].iter().chain(&self.private).copied().collect();
        }
        let dynamic = if self.dynamic.is_empty() { String::new() } else { self.dynamic.to_json() };
        let private = BASE64_STANDARD.encode(&self.private);
        text(&ObjectPrivateJson {
            private,
            dynamic,
            identity_version: self.identity_version,
            write_only: self.write_only.clone(),
        })
    }

    /// Decodes private data; empty data is the default.
    pub fn decode(recorded: &[u8]) -> Result<Self, DriverError> {
        match recorded.split_first() {
            None => Ok(Self::default()),
            Some((&BARE, private)) => Ok(Self { private: private.to_vec(), ..Self::default() }),
            Some((&WHOLE, json)) => {
                let decoded: ObjectPrivateJson = serde_json::from_slice(json).map_err(|_| damaged())?;
                let dynamic = match decoded.dynamic.as_str() {
                    "" => DynamicTypes::default(),
                    types => DynamicTypes::from_json(types.as_bytes()).map_err(|_| damaged())?,
                };
                let ObjectPrivateJson { identity_version, write_only, .. } = decoded;
                Ok(Self { private: bytes(&decoded.private)?, dynamic, identity_version, write_only })
            }
            Some(_) => Err(damaged()),
        }
    }
}

impl PlanPrivate {
    /// As bytes.
    pub fn encode(&self) -> Arc<[u8]> {
        let encode = |bytes: &Vec<u8>| BASE64_STANDARD.encode(bytes);
        text(&PlanPrivateJson {
            private: encode(&self.private),
            state: encode(&self.state),
            identity: self.identity.as_ref().map(encode),
            legacy: self.legacy,
            write_only: self.write_only.clone(),
        })
    }

    pub fn decode(encoded: &[u8]) -> Result<Self, DriverError> {
        let Some((&WHOLE, json)) = encoded.split_first() else { return Err(damaged()) };
        let planned: PlanPrivateJson = serde_json::from_slice(json).map_err(|_| damaged())?;
        Ok(Self {
            private: bytes(&planned.private)?,
            state: bytes(&planned.state)?,
            identity: planned.identity.as_deref().map(bytes).transpose()?,
            legacy: planned.legacy,
            write_only: planned.write_only,
        })
    }
}

fn text(value: &impl Serialize) -> Arc<[u8]> {
    // Strings and numbers can always be encoded.
    let json = serde_json::to_vec(value).unwrap_or_default();
    [WHOLE].iter().chain(&json).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cty::Type;

    #[test]
    fn private_data_round_trips() {
        let value = Value::object([("any", Value::dynamic(Type::String, Value::string("x")))]);
        let dynamic = DynamicTypes::of(&value, &Type::object([("any", Type::Dynamic)]));
        let bare = ObjectPrivate { private: vec![1, 2], ..ObjectPrivate::default() };
        let write_only = Some(WriteOnlyFingerprint { salt: "s".into(), fingerprint: Some("f".into()) });
        for private in [
            ObjectPrivate::default(),
            bare.clone(),
            ObjectPrivate { dynamic, identity_version: 2, write_only: write_only.clone(), ..bare },
        ] {
            assert_eq!(ObjectPrivate::decode(&private.encode()).unwrap(), private);
        }
        let planned =
            PlanPrivate { private: vec![0], state: vec![0xc0], identity: Some(vec![1]), legacy: true, write_only };
        assert_eq!(PlanPrivate::decode(&planned.encode()).unwrap(), planned);
        for damaged in [&[7u8][..], b"\x01{", b"\x01{\"private\":\"?\"}"] {
            assert!(ObjectPrivate::decode(damaged).is_err());
            assert!(PlanPrivate::decode(damaged).is_err());
        }
    }
}
