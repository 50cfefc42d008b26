//! Verifies detached OpenPGP signatures of lists of checksums.

use jiff::Timestamp;
use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey};
use pgp::packet::Signature;
use pgp::types::{Duration, KeyDetails, VerifyingKey};
use serde::Deserialize;

/// A signing key in the response of a registry.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Key {
    pub ascii_armor: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signer {
    /// The key id.
    pub key: String,
    /// The key has expired since.
    pub expired: bool,
}

/// Verifies a signature, armored or binary, and returns the key that made it.
///
/// # Errors
/// The reason, if none of the keys made the signature or the key was revoked.
pub(super) fn verify(content: &[u8], signature: &[u8], keys: &[Key], now: Timestamp) -> Result<Signer, String> {
    if keys.is_empty() {
        return Err("the registry provides no signing key".to_owned());
    }
    let read = if signature.starts_with(b"-----") {
        DetachedSignature::from_armor_single(signature).map(|(signature, _)| signature)
    } else {
        DetachedSignature::from_bytes(signature)
    };
    let signature = read.map_err(|error| format!("it cannot be parsed: {error}"))?;
    let mut unreadable = None;
    for key in keys {
        match SignedPublicKey::from_string(&key.ascii_armor) {
            Ok((key, _)) => {
                if let Some(signed) = check_key(&key, &signature, content, now) {
                    return signed;
                }
            }
            Err(error) => unreadable = Some(format!("a signing key cannot be parsed: {error}")),
        }
    }
    Err(unreadable.unwrap_or_else(|| "none of the registry's signing keys made it".to_owned()))
}

/// Verifies the signature with one key; `None` if the key did not make it.
fn check_key(
    key: &SignedPublicKey,
    signature: &DetachedSignature,
    content: &[u8],
    now: Timestamp,
) -> Option<Result<Signer, String>> {
    let primary = &key.primary_key;
    let own = key.details.direct_signatures.iter();
    let own: Vec<&Signature> = own.chain(key.details.users.iter().flat_map(|user| &user.signatures)).collect();
    let signed = |key: &dyn KeyDetails, expired| Signer { key: key.legacy_key_id().to_string(), expired };
    let primary_expired = expired(primary, &own, now);
    let signer = if is_signed_by(primary, signature, content) {
        signed(primary, primary_expired)
    } else {
        let makes = |subkey: &&pgp::composed::SignedPublicSubKey| {
            // A subkey is valid only if the primary key and the subkey have signed the binding.
            subkey.verify_bindings(primary).is_ok() && is_signed_by(&subkey.key, signature, content)
        };
        let subkey = key.public_subkeys.iter().find(makes)?;
        let bindings: Vec<&Signature> = subkey.signatures.iter().collect();
        signed(&subkey.key, primary_expired || expired(&subkey.key, &bindings, now))
    };
    let revoked = key.details.revocation_signatures.iter().any(|revoked| revoked.verify_key(primary).is_ok());
    Some(if revoked { Err(format!("the key {} was revoked", signer.key)) } else { Ok(signer) })
}

fn is_signed_by(key: &impl VerifyingKey, signature: &DetachedSignature, content: &[u8]) -> bool {
    signature.verify(key, content).is_ok()
}

/// Whether a key has expired according to the newest of its signatures.
fn expired(key: &impl KeyDetails, signatures: &[&Signature], now: Timestamp) -> bool {
    let newest = signatures.iter().max_by_key(|signature| signature.created());
    let lives = newest.and_then(|signature| signature.key_expiration_time()).map_or(0, Duration::as_secs);
    // Zero means that the key does not expire.
    lives > 0 && i64::from(key.created_at().as_secs()) + i64::from(lives) <= now.as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortly after the keys in `tests/support/keys` were created.
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
    fn signatures_of_gnupg_are_verified() {
        let list = file("list");
        assert_eq!(verified(&list, "list.rsa.sig", &["revoked.asc", "rsa.asc"]), Ok(false), "a subkey, not armored");
        assert_eq!(verified(&list, "list.valid.sig.asc", &["valid.asc"]), Ok(false), "a primary key, armored");
        assert_eq!(verified(&list, "list.expired.sig", &["expired.asc"]), Ok(true), "its key has expired");
    }

    #[test]
    fn foreign_and_invalid_signatures_are_rejected() {
        let list = file("list");
        let stranger = "none of the registry's signing keys made it";
        assert_eq!(verified(b"abd  file.zip\n", "list.rsa.sig", &["rsa.asc"]).unwrap_err(), stranger);
        assert_eq!(verified(&list, "list.rsa.sig", &["valid.asc", "expired.asc"]).unwrap_err(), stranger);
        assert_eq!(verified(&list, "list.rsa.sig", &[]).unwrap_err(), "the registry provides no signing key");
        let revoked = verified(&list, "list.revoked.sig", &["revoked.asc"]).unwrap_err();
        assert!(revoked.ends_with("was revoked"), "{revoked}");
        let unreadable = verified(&list, "list", &["rsa.asc"]).unwrap_err();
        assert!(unreadable.starts_with("it cannot be parsed: "), "{unreadable}");
        let no_key = verified(&list, "list.rsa.sig", &["list"]).unwrap_err();
        assert!(no_key.starts_with("a signing key cannot be parsed: "), "{no_key}");
    }
}
