//! A driver that writes down what another one replies, or plays it back. For planning only: it changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::reply::{Kept, Reply, refused};
use crate::driver::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, Expected, TakeOver, no_way,
};
use crate::model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider,
    RecordedObject, Schema, Value,
};
use crate::store::codec;

/// Replies by a digest of the question.
#[derive(Debug, Default)]
pub struct Tape(Mutex<BTreeMap<String, Reply>>);

/// The driver.
pub struct Taped {
    inner: Arc<dyn Driver>,
    tape: Arc<Tape>,
    plays: bool,
}

impl Tape {
    /// A tape with replies on it.
    pub fn of(replies: BTreeMap<String, Reply>) -> Self {
        Self(Mutex::new(replies))
    }

    /// What is on it.
    pub fn take(&self) -> BTreeMap<String, Reply> {
        std::mem::take(&mut *self.replies())
    }

    fn replies(&self) -> MutexGuard<'_, BTreeMap<String, Reply>> {
        // Nothing that is done under the lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taped {
    /// Asks `inner`, and writes down what it replies.
    pub fn recording(inner: Arc<dyn Driver>, tape: Arc<Tape>) -> Self {
        Self { inner, tape, plays: false }
    }

    /// Asks nobody.
    pub fn playing(inner: Arc<dyn Driver>, tape: Arc<Tape>) -> Self {
        Self { inner, tape, plays: true }
    }

    fn sources(&self) -> Result<&dyn DataSources, DriverError> {
        self.inner.data().ok_or_else(|| refusal("this driver has no data sources"))
    }

    async fn through<T: Kept>(
        &self,
        question: Question,
        call: BoxFuture<'_, Result<T, DriverError>>,
    ) -> Result<T, DriverError> {
        let key = question.key();
        if self.plays {
            return match self.tape.replies().get(&key) {
                Some(Reply::Failed(refusal)) => Err(refusal.recall()),
                reply => reply.and_then(T::recall).ok_or_else(|| refusal("the saved plan holds no reply to this")),
            };
        }
        let replied = call.await;
        let reply = match &replied {
            Ok(value) => value.keep(),
            Err(error) => Some(refused(error)),
        };
        self.tape.replies().extend(reply.map(|reply| (key, reply)));
        replied
    }
}

fn refusal(message: &str) -> DriverError {
    DriverError { kind: ErrorKind::Terminal, message: message.to_owned(), path: None, hint: None }
}

/// What makes two questions the same.
struct Question(Sha256);

impl Question {
    fn new(context: &CallContext, call: &str) -> Self {
        let question = Self(Sha256::new());
        let CallContext { type_name, namespace, address, service_account, provider, .. } = context;
        let settings = provider.as_ref().map_or("", |provider| &provider.digest);
        [call, type_name, namespace, address, service_account, settings]
            .iter()
            .fold(question, |question, text| question.bytes(text.as_bytes()))
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// A value that is too deep to be kept is refused wherever it comes from.
    fn value(self, value: &Value) -> Self {
        self.bytes(&codec::encode_value(value).unwrap_or_default())
    }

    fn object(self, object: Option<&RecordedObject>) -> Self {
        match object {
            None => self.bytes(b"new"),
            Some(object) => self.value(&object.value).bytes(&object.private),
        }
    }

    fn key(self) -> String {
        super::hex(&self.0.finalize())
    }
}

impl Driver for Taped {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.schema(type_name, provider)
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        let question = Question::new(context, "validate").value(config);
        self.through(question, self.inner.validate(context, config)).boxed()
    }

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        let question = Question::new(context, "read").object(Some(object));
        self.through(question, self.inner.read(context, object)).boxed()
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        let question = Question::new(context, "plan")
            .object(request.prior.as_deref())
            .value(&request.config)
            .bytes(&request.entropy)
            .value(request.planned_before.as_ref().unwrap_or(&Value::Null));
        self.through(question, self.inner.plan(context, request)).boxed()
    }

    fn apply<'a>(&'a self, _: &'a CallContext, _: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        let error = Some(refusal("a plan changes nothing"));
        async { ApplyResponse { error, ..ApplyResponse::default() } }.boxed()
    }

    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        request: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        let question = match request {
            ImportRequest::Id(id) => Question::new(context, "import").bytes(id.as_bytes()),
            ImportRequest::Identity(identity) => Question::new(context, "import by identity").value(identity),
        };
        self.through(question, self.inner.import(context, request)).boxed()
    }

    /// A plan recovers nothing.
    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Unknown
    }

    fn configuration<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        self.through(Question::new(context, "configuration"), self.inner.configuration(context)).boxed()
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.inner.data().map(|_| self as &dyn DataSources)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        self.inner.takeover().map(|_| self as &dyn TakeOver)
    }
}

impl TakeOver for Taped {
    fn take_over<'a>(
        &'a self,
        context: &'a CallContext,
        type_name: &'a str,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<ObjectState, DriverError>> {
        let question = Question::new(context, "take over").bytes(type_name.as_bytes()).object(Some(object));
        let taken = async move {
            let inner = self.inner.takeover().ok_or_else(|| no_way(context, type_name))?;
            inner.take_over(context, type_name, object).await.map(Some)
        };
        let taken = self.through(question, taken.boxed());
        async { taken.await?.ok_or_else(|| refusal("the saved plan is damaged")) }.boxed()
    }
}

impl DataSources for Taped {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.data()?.data_schema(type_name, provider)
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        let question = Question::new(context, "expect_data").value(config);
        let expected = async { self.sources()?.expect_data(context, config).await };
        self.through(question, expected.boxed()).boxed()
    }

    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        let question = Question::new(context, "read_data").value(config);
        let read = async { self.sources()?.read_data(context, config).await };
        self.through(question, read.boxed()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::{Script, World};
    use crate::driver::{Scripted, Warnings};

    #[tokio::test]
    async fn a_saved_plan_knows_under_which_configuration_objects_were_looked_for() {
        let context = CallContext {
            type_name: "scripted".into(),
            namespace: "shop".into(),
            address: "web".into(),
            provider: None,
            service_account: "".into(),
            deadline: jiff::Timestamp::MAX,
            operation_id: "".into(),
            warnings: Warnings::default(),
        };
        let (world, tape) = (World::new(Script::default()), Arc::new(Tape::default()));
        let driver: Arc<dyn Driver> = Arc::new(Scripted::new(Arc::clone(&world)));
        world.configure("of the first account");
        let recorded = Taped::recording(Arc::clone(&driver), Arc::clone(&tape)).configuration(&context).await;
        world.configure("of the second account");
        let tape = Arc::new(Tape::of(tape.take()));
        let played = Taped::playing(driver, tape).configuration(&context).await;
        assert_eq!(
            (recorded.unwrap(), played.unwrap()),
            ("of the first account".into(), "of the first account".into())
        );
    }
}
