//! Encodes the private data that is recorded with an object or a plan: the private bytes of the provider, and
//! information that the engine's form of a value lacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cty::Value;
use serde::{Deserialize, Serialize};

use super::values::{self, DynamicTypes};
use model::{DriverError, ErrorKind, IgnoredChange, Path};
use tfprovider::schema::{Block, write_only_fingerprints};

/// The first byte if only the provider's bytes follow, as for most objects.
const BARE: u8 = 0;

/// The first byte if JSON follows.
const WHOLE: u8 = 1;

/// The private data of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPrivate {
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
pub struct WriteOnlyFingerprint {
    /// Random for each object, so that the same secret has different fingerprints.
    salt: String,
    /// By the paths of the arguments that are set.
    arguments: BTreeMap<Path, String>,
}

impl WriteOnlyFingerprint {
    /// The fingerprint of a configuration, with the salt of the object or else a new one from `entropy`. At ignored
    /// paths, it is that of the object, because the configuration has the recorded values there, which are null.
    pub fn of(block: &Block, config: &Value, ignored: &[IgnoredChange], before: Option<&Self>, entropy: &[u8]) -> Self {
        let salt = before.map_or_else(|| BASE64_STANDARD.encode(entropy), |before| before.salt.clone());
        let kept = before
            .into_iter()
            .flat_map(|before| &before.arguments)
            .filter(|(path, _)| ignored.iter().any(|change| change.covers(path)));
        let set = write_only_fingerprints(block, config, salt.as_bytes()).into_iter();
        let set = set.map(|(path, print)| (values::path(&path), BASE64_STANDARD.encode(&print[..16])));
        Self { arguments: kept.map(|(path, print)| (path.clone(), print.clone())).chain(set).collect(), salt }
    }
}

/// The private data of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanPrivate {
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
    /// `write_only` was a single fingerprint of all arguments. It is not read: the arguments count as unknown.
    #[serde(default, rename = "write_only_arguments", skip_serializing_if = "Option::is_none")]
    write_only: Option<WriteOnlyFingerprint>,
}

#[derive(Serialize, Deserialize)]
struct PlanPrivateJson {
    private: String,
    state: String,
    identity: Option<String>,
    legacy: bool,
    #[serde(default, rename = "write_only_arguments", skip_serializing_if = "Option::is_none")]
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
        text(&PlanPrivateJson {
            private: BASE64_STANDARD.encode(&self.private),
            state: BASE64_STANDARD.encode(&self.state),
            identity: self.identity.as_ref().map(|identity| BASE64_STANDARD.encode(identity)),
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
    use cty::Type;

    use super::*;

    #[test]
    fn private_data_round_trips() {
        let value = Value::object([("any", Value::string("x"))]);
        let dynamic = DynamicTypes::of(&value, &Type::object([("any", Type::Dynamic)]));
        let bare = ObjectPrivate { private: vec![1, 2], ..ObjectPrivate::default() };
        let arguments = BTreeMap::from([("keys[\"a b\"].secret".parse().unwrap(), "f".to_owned())]);
        let write_only = Some(WriteOnlyFingerprint { salt: "s".into(), arguments });
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
        let earlier =
            ObjectPrivate::decode(b"\x01{\"private\":\"\",\"write_only\":{\"salt\":\"s\",\"fingerprint\":\"f\"}}");
        assert_eq!(earlier.unwrap(), ObjectPrivate::default());
        for damaged in [&[7u8][..], b"\x01{", b"\x01{\"private\":\"?\"}"] {
            assert!(ObjectPrivate::decode(damaged).is_err());
            assert!(PlanPrivate::decode(damaged).is_err());
        }
    }
}
