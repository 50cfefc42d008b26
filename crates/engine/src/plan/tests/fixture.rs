//! A small language for the situations of the tests, and the driver of their objects.
//!
//! ```text
//! want b input=${a.id} after=c cbd      a Resource: attributes of its configuration, `dependsOn`, flags; `read-after=c`
//!                                       and `read-after-all=c`: changes of `c`, and of what it depends on, delay a read
//! have b id=B1 input=A1 uses=a          its record: attributes of the current object, its dependencies, flags;
//!                                       `matching` after `want`: it matches the Resource; `awaited`: it is not ready
//! deposed b 1 id=B0 uses=a              a deposed object
//! record b pending failed=3             other fields of the record
//! actual b missing                      the result of a read, if it differs from the record
//! read data.c input=1 output=2          the last reading of a data source: its configuration, and `output`
//! option up-to-date=a,b                 an option of the plan; `other-component=a` removes an object from the plan
//! ```
//!
//! The default type is `thing`: `input` and `secret` change in place, a change of `force` replaces the object, `id` and
//! `output` are computed. The identity of the type `named` is its `name`. A data source returns its `input` as `output`
//! unless `actual` specifies another one. The driver refuses to create an object with `actual a refused`,
//! `refused=applied:INPUT` (until an object with this input is changed) or `refused=removed:NAME`, and finds `owned`.

mod thing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use thing::plan_thing;

use crate::load::expression::Scope;
use crate::load::{
    Config, DeletionPolicy, DriftAction, Expansion, Family, Instance, InstanceKeys, Policies, ReadsAfter, Reference,
    Repeat, Repetition, Template,
};
use crate::plan::eval_scope::Evaluate;
use crate::plan::planner::Planner;
use crate::plan::{
    DriverCall, DriverRequest, DriverResponse, Mode, ObjectBlock, ObjectQuota, PendingImport, Plan, PlanOptions,
    Refresh, RunningStep, Types,
};
use model::*;

#[derive(Default)]
pub(crate) struct Fixture {
    pub config: Config,
    pub recorded: Recorded,
    pub options: PlanOptions,
    configs: BTreeMap<Address, Value>,
    reads: BTreeMap<Address, String>,
    schema: std::sync::OnceLock<Arc<Schema>>,
    pub driver_calls: Mutex<Vec<String>>,
}

pub(crate) fn schema() -> Schema {
    let attribute = |kind, optional: bool, sensitive| Attribute {
        kind,
        required: false,
        optional,
        computed: !optional,
        sensitive,
        observed_in: None,
        description: String::new(),
    };
    let any = AttributeType::Any;
    let attributes = [
        ("input", attribute(any.clone(), true, false)),
        ("force", attribute(any.clone(), true, false)),
        ("secret", attribute(any.clone(), true, true)),
        ("name", attribute(AttributeType::String, true, false)),
        ("ports", attribute(AttributeType::List(Box::new(AttributeType::Number)), true, false)),
        ("id", attribute(AttributeType::String, false, false)),
        ("output", attribute(any, false, false)),
    ];
    Schema { attributes: attributes.into_iter().map(|(name, a)| (Arc::from(name), a)).collect(), ..Schema::default() }
}

pub(crate) fn object(id: &str, uses: &[&str]) -> RecordedObject {
    RecordedObject {
        value: Value::map([("id", Value::from(id))]),
        dependencies: uses.iter().map(|used| used.parse().unwrap()).collect(),
        ..RecordedObject::default()
    }
}

pub(crate) fn instance(address: Address) -> Instance {
    Instance::plain(address, "thing")
}

/// Words of the form `word` or `name=value`. A value is JSON if it parses as JSON.
struct Words<'t>(Vec<(&'t str, Option<&'t str>)>);

impl<'t> Words<'t> {
    fn of(words: impl Iterator<Item = &'t str>) -> Self {
        Self(words.map(|word| word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))).collect())
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|(name, _)| *name == word)
    }

    fn get(&self, name: &str) -> Option<&'t str> {
        self.0.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value)
    }

    fn addresses(&self, name: &str) -> Vec<Address> {
        let list = self.get(name).unwrap_or_default();
        list.split(',').filter(|text| !text.is_empty()).map(|text| text.parse().unwrap()).collect()
    }

    fn attributes(&self) -> Value {
        let names = ["input", "force", "secret", "name", "ports", "id", "output", "inptu"];
        let known = self.0.iter().filter(|(name, value)| names.contains(name) && value.is_some());
        Value::map(known.map(|(name, value)| (*name, literal(value.unwrap_or_default()))))
    }
}

