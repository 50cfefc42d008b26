//! Encodings of go-cty, malicious encodings, and random input.

use proptest::prelude::*;

use super::{decode, encode};
use crate::tests::typed_value;
use crate::{Number, Type, Value};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn number(text: &str) -> Value {
    Value::number(Number::parse(text).unwrap())
}

#[test]
fn go_cty_gives_the_same_bytes() {
    for (ty, value, expected) in [
        (Type::Number, number("0.1"), "a3302e31"),
        (Type::Number, number("0.5"), "cb3fe0000000000000"),
        (Type::Number, number("9223372036854775807"), "cf7fffffffffffffff"),
        (Type::Number, number("9223372036854775808"), "b339323233333732303336383534373735383038"),
        (Type::Number, (-5).into(), "fb"),
        (Type::Number, 300.into(), "cd012c"),
        (Type::Dynamic, "a".into(), "92c40822737472696e6722a161"),
        (Type::Dynamic, Value::null(Type::String), "92c40822737472696e6722c0"),
        (Type::Dynamic, Value::unknown(Type::String), "92c40822737472696e6722d40000"),
        (Type::Dynamic, Value::DYNAMIC, "d40000"),
        (Type::Dynamic, Value::NULL, "c0"),
    ] {
        assert_eq!(hex(&encode(&value, &ty).unwrap()), expected);
        assert_eq!(decode(&unhex(expected), &ty).unwrap(), value);
    }
}

fn admits(unknown: &Value, value: &Value) -> bool {
    !unknown.range().excludes(unknown.ty(), value)
}

#[test]
fn refinements_are_decoded_and_not_encoded() {
    for (bytes, admitted, refused) in [
        ("c7030c8101c2", Value::from("x"), Value::null(Type::String)),
        ("d70c8201c202a361622d", "ab-1".into(), "x".into()),
        ("c7060c8201c209a178", "x".into(), Value::null(Type::String)),
    ] {
        let unknown = decode(&unhex(bytes), &Type::String).unwrap();
        assert!(!unknown.is_known() && admits(&unknown, &admitted) && !admits(&unknown, &refused), "{bytes}");
    }
    let between = decode(&unhex("c7090c82039201c304920ac2"), &Type::Number).unwrap();
    assert!(admits(&between, &1.into()) && !admits(&between, &0.into()) && !admits(&between, &10.into()));
    assert_eq!(hex(&encode(&between, &Type::Number).unwrap()), "d40000");
    let two = decode(&unhex("c7070c8301c205020602"), &Type::list(Type::Bool)).unwrap();
    let list = |length: usize| Value::list(Type::Bool, vec![Value::TRUE; length]);
    assert!(!two.is_known() && admits(&two, &list(2)) && !admits(&two, &list(0)) && !admits(&two, &list(3)));
    assert_eq!(two.unrefined(), Value::unknown(Type::list(Type::Bool)));
}

#[test]
fn every_width_of_numbers_is_read() {
    for (bytes, expected) in [
        ("d0fb", "-5"),
        ("d1fffb", "-5"),
        ("d2fffffffb", "-5"),
        ("d3fffffffffffffffb", "-5"),
        ("cc05", "5"),
        ("cd0005", "5"),
        ("ce00000005", "5"),
        ("cfffffffffffffffff", "18446744073709551615"),
        ("ca3f000000", "0.5"),
        ("cb3fb999999999999a", "0.1"),
        ("a3316533", "1000"),
        ("cb442231297a6e0b09", "167791945260862830000"),
    ] {
        assert_eq!(decode(&unhex(bytes), &Type::Number).unwrap(), number(expected), "{bytes}");
    }
}

#[test]
fn a_float_is_encoded_as_a_float() {
    let float = decode(&unhex("cb3fb999999999999a"), &Type::Number).unwrap();
    assert_eq!(hex(&encode(&float, &Type::Number).unwrap()), "cb3fb999999999999a");
}

#[test]
fn errors_contain_the_path() {
    let rule = Type::object([("port", Type::Number), ("proto", Type::String)]);
    let ty = Type::object([("rule", Type::list(rule)), ("tags", Type::map(Type::String))]);
    for (bytes, expected) in [
        ("", "the encoding ends in the middle of a value"),
        ("90", "an object is required"),
        ("81a472756c65c0", "tags: the attribute is missing"),
        ("82a472756c6591 82a4706f7274c3 a570726f746fa0 a474616773c0", "rule[0].port: a number is required"),
        ("82a472756c65c0 a474616773 81a16bc2", "tags.k: a string is required"),
        ("82a472756c65c0 a474616773 8101c2", "tags: the keys of a map must be strings"),
        ("82a472756c65c0 a178c0", "x: the schema has no such attribute"),
        ("82a472756c65ddffffffff", "rule[0]: the encoding ends in the middle of a value"),
    ] {
        let error = decode(&unhex(&bytes.replace(' ', "")), &ty).unwrap_err();
        assert_eq!(error.to_string(), expected, "{bytes}");
    }
    let wrong = Value::object([("rule", Value::list(Type::Bool, [true.into()])), ("tags", Value::NULL)]);
    assert_eq!(encode(&wrong, &ty).unwrap_err().to_string(), "rule[0]: expected object, found a bool");
    assert!(decode(&unhex("cb7ff8000000000000"), &Type::Number).is_err(), "not a number");
}

#[test]
fn excessive_depth_and_length_are_rejected() {
    let deep = format!("92c409{}", hex(b"\"dynamic\"")).repeat(10_000);
    assert!(decode(&unhex(&deep), &Type::Dynamic).unwrap_err().message.contains("too deep"));
    assert!(decode(&unhex("dd7fffffff"), &Type::list(Type::Bool)).is_err());
    let mut many = unhex("dd00400000");
    many.resize(5_000_000, 0xc0);
    assert!(decode(&many, &Type::list(Type::Bool)).unwrap_err().message.contains("too many"));
    let refinement = unhex("c804010c");
    assert!(decode(&[refinement, vec![0; 1025]].concat(), &Type::String).is_err());
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(decode(b"\xa2a\xff", &Type::String).unwrap(), "a\u{fffd}".into());
}

proptest! {
    #[test]
    fn encoding_round_trips((ty, value) in typed_value()) {
        let bytes = encode(&value, &ty).unwrap();
        prop_assert_eq!(&decode(&bytes, &ty).unwrap(), &value);
        for cut in 0..bytes.len() {
            prop_assert!(decode(&bytes[..cut], &ty).is_err());
        }
    }

    #[test]
    fn corrupt_encodings_do_not_panic((ty, value) in typed_value(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = encode(&value, &ty).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = decode(&bytes, &ty) {
            prop_assert_eq!(decode(&encode(&value, &ty).unwrap(), &ty).unwrap(), value);
        }
    }

    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, (ty, _) in typed_value()) {
        let _ = decode(&bytes, &ty);
    }
}
