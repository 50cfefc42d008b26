//! Detached OpenPGP signatures of lists of checksums.

use jiff::Timestamp;
use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey};
use pgp::packet::Signature;
use pgp::types::{Duration, KeyDetails, VerifyingKey};
use serde::Deserialize;

/// A key as registries tell it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Key {
    /// The key, armored.
    pub ascii_armor: String,
}

/// Who signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// The id of the key.
    pub key: String,
    /// The key was valid once.
    pub expired: bool,
}

/// Verifies a signature, armored or not, with the first of the keys that made it.
///
/// # Errors
/// A text that says why, when none of the keys made it.
pub(super) fn verify(content: &[u8], signature: &[u8], keys: &[Key], now: Timestamp) -> Result<Signed, String> {
    if keys.is_empty() {
        return Err("the registry tells no key for it".to_owned());
    }
    let read = if signature.starts_with(b"-----") {
        DetachedSignature::from_armor_single(signature).map(|(signature, _)| signature)
    } else {
        DetachedSignature::from_bytes(signature)
    };
    let signature = read.map_err(|error| format!("it cannot be read: {error}"))?;
    let mut unreadable = None;
    for key in keys {
        match SignedPublicKey::from_string(&key.ascii_armor) {
            Ok((key, _)) => {
                if let Some(signed) = by(&key, &signature, content, now) {
                    return signed;
                }
            }
            Err(error) => unreadable = Some(format!("a key cannot be read: {error}")),
        }
    }
    Err(unreadable.unwrap_or_else(|| "none of the keys that the registry tells made it".to_owned()))
}

/// What a key says to the signature; `None` when it did not make it.
fn by(
    key: &SignedPublicKey,
    signature: &DetachedSignature,
    content: &[u8],
    now: Timestamp,
) -> Option<Result<Signed, String>> {
    let primary = &key.primary_key;
    let own = key.details.direct_signatures.iter();
    let own: Vec<&Signature> = own.chain(key.details.users.iter().flat_map(|user| &user.signatures)).collect();
    let signed = |key: &dyn KeyDetails, expired| Signed { key: key.legacy_key_id().to_string(), expired };
    let is_gone = expired(primary, &own, now);
    let made = if made_by(primary, signature, content) {
        signed(primary, is_gone)
    } else {
        let makes = |subkey: &&pgp::composed::SignedPublicSubKey| {
            // A subkey counts when the primary key and the subkey say both that it does.
            subkey.verify_bindings(primary).is_ok() && made_by(&subkey.key, signature, content)
        };
        let subkey = key.public_subkeys.iter().find(makes)?;
        let bindings: Vec<&Signature> = subkey.signatures.iter().collect();
        signed(&subkey.key, is_gone || expired(&subkey.key, &bindings, now))
    };
    let revoked = key.details.revocation_signatures.iter().any(|revoked| revoked.verify_key(primary).is_ok());
    Some(if revoked { Err(format!("the key {} was revoked", made.key)) } else { Ok(made) })
}

fn made_by(key: &impl VerifyingKey, signature: &DetachedSignature, content: &[u8]) -> bool {
    signature.verify(key, content).is_ok()
}

/// Whether a key has expired, as the newest of the signatures over it says.
fn expired(key: &impl KeyDetails, signatures: &[&Signature], now: Timestamp) -> bool {
    let newest = signatures.iter().max_by_key(|signature| signature.created());
    let lives = newest.and_then(|signature| signature.key_expiration_time()).map_or(0, Duration::as_secs);
    // Zero is for ever.
    lives > 0 && i64::from(key.created_at().as_secs()) + i64::from(lives) <= now.as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the keys of `tests/support/keys` were made, or a little later.
    const NOW: &str = "2026-12-01T00:00:00Z";

    fn file(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/tests/support/keys/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    fn verified(content: &[u8], signature: &str, keys: &[&str]) -> Result<bool, String> {
        let key = |name: &&str| Key { ascii_armor: String::from_utf8(file(name)).unwrap() };
        let keys: Vec<Key> = keys.iter().map(key).collect();
        verify(content, &file(signature), &keys, NOW.parse().unwrap()).map(|signed| signed.expired)
    }

    #[test]
    fn signatures_that_gnupg_made_are_verified() {
        let list = file("list");
        assert_eq!(verified(&list, "list.rsa.sig", &["revoked.asc", "rsa.asc"]), Ok(false), "a subkey, not armored");
        assert_eq!(verified(&list, "list.valid.sig.asc", &["valid.asc"]), Ok(false), "a primary key, armored");
        assert_eq!(verified(&list, "list.expired.sig", &["expired.asc"]), Ok(true), "its key was valid once");
    }

    #[test]
    fn what_somebody_else_signed_or_changed_is_refused() {
        let list = file("list");
        let stranger = "none of the keys that the registry tells made it";
        assert_eq!(verified(b"abd  file.zip\n", "list.rsa.sig", &["rsa.asc"]).unwrap_err(), stranger);
        assert_eq!(verified(&list, "list.rsa.sig", &["valid.asc", "expired.asc"]).unwrap_err(), stranger);
        assert_eq!(verified(&list, "list.rsa.sig", &[]).unwrap_err(), "the registry tells no key for it");
        let revoked = verified(&list, "list.revoked.sig", &["revoked.asc"]).unwrap_err();
        assert!(revoked.ends_with("was revoked"), "{revoked}");
        let unreadable = verified(&list, "list", &["rsa.asc"]).unwrap_err();
        assert!(unreadable.starts_with("it cannot be read: "), "{unreadable}");
        let no_key = verified(&list, "list.rsa.sig", &["list"]).unwrap_err();
        assert!(no_key.starts_with("a key cannot be read: "), "{no_key}");
    }
}