fn literal(text: &str) -> Value {
    serde_json::from_str(text).map_or_else(|_| Value::from(text), Value::from_json)
}

impl Fixture {
    pub fn parse(situation: &str) -> Self {
        let mut fixture = Self::default();
        fixture.options.destroy_orphans = true;
        for line in situation.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let (kind, name) = (words.next().unwrap(), words.next().unwrap_or_default());
            match kind {
                "want" => fixture.want(name.parse().unwrap(), &Words::of(words)),
                "have" => fixture.have(name.parse().unwrap(), &Words::of(words)),
                "deposed" => fixture.deposed(name.parse().unwrap(), words.next().unwrap(), &Words::of(words)),
                "read" => fixture.read(name.parse().unwrap(), &Words::of(words)),
                "record" => fixture.set_record(name.parse().unwrap(), &Words::of(words)),
                "actual" => drop(fixture.reads.insert(name.parse().unwrap(), words.next().unwrap().to_owned())),
                "health" => drop(fixture.options.health.insert(name.parse().unwrap(), super::health(words.next()))),
                "option" => fixture.option(name),
                other => panic!("unknown line: {other}"),
            }
        }
        fixture.add_families();
        fixture
    }

    /// Adds a family for each name whose instances have keys.
    fn add_families(&mut self) {
        let mut members: BTreeMap<Stem, Vec<Arc<Instance>>> = BTreeMap::new();
        for (address, instance) in &self.config.instances {
            if address.key != InstanceKey::None {
                members.entry(address.stem.clone()).or_default().push(instance.clone());
            }
        }
        for (name, members) in members {
            let literal = Template::literal(Value::Null);
            let (repeat, known) = match &members[0].address.key {
                InstanceKey::Key(_) => (Repeat::ForEach(literal), InstanceKeys::Keys(BTreeMap::new())),
                _ => (Repeat::Count(literal), InstanceKeys::Count(members.len() as u64)),
            };
            let repetition = Repetition { repeat: Some(repeat), enabled: None, import: None, references: Arc::new([]) };
            let address = Address::single(name.clone());
            let repetition = Some(Arc::new(repetition));
            let shared = Arc::new(Instance { address, repetition, ..members[0].as_ref().clone() });
            let family = Family { shared, expansion: Expansion::Known(known) };
            self.config.families.insert(name, Arc::new(family));
        }
    }

    fn want(&mut self, address: Address, words: &Words<'_>) {
        let attributes = words.attributes();
        let mut references = Vec::new();
        for (name, value) in entries(&attributes) {
            let at = Path::default().name("spec").name("config").name(name.clone());
            find_references(value, &at, &mut references);
        }
        for (place, target) in words.addresses("after").into_iter().enumerate() {
            let at = Path::default().name("spec").name("dependsOn").index(place);
            references.push(Reference { target, at, explicit: true, selector: None, segments: Arc::default() });
        }
        references.sort();
        let mut resource = instance(address.clone());
        resource.references = references.into();
        let delayed: Vec<ReadsAfter> = [("read-after", false), ("read-after-all", true)]
            .into_iter()
            .flat_map(|(word, transitive)| {
                words.addresses(word).into_iter().map(move |target| ReadsAfter { target, transitive })
            })
            .collect();
        resource.reads_after = (!delayed.is_empty()).then(|| delayed.into());
        resource.type_name = words.get("type").unwrap_or("thing").into();
        resource.create_before_destroy =
            if words.has("cbd") { Some(true) } else { words.has("nocbd").then_some(false) };
        resource.prevent_destroy = words.has("protect");
        resource.deletion_policy = if words.has("orphan") { DeletionPolicy::Orphan } else { DeletionPolicy::Delete };
        resource.import = words.get("import").map(|id| ImportRequest::Id(id.into()));
        if words.has("observe") {
            resource.policies = Policies { create: false, update: false, replace: false, delete: false };
        }
        resource.drift.action = match words.get("drift") {
            Some("report") => DriftAction::Report,
            Some("ignore") => DriftAction::Ignore,
            _ => resource.drift.action,
        };
        resource.suspended = words.has("suspended");
        resource.deleting = words.has("deleting");
        resource.replace_requested = words.get("request").unwrap_or_default().into();
        resource.uid = words.get("uid").unwrap_or_default().into();
        resource.record_annotation = words.get("annotation").unwrap_or_default().into();
        if let Some(problem) = words.get("problem") {
            resource.problems.push(Diagnostic::error(&address, Reason::InvalidManifest, problem));
        }
        self.configs.insert(address.clone(), attributes);
        self.config.instances.insert(address, Arc::new(resource));
    }

    pub fn set_config(&mut self, address: Address, config: Value) {
        self.configs.insert(address, config);
    }

    fn record(&mut self, address: &Address) -> &mut Record {
        let instance = self.config.instances.get(address);
        let type_name = instance.map_or("thing".into(), |instance| instance.type_name.clone());
        let uid = instance.map_or("".into(), |instance| instance.uid.clone());
        let empty = || Stored {
            record: Arc::new(Record::empty("ns".into(), address.clone(), uid, type_name)),
            version: Version(1),
        };
        Arc::make_mut(&mut self.recorded.entry(address.clone()).or_insert_with(empty).record)
    }

    fn have(&mut self, address: Address, words: &Words<'_>) {
        let mut recorded = recorded_object(&address, words);
        if let Some(config) = self.configs.get(&address).filter(|_| words.has("matching")) {
            let (config, _) = crate::plan::conform::conform(&address, config.clone(), &schema());
            recorded.matching_config = ConfigDigest::new(&config, recorded.revision);
        }
        let recorded = Arc::new(recorded);
        let record = self.record(&address);
        if let Some(type_name) = words.get("type") {
            record.type_name = type_name.into();
        }
        record.current = Some(recorded);
    }

    fn deposed(&mut self, address: Address, key: &str, words: &Words<'_>) {
        let recorded = Arc::new(recorded_object(&address, words));
        self.record(&address).deposed.insert(DeposedKey(key.parse().unwrap()), recorded);
    }

    fn read(&mut self, address: Address, words: &Words<'_>) {
        let attributes = words.attributes();
        let given = entries(&attributes).into_iter().filter(|(name, _)| **name != *"output");
        let config = Value::map(given.map(|(name, value)| (name, value.clone())));
        let (config, _) = crate::plan::conform::conform(&address, config, &schema());
        let value = config.clone().with("output", attributes.get("output").cloned().unwrap_or_default());
        let service_account = words.get("as").unwrap_or_default().into();
        self.options.readings.insert(address, Arc::new(ReadResult { config, provider: None, service_account, value }));
    }

    fn set_record(&mut self, address: Address, words: &Words<'_>) {
        let record = self.record(&address);
        record.replacement_pending = words.has("pending");
        record.failed_creates = words.get("failed").map_or(0, |count| count.parse().unwrap());
        record.handled_replace_request = words.get("handled").unwrap_or_default().into();
        record.handled_import = words.get("imported").unwrap_or_default().into();
        words.get("uid").into_iter().for_each(|uid| record.uid = uid.into());
        if words.has("intent") {
            record.intent = Some(Box::new(Intent {
                operation: Operation::Create,
                operation_id: "".into(),
                holder: Holder { pod: "".into(), process: "".into() },
                epoch: 1,
                started: jiff::Timestamp::UNIX_EPOCH,
                deadline: jiff::Timestamp::UNIX_EPOCH,
                deposed: None,
                planned: None,
                import: None,
                cause: Cause::default(),
            }));
        }
    }

    /// Moves an object to another component, which the plan does not cover.
    fn move_to_other_component(&mut self, address: &Address, started: bool) {
        let instance = self.config.instances.remove(address);
        let other_components = &mut self.options.other_components;
        if let Some(stored) = self.recorded.remove(address) {
            other_components.records.push((stored, instance.is_some()));
        } else if let Some(instance) = instance {
            let (type_name, request) = (instance.type_name.clone(), instance.import.clone().unwrap());
            other_components.imports.push(PendingImport { address: address.clone(), type_name, request, started });
        }
    }

    fn option(&mut self, text: &str) {
        let words = Words::of(std::iter::once(text));
        let (name, value) = words.0[0];
        let held = |reason, message: &str| ObjectBlock { reason, message: message.to_owned() };
        let options = &mut self.options;
        match name {
            "destroy" => options.mode = Mode::Destroy,
            "cluster" => options.destroy_orphans = false,
            "no-refresh" => options.refresh = Refresh::None,
            "due" => options.refresh = Refresh::Due(words.addresses("due").into_iter().collect()),
            "preview" => options.preview = true,
            "terminating" => options.namespace_terminating = true,
            "quota" => {
                options.object_quota = value.map(|left| ObjectQuota { limit: 10, left: left.parse().unwrap() });
            }
            "cap" => options.max_failed_creates = value.map(|cap| cap.parse().unwrap()),
            "up-to-date" => options.up_to_date = words.addresses("up-to-date").into_iter().collect(),
            "indexed" => options.indexed = words.addresses("indexed").into_iter().collect(),
            "rebuilt-index" => options.rebuilt_indexes = value.map(Into::into).into_iter().collect(),
            "replace" => options.replace = words.addresses("replace").into_iter().collect(),
            "target" => options.targets = words.addresses("target").into_iter().collect(),
            "keep" => {
                let reason = Reason::CustomResourceDefinitionTerminating;
                options.hold_destroys = Some(held(reason, "a CRD is being deleted"));
            }
            "held" | "unknown-outcome" | "closed" => {
                let reason = match name {
                    "held" => Reason::OperationFailed,
                    "closed" => Reason::PostconditionFailed,
                    _ => Reason::CreateOutcomeUnknown,
                };
                let all = words.addresses(name).into_iter();
                options.blocked = all.map(|address| (address, held(reason, "it failed and backs off"))).collect();
            }
            "other-component" => {
                words
                    .addresses("other-component")
                    .iter()
                    .for_each(|address| self.move_to_other_component(address, false));
            }
            "started-in-other-component" => {
                words
                    .addresses("started-in-other-component")
                    .iter()
                    .for_each(|address| self.move_to_other_component(address, true));
            }
            "incomplete" => {
                let problem = Diagnostic::general(Reason::InvalidManifest, "b.yaml cannot be read");
                self.config.incomplete.push(problem);
            }
            "creating" | "destroying" | "updating" => {
                let operation = match name {
                    "creating" => Operation::Create,
                    "updating" => Operation::Update,
                    _ => Operation::Destroy,
                };
                for address in words.addresses(name) {
                    let step = Step { address, deposed: None, operation, replaces: false };
                    let planned = Value::map([("id", Value::Unknown), ("input", Value::from(9))]);
                    let planned = (operation != Operation::Destroy).then_some(planned);
                    options.running.push(RunningStep {
                        step,
                        planned,
                        recorded: None,
                        record_only: false,
                        reported_drift: None,
                    });
                }
            }
            other => panic!("unknown option: {other}"),
        }
    }

    /// Plans with the driver of the fixture.
    pub fn plan(&self) -> Plan {
        let mut planner = Planner::with_evaluator(&self.config, &self.recorded, &self.options, self, self);
        loop {
            let asks = planner.ready_calls();
            if asks.is_empty() {
                return planner.finish();
            }
            for ask in asks {
                let reply = self.reply(&ask);
                planner.handle_response(ask.id, reply);
            }
        }
    }

    pub fn reply(&self, ask: &DriverCall) -> DriverResponse {
        let actual = self.reads.get(&ask.address).map(String::as_str);
        let failed = |message: &str| DriverError {
            kind: ErrorKind::Transient,
            message: message.to_owned(),
            path: None,
            hint: None,
        };
        match &ask.request {
            DriverRequest::Read(object) => {
                self.driver_calls.lock().unwrap().push(format!("read {}", ask.address));
                let state = |value| ObjectState { value, ..object.as_ref().into() };
                DriverResponse::Object(
                    Vec::new(),
                    match actual.and_then(|actual| actual.split_once('=').or(Some((actual, "")))) {
                        Some(("missing", _)) => Ok(None),
                        Some(("unreadable", _)) => Err(failed("no connection")),
                        Some((name @ ("input" | "output"), value)) => {
                            Ok(Some(state(object.value.without_marks().with(name, literal(value)))))
                        }
                        _ => Ok(Some(state(object.value.without_marks()))),
                    },
                    "".into(),
                )
            }
            DriverRequest::Copies(_) => DriverResponse::Copies(false),
            DriverRequest::Data { config, read } => {
                self.driver_calls.lock().unwrap().push(format!(
                    "{} {}",
                    if *read { "read" } else { "check" },
                    ask.address
                ));
                let found = match actual.and_then(|actual| actual.split_once('=').or(Some((actual, "")))) {
                    _ if !read => Ok(Value::Unknown),
                    Some(("unreadable", _)) => Err(failed("no connection")),
                    Some(("output", value)) => Ok(literal(value)),
                    _ => Ok(config.without_marks().get("input").cloned().unwrap_or_default()),
                };
                DriverResponse::Data(Vec::new(), found.map(|found| Some(config.without_marks().with("output", found))))
            }
            DriverRequest::Import(id) => {
                self.driver_calls.lock().unwrap().push(format!("import {}", ask.address));
                let value = Value::map([("id", Value::from(id.to_string().as_str())), ("input", Value::from(1))]);
                let state = ObjectState { value, private: Arc::new([]), identity: None, health: None };
                DriverResponse::Object(Vec::new(), Ok((actual != Some("missing")).then_some(state)), "".into())
            }
            DriverRequest::Plan(request) => {
                let new = if request.prior.is_some() { "change" } else { "new" };
                self.driver_calls.lock().unwrap().push(format!("plan {} {new}", ask.address));
                match actual {
                    Some("unplannable") => DriverResponse::Planned(Vec::new(), Err(failed("no connection")), "".into()),
                    Some("invalid") => {
                        let refused = Diagnostic::error(&ask.address, Reason::InvalidConfig, "is refused");
                        DriverResponse::Planned(vec![refused.at(Path::default().name("input"))], Ok(None), "".into())
                    }
                    _ => {
                        let response = plan_thing(&ask.type_name, request, actual);
                        DriverResponse::Planned(Vec::new(), Ok(Some(response)), "".into())
                    }
                }
            }
        }
    }

    pub fn plan_as_text(&self) -> String {
        let plan = self.plan();
        let mut lines: Vec<String> = plan.changes().map(line).collect();
        for problem in &plan.diagnostics {
            let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
            let blocked = plan.changes().any(|change| change.message == problem.message());
            let place = problem.address.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            let message = if blocked { String::new() } else { format!(": {}", problem.message()) };
            lines.push(format!("{severity} {place} {}{message}", problem.reason));
        }
        lines.join("\n")
    }
}

