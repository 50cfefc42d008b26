//! Decodes the body of a record, the inverse of `write`. It accepts any bytes and returns a record or an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::{CodecError, MAX_DEPTH};
use crate::store::Interner;
use model::{
    Address, ApprovedObject, Cause, ChangeKind, ChangeOutcome, ConfigDigest, DataKind, DataRef, DeposedKey, History,
    HistoryEntry, Holder, HookKind, ImportRequest, InstanceKey, Intent, Number, ObjectStatus, ObservedTrigger,
    OnFailure, Operation, PlannedObject, PodRunner, ProviderUse, PublishedCopy, Readiness, Record, RecordedHook,
    RecordedObject, Resolution, Revision, Triggers, Value,
};

type DecodeResult<T> = Result<T, CodecError>;

const ENDS_EARLY: CodecError = CodecError::Damaged("it ends too early");
const NOT_UTF8: CodecError = CodecError::Damaged("a string in it is not UTF-8");
const UNKNOWN_TAG: CodecError = CodecError::Damaged("it has an unknown tag");

pub(super) fn record(body: &[u8], strings: &mut Interner) -> DecodeResult<Record> {
    let mut reader = Reader { rest: body, strings };
    let record = reader.record()?;
    if reader.rest.is_empty() { Ok(record) } else { Err(CodecError::Damaged("it has bytes after its end")) }
}

pub(super) fn value(bytes: &[u8], strings: &mut Interner) -> DecodeResult<Value> {
    let mut reader = Reader { rest: bytes, strings };
    let value = reader.value(0)?;
    if reader.rest.is_empty() { Ok(value) } else { Err(CodecError::Damaged("it has bytes after its end")) }
}

/// The runner in the JSON of a provider.
#[derive(Deserialize)]
struct RunnerOfProvider {
    runner: Option<PodRunner>,
}

struct Reader<'a> {
    rest: &'a [u8],
    strings: &'a mut Interner,
}

impl<'a> Reader<'a> {
    fn record(&mut self) -> DecodeResult<Record> {
        let namespace = self.shared()?;
        let address = self.address()?;
        let uid = self.text()?.into();
        let type_name = self.shared()?;
        let [
            has_current,
            has_intent,
            replacement_pending,
            has_published,
            moving,
            has_moved,
            has_history,
            is_approved,
            has_import,
        ] = self.many_flags()?;
        let epoch = self.unsigned()?;
        let failed_creates = self.small()?;
        let failed_generation =
            i64::try_from(self.unsigned()?).map_err(|_| CodecError::Damaged("a number in it is too large"))?;
        let handled_replace_request = self.shared()?;
        let handled_import = if has_import { self.shared()? } else { Arc::default() };
        let current = if has_current { Some(Arc::new(self.object()?)) } else { None };
        let mut deposed = BTreeMap::new();
        for _ in 0..self.unsigned()? {
            deposed.insert(self.deposed_key()?, Arc::new(self.object()?));
        }
        let count = if has_published { self.length()? } else { 0 };
        let published = (0..count).map(|_| self.published()).collect::<DecodeResult<_>>()?;
        let intent = if has_intent { Some(Box::new(self.intent()?)) } else { None };
        let moving_to = if moving { Some(Box::new(self.address()?)) } else { None };
        let count = if has_moved { self.length()? } else { 0 };
        let came_from = (0..count).map(|_| self.address()).collect::<DecodeResult<_>>()?;
        let count = if has_history { self.length()? } else { 0 };
        let history = (0..count).map(|_| self.history_entry()).collect::<DecodeResult<Vec<_>>>()?;
        let approved_object = if is_approved { Some(Box::new(self.approved_object()?)) } else { None };
        Ok(Record {
            namespace,
            address,
            uid,
            type_name,
            current,
            deposed,
            published,
            intent,
            epoch,
            failed_creates,
            failed_generation,
            replacement_pending,
            approved_object,
            handled_replace_request,
            handled_import,
            moving_to,
            moved_from: came_from,
            history: if history.is_empty() { History::default() } else { History::from_entries(history) },
            source: None,
        })
    }

    fn approved_object(&mut self) -> DecodeResult<ApprovedObject> {
        serde_json::from_str(self.text()?).map_err(|_| CodecError::Damaged("an approval in it cannot be read"))
    }

