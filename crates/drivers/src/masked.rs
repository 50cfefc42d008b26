//! The layer that each answer of a driver passes: it masks sensitive values in errors, warnings and other texts.
//!
//! The registry puts every driver into this layer, so neither a driver nor its caller can forget it. A message may quote
//! a part of an expression's result, of which only the whole is marked as sensitive, so the values that the expressions
//! read are masked as well.

use std::sync::Arc;

use async_trait::async_trait;

use super::provider::{AdoptedObject, ReconstructedConfig};
use super::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver, FindCreated, HealthReport,
    Observation, ReadinessError, SearchCreated, SearchResult, TakeOver, arguments,
};
use model::{
    Diagnostic, Diagnostics, DriverError, Health, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider,
    RecordedObject, Schema, Secrets, Value,
};

/// Masks the answers of a driver. A call that is not defined here does not reach the driver.
pub(crate) struct Masked(pub Arc<dyn Driver>);

impl Masked {
    /// The secrets in the arguments of a call, in what its object's expressions read, and those that the driver knows.
    fn secrets(&self, context: &CallContext, values: &[&Value]) -> Secrets {
        let schema = self.0.schema_of(context);
        let marked = values.iter().map(|value| mark_sensitive(schema.as_deref(), value));
        context.masks.with_secrets(Secrets::of(marked.chain(context.read.iter().cloned())))
    }

    /// Masks an answer and the warnings of its call. `values` are the arguments of the call.
    fn pass<A: Answer>(&self, context: &CallContext, values: &[&Value], answer: A) -> A {
        mask_answer(context, answer, |answered| {
            self.secrets(context, &values.iter().copied().chain(answered).collect::<Vec<_>>())
        })
    }
}

/// Masks an answer and the warnings of its call. `secrets` gets the values of the answer; it is called only if there is
/// a text.
pub(crate) fn mask_answer<A: Answer>(
    context: &CallContext,
    mut answer: A,
    secrets: impl FnOnce(&[Value]) -> Secrets,
) -> A {
    let mut parts = Parts::default();
    answer.parts(&mut parts);
    if !parts.texts.is_empty() || !context.warnings.is_empty() {
        let secrets = secrets(&parts.values);
        context.warnings.mask(&secrets);
        return redacted(&secrets, answer);
    }
    answer
}

/// The answer without the secrets in its texts.
pub(crate) fn redacted<A: Answer>(secrets: &Secrets, mut answer: A) -> A {
    let mut parts = Parts::default();
    answer.parts(&mut parts);
    parts.texts.into_iter().for_each(|text| *text = secrets.redact(std::mem::take(text)));
    answer
}

/// Marks the values of attributes that the schema declares sensitive, wherever they were written.
fn mark_sensitive(schema: Option<&Schema>, value: &Value) -> Value {
    let (Value::Map(map), Some(schema)) = (value, schema) else { return value.clone() };
    Value::map(map.iter().map(|(name, value)| match schema.attributes.get(name) {
        Some(attribute) if attribute.sensitive => (Arc::clone(name), value.clone().into_sensitive()),
        _ => (Arc::clone(name), value.clone()),
    }))
}

/// The parts of an answer.
#[derive(Default)]
pub(crate) struct Parts<'a> {
    /// What is marked as sensitive in these is a secret.
    values: Vec<Value>,
    /// These may quote secrets.
    texts: Vec<&'a mut String>,
}

pub(crate) trait Answer {
    /// Adds the values and the texts of the answer.
    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>);
}

macro_rules! answers {
    ($($answer:ty: |$this:ident, $parts:ident| $add:expr;)*) => {
        $(impl Answer for $answer {
            fn parts<'a>(&'a mut self, $parts: &mut Parts<'a>) {
                let $this = self;
                $add
            }
        })*
    };
}

answers! {
    (): |_answer, _parts| ();
    Arc<str>: |_answer, _parts| ();
    Value: |value, parts| parts.values.push(value.clone());
    DriverError: |error, parts| parts.texts.extend(std::iter::once(&mut error.message).chain(&mut error.hint));
    Diagnostic: |diagnostic, parts| {
        parts.texts.extend([&mut diagnostic.summary, &mut diagnostic.detail].into_iter().chain(&mut diagnostic.hint));
    };
    Health: |health, parts| match health {
        Health::InProgress(why) | Health::Failed(why) => parts.texts.push(why),
        Health::Current | Health::Terminating(_) => {}
    };
    ObjectState: |object, parts| {
        object.value.parts(parts);
        object.health.parts(parts);
    };
    PlanResponse: |response, parts| {
        response.planned.parts(parts);
        response.refusal.iter_mut().for_each(|refusal| refusal.error.parts(parts));
    };
    ApplyResponse: |response, parts| {
        response.object.parts(parts);
        response.error.parts(parts);
    };
    ReadinessError: |answer, parts| {
        answer.error.parts(parts);
        if let Observation::Object(object) = &mut answer.last {
            object.parts(parts);
        }
    };
    SearchResult: |result, parts| match result {
        SearchResult::Found(object) => object.parts(parts),
        SearchResult::Unknown(error) => error.parts(parts),
        SearchResult::Missing | SearchResult::Differs(..) => {}
    };
    DataPlan: |plan, parts| {
        plan.0.parts(parts);
        plan.1.parts(parts);
    };
    AdoptedObject: |object, parts| object.state.parts(parts);
    ReconstructedConfig: |config, parts| config.problems.parts(parts);
}

