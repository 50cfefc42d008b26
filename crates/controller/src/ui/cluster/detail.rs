//! Everything about one object or Plan, read with the credentials of the user.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::ui::{ConditionRow, Detail, Diff, EventRow, HistoryRow, PlanChange, PlanDetail, Refusal, Section};
use crate::ui::{decision, observed};
use api::{DataSource, PlanObject, PlanStatus, RawObject, Resource, ResourceStatus};
use engine::plan::approval::shown::provable;
use engine::plan::published;
use engine::plan::render::{Detail as Amount, is_shown, write_change};
use model::history_list;
use model::text::one_line;
use model::{Address, Record, Stored, Text};
use process::{Shutdown, SystemRandom};
use runtime::store::secrets::{RequestError, RetryPolicy, SecretContent, Secrets};

/// The maximum number of events.
const MAX_EVENTS: u32 = 500;
/// The maximum number of instances of a family whose history is read.
const MAX_INSTANCES: usize = 20;
/// The maximum number of Plans whose changes are read.
const MAX_PLANS: usize = 10;
/// How long the reads of records are tried.
const PATIENCE: RetryPolicy = RetryPolicy::Bounded(Duration::from_secs(3));

/// Reads one namespace.
pub struct Reader<'a> {
    pub client: &'a Client,
    /// The namespace of the controller.
    pub records: &'a Arc<str>,
    pub namespace: &'a str,
}

impl Reader<'_> {
    /// `plans`: the held Plans that may have a change of the object.
    pub async fn object(&self, name: &str, plans: &[String]) -> Result<Detail, Refusal> {
        let address = Address::single(name);
        match address.is_data() {
            false => self.read::<Resource>(&address, "Resource", plans).await,
            true => self.read::<DataSource>(&address, "DataSource", plans).await,
        }
    }

    async fn read<K>(&self, address: &Address, kind: &'static str, plans: &[String]) -> Result<Detail, Refusal>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        RawObject<K>: Clone + DeserializeOwned + std::fmt::Debug,
        K: 'static,
    {
        let api: Api<RawObject<K>> = Api::namespaced(self.client.clone(), self.namespace);
        let object = api.get(address.object_name()).await?;
        let status: ResourceStatus = object.status().unwrap_or_default();
        let has_instances = status.instances.is_some();
        let (events, history, diffs) = tokio::join!(
            self.events(address.object_name(), kind),
            self.history(address, has_instances),
            self.diffs(address, plans),
        );
        let is_current = Some(status.observed_generation) == object.metadata.generation;
        Ok(Detail {
            name: address.to_string(),
            kind,
            type_name: observed::object(&object, address.is_data()).shown.type_name,
            facts: facts(&status, is_current),
            conditions: conditions(&status),
            attributes: status.attributes.into(),
            diffs,
            events,
            history,
        })
    }

    /// The events about an object, newest first.
    async fn events(&self, name: &str, kind: &str) -> Section<EventRow> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), self.namespace);
        let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
        let list = match api.list(&ListParams::default().fields(&fields).limit(MAX_EVENTS)).await {
            Ok(list) => list,
            Err(error) => return Section::unavailable(format!("events cannot be read: {}", Refusal::from(error))),
        };
        let mut rows: Vec<EventRow> = list.items.iter().map(event).collect();
        rows.sort_by(|a, b| b.when.cmp(&a.when));
        rows.into()
    }

    /// The changes in the records of an object, or of the instances of a family.
    async fn history(&self, address: &Address, is_family: bool) -> Section<HistoryRow> {
        let (client, records, random) = (self.client.clone(), Arc::clone(self.records), Arc::new(SystemRandom));
        let secrets = Secrets::new(client, records, random, Shutdown::default()).for_user();
        let read = match is_family {
            false => self.records_of(&secrets, std::iter::once(address)).await,
            true => match secrets.get_family(self.namespace, address.name(), PATIENCE).await {
                Ok(Some(family)) => self.records_of(&secrets, family.instances.iter().take(MAX_INSTANCES)).await,
                Ok(None) => Ok(Vec::new()),
                Err(error) => Err(error),
            },
        };
        match read {
            Ok(records) => {
                let records: Vec<&Record> = records.iter().map(|stored| stored.record.as_ref()).collect();
                history_list::listed(records.into_iter()).iter().map(HistoryRow::from).collect::<Vec<_>>().into()
            }
            Err(error) => Section::unavailable(format!(
                "the history is in the record, a Secret in the namespace `{}`, which cannot be read: {error}",
                self.records
            )),
        }
    }

    async fn records_of(
        &self,
        secrets: &Secrets,
        addresses: impl Iterator<Item = &Address>,
    ) -> Result<Vec<Stored>, RequestError> {
        let mut found = Vec::new();
        for address in addresses {
            match secrets.get(self.namespace, address, PATIENCE).await? {
                Some(Ok(SecretContent::Record(stored))) => found.push(stored),
                Some(Err(unreadable)) => return Err(RequestError::Rejected(unreadable.message)),
                Some(Ok(_)) | None => {}
            }
        }
        Ok(found)
    }

    /// The changes of the object in the held Plans that the user may read. One after another: each can have a megabyte.
    async fn diffs(&self, address: &Address, plans: &[String]) -> Vec<Diff> {
        let api: Api<RawObject<PlanObject>> = Api::namespaced(self.client.clone(), self.namespace);
        let mut diffs = Vec::new();
        for name in plans.iter().take(MAX_PLANS) {
            let Ok(plan) = api.get(name).await else { continue };
            let Some(spec) = observed::plan(&plan).and_then(|_| plan.spec().ok()) else { continue };
            let status = published::unpack(plan.status().unwrap_or_default());
            let Ok((status, _)) = provable(&spec, status) else { continue };
            let (changes, _) = published::read(&status);
            let shown =
                changes.into_iter().filter(|change| change.address.name() == address.name() && is_shown(change));
            diffs.extend(shown.map(|change| Diff { plan: name.clone(), text: text_of(&change) }));
        }
        diffs
    }

    pub async fn plan(&self, name: &str) -> Result<PlanDetail, Refusal> {
        let api: Api<RawObject<PlanObject>> = Api::namespaced(self.client.clone(), self.namespace);
        let plan = api.get(name).await?.plan().map_err(kube::Error::SerdeError)?;
        let status = published::unpack(plan.status.clone().unwrap_or_default());
        let (status, about) = match provable(&plan.spec, status) {
            Ok((status, coverage)) => (status, coverage.sentences()),
            Err(_) => {
                let forged = decision::forged(&plan, self.namespace).map(|(why, hint)| format!("{why} (hint: {hint})"));
                (PlanStatus::default(), forged.into_iter().collect())
            }
        };
        let (changes, diagnostics) = published::read(&status);
        let held = status.approvals.iter().flat_map(|approval| &approval.changes).chain(&plan.spec.changes);
        let held: Vec<&Address> = held.map(|change| &change.address).collect();
        let shown = changes.iter().filter(|change| is_shown(change)).map(|change| PlanChange {
            address: change.address.to_string(),
            deposed: change.deposed,
            held: change.deposed.is_none() && held.contains(&&change.address),
            text: text_of(change),
        });
        let problems = diagnostics.iter().map(|diagnostic| one_line(&diagnostic.to_string()).into_owned());
        Ok(PlanDetail {
            name: name.to_owned(),
            uid: plan.uid().unwrap_or_default(),
            digest: plan.spec.digest.clone().unwrap_or_default(),
            changes: shown.collect(),
            problems: about.into_iter().chain(published::not_shown(&status)).chain(problems).collect(),
        })
    }
}

