//! A driver that writes down what another one replies, or plays it back. For planning only: it changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::reply::{Kept, Reply, refused};
use crate::driver::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, Driver, Expected, Preparation};
use crate::model::{
    Diagnostics, DriverError, ErrorKind, ObjectState, PlanRequest, PlanResponse, Provider, RecordedObject, Schema,
    Value,
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

    fn types(&self, provider: Option<&Provider>, is_data: bool) -> Vec<String> {
        self.inner.types(provider, is_data)
    }

    fn prepare<'a>(&'a self, preparation: Preparation<'a>) -> BoxFuture<'a, ()> {
        self.inner.prepare(preparation)
    }

    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        self.inner.fault(provider)
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
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        let question = Question::new(context, "import").bytes(id.as_bytes());
        self.through(question, self.inner.import(context, id)).boxed()
    }

    fn import_by_identity<'a>(
        &'a self,
        context: &'a CallContext,
        identity: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        let question = Question::new(context, "import by identity").value(identity);
        self.through(question, self.inner.import_by_identity(context, identity)).boxed()
    }

    fn take_over<'a>(
        &'a self,
        context: &'a CallContext,
        type_name: &'a str,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<ObjectState, DriverError>> {
        let question = Question::new(context, "take over").bytes(type_name.as_bytes()).object(Some(object));
        let taken = self.inner.take_over(context, type_name, object).map(|taken| taken.map(Some));
        let taken = self.through(question, taken.boxed());
        async { taken.await?.ok_or_else(|| refusal("the saved plan is damaged")) }.boxed()
    }

    fn create_recovery(&self) -> CreateRecovery {
        self.inner.create_recovery()
    }

    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        self.inner.find_created(context, planned)
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.data_schema(type_name, provider)
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        let question = Question::new(context, "expect_data").value(config);
        self.through(question, self.inner.expect_data(context, config)).boxed()
    }

    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        let question = Question::new(context, "read_data").value(config);
        self.through(question, self.inner.read_data(context, config)).boxed()
    }

    fn concurrency(&self) -> Option<usize> {
        self.inner.concurrency()
    }

    fn stop(&self) -> BoxFuture<'_, bool> {
        self.inner.stop()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