fn recorded_object(address: &Address, words: &Words<'_>) -> RecordedObject {
    let uses: Vec<String> = words.addresses("uses").iter().map(ToString::to_string).collect();
    let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
    let mut recorded = object("", &uses);
    recorded.value = words.attributes();
    if recorded.value.get("id").is_none() {
        recorded.value = recorded.value.with("id", Value::from(address.to_string().to_uppercase().as_str()));
    }
    if words.get("type") == Some("named") {
        recorded.identity = recorded.value.get("name").cloned();
    }
    if let Some(secret) = recorded.value.get("secret").cloned() {
        recorded.value = recorded.value.with("secret", secret.into_sensitive());
    }
    recorded.create_before_destroy = words.has("cbd");
    recorded.prevent_destroy = words.has("protect");
    recorded.skip_destroy = words.has("skip");
    if words.has("changed") {
        recorded.revision = Revision::new(1, "changed");
    }
    recorded.hooks_pending = words.has("hooking");
    let until = jiff::Timestamp::UNIX_EPOCH;
    recorded.readiness = words.has("awaited").then_some(Readiness { until, is_new: true, deposed: None });
    if words.has("tainted") {
        recorded.status = ObjectStatus::Tainted;
    } else if words.has("interrupted") {
        recorded.status = ObjectStatus::Interrupted;
    }
    recorded
}

