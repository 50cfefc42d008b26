//! A small language for situations, and a driver that plays them.
//!
//! ```text
//! want b input=${a.id} after=c cbd      a Resource: attributes of its configuration, `dependsOn`, settings
//! have b id=B1 input=A1 uses=a          its record: attributes of the current object, its dependencies, flags; `agreed`
//!                                       after `want`: with what is wanted
//! left b 1 id=B0 uses=a                 a leftover of it
//! record b pending failed=3             other parts of the record
//! world b gone                          what reading it finds, when not what is recorded
//! read data.c input=1 output=2          what a data source gave before: its configuration, and `output`
//! option settled=a,b                    options of the plan; `elsewhere=a`: what it does not cover
//! ```
//!
//! The type is `thing` unless `type=` says otherwise: `input` and `secret` change in place, `force` does not, `id` and
//! `output` are computed. A `named` thing is found by its `name`. A data source gives its `input` as `output`, unless
//! `world` says otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::load::expression::Scope;
use crate::load::{
    Config, DeletionPolicy, Expansion, Family, Instance, Members, Reference, Repeat, Repetition, Template,
};
use crate::model::*;
use crate::plan::planner::Planner;
use crate::plan::seen::Evaluate;
use crate::plan::{Ask, Held, Mode, PendingImport, Plan, PlanOptions, Question, Refresh, Reply, RunningStep, Types};

#[derive(Default)]
pub(crate) struct World {
    pub config: Config,
    pub recorded: Recorded,
    pub options: PlanOptions,
    configs: BTreeMap<Address, Value>,
    reads: BTreeMap<Address, String>,
    schema: std::sync::OnceLock<Arc<Schema>>,
    pub asked: Mutex<Vec<String>>,
}