fn text_of(change: &model::Change) -> String {
    let mut text = Text::new(false);
    write_change(change, Amount { full: true }, &mut text);
    text.as_str().to_owned()
}

fn event(event: &Event) -> EventRow {
    let series = event.series.as_ref();
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let when = series.and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0).or(last);
    let when = when.or(event.event_time.as_ref().map(|time| time.0));
    EventRow {
        when: when.map(|when| format!("{when:.0}")).unwrap_or_default(),
        warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
        count: series.and_then(|series| series.count).or(event.count).unwrap_or(1),
    }
}

fn conditions(status: &ResourceStatus) -> Vec<ConditionRow> {
    status
        .conditions
        .iter()
        .map(|condition| ConditionRow {
            kind: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: format!("{:.0}", condition.last_transition_time.0),
        })
        .collect()
}

fn facts(status: &ResourceStatus, is_current: bool) -> Vec<(&'static str, String)> {
    let pending = status.pending.clone().unwrap_or_default();
    let order = status.lifecycle.as_ref().map(|lifecycle| {
        let order = if lifecycle.create_before_destroy { "create before destroy" } else { "destroy before create" };
        if lifecycle.because.is_empty() { order.to_owned() } else { format!("{order}, {}", lifecycle.because) }
    });
    let instances = status.instances.as_ref();
    let troubled = instances.into_iter().flat_map(|instances| &instances.troubled);
    let troubled = troubled.map(|instance| format!("{} ({}): {}", instance.address, instance.reason, instance.message));
    let deposed = status.deposed.iter().map(|object| match object.waiting_for.is_empty() {
        true => format!("{}{} {}", object.instance, object.key, object.id),
        false => {
            format!("{}{} {}, waits for {}", object.instance, object.key, object.id, object.waiting_for.join(", "))
        }
    });
    let outdated = "the controller has not observed the latest change yet; the following is outdated";
    let facts = [
        ("Status", if is_current { String::new() } else { outdated.to_owned() }),
        ("Id", status.display_id.clone().or(status.id.clone()).unwrap_or_default()),
        ("Next", pending.action),
        ("Changes", pending.paths.join(", ")),
        ("Waits for", pending.waiting_for.join("\n")),
        ("Depends on", status.dependencies.join(", ")),
        ("Order", order.unwrap_or_default()),
        ("Instances", instances.map(observed::count).unwrap_or_default()),
        ("Not ready", troubled.collect::<Vec<_>>().join("\n")),
        ("Deposed", deposed.collect::<Vec<_>>().join("\n")),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests;
