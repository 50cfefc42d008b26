use expect_test::expect;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;
use model::Value;
use testkit::records::{record, typical};

fn read(bytes: &[u8]) -> Result<Record, CodecError> {
    decode(bytes, &mut Interner::default())
}

proptest! {
    #[test]
    fn a_decoded_record_equals_the_encoded_one(record in record()) {
        let bytes = encode(&record).unwrap();
        prop_assert_eq!(&read(&bytes).unwrap(), &record);
        prop_assert_eq!(encode(&record).unwrap(), bytes);
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic(record in record(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = encode(&record).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(read(&bytes).is_err());
        prop_assert!(read(&bytes[..at]).is_err());
    }

    #[test]
    fn a_body_that_no_checksum_protects_never_causes_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = super::read::<Record>(&body, &mut Interner::default());
    }

    /// Lengths and kinds of fields are damaged as well, and some bodies become those of other records.
    #[test]
    fn a_damaged_body_that_no_checksum_protects_never_causes_a_panic(
        record in record(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut body = encode_content(&record).unwrap();
        for (at, byte) in damages {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if let Ok(other) = super::read::<Record>(&body, &mut Interner::default()) {
            let again = encode_content(&other).unwrap();
            prop_assert_eq!(decode_content::<Record>(&again).unwrap(), other);
        }
    }
}

/// So a field can be added with one line: records that were written before have no such field.
#[test]
fn a_missing_field_has_its_default_and_an_unknown_field_is_refused() {
    #[derive(serde::Serialize)]
    struct Written {
        n: &'static str,
        a: model::Address,
        t: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        later: Option<u8>,
    }
    let written =
        |later| encode_content(&Written { n: "shop", a: model::Address::single("web"), t: "t", later }).unwrap();
    let expected = Record::empty("shop".into(), model::Address::single("web"), "".into(), "t".into());
    assert_eq!(decode_content::<Record>(&written(None)).unwrap(), expected);
    assert!(matches!(decode_content::<Record>(&written(Some(1))), Err(CodecError::Damaged(_))));
}

/// A body of a few bytes that announces a list, a map, a string or bytes of four billion items.
#[test]
fn a_damaged_length_reserves_no_memory() {
    for marker in [0xdd, 0xdf, 0xdb, 0xc6] {
        assert!(decode_content::<Value>(&[marker, 0xff, 0xff, 0xff, 0xff, 0xc0]).is_err());
        let hooks = [&[0x81, 0xa1, b'h', marker][..], &[0xff; 4]].concat();
        assert!(decode_content::<model::RecordedObject>(&hooks).is_err());
    }
    let mut bytes = [&[FORMAT, COMPRESSED, 0, 0, 0, 0][..], &[0xff; 4], &compress(&[0; 600]).unwrap()[4..]].concat();
    let checksum = checksum(&bytes);
    bytes[2..HEADER].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(read(&bytes), Err(CodecError::Damaged("it cannot be decompressed")));
}

/// The format is stable: when this fails, keep reading what was written before, and raise `FORMAT`.
#[test]
fn the_format_does_not_change_by_accident() {
    let bytes = encode(&typical(10)).unwrap();
    let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let lines: Vec<_> = hex.as_bytes().chunks(100).map(|line| std::str::from_utf8(line).unwrap()).collect();
    expect![[r#"
        01007f267a5386a16ea473686f70a16192ab7265736f757263652d3130a16ea175d92432663163376136342d393362352d34
        6338612d386431652d623061366634623163396432a174ae7465727261666f726d5f64617461a16384a17684a26964d92430
        643565326633362d356630622d346636352d613061372d356132663664366237633130a5696e707574d93431302d7468652d
        696e7075742d6f662d746869732d6f6e652d616e642d6f662d74776f2d6f74686572732d6265666f72652d6974a66f757470
        7574d93431302d7468652d696e7075742d6f662d746869732d6f6e652d616e642d6f662d74776f2d6f74686572732d626566
        6f72652d6974b074726967676572735f7265706c616365c0a1649292aa7265736f757263652d35a16e92aa7265736f757263
        652d33a16ea26362c3a27361a764656661756c74a16501"#]]
    .assert_eq(&lines.join("\n"));
}

/// The typical record has no newer fields. When this fails, a body can hold something new: raise `FORMAT`, so that
/// older programs report that they are too old, and update the sum (`UPDATE_EXPECT=1`).
#[test]
fn the_fields_of_a_body_do_not_change_by_accident() {
    let mut runner = TestRunner::deterministic();
    let mut sum = crc32fast::Hasher::new();
    for _ in 0..200 {
        let mut body = Vec::new();
        super::write(&mut body, &record().new_tree(&mut runner).unwrap().current()).unwrap();
        sum.update(&body);
    }
    expect!["format 1: e118048c"].assert_eq(&format!("format {FORMAT}: {:08x}", sum.finalize()));
}

#[test]
fn a_newer_format_is_rejected() {
    let mut bytes = encode(&typical(1)).unwrap();
    bytes[0] = FORMAT + 1;
    expect!["a newer version of Purlin wrote it (format 2; this version reads formats up to 1) (hint: use the version that wrote it, or a later one)"]
        .assert_eq(&read(&bytes).unwrap_err().to_string());
}

#[test]
fn damage_is_reported_on_one_line() {
    let mut bytes = encode(&typical(1)).unwrap();
    bytes[40] ^= 1;
    // The first byte of a text is no newer format.
    for damaged in [bytes.as_slice(), b"garbage"] {
        expect!["it is damaged: its checksum does not match (hint: restore it from a backup)"]
            .assert_eq(&read(damaged).unwrap_err().to_string());
    }
}

#[test]
fn encoding_rejects_a_value_nested_too_deeply() {
    let deep = |levels| (0..levels).fold(Value::Null, |inner, _| Value::list([inner]));
    let with = |value| {
        let mut record = typical(1);
        std::sync::Arc::make_mut(record.current.as_mut().unwrap()).value = value;
        encode(&record)
    };
    assert!(with(deep(MAX_DEPTH)).is_ok_and(|bytes| read(&bytes).is_ok()));
    assert_eq!(with(deep(MAX_DEPTH + 1)), Err(CodecError::TooDeep));
}

#[test]
fn large_records_are_compressed() {
    let mut record = typical(1);
    let text = "the same again and again ".repeat(1000);
    std::sync::Arc::make_mut(record.current.as_mut().unwrap()).value = Value::map([("text", text.as_str().into())]);
    let bytes = encode(&record).unwrap();
    assert!(bytes.len() < 500, "{}", bytes.len());
    assert_eq!(read(&bytes).unwrap(), record);
}

/// A typical history makes a typical record a third larger. Its upper bound holds for the bytes of the format.
#[test]
fn a_history_has_few_bytes() {
    use model::{Cause, ChangeKind, ChangeOutcome, HistoryEntry, history};
    let bodies = |record: &Record| {
        let mut body = Vec::new();
        super::write(&mut body, record).unwrap();
        body.len()
    };
    let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let added = |record: &mut Record, kind, because: &str, outcome| {
        let paths = ["input", "output"].map(|name| model::Path::of(&[name]));
        let entry = HistoryEntry::new(kind, Cause::new(Some(because), &paths, 3, false), now, now, outcome);
        record.history.add(entry.of_operation("2f1c7a64-93b5-4c8a-8d1e-b0a6f4b1c9d2"));
    };
    let mut record = typical(1);
    let without = bodies(&record);
    added(&mut record, ChangeKind::Update, "its spec changed", ChangeOutcome::Succeeded);
    let one = bodies(&record) - without;
    assert!((60..140).contains(&one), "{one} bytes for one change of {without} bytes");
    for n in 0..20u8 {
        let error = format!("{} {}", char::from(b'a' + n), "ü".repeat(500));
        added(&mut record, ChangeKind::Update, &"why ".repeat(100), ChangeOutcome::failed(&error));
    }
    assert!(bodies(&record) - without <= history::MAX_BYTES);
}