    fn history_entry(&mut self) -> DecodeResult<HistoryEntry> {
        let kind = match self.byte()? {
            0 => ChangeKind::Create,
            1 => ChangeKind::Update,
            2 => ChangeKind::Destroy,
            3 => ChangeKind::Forget,
            4 => ChangeKind::Import,
            5 => ChangeKind::Hooks,
            _ => return Err(UNKNOWN_TAG),
        };
        let [has_deposed, is_repeated] = self.flags()?;
        let cause = self.cause()?;
        let (began, milliseconds) = (self.millisecond()?, self.unsigned()?);
        let operation_id = self.text()?.into();
        let deposed = if has_deposed { Some(self.deposed_key()?) } else { None };
        let (first, count) = if is_repeated { (self.millisecond()?, self.small()?) } else { (began, 1) };
        let outcome = match self.byte()? {
            0 => ChangeOutcome::Succeeded,
            1 => ChangeOutcome::NotReady,
            2 => ChangeOutcome::Failed(self.text()?.into()),
            3 => ChangeOutcome::Recovered(Resolution::Effective),
            4 => ChangeOutcome::Recovered(Resolution::NoEffect),
            5 => ChangeOutcome::Recovered(Resolution::Read),
            6 => ChangeOutcome::Recovered(Resolution::Hooks),
            _ => return Err(UNKNOWN_TAG),
        };
        Ok(HistoryEntry { kind, deposed, cause, began, first, milliseconds, outcome, count, operation_id })
    }

    fn cause(&mut self) -> DecodeResult<Cause> {
        let [replaces, is_approved, has_approval] = self.flags()?;
        let because = self.shared()?;
        let count = self.length()?;
        let attributes = (0..count).map(|_| self.shared()).collect::<DecodeResult<Arc<[Arc<str>]>>>()?;
        let (more_attributes, generation) = (self.small()?, self.signed()?);
        let approved_by = if is_approved { self.shared()? } else { Arc::default() };
        let approval = if has_approval { self.text()?.into() } else { Arc::default() };
        Ok(Cause { because, attributes, more_attributes, generation, replaces, approved_by, approval })
    }

    fn published(&mut self) -> DecodeResult<PublishedCopy> {
        let kind = match self.byte()? {
            0 => DataKind::ConfigMap,
            1 => DataKind::Secret,
            _ => return Err(UNKNOWN_TAG),
        };
        Ok(PublishedCopy {
            target: DataRef { kind, name: self.text()?.into() },
            uid: self.text()?.into(),
            owner: self.text()?.into(),
            service_account: self.shared()?,
            data: self.value(0)?,
        })
    }

    fn object(&mut self) -> DecodeResult<RecordedObject> {
        let [
            has_identity,
            create_before_destroy,
            prevent_destroy,
            skip_destroy,
            awaits_postconditions,
            has_revision,
            has_triggers,
            has_more,
        ] = self.flags()?;
        let status = match self.byte()? {
            0 => ObjectStatus::Ready,
            1 => ObjectStatus::Tainted,
            2 => ObjectStatus::Interrupted,
            _ => return Err(UNKNOWN_TAG),
        };
        let value = self.value(0)?;
        let identity = if has_identity { Some(self.value(0)?) } else { None };
        let private = self.bytes()?;
        let private = self.strings.bytes(private);
        let schema_version = self.unsigned()?;
        let count = self.length()?;
        let dependencies = (0..count).map(|_| self.address()).collect::<DecodeResult<Vec<_>>>()?;
        let (provider_config, service_account) = (self.shared()?, self.shared()?);
        let revision = if has_revision { self.revision()? } else { Revision::default() };
        let triggers = if has_triggers { Some(Arc::new(self.triggers()?)) } else { None };
        let [hooks_pending, has_provider, has_digest, has_readiness] =
            if has_more { self.flags()? } else { [false; 4] };
        Ok(RecordedObject {
            value,
            private,
            identity,
            schema_version,
            status,
            dependencies: self.strings.addresses(dependencies),
            create_before_destroy,
            prevent_destroy,
            skip_destroy,
            awaits_postconditions,
            provider_config,
            service_account,
            revision,
            triggers,
            hooks_pending,
            hooks: if has_more { self.hooks()? } else { Arc::default() },
            matching_config: if has_digest { Some(ConfigDigest(self.array()?)) } else { None },
            readiness: if has_readiness { Some(self.readiness()?) } else { None },
            provider: if has_provider { Some(self.provider()?) } else { None },
        })
    }