fn entries(value: &Value) -> Vec<(Arc<str>, &Value)> {
    match value {
        Value::Map(map) => map.iter().map(|(name, item)| (name.clone(), item)).collect(),
        _ => Vec::new(),
    }
}

fn find_references(value: &Value, at: &Path, found: &mut Vec<Reference>) {
    match value {
        Value::String(text) => {
            let expression = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
            if let Some(expression) = expression {
                let (target, _) = split(expression);
                found.push(Reference {
                    target,
                    at: at.clone(),
                    explicit: false,
                    selector: None,
                    segments: Arc::default(),
                });
            }
        }
        Value::List(items) => items.iter().for_each(|item| find_references(item, at, found)),
        _ => {}
    }
}

/// Splits `name.attribute` or `data.name.attribute` into the address and the path.
fn split(expression: &str) -> (Address, Path) {
    let own = if expression.starts_with("data.") { "data.".len() } else { 0 };
    let end = expression[own..].find('.').map_or(expression.len(), |at| own + at);
    let path = expression[end..].split('.').skip(1).map(|part| Segment::Name(part.into()));
    (expression[..end].parse().unwrap(), Path(path.collect()))
}

impl Evaluate for Fixture {
    fn evaluate(&self, instance: &Instance, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        resolve(&self.configs[&instance.address], scope, &Path::default())
    }
}

