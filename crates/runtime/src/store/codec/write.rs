//! Encodes the body of a record: fields in a fixed order, numbers as LEB128, strings and bytes with their length.
//! `read` is the inverse; a change here needs a change there and of the format number, as `super` describes.

use serde::Serialize;

use super::{CodecError, MAX_DEPTH};
use model::{
    Address, Cause, ChangeKind, ChangeOutcome, ConfigDigest, DataKind, HistoryEntry, Holder, HookKind, ImportRequest,
    InstanceKey, Intent, Number, ObjectStatus, OnFailure, Operation, PlannedObject, PodRunner, Provider, ProviderUse,
    PublishedCopy, Readiness, Record, RecordedHook, RecordedObject, Resolution, Revision, Triggers, Value,
};

type EncodeResult = Result<(), CodecError>;

pub(super) fn record(out: &mut Vec<u8>, record: &Record) -> EncodeResult {
    text(out, &record.namespace);
    address(out, &record.address);
    text(out, &record.uid);
    text(out, &record.type_name);
    unsigned(
        out,
        many_flags([
            record.current.is_some(),
            record.intent.is_some(),
            record.replacement_pending,
            !record.published.is_empty(),
            record.moving_to.is_some(),
            !record.moved_from.is_empty(),
            !record.history.entries().is_empty(),
            record.approved_object.is_some(),
            !record.handled_import.is_empty(),
        ]),
    );
    unsigned(out, record.epoch);
    unsigned(out, record.failed_creates.into());
    unsigned(out, record.failed_generation.unsigned_abs());
    text(out, &record.handled_replace_request);
    if !record.handled_import.is_empty() {
        text(out, &record.handled_import);
    }
    if let Some(current) = &record.current {
        object(out, current)?;
    }
    unsigned(out, record.deposed.len() as u64);
    for (key, deposed) in &record.deposed {
        out.extend_from_slice(&key.0.to_le_bytes());
        object(out, deposed)?;
    }
    if !record.published.is_empty() {
        unsigned(out, record.published.len() as u64);
    }
    for copy in &record.published {
        published(out, copy)?;
    }
    record.intent.as_ref().map_or(Ok(()), |open| intent(out, open))?;
    if let Some(to) = &record.moving_to {
        address(out, to);
    }
    if !record.moved_from.is_empty() {
        unsigned(out, record.moved_from.len() as u64);
    }
    record.moved_from.iter().for_each(|from| address(out, from));
    let history = record.history.entries();
    if !history.is_empty() {
        unsigned(out, history.len() as u64);
    }
    history.iter().for_each(|entry| history_entry(out, entry));
    if let Some(approved) = &record.approved_object {
        let json = serde_json::to_string(approved);
        text(out, &json.map_err(|_| CodecError::Damaged("an approval cannot be encoded as JSON"))?);
    }
    Ok(())
}

fn history_entry(out: &mut Vec<u8>, entry: &HistoryEntry) {
    out.push(match entry.kind {
        ChangeKind::Create => 0,
        ChangeKind::Update => 1,
        ChangeKind::Destroy => 2,
        ChangeKind::Forget => 3,
        ChangeKind::Import => 4,
        ChangeKind::Hooks => 5,
    });
    let is_repeated = entry.count > 1 || entry.first != entry.began;
    out.push(flags([entry.deposed.is_some(), is_repeated]));
    cause(out, &entry.cause);
    signed(out, entry.began.as_millisecond());
    unsigned(out, entry.milliseconds);
    text(out, &entry.operation_id);
    if let Some(key) = entry.deposed {
        out.extend_from_slice(&key.0.to_le_bytes());
    }
    if is_repeated {
        signed(out, entry.first.as_millisecond());
        unsigned(out, entry.count.into());
    }
    match &entry.outcome {
        ChangeOutcome::Succeeded => out.push(0),
        ChangeOutcome::NotReady => out.push(1),
        ChangeOutcome::Failed(error) => {
            out.push(2);
            text(out, error);
        }
        ChangeOutcome::Recovered(resolution) => out.push(match resolution {
            Resolution::Effective => 3,
            Resolution::NoEffect => 4,
            Resolution::Read => 5,
            Resolution::Hooks => 6,
        }),
    }
}

fn cause(out: &mut Vec<u8>, cause: &Cause) {
    out.push(flags([cause.replaces, !cause.approved_by.is_empty(), !cause.approval.is_empty()]));
    text(out, &cause.because);
    unsigned(out, cause.attributes.len() as u64);
    cause.attributes.iter().for_each(|path| text(out, path));
    unsigned(out, cause.more_attributes.into());
    signed(out, cause.generation);
    if !cause.approved_by.is_empty() {
        text(out, &cause.approved_by);
    }
    if !cause.approval.is_empty() {
        text(out, &cause.approval);
    }
}