impl<T: Answer> Answer for Option<T> {
    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        self.iter_mut().for_each(|answer| answer.parts(parts));
    }
}

impl<T: Answer> Answer for Vec<T> {
    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        self.iter_mut().for_each(|answer| answer.parts(parts));
    }
}

impl<T: Answer, E: Answer> Answer for Result<T, E> {
    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        match self {
            Ok(answer) => answer.parts(parts),
            Err(error) => error.parts(parts),
        }
    }
}

#[async_trait]
impl Driver for Masked {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.schema(type_name, provider)
    }

    fn wrapped(&self) -> Option<&dyn Driver> {
        Some(self.0.as_ref())
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        self.pass(context, &[config], self.0.validate(context, config).await)
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        let (config, prior) = (request.config.clone(), request.prior.clone());
        let values: Vec<_> = std::iter::once(&config).chain(prior.as_ref().map(|prior| &prior.value)).collect();
        self.pass(context, &values, self.0.plan(context, request).await)
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        self.pass(context, &[&object.value], self.0.read(context, object).await)
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        let (config, planned, prior) = (request.config.clone(), request.planned.clone(), request.prior.clone());
        let values = [Some(&config), planned.as_ref(), prior.as_ref().map(|object| &object.value)];
        let values: Vec<_> = values.into_iter().flatten().collect();
        context.delay.mask(self.secrets(context, &values));
        self.pass(context, &values, self.0.apply(context, request).await)
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        self.pass(context, &[], self.0.import(context, request).await)
    }

    async fn wait_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        report: &HealthReport<'_>,
    ) -> Result<ObjectState, ReadinessError> {
        let ready = self
            .0
            .wait_ready(context, object, &|health| report(&self.pass(context, &[&object.value], health.clone())))
            .await;
        self.pass(context, &[&object.value], ready)
    }

    async fn release(&self, context: &CallContext, object: &RecordedObject) -> Result<(), DriverError> {
        self.pass(context, &[&object.value], self.0.release(context, object).await)
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        match self.0.recovery() {
            CreateRecovery::Search(_) => CreateRecovery::Search(self),
            recovery => recovery.with_finder(self),
        }
    }

    async fn configuration(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        self.pass(context, &[], self.0.configuration(context).await)
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.0.data().map(|_| self as &dyn DataSources)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        self.0.takeover().map(|_| self as &dyn TakeOver)
    }
}

#[async_trait]
impl FindCreated for Masked {
    async fn find_created(&self, context: &CallContext, planned: &Value) -> Result<Option<ObjectState>, DriverError> {
        match self.0.recovery() {
            CreateRecovery::Repeat(finder) | CreateRecovery::Find(finder) => {
                self.pass(context, &[planned], finder.find_created(context, planned).await)
            }
            CreateRecovery::Search(_) | CreateRecovery::Unknown => Ok(None),
        }
    }
}

#[async_trait]
impl SearchCreated for Masked {
    async fn search_created(
        &self,
        context: &CallContext,
        request: &ApplyRequest,
        import: Option<&ImportRequest>,
    ) -> Result<SearchResult, DriverError> {
        let CreateRecovery::Search(searcher) = self.0.recovery() else { return Ok(SearchResult::Unknown(None)) };
        let values: Vec<_> = std::iter::once(&request.config).chain(&request.planned).collect();
        self.pass(context, &values, searcher.search_created(context, request, import).await)
    }
}

#[async_trait]
impl TakeOver for Masked {
    async fn take_over(
        &self,
        context: &CallContext,
        type_name: &str,
        object: &RecordedObject,
    ) -> Result<ObjectState, DriverError> {
        let taken = match self.0.takeover() {
            Some(taker) => taker.take_over(context, type_name, object).await,
            None => Err(arguments::unsupported_move(context, type_name)),
        };
        self.pass(context, &[&object.value], taken)
    }
}

#[async_trait]
impl DataSources for Masked {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.data()?.data_schema(type_name, provider)
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        self.pass(context, &[config], self.0.sources(context)?.plan_data(context, config).await)
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        self.pass(context, &[config], self.0.sources(context)?.read_data(context, config).await)
    }
}