pub(crate) fn schema() -> Schema {
    let attribute = |kind, optional: bool, sensitive| Attribute {
        kind,
        required: false,
        optional,
        computed: !optional,
        sensitive,
        shown_in: None,
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
    Schema { version: 0, attributes: attributes.into_iter().map(|(name, a)| (Arc::from(name), a)).collect() }
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

/// `word` or `name=value`; the value is JSON where it parses.
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

impl World {
    pub fn parse(situation: &str) -> Self {
        let mut world = Self::default();
        world.options.destroy_orphans = true;
        for line in situation.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let (kind, name) = (words.next().unwrap(), words.next().unwrap_or_default());
            match kind {
                "want" => world.want(name.parse().unwrap(), &Words::of(words)),
                "have" => world.have(name.parse().unwrap(), &Words::of(words)),
                "left" => world.left(name.parse().unwrap(), words.next().unwrap(), &Words::of(words)),
                "read" => world.read(name.parse().unwrap(), &Words::of(words)),
                "record" => world.tune(name.parse().unwrap(), &Words::of(words)),
                "world" => drop(world.reads.insert(name.parse().unwrap(), words.next().unwrap().to_owned())),
                "option" => world.option(name),
                other => panic!("unknown line: {other}"),
            }
        }
        world.found_families();
        world
    }

    /// Instances with keys belong to a family of literal keys.
    fn found_families(&mut self) {
        let mut members: BTreeMap<Arc<str>, Vec<Arc<Instance>>> = BTreeMap::new();
        for (address, instance) in &self.config.instances {
            if address.key != InstanceKey::None {
                members.entry(address.name.clone()).or_default().push(instance.clone());
            }
        }
        for (name, members) in members {
            let literal = Template::literal(Value::Null);
            let (repeat, known) = match &members[0].address.key {
                InstanceKey::Key(_) => (Repeat::ForEach(literal), Members::Keys(BTreeMap::new())),
                _ => (Repeat::Count(literal), Members::Count(members.len() as u64)),
            };
            let repetition = Repetition { repeat: Some(repeat), enabled: None, references: Arc::new([]) };
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
            references.push(Reference { target, at, explicit: true, choice: None });
        }
        references.sort();
        let mut made = instance(address.clone());
        made.references = references.into();
        made.type_name = words.get("type").unwrap_or("thing").into();
        made.create_before_destroy = if words.has("cbd") { Some(true) } else { words.has("nocbd").then_some(false) };
        made.prevent_destroy = words.has("protect");
        made.deletion_policy = if words.has("orphan") { DeletionPolicy::Orphan } else { DeletionPolicy::Delete };
        made.import = words.get("import").map(|id| ImportRequest::Id(id.into()));
        made.suspended = words.has("suspended");
        made.deleting = words.has("deleting");
        made.replace_requested = words.get("request").unwrap_or_default().into();
        made.uid = words.get("uid").unwrap_or_default().into();
        made.record_annotation = words.get("annotation").unwrap_or_default().into();
        if let Some(problem) = words.get("problem") {
            made.problems.push(Diagnostic::error(&address, Reason::InvalidManifest, problem));
        }
        self.configs.insert(address.clone(), attributes);
        self.config.instances.insert(address, Arc::new(made));
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
        let mut made = recorded_object(&address, words);
        if let Some(config) = self.configs.get(&address).filter(|_| words.has("agreed")) {
            let (config, _) = crate::plan::conform::conform(&address, config.clone(), &schema());
            made.agrees_with = ConfigDigest::new(&config, made.revision);
        }
        let made = Arc::new(made);
        let record = self.record(&address);
        if let Some(type_name) = words.get("type") {
            record.type_name = type_name.into();
        }
        record.current = Some(made);
    }

    fn left(&mut self, address: Address, key: &str, words: &Words<'_>) {
        let made = Arc::new(recorded_object(&address, words));
        self.record(&address).deposed.insert(DeposedKey(key.parse().unwrap()), made);
    }

    fn read(&mut self, address: Address, words: &Words<'_>) {
        let said = words.attributes();
        let given = entries(&said).into_iter().filter(|(name, _)| **name != *"output");
        let config = Value::map(given.map(|(name, value)| (name, value.clone())));
        let (config, _) = crate::plan::conform::conform(&address, config, &schema());
        let value = config.clone().with("output", said.get("output").cloned().unwrap_or_default());
        let service_account = words.get("as").unwrap_or_default().into();
        self.options.readings.insert(address, Arc::new(Reading { config, provider: None, service_account, value }));
    }

    fn tune(&mut self, address: Address, words: &Words<'_>) {
        let record = self.record(&address);
        record.replacement_pending = words.has("pending");
        record.failed_creates = words.get("failed").map_or(0, |count| count.parse().unwrap());
        record.handled_replace_request = words.get("handled").unwrap_or_default().into();
        if let Some(uid) = words.get("uid") {
            record.uid = uid.into();
        }
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
            }));
        }
    }

    /// Takes an object out of what the plan covers.
    fn move_elsewhere(&mut self, address: &Address, begun: bool) {
        let wanted = self.config.instances.remove(address);
        let elsewhere = &mut self.options.elsewhere;
        if let Some(stored) = self.recorded.remove(address) {
            elsewhere.records.push((stored, wanted.is_some()));
        } else if let Some(instance) = wanted {
            let (type_name, request) = (instance.type_name.clone(), instance.import.clone().unwrap());
            elsewhere.imports.push(PendingImport { address: address.clone(), type_name, request, begun });
        }
    }

    fn option(&mut self, text: &str) {
        let words = Words::of(std::iter::once(text));
        let (name, value) = words.0[0];
        let held = |reason, message: &str| Held { reason, message: message.to_owned() };
        let options = &mut self.options;
        match name {
            "destroy" => options.mode = Mode::Destroy,
            "cluster" => options.destroy_orphans = false,
            "no-refresh" => options.refresh = Refresh::None,
            "due" => options.refresh = Refresh::Due(words.addresses("due").into_iter().collect()),
            "terminating" => options.namespace_terminating = true,
            "cap" => options.max_failed_creates = value.map(|cap| cap.parse().unwrap()),
            "settled" => options.settled = words.addresses("settled").into_iter().collect(),
            "replace" => options.replace = words.addresses("replace").into_iter().collect(),
            "target" => options.targets = words.addresses("target").into_iter().collect(),
            "keep" => {
                let reason = Reason::CustomResourceDefinitionDeleted;
                options.hold_destroys = Some(held(reason, "a CRD is being deleted"));
            }
            "held" | "unknown-outcome" | "closed" => {
                let reason = match name {
                    "held" => Reason::OperationFailed,
                    "closed" => Reason::PostconditionFailed,
                    _ => Reason::CreateOutcomeUnknown,
                };
                let all = words.addresses(name).into_iter();
                options.held = all.map(|address| (address, held(reason, "it failed and backs off"))).collect();
            }
            "elsewhere" => words.addresses("elsewhere").iter().for_each(|address| self.move_elsewhere(address, false)),
            "begun-elsewhere" => {
                words.addresses("begun-elsewhere").iter().for_each(|address| self.move_elsewhere(address, true));
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
                    options.running.push(RunningStep { step, planned, recorded: None, only_follows: false });
                }
            }
            other => panic!("unknown option: {other}"),
        }
    }

    /// Plans with the played driver.
    pub fn plan(&self) -> Plan {
        let mut planner = Planner::with_evaluator(&self.config, &self.recorded, &self.options, self, self);
        loop {
            let asks = planner.ready();
            if asks.is_empty() {
                return planner.finish();
            }
            for ask in asks {
                let reply = self.reply(&ask);
                planner.answer(ask.id, reply);
            }
        }
    }

    pub fn reply(&self, ask: &Ask) -> Reply {
        let said = self.reads.get(&ask.address).map(String::as_str);
        let failed = |message: &str| DriverError {
            kind: ErrorKind::Transient,
            message: message.to_owned(),
            path: None,
            hint: None,
        };
        match &ask.question {
            Question::Read(object) => {
                self.asked.lock().unwrap().push(format!("read {}", ask.address));
                let state =
                    |value| ObjectState { value, private: object.private.clone(), identity: object.identity.clone() };
                Reply::Object(
                    Vec::new(),
                    match said.and_then(|said| said.split_once('=').or(Some((said, "")))) {
                        Some(("gone", _)) => Ok(None),
                        Some(("unreadable", _)) => Err(failed("no connection")),
                        Some((name @ ("input" | "output"), value)) => {
                            Ok(Some(state(object.value.without_marks().with(name, literal(value)))))
                        }
                        _ => Ok(Some(state(object.value.without_marks()))),
                    },
                    "".into(),
                )
            }
            Question::Copies(_) => Reply::Copies(false),
            Question::Data { config, read } => {
                self.asked.lock().unwrap().push(format!("{} {}", if *read { "read" } else { "check" }, ask.address));
                let found = match said.and_then(|said| said.split_once('=').or(Some((said, "")))) {
                    _ if !read => Ok(Value::Unknown),
                    Some(("unreadable", _)) => Err(failed("no connection")),
                    Some(("output", value)) => Ok(literal(value)),
                    _ => Ok(config.without_marks().get("input").cloned().unwrap_or_default()),
                };
                Reply::Data(Vec::new(), found.map(|found| Some(config.without_marks().with("output", found))))
            }
            Question::Import(id) => {
                self.asked.lock().unwrap().push(format!("import {}", ask.address));
                let value = Value::map([("id", Value::from(id.to_string().as_str())), ("input", Value::from(1))]);
                let state = ObjectState { value, private: Arc::new([]), identity: None };
                Reply::Object(Vec::new(), Ok((said != Some("missing")).then_some(state)), "".into())
            }
            Question::Plan(request) => {
                let new = if request.prior.is_some() { "change" } else { "new" };
                self.asked.lock().unwrap().push(format!("plan {} {new}", ask.address));
                match said {
                    Some("unplannable") => Reply::Planned(Vec::new(), Err(failed("no connection"))),
                    Some("invalid") => {
                        let refused = Diagnostic::error(&ask.address, Reason::InvalidConfig, "is refused");
                        Reply::Planned(vec![refused.at(Path::default().name("input"))], Ok(None))
                    }
                    _ => Reply::Planned(Vec::new(), Ok(Some(plan_thing(&ask.type_name, request, said)))),
                }
            }
        }
    }

    pub fn plan_as_text(&self) -> String {
        let plan = self.plan();
        let mut lines: Vec<String> = plan.changes.iter().map(line).collect();
        for problem in &plan.diagnostics {
            let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
            let blocked = plan.changes.iter().any(|change| change.message == problem.message());
            let place = problem.address.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            let told = if blocked { String::new() } else { format!(": {}", problem.message()) };
            lines.push(format!("{severity} {place} {}{told}", problem.reason));
        }
        lines.join("\n")
    }
}