fn published(out: &mut Vec<u8>, copy: &PublishedCopy) -> EncodeResult {
    out.push(match copy.target.kind {
        DataKind::ConfigMap => 0,
        DataKind::Secret => 1,
    });
    text(out, &copy.target.name);
    text(out, &copy.uid);
    text(out, &copy.owner);
    text(out, &copy.service_account);
    value(out, &copy.data, 0)
}

fn object(out: &mut Vec<u8>, object: &RecordedObject) -> EncodeResult {
    out.push(flags([
        object.identity.is_some(),
        object.create_before_destroy,
        object.prevent_destroy,
        object.skip_destroy,
        object.awaits_postconditions,
        // Absent in records of older formats, like all fields below that have a flag.
        object.revision != Revision::default(),
        object.triggers.is_some(),
        has_more(object),
    ]));
    out.push(match object.status {
        ObjectStatus::Ready => 0,
        ObjectStatus::Tainted => 1,
        ObjectStatus::Interrupted => 2,
    });
    value(out, &object.value, 0)?;
    if let Some(identity) = &object.identity {
        value(out, identity, 0)?;
    }
    bytes(out, &object.private);
    unsigned(out, object.schema_version);
    unsigned(out, object.dependencies.len() as u64);
    for dependency in object.dependencies.iter() {
        address(out, dependency);
    }
    text(out, &object.provider_config);
    text(out, &object.service_account);
    if object.revision != Revision::default() {
        unsigned(out, object.revision.epoch);
        out.extend_from_slice(&object.revision.operation.to_le_bytes());
    }
    if let Some(recorded) = &object.triggers {
        triggers(out, recorded);
    }
    if has_more(object) {
        out.push(flags([
            object.hooks_pending,
            object.provider.is_some(),
            object.matching_config.is_some(),
            object.readiness.is_some(),
        ]));
        unsigned(out, object.hooks.len() as u64);
        object.hooks.iter().try_for_each(|written| hook(out, written))?;
    }
    if let Some(ConfigDigest(digest)) = &object.matching_config {
        out.extend_from_slice(digest);
    }
    if let Some(mark) = &object.readiness {
        readiness(out, mark);
    }
    object.provider.as_ref().map_or(Ok(()), |used| provider(out, used))
}

fn readiness(out: &mut Vec<u8>, readiness: &Readiness) {
    out.push(flags([readiness.is_new, readiness.deposed.is_some()]));
    timestamp(out, readiness.until);
    if let Some(key) = readiness.deposed {
        out.extend_from_slice(&key.0.to_le_bytes());
    }
}

/// Whether a second byte of flags follows, with the fields that it covers.
fn has_more(object: &RecordedObject) -> bool {
    object.hooks_pending
        || !object.hooks.is_empty()
        || object.provider.is_some()
        || object.matching_config.is_some()
        || object.readiness.is_some()
}

/// A provider with its runner. Versions without runners ignore the field.
#[derive(Serialize)]
struct ProviderWithRunner<'a> {
    #[serde(flatten)]
    provider: &'a Provider,
    runner: &'a PodRunner,
}

/// The provider is written as JSON, because other versions may add fields.
fn provider(out: &mut Vec<u8>, used: &ProviderUse) -> EncodeResult {
    text(out, &used.name);
    let json = match &used.runner {
        None => serde_json::to_string(&*used.provider),
        Some(runner) => serde_json::to_string(&ProviderWithRunner { provider: &used.provider, runner }),
    };
    text(out, &json.map_err(|_| CodecError::Damaged("a provider cannot be encoded as JSON"))?);
    value(out, &used.configuration, 0)
}

fn triggers(out: &mut Vec<u8>, triggers: &Triggers) {
    out.extend_from_slice(&triggers.salt.to_le_bytes());
    unsigned(out, triggers.entries.len() as u64);
    for entry in &triggers.entries {
        text(out, &entry.entry);
        unsigned(out, entry.targets.len() as u64);
        for (target, fingerprint) in &entry.targets {
            address(out, target);
            out.extend_from_slice(&fingerprint.to_le_bytes());
        }
    }
}

fn hook(out: &mut Vec<u8>, hook: &RecordedHook) -> EncodeResult {
    text(out, &hook.name);
    out.push(flags([hook.kind == HookKind::Job, hook.on_failure == OnFailure::Continue]));
    value(out, &hook.definition, 0)
}