    fn readiness(&mut self) -> DecodeResult<Readiness> {
        let [is_new, has_deposed] = self.flags()?;
        let until = self.timestamp()?;
        Ok(Readiness { until, is_new, deposed: if has_deposed { Some(self.deposed_key()?) } else { None } })
    }

    fn provider(&mut self) -> DecodeResult<Arc<ProviderUse>> {
        let name = self.shared()?;
        let damaged = |_| CodecError::Damaged("a provider in it cannot be read");
        let text = self.text()?;
        let provider = serde_json::from_str(text).map_err(damaged)?;
        // Most providers have no runner, and reading the text twice takes time.
        let runner = match text.contains("\"runner\":") {
            true => serde_json::from_str::<RunnerOfProvider>(text).map_err(damaged)?.runner,
            false => None,
        };
        let settings = self.value(0)?;
        let used = ProviderUse::new(name, Arc::new(provider), settings).with_runner(runner.map(Arc::new));
        Ok(self.strings.provider(used))
    }

    fn hooks(&mut self) -> DecodeResult<Arc<[RecordedHook]>> {
        let count = self.length()?;
        (0..count).map(|_| self.hook()).collect()
    }

    fn hook(&mut self) -> DecodeResult<RecordedHook> {
        let name = self.shared()?;
        let [is_job, may_fail] = self.flags()?;
        Ok(RecordedHook {
            name,
            kind: if is_job { HookKind::Job } else { HookKind::Exec },
            on_failure: if may_fail { OnFailure::Continue } else { OnFailure::Fail },
            definition: self.value(0)?,
        })
    }

    fn triggers(&mut self) -> DecodeResult<Triggers> {
        let salt = u64::from_le_bytes(self.array()?);
        let mut entries = Vec::new();
        for _ in 0..self.length()? {
            let entry = self.shared()?;
            let count = self.length()?;
            let targets = (0..count).map(|_| Ok((self.address()?, u64::from_le_bytes(self.array()?))));
            let targets = targets.collect::<DecodeResult<Vec<_>>>()?;
            entries.push(ObservedTrigger { entry, targets });
        }
        Ok(Triggers { salt, entries })
    }

    fn revision(&mut self) -> DecodeResult<Revision> {
        Ok(Revision { epoch: self.unsigned()?, operation: u64::from_le_bytes(self.array()?) })
    }

    fn intent(&mut self) -> DecodeResult<Intent> {
        let operation = match self.byte()? {
            0 => Operation::Create,
            1 => Operation::Update,
            2 => Operation::Record,
            3 => Operation::Destroy,
            4 => Operation::Forget,
            5 => Operation::Read,
            6 => Operation::Wait,
            _ => return Err(UNKNOWN_TAG),
        };
        let [has_deposed, has_planned, has_import, has_cause] = self.flags()?;
        Ok(Intent {
            operation,
            operation_id: self.text()?.into(),
            holder: Holder { pod: self.shared()?, process: self.shared()? },
            epoch: self.unsigned()?,
            started: self.timestamp()?,
            deadline: self.timestamp()?,
            deposed: if has_deposed { Some(self.deposed_key()?) } else { None },
            planned: if has_planned { Some(self.planned_object()?) } else { None },
            import: if has_import { Some(self.import_request()?) } else { None },
            cause: if has_cause { self.cause()? } else { Cause::default() },
        })
    }

    fn import_request(&mut self) -> DecodeResult<ImportRequest> {
        match self.byte()? {
            0 => Ok(ImportRequest::Id(self.text()?.into())),
            1 => Ok(ImportRequest::Identity(self.value(0)?)),
            _ => Err(UNKNOWN_TAG),
        }
    }

    fn planned_object(&mut self) -> DecodeResult<PlannedObject> {
        let config = self.value(0)?;
        let planned = self.value(0)?;
        let private = self.bytes()?;
        let private = self.strings.bytes(private);
        Ok(PlannedObject { config, planned, private, recorded: Box::new(self.object()?) })
    }