fn recorded_object(address: &Address, words: &Words<'_>) -> RecordedObject {
    let uses: Vec<String> = words.addresses("uses").iter().map(ToString::to_string).collect();
    let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
    let mut made = object("", &uses);
    made.value = words.attributes();
    if made.value.get("id").is_none() {
        made.value = made.value.with("id", Value::from(address.to_string().to_uppercase().as_str()));
    }
    if words.get("type") == Some("named") {
        made.identity = made.value.get("name").cloned();
    }
    if let Some(secret) = made.value.get("secret").cloned() {
        made.value = made.value.with("secret", secret.into_sensitive());
    }
    made.create_before_destroy = words.has("cbd");
    made.prevent_destroy = words.has("protect");
    made.skip_destroy = words.has("skip");
    made.hooks_pending = words.has("hooking");
    if words.has("tainted") {
        made.status = ObjectStatus::Tainted;
    } else if words.has("interrupted") {
        made.status = ObjectStatus::Interrupted;
    }
    made
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
                found.push(Reference { target, at: at.clone(), explicit: false, choice: None });
            }
        }
        Value::List(items) => items.iter().for_each(|item| find_references(item, at, found)),
        _ => {}
    }
}

/// The object that `name.attribute` or `data.name.attribute` is about, and what of it.
fn split(expression: &str) -> (Address, Path) {
    let own = if expression.starts_with("data.") { "data.".len() } else { 0 };
    let end = expression[own..].find('.').map_or(expression.len(), |at| own + at);
    let path = expression[end..].split('.').skip(1).map(|part| Segment::Name(part.into()));
    (expression[..end].parse().unwrap(), Path(path.collect()))
}

