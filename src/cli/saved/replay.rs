//! A driver that records the replies of another driver, or replays them. For planning only: it changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::reply::{Replayable, Reply, error_reply};
use drivers::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver, TakeOver, unsupported_move,
};
use model::{
    Diagnostics, DriverError, ErrorKind, Ignored, IgnoredChange, ImportRequest, ObjectState, PlanRequest, PlanResponse,
    Provider, RecordedObject, Schema, Value,
};
use runtime::store::codec;

/// Replies by a digest of the call.
#[derive(Debug, Default)]
pub struct ReplyLog(Mutex<BTreeMap<String, Reply>>);

pub struct ReplayDriver {
    inner: Arc<dyn Driver>,
    log: Arc<ReplyLog>,
    is_replaying: bool,
}

impl ReplyLog {
    pub fn of(replies: BTreeMap<String, Reply>) -> Self {
        Self(Mutex::new(replies))
    }

    pub fn take(&self) -> BTreeMap<String, Reply> {
        std::mem::take(&mut *self.replies())
    }

    fn replies(&self) -> MutexGuard<'_, BTreeMap<String, Reply>> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplayDriver {
    /// Calls `inner`, and records its replies.
    pub fn recording(inner: Arc<dyn Driver>, log: Arc<ReplyLog>) -> Self {
        Self { inner, log, is_replaying: false }
    }

    /// Returns recorded replies without calling `inner`.
    pub fn replaying(inner: Arc<dyn Driver>, log: Arc<ReplyLog>) -> Self {
        Self { inner, log, is_replaying: true }
    }

    fn sources(&self) -> Result<&dyn DataSources, DriverError> {
        self.inner.data().ok_or_else(|| terminal_error("this driver has no data sources"))
    }

    async fn call<T: Replayable>(
        &self,
        key: CallKey,
        call: BoxFuture<'_, Result<T, DriverError>>,
    ) -> Result<T, DriverError> {
        let key = key.key();
        if self.is_replaying {
            return match self.log.replies().get(&key) {
                Some(Reply::Failed(refusal)) => Err(refusal.recall()),
                reply => reply
                    .and_then(T::from_reply)
                    .ok_or_else(|| terminal_error("the saved plan contains no reply to this call")),
            };
        }
        let replied = call.await;
        let reply = match &replied {
            Ok(value) => value.to_reply(),
            Err(error) => Some(error_reply(error)),
        };
        self.log.replies().extend(reply.map(|reply| (key, reply)));
        replied
    }
}

fn terminal_error(message: &str) -> DriverError {
    DriverError { kind: ErrorKind::Terminal, message: message.to_owned(), path: None, hint: None }
}

/// A digest of the arguments that determine the reply of a call.
struct CallKey(Sha256);

impl CallKey {
    fn new(context: &CallContext, call: &str) -> Self {
        let key = Self(Sha256::new());
        let CallContext { type_name, namespace, address, service_account, provider, .. } = context;
        let configuration = provider.as_ref().map_or("", |provider| &provider.digest);
        [call, type_name, namespace, address, service_account, configuration]
            .iter()
            .fold(key, |question, text| question.bytes(text.as_bytes()))
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    // A value that is too deep to encode is rejected everywhere else.
    fn value(self, value: &Value) -> Self {
        self.bytes(&codec::encode_content(value).unwrap_or_default())
    }

    fn object(self, object: Option<&RecordedObject>) -> Self {
        match object {
            None => self.bytes(b"new"),
            Some(object) => self.value(&object.value).bytes(&object.private),
        }
    }

    fn ignored(self, ignored: Option<&Ignored>) -> Self {
        let changes = ignored.into_iter().flat_map(|ignored| ignored.changes.iter());
        changes.fold(self, |key, change| match change {
            IgnoredChange::All => key.bytes(b"all"),
            IgnoredChange::At(path) => key.bytes(path.to_string().as_bytes()),
        })
    }

    fn key(self) -> String {
        super::hex(&self.0.finalize())
    }
}

#[async_trait]
impl Driver for ReplayDriver {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.schema(type_name, provider)
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        let key = CallKey::new(context, "validate").value(config);
        self.call(key, self.inner.validate(context, config)).await
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        let key = CallKey::new(context, "read").object(Some(object));
        self.call(key, self.inner.read(context, object)).await
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        let key = CallKey::new(context, "plan")
            .object(request.prior.as_deref())
            .value(&request.config)
            .ignored(request.ignored.as_ref())
            .bytes(&request.entropy)
            .value(request.previous_plan.as_ref().unwrap_or(&Value::Null));
        self.call(key, self.inner.plan(context, request)).await
    }

    async fn apply(&self, _: &CallContext, _: ApplyRequest) -> ApplyResponse {
        let error = Some(terminal_error("a plan cannot apply changes"));
        ApplyResponse { error, ..ApplyResponse::default() }
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        let key = match request {
            ImportRequest::Id(id) => CallKey::new(context, "import").bytes(id.as_bytes()),
            ImportRequest::Identity(identity) => CallKey::new(context, "import by identity").value(identity),
        };
        self.call(key, self.inner.import(context, request)).await
    }

    // A plan does not recover intents.
    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Unknown
    }

    async fn configuration(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        self.call(CallKey::new(context, "configuration"), self.inner.configuration(context)).boxed().await
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.inner.data().map(|_| self as &dyn DataSources)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        self.inner.takeover().map(|_| self as &dyn TakeOver)
    }
}

#[async_trait]
impl TakeOver for ReplayDriver {
    async fn take_over(
        &self,
        context: &CallContext,
        type_name: &str,
        object: &RecordedObject,
    ) -> Result<ObjectState, DriverError> {
        let key = CallKey::new(context, "take over").bytes(type_name.as_bytes()).object(Some(object));
        let taken = async move {
            let inner = self.inner.takeover().ok_or_else(|| unsupported_move(context, type_name))?;
            inner.take_over(context, type_name, object).await.map(Some)
        };
        let taken = self.call(key, taken.boxed());
        taken.await?.ok_or_else(|| terminal_error("the saved plan is damaged"))
    }
}

#[async_trait]
impl DataSources for ReplayDriver {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.data()?.data_schema(type_name, provider)
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        let key = CallKey::new(context, "expect_data").value(config);
        let expected = async { self.sources()?.plan_data(context, config).await };
        self.call(key, expected.boxed()).await
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        let key = CallKey::new(context, "read_data").value(config);
        let read = async { self.sources()?.read_data(context, config).await };
        self.call(key, read.boxed()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::scripted::{Script, Scripted, World};

    #[tokio::test]
    async fn provider_configuration_is_saved_and_replayed() {
        let context = CallContext {
            type_name: "scripted".into(),
            namespace: "shop".into(),
            address: "web".into(),
            ..CallContext::default()
        };
        let (world, tape) = (World::new(Script::default()), Arc::new(ReplyLog::default()));
        let driver: Arc<dyn Driver> = Arc::new(Scripted::new(Arc::clone(&world)));
        world.configure("of the first account");
        let recorded = ReplayDriver::recording(Arc::clone(&driver), Arc::clone(&tape)).configuration(&context).await;
        world.configure("of the second account");
        let tape = Arc::new(ReplyLog::of(tape.take()));
        let played = ReplayDriver::replaying(driver, tape).configuration(&context).await;
        assert_eq!(
            (recorded.unwrap(), played.unwrap()),
            ("of the first account".into(), "of the first account".into())
        );
    }
}