fn resolve(value: &Value, scope: &dyn Scope, at: &Path) -> Result<Value, Diagnostics> {
    match value {
        Value::Map(map) => {
            let item =
                |(name, item): (&Arc<str>, &Value)| Ok((name.clone(), resolve(item, scope, &at.name(name.clone()))?));
            Ok(Value::map(map.iter().map(item).collect::<Result<Vec<_>, Diagnostics>>()?))
        }
        Value::List(items) => {
            Ok(Value::list(items.iter().map(|item| resolve(item, scope, at)).collect::<Result<Vec<_>, _>>()?))
        }
        Value::String(text) if text.starts_with("${") => {
            let (target, path) = split(&text[2..text.len() - 1]);
            let found = scope.object(&target).and_then(|object| object.at(&path));
            found.ok_or_else(|| {
                let what = format!("`{text}` has no value");
                vec![Diagnostic::general(Reason::InvalidExpression, what).at(at.clone())]
            })
        }
        other => Ok(other.clone()),
    }
}

impl Types for Fixture {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        matches!(type_name, "thing" | "named").then(|| self.schema.get_or_init(|| Arc::new(schema())).clone())
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.schema(type_name, provider)
    }
}

/// A change as a line: address, action, reason, replacement paths and planned value.
fn line(change: &Change) -> String {
    let deposed = change.deposed.map(|key| format!("#{}", key.0)).unwrap_or_default();
    let mut text = format!("{}{deposed} {:?}", change.address, change.action);
    if let Some(order) = change.order {
        text.push_str(&format!(" {order:?}"));
    }
    if change.forget {
        text.push_str(" forget");
    }
    if let Some(because) = &change.because {
        text.push_str(&format!(" ({because})"));
    }
    if !change.replace_paths.is_empty() {
        let paths: Vec<String> = change.replace_paths.iter().map(ToString::to_string).collect();
        text.push_str(&format!(" [{}]", paths.join(", ")));
    }
    if matches!(change.action, Action::Create | Action::Update | Action::Replace)
        && let Some(after) = &change.after
    {
        text.push_str(&format!(" {}", shown(after)));
    }
    if let Some(reason) = change.blocked.or(change.hold_destroy) {
        let hold = if change.hold_destroy.is_some() { "holds its destroy: " } else { "" };
        text.push_str(&format!(" {hold}{reason}: {}", change.message));
    }
    if !change.waiting_for.is_empty() {
        let names: Vec<String> = change.waiting_for.iter().map(ToString::to_string).collect();
        text.push_str(&format!(" <- {}", names.join(", ")));
    }
    text
}

fn shown(value: &Value) -> String {
    match value {
        Value::Unknown => "?".to_owned(),
        Value::Sensitive(_) => "***".to_owned(),
        Value::Map(map) => {
            let items: Vec<String> = map.iter().map(|(name, item)| format!("{name}={}", shown(item))).collect();
            format!("{{{}}}", items.join(" "))
        }
        Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.to_string(),
        other => other.to_json().to_string(),
    }
}