impl Evaluate for World {
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

impl Types for World {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        let schema = || self.schema.get_or_init(|| Arc::new(schema())).clone();
        matches!(type_name, "thing" | "named").then(schema)
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.schema(type_name, provider)
    }
}

fn plan_thing(type_name: &str, request: &PlanRequest, said: Option<&str>) -> PlanResponse {
    let config = request.config.without_marks();
    let mut requires_replace = Vec::new();
    let mut planned = match &request.prior {
        None => config.clone().with("id", Value::Unknown).with("output", Value::Unknown),
        Some(prior) => {
            let prior = prior.value.without_marks();
            let of = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
            let mut planned = config.clone().with("id", of(&prior, "id"));
            if of(&config, "input").same(&of(&prior, "input")) && !config.has_unknown() {
                if let Some(output) = prior.get("output") {
                    planned = planned.with("output", output.clone());
                }
            } else {
                planned = planned.with("output", Value::Unknown);
            }
            for name in ["force", "name"] {
                requires_replace.push(Path::default().name(name));
            }
            planned
        }
    };
    match said {
        Some("breaks-contract") => planned = planned.with("input", Value::from("something else")),
        Some("odd-path") => requires_replace.push(Path::default().name("nowhere")),
        _ => {}
    }
    let identity = planned.get("name").filter(|name| type_name == "named" && !name.has_unknown()).cloned();
    PlanResponse { planned, requires_replace, identity, ..PlanResponse::default() }
}

/// A change as a line: sign, address, why, replace paths, planned value.
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