fn intent(out: &mut Vec<u8>, intent: &Intent) -> EncodeResult {
    out.push(match intent.operation {
        Operation::Create => 0,
        Operation::Update => 1,
        Operation::Record => 2,
        Operation::Destroy => 3,
        Operation::Forget => 4,
        Operation::Read => 5,
        Operation::Wait => 6,
    });
    let has_cause = intent.cause != Cause::default();
    out.push(flags([intent.deposed.is_some(), intent.planned.is_some(), intent.import.is_some(), has_cause]));
    text(out, &intent.operation_id);
    holder(out, &intent.holder);
    unsigned(out, intent.epoch);
    timestamp(out, intent.started);
    timestamp(out, intent.deadline);
    if let Some(key) = intent.deposed {
        out.extend_from_slice(&key.0.to_le_bytes());
    }
    intent.planned.as_ref().map_or(Ok(()), |planned| planned_object(out, planned))?;
    intent.import.as_ref().map_or(Ok(()), |import| import_request(out, import))?;
    if has_cause {
        cause(out, &intent.cause);
    }
    Ok(())
}

fn import_request(out: &mut Vec<u8>, import: &ImportRequest) -> EncodeResult {
    match import {
        ImportRequest::Id(id) => {
            out.push(0);
            text(out, id);
            Ok(())
        }
        ImportRequest::Identity(identity) => {
            out.push(1);
            value(out, identity, 0)
        }
    }
}

fn planned_object(out: &mut Vec<u8>, planned: &PlannedObject) -> EncodeResult {
    value(out, &planned.config, 0)?;
    value(out, &planned.planned, 0)?;
    bytes(out, &planned.private);
    object(out, &planned.recorded)
}

fn holder(out: &mut Vec<u8>, holder: &Holder) {
    text(out, &holder.pod);
    text(out, &holder.process);
}

pub(super) fn value(out: &mut Vec<u8>, value: &Value, depth: usize) -> EncodeResult {
    if depth > MAX_DEPTH {
        return Err(CodecError::TooDeep);
    }
    match value {
        Value::Null => out.push(0),
        Value::Unknown => out.push(1),
        Value::Bool(false) => out.push(2),
        Value::Bool(true) => out.push(3),
        Value::Number(number) => self::number(out, number),
        Value::String(string) => {
            out.push(7);
            text(out, string);
        }
        Value::List(items) => {
            out.push(8);
            unsigned(out, items.len() as u64);
            for item in items.iter() {
                self::value(out, item, depth + 1)?;
            }
        }
        Value::Map(map) => {
            out.push(9);
            unsigned(out, map.len() as u64);
            for (key, item) in map.iter() {
                text(out, key);
                self::value(out, item, depth + 1)?;
            }
        }
        Value::Sensitive(inner) => {
            out.push(10);
            self::value(out, inner, depth + 1)?;
        }
    }
    Ok(())
}

fn number(out: &mut Vec<u8>, number: &Number) {
    match number {
        Number::Int(int) => {
            out.push(4);
            signed(out, *int);
        }
        Number::Float(float) => {
            out.push(5);
            out.extend_from_slice(&float.to_bits().to_le_bytes());
        }
        Number::Decimal(digits) => {
            out.push(6);
            text(out, digits);
        }
    }
}

fn address(out: &mut Vec<u8>, address: &Address) {
    text(out, &address.name);
    match &address.key {
        InstanceKey::None => out.push(0),
        InstanceKey::Index(index) => {
            out.push(1);
            unsigned(out, *index);
        }
        InstanceKey::Key(key) => {
            out.push(2);
            text(out, key);
        }
        InstanceKey::All => out.push(3),
    }
}

/// Seconds and nanoseconds, which have the same sign, so the pair is exact.
fn timestamp(out: &mut Vec<u8>, at: jiff::Timestamp) {
    signed(out, at.as_second());
    signed(out, at.subsec_nanosecond().into());
}

fn text(out: &mut Vec<u8>, text: &str) {
    bytes(out, text.as_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[expect(clippy::cast_sign_loss, reason = "zigzag: the sign moves to the lowest bit")]
fn signed(out: &mut Vec<u8>, number: i64) {
    unsigned(out, ((number << 1) ^ (number >> 63)) as u64);
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn unsigned(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// More than eight flags, as a number.
fn many_flags<const N: usize>(set: [bool; N]) -> u64 {
    set.iter().enumerate().fold(0, |flags, (bit, set)| flags | (u64::from(*set) << bit))
}

fn flags<const N: usize>(set: [bool; N]) -> u8 {
    set.iter().enumerate().fold(0, |flags, (bit, set)| flags | (u8::from(*set) << bit))
}
