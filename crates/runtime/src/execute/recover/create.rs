//! Recovery of creates: how to find out whether the object exists.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Recovery};
use crate::execute::engine::after;
use crate::execute::failure::Failure;
use crate::execute::step::{ApplyResult, apply, record_create_result, without_intent};
use drivers::{ApplyRequest, ApplyResponse, FindCreated, SearchCreated, SearchResult};
use engine::plan::ObjectBlock;
use model::{ErrorKind, ImportRequest, ObjectState, PlannedObject, Reason, Resolution, Stored, Words};

/// The delay before another search for an object that could not be found.
const SEARCH_RETRY_DELAY: Duration = Duration::from_mins(5);

/// The request of the create whose intent holds this plan.
fn create_request(planned: &PlannedObject) -> ApplyRequest {
    ApplyRequest {
        prior: None,
        config: planned.config.clone(),
        planned: Some(planned.planned.clone()),
        private: Arc::clone(&planned.private),
    }
}

impl Attempt<'_> {
    pub async fn repeat_create(&self, finder: &dyn FindCreated) -> Recovery {
        let Some(planned) = &self.intent.planned else {
            return self.retry_later(&Failure::internal("the intent of the create holds no plan"));
        };
        let context = self.context(&planned.recorded, self.time_left());
        let request = create_request(planned);
        let called = apply(self.engine, self.stored, self.driver, &context, request).await;
        let ApplyResult { response, before } = called;
        // The interrupted call may have created the object even if this call was rejected.
        match response {
            ApplyResponse { object: None, error: Some(error), .. } if error.kind == ErrorKind::Transient => {
                self.retry_later(&error.into())
            }
            ApplyResponse { object: None, error: Some(_), .. } => {
                match finder.find_created(&context, &planned.planned).await {
                    Err(error) => self.retry_later(&error.into()),
                    Ok(object) => self.adopt_or_restore(&before, object).await,
                }
            }
            response => self.record_create(&before, response).await,
        }
    }

    pub async fn find_created(&self, finder: &dyn FindCreated) -> Recovery {
        let Some(planned) = &self.intent.planned else {
            return self.retry_later(&Failure::internal("the intent of the create holds no plan"));
        };
        let context = self.context(&planned.recorded, self.timeouts().read);
        match finder.find_created(&context, &planned.planned).await {
            Err(error) => self.retry_later(&error.into()),
            Ok(None) if self.engine.clock.now() < self.intent.deadline => self.not_found_yet(),
            Ok(object) => self.adopt_or_restore(self.stored, object).await,
        }
    }

    pub async fn search_created(&self, searcher: &dyn SearchCreated, import: Option<&ImportRequest>) -> Recovery {
        let Some(planned) = &self.intent.planned else { return self.ask_user(None) };
        let context = self.context(&planned.recorded, self.timeouts().read);
        match searcher.search_created(&context, &create_request(planned), import).await {
            Err(error) => self.retry_later(&error.into()),
            Ok(SearchResult::Found(object)) => self.adopt_or_restore(self.stored, Some(object)).await,
            Ok(SearchResult::Missing) if let Some(import) = import => Self::import_not_found(import),
            Ok(SearchResult::Missing) if self.engine.clock.now() < self.intent.deadline => self.not_found_yet(),
            Ok(SearchResult::Missing) => self.adopt_or_restore(self.stored, None).await,
            Ok(SearchResult::Differs(request, path)) => {
                self.ask_user(Some(format!("the object `{request}` exists, but its `{path}` is not the planned one")))
            }
            Ok(SearchResult::Unknown(error)) => self.ask_user(error.map(|error| error.message)),
        }
    }

    /// An eventually consistent service may not show a new object yet. After the deadline of the call, a missing object
    /// counts.
    fn not_found_yet(&self) -> Recovery {
        let message = format!(
            "a create was interrupted and the object is not found yet; it counts as not created from {}",
            self.intent.deadline
        );
        Recovery::Blocked(ObjectBlock { reason: Reason::OperationInProgress, message }, Some(self.intent.deadline))
    }

    /// Blocks the object until the user says whether it exists. `found` is what a search found; it is repeated, because a
    /// service that is not available now can answer later.
    pub fn ask_user(&self, found: Option<String>) -> Recovery {
        let found = found.map(|found| (format!("; {found}"), after(self.engine.clock.now(), SEARCH_RETRY_DELAY)));
        let (found, again) = found.unzip();
        let found = found.unwrap_or_default();
        let words = Words::of(&self.stored.record.address);
        let import = match words {
            Words::Manifest => "set spec.import.id",
            Words::Terraform => "write an `import` block",
        };
        let owner = words.owner();
        let message = match self.resource_is_missing() {
            true => format!(
                "a create was interrupted, its {owner} does not exist anymore, and it is unknown whether the object \
                 was created{found} (hint: run `purlin state recover`)"
            ),
            false => format!(
                "a create was interrupted and it is unknown whether the object was created{found} (hint: \
                 {import} if it exists, or run `purlin state recover`)"
            ),
        };
        Recovery::Blocked(ObjectBlock { reason: Reason::CreateOutcomeUnknown, message }, again)
    }

    pub async fn import_created(&self, import: &ImportRequest) -> Recovery {
        let Some(planned) = &self.intent.planned else { return self.ask_user(None) };
        let context = self.context(&planned.recorded, self.timeouts().read);
        match self.driver.import(&context, import).await {
            Err(error) => self.retry_later(&error.into()),
            Ok(None) => Self::import_not_found(import),
            Ok(object) => self.adopt_or_restore(self.stored, object).await,
        }
    }

    fn import_not_found(import: &ImportRequest) -> Recovery {
        let message = format!("the object to import does not exist: `{import}`");
        Recovery::Blocked(ObjectBlock { reason: Reason::ImportNotFound, message }, None)
    }

    /// Adopts the found object as the new object. If there is none, the deposed object becomes current again.
    async fn adopt_or_restore(&self, before: &Stored, object: Option<ObjectState>) -> Recovery {
        let Some(object) = object else {
            let rest = without_intent(&before.record);
            let is_empty = !rest.has_objects() && rest.published.is_empty();
            return match is_empty && self.resource_is_missing() {
                true => self.erase(before).await,
                false => self.restore(before, Some(Resolution::NoEffect)).await,
            };
        };
        // The object was found by the driver or named by the user and may differ from the plan, so the next plan
        // compares it.
        self.record_create(before, ApplyResponse { object: Some(object), recovered: true, ..ApplyResponse::default() })
            .await
    }

    async fn record_create(&self, before: &Stored, response: ApplyResponse) -> Recovery {
        self.finish(record_create_result(self.engine, before, response, self.instance, None).await)
    }
}
