//! Digests, passwords and identifiers.

use md5::Md5;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::{Pkcs1v15Encrypt, RsaPrivateKey};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use uuid::Uuid;

use super::call::Call;
use super::encodings::{base64, to_base64};
use super::parameter::{number, string};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] = &[
    function("base64sha256", |call| Ok(Value::string(&to_base64(&Sha256::digest(call.text(0))))))
        .takes(&[string("str")])
        .gives(Accepts::String)
        .says(
            "The SHA-256 digest of a text, in Base64.",
            "base64sha256(\"hello\")",
            "\"LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=\"",
        ),
    function("base64sha512", |call| Ok(Value::string(&to_base64(&Sha512::digest(call.text(0))))))
        .takes(&[string("str")])
        .gives(Accepts::String)
        .says("The SHA-512 digest of a text, in Base64.", "substr(base64sha512(\"hello\"), 0, 8)", "\"m3HSJL1i\""),
    function("bcrypt", bcrypt).takes(&[string("str")]).and_any(number("cost")).gives(Accepts::String).says(
        "A password hashed with bcrypt, with another salt each time; unknown while planning.",
        "length(bcrypt(\"secret\"))",
        "60",
    ),
    function("md5", |call| Ok(Value::string(&hex(&Md5::digest(call.text(0))))))
        .takes(&[string("str")])
        .gives(Accepts::String)
        .says("The MD5 digest of a text.", "md5(\"hello\")", "\"5d41402abc4b2a76b9719d911017c592\""),
    function("rsadecrypt", rsadecrypt)
        .takes(&[string("ciphertext"), string("privatekey")])
        .gives(Accepts::String)
        .says("The text of an RSA ciphertext in Base64, with PKCS #1 v1.5 padding and a private key in PEM.", "", ""),
    function("sha1", |call| Ok(Value::string(&hex(&Sha1::digest(call.text(0))))))
        .takes(&[string("str")])
        .gives(Accepts::String)
        .says("The SHA-1 digest of a text.", "sha1(\"hello\")", "\"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\""),
    function("sha256", |call| Ok(Value::string(&hex(&Sha256::digest(call.text(0))))))
        .takes(&[string("str")])
        .gives(Accepts::String)
        .says(
            "The SHA-256 digest of a text.",
            "sha256(\"hello\")",
            "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"",
        ),
    function("sha512", |call| Ok(Value::string(&hex(&Sha512::digest(call.text(0))))))
        .takes(&[string("str")])
        .gives(Accepts::String)
        .says("The SHA-512 digest of a text.", "substr(sha512(\"hello\"), 0, 8)", "\"9b71d224\""),
    function("uuid", uuid).gives(Accepts::String).says(
        "A new UUID each time; unknown while planning.",
        "length(uuid())",
        "36",
    ),
    function("uuidv5", uuidv5).takes(&[string("namespace"), string("name")]).gives(Accepts::String).says(
        "The UUID of a name in a namespace: `dns`, `url`, `oid`, `x500` or a UUID.",
        "uuidv5(\"dns\", \"www.example.com\")",
        "\"2ed6657d-e927-568b-95e1-2665a8aea6a2\"",
    ),
];

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |out, byte| out + &format!("{byte:02x}"))
}

fn bcrypt(call: &Call<'_>) -> Result<Value, Failure> {
    let cost = match call.arguments.len() {
        1 => 10,
        2 => call.whole(1)?,
        _ => return Err(Failure::new("bcrypt takes one or two arguments")),
    };
    // A cost below the least means the default one.
    let cost = if cost < 4 { 10 } else { cost };
    let cost = u32::try_from(cost).ok().filter(|cost| *cost <= 31);
    let cost = cost.ok_or_else(|| Failure::of(1, "the cost must be at most 31"))?;
    if call.text(0).len() > 72 {
        return Err(Failure::of(0, "the password must not be longer than 72 bytes"));
    }
    let Some(effects) = call.scope.effects else { return Ok(Value::unknown(Type::String)) };
    // About fifty microseconds for each round of a cost.
    call.scope.budget.step(50 << cost)?;
    let parts = ::bcrypt::hash_with_salt(call.text(0), cost, effects.salt());
    let parts = parts.map_err(|error| Failure::new(error.to_string()))?;
    Ok(Value::string(&parts.format_for_version(::bcrypt::Version::TwoA)))
}

fn uuid(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(match call.scope.effects {
        Some(effects) => Value::string(&effects.uuid()),
        None => Value::unknown(Type::String),
    })
}

fn uuidv5(call: &Call<'_>) -> Result<Value, Failure> {
    let namespace = match call.text(0) {
        "dns" => Uuid::NAMESPACE_DNS,
        "url" => Uuid::NAMESPACE_URL,
        "oid" => Uuid::NAMESPACE_OID,
        "x500" => Uuid::NAMESPACE_X500,
        other => {
            Uuid::parse_str(other).map_err(|_| Failure::of(0, "the namespace must be dns, url, oid, x500 or a UUID"))?
        }
    };
    Ok(Value::string(&Uuid::new_v5(&namespace, call.text(1).as_bytes()).to_string()))
}

fn rsadecrypt(call: &Call<'_>) -> Result<Value, Failure> {
    let ciphertext = base64(call.text(0)).ok_or_else(|| Failure::of(0, "the ciphertext is not valid Base64"))?;
    let key = RsaPrivateKey::from_pkcs1_pem(call.text(1))
        .ok()
        .or_else(|| RsaPrivateKey::from_pkcs8_pem(call.text(1)).ok())
        .ok_or_else(|| Failure::of(1, "the private key is not an RSA key in PEM"))?;
    call.scope.budget.step(10_000)?;
    let text = key.decrypt(Pkcs1v15Encrypt, &ciphertext);
    let text = text.map_err(|_| Failure::new("the ciphertext does not belong to this key"))?;
    Ok(Value::string(&String::from_utf8_lossy(&text)))
}
