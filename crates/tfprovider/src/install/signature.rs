//! Verifies detached OpenPGP signatures of lists of checksums.

use jiff::Timestamp;
use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::packet::{PublicKey, Signature, SignatureType};
use pgp::types::{Duration, KeyDetails, Tag, VerifyingKey};
use serde::Deserialize;

/// A signing key in the response of a registry.
#[derive(Clone, Debug, Deserialize)]
pub struct Key {
    pub ascii_armor: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The key id.
    pub key: String,
    /// The key has expired since.
    pub expired: bool,
}

/// Verifies a signature, armored or binary, and returns the key that made it.
///
/// # Errors
/// The reason, if none of the keys made the signature or the key was revoked.
pub fn verify(content: &[u8], signature: &[u8], keys: &[Key], now: Timestamp) -> Result<Signer, String> {
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
    let is_revoked = key.details.revocation_signatures.iter().any(|revoked| revoked.verify_key(primary).is_ok());
    let has_expired = expired(primary, &self_signatures(key), now);
    if is_signed_by(primary, signature, content) {
        return Some(signer(primary, is_revoked, has_expired));
    }
    key.public_subkeys.iter().filter(|subkey| is_signed_by(&subkey.key, signature, content)).find_map(|subkey| {
        let bindings = bindings(subkey, primary);
        let is_revoked = is_revoked
            || subkey.signatures.iter().any(|signature| {
                signature.typ() == Some(SignatureType::SubkeyRevocation) && is_bound(signature, subkey, primary)
            });
        let has_expired = has_expired || expired(&subkey.key, &bindings, now);
        (!bindings.is_empty()).then(|| signer(&subkey.key, is_revoked, has_expired))
    })
}

fn signer(key: &impl KeyDetails, is_revoked: bool, expired: bool) -> Result<Signer, String> {
    let signer = Signer { key: key.legacy_key_id().to_string(), expired };
    if is_revoked { Err(format!("the key {} was revoked", signer.key)) } else { Ok(signer) }
}

fn is_signed_by(key: &impl VerifyingKey, signature: &DetachedSignature, content: &[u8]) -> bool {
    signature.verify(key, content).is_ok()
}

/// What the key says about itself. Certifications by others say nothing about its expiry.
fn self_signatures(key: &SignedPublicKey) -> Vec<&Signature> {
    let primary = &key.primary_key;
    let direct = key.details.direct_signatures.iter().filter(|signature| signature.verify_key(primary).is_ok());
    let of_users = key.details.users.iter().flat_map(|user| {
        user.signatures.iter().filter(|signature| {
            signature.is_certification() && signature.verify_certification(primary, Tag::UserId, &user.id).is_ok()
        })
    });
    direct.chain(of_users).collect()
}

/// The valid bindings of a subkey that may sign: the primary key has signed them, and the subkey the primary key.
fn bindings<'a>(subkey: &'a SignedPublicSubKey, primary: &PublicKey) -> Vec<&'a Signature> {
    let bindings = subkey.signatures.iter().filter(|signature| {
        signature.typ() == Some(SignatureType::SubkeyBinding)
            && signature.key_flags().sign()
            && is_bound(signature, subkey, primary)
            && signature
                .embedded_signature()
                .is_some_and(|back| back.verify_primary_key_binding(&subkey.key, primary).is_ok())
    });
    bindings.collect()
}

fn is_bound(signature: &Signature, subkey: &SignedPublicSubKey, primary: &PublicKey) -> bool {
    signature.verify_subkey_binding(primary, &subkey.key).is_ok()
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
        std::fs::read(format!("{}/../../tests/support/keys/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    fn verified(content: &[u8], signature: &str, keys: &[&str]) -> Result<bool, String> {
        let keys: Vec<Key> =
            keys.iter().map(|name| Key { ascii_armor: String::from_utf8(file(name)).unwrap() }).collect();
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
    fn a_revoked_subkey_is_rejected_and_the_other_one_is_not() {
        let list = file("list");
        let revoked = verified(&list, "list.revoked-subkey.sig", &["revoked-subkey.asc"]).unwrap_err();
        assert!(revoked.ends_with("was revoked"), "{revoked}");
        assert_eq!(verified(&list, "list.other-subkey.sig", &["revoked-subkey.asc"]), Ok(false));
    }

    #[test]
    fn a_certification_by_another_key_does_not_prolong_a_key() {
        let certified = verified(&file("list"), "list.expired.sig", &["expired-certified.asc"]);
        assert_eq!(certified, Ok(true), "the newest certification is by a stranger and has no expiry");
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