    fn value(&mut self, depth: usize) -> DecodeResult<Value> {
        if depth > MAX_DEPTH {
            return Err(CodecError::TooDeep);
        }
        Ok(match self.byte()? {
            0 => Value::Null,
            1 => Value::Unknown,
            2 => Value::Bool(false),
            3 => Value::Bool(true),
            4 => Value::Number(Number::Int(self.signed()?)),
            5 => Value::Number(Number::Float(f64::from_le_bytes(self.array()?))),
            6 => Value::Number(Number::Decimal(self.text()?.into())),
            7 => Value::String(self.text()?.into()),
            8 => {
                let count = self.length()?;
                Value::List((0..count).map(|_| self.value(depth + 1)).collect::<DecodeResult<Arc<[Value]>>>()?)
            }
            9 => {
                let count = self.length()?;
                let entries = (0..count).map(|_| Ok((self.shared()?, self.value(depth + 1)?)));
                Value::Map(entries.collect::<DecodeResult<_>>()?)
            }
            10 => Value::Sensitive(Arc::new(self.value(depth + 1)?)),
            _ => return Err(UNKNOWN_TAG),
        })
    }

    fn address(&mut self) -> DecodeResult<Address> {
        let name = self.shared()?;
        let key = match self.byte()? {
            0 => InstanceKey::None,
            1 => InstanceKey::Index(self.unsigned()?),
            2 => InstanceKey::Key(self.shared()?),
            3 => InstanceKey::All,
            _ => return Err(UNKNOWN_TAG),
        };
        Ok(Address { name, key })
    }

    fn deposed_key(&mut self) -> DecodeResult<DeposedKey> {
        Ok(DeposedKey(u32::from_le_bytes(self.array()?)))
    }

    fn timestamp(&mut self) -> DecodeResult<Timestamp> {
        let seconds = self.signed()?;
        let nanoseconds =
            i32::try_from(self.signed()?).map_err(|_| CodecError::Damaged("a time in it is impossible"))?;
        Timestamp::new(seconds, nanoseconds).map_err(|_| CodecError::Damaged("a time in it is impossible"))
    }

    fn millisecond(&mut self) -> DecodeResult<Timestamp> {
        Timestamp::from_millisecond(self.signed()?).map_err(|_| CodecError::Damaged("a time in it is impossible"))
    }

    fn small(&mut self) -> DecodeResult<u32> {
        u32::try_from(self.unsigned()?).map_err(|_| CodecError::Damaged("a number in it is too large"))
    }

    /// A string that other records are likely to contain as well.
    fn shared(&mut self) -> DecodeResult<Arc<str>> {
        let text = self.text()?;
        Ok(self.strings.share(text))
    }

    fn text(&mut self) -> DecodeResult<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| NOT_UTF8)
    }

    fn bytes(&mut self) -> DecodeResult<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The length of a sequence whose elements take at least one byte each. The check keeps damaged bytes from
    /// reserving all memory.
    fn length(&mut self) -> DecodeResult<usize> {
        let length = usize::try_from(self.unsigned()?).map_err(|_| ENDS_EARLY)?;
        if length > self.rest.len() { Err(ENDS_EARLY) } else { Ok(length) }
    }

    fn many_flags<const N: usize>(&mut self) -> DecodeResult<[bool; N]> {
        let flags = self.unsigned()?;
        if flags >> N != 0 {
            return Err(UNKNOWN_TAG);
        }
        Ok(std::array::from_fn(|bit| flags & (1 << bit) != 0))
    }

    fn flags<const N: usize>(&mut self) -> DecodeResult<[bool; N]> {
        let flags = self.byte()?;
        if u32::from(flags) >> N != 0 {
            return Err(UNKNOWN_TAG);
        }
        Ok(std::array::from_fn(|bit| flags & (1 << bit) != 0))
    }

    #[expect(clippy::cast_possible_wrap, reason = "zigzag: the lowest bit becomes the sign")]
    fn signed(&mut self) -> DecodeResult<i64> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn unsigned(&mut self) -> DecodeResult<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(CodecError::Damaged("a number in it is too large"))
    }

    fn byte(&mut self) -> DecodeResult<u8> {
        let (&byte, rest) = self.rest.split_first().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> DecodeResult<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(*array)
    }
}
