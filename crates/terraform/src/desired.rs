//! The Resources of a configuration.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use configuration::module::IgnoreChanges;
use configuration::{
    BlockKeys, Dependency, EvaluatedImport, Evaluation, InstanceAddress, Key, KeyKind, KnownBlock, Mode, ModulePath,
    Object, ProviderAddress, ResourceAddress, ResourceName, Trigger,
};
use engine::load::{
    self, Condition, DeletionPolicy, Expansion, Family, Hook, Inputs, Instance, InstanceKeys, InstanceSelector, Lines,
    MovedFrom, ProgramResources, ProviderConfig, ReadsAfter, Reference, Repeat, Repetition, Template,
};
use model::{Address, IgnoredChange, Name, Path, Record, Segment, Source, Stem, Value};

use crate::program::{Shared, Use};
use crate::providers::config_name;
use crate::provisioners::Provisioned;
use crate::templates::{Attribute, Body, Keys, Postconditions, ProviderBody, Repeated, keys_value, template};
use crate::{address, moved, problem, provisioners, value};

/// The blocks and calls that are known.
pub struct Blocks {
    /// Each with what its instances share in their addresses.
    resources: HashMap<ResourceAddress, (KnownBlock, Stem)>,
    calls: BTreeMap<(ModulePath, Arc<str>), KnownBlock>,
}

impl Blocks {
    /// `name` is that of the configuration.
    pub fn of(name: &Name, evaluation: &Evaluation) -> Self {
        let (mut resources, mut calls) = (HashMap::new(), BTreeMap::new());
        for block in evaluation.blocks() {
            match (&block.resource, &block.call) {
                (Some(resource), _) => {
                    let address = ResourceAddress { module: block.module.clone(), resource: resource.clone() };
                    let stem = address::stem(name, &address);
                    resources.insert(address, (block, stem));
                }
                (None, Some(call)) => drop(calls.insert((block.module.clone(), call.clone()), block)),
                (None, None) => {}
            }
        }
        Self { resources, calls }
    }

    /// The objects of dependencies, of which a whole block includes its instances.
    pub fn uses(&self, dependencies: impl IntoIterator<Item = impl Borrow<Dependency>>) -> Vec<Use> {
        let mut uses = BTreeSet::new();
        for dependency in dependencies {
            match dependency.borrow() {
                Dependency::Resource(block, key) => uses.extend(self.use_of(block, key.as_ref())),
                Dependency::Module { module, call, key } => {
                    let inside =
                        self.resources.keys().filter(|block| is_inside(&block.module, module, call, key.as_ref()));
                    uses.extend(inside.filter_map(|block| self.use_of(block, None)));
                }
                Dependency::Variable(name) => _ = uses.insert(Use::Variable(name.clone())),
            }
        }
        let whole: BTreeSet<ResourceAddress> = uses
            .iter()
            .filter_map(|used| if let Use::Block(block, _) = used { Some(block.clone()) } else { None })
            .collect();
        uses.retain(|used| !matches!(used, Use::Instance(instance, _) if whole.contains(&instance.resource)));
        uses.into_iter().collect()
    }

    fn use_of(&self, block: &ResourceAddress, key: Option<&Key>) -> Option<Use> {
        let (known, stem) = self.resources.get(block)?;
        let is_whole = match (&known.keys, key) {
            (_, None) if known.kind.has_keys() => true,
            // They are sorted.
            (BlockKeys::Known(keys), key) if keys.binary_search_by(|own| own.as_ref().cmp(&key)).is_err() => {
                return None;
            }
            (BlockKeys::Known(_), _) | (_, None) => false,
            (_, Some(_)) => true,
        };
        if is_whole {
            return Some(Use::Block(block.clone(), stem.clone().family()));
        }
        let own = stem.clone().instance(key.map(address::key).unwrap_or_default());
        Some(Use::Instance(InstanceAddress { resource: block.clone(), key: key.cloned() }, own))
    }

    /// The module calls of dependencies whose instances depend on other objects.
    fn groups(&self, name: &Name, dependencies: impl IntoIterator<Item = impl Borrow<Dependency>>) -> Vec<Address> {
        let mut groups = Vec::new();
        for dependency in dependencies {
            let Dependency::Module { module, call, key } = dependency.borrow() else { continue };
            let calls = self.calls.iter().filter(|((path, name), known)| {
                ((path == module && name == call) || is_inside(path, module, call, key.as_ref())) && depends(known)
            });
            groups.extend(calls.map(|((module, call), _)| address::call(name, module, call).single()));
        }
        groups
    }

    /// The module calls around something, whose instances depend on other objects.
    fn groups_around(&self, name: &Name, path: &ModulePath) -> Vec<Address> {
        let mut around = ModulePath::default();
        let mut found = Vec::new();
        for step in path.0.iter() {
            if self.calls.get(&(around.clone(), step.name.clone())).is_some_and(depends) {
                found.push(address::call(name, &around, &step.name).single());
            }
            around = around.child(&step.name, step.key.clone());
        }
        found
    }

    fn is_keyed(&self, block: &ResourceAddress) -> bool {
        self.resources.get(block).is_some_and(|(known, _)| known.kind.has_keys())
    }
}

/// Whether a module is one of a call, or inside one.
fn is_inside(path: &ModulePath, module: &ModulePath, call: &Arc<str>, key: Option<&Key>) -> bool {
    let depth = module.0.len();
    let step = path.0.get(depth).filter(|_| path.0[..depth] == module.0[..]);
    step.is_some_and(|step| step.name == *call && (key.is_none() || step.key.as_ref() == key))
}

/// Whether the instances depend on other objects, or are not known.
fn depends(block: &KnownBlock) -> bool {
    !block.uses.is_empty() || !matches!(block.keys, BlockKeys::Known(_))
}

/// The Resources, with the values that are set.
pub fn resources(shared: &Arc<Shared>) -> ProgramResources {
    let state = shared.lock();
    let evaluation = &state.evaluation;
    let blocks = Blocks::of(&shared.origin.name, evaluation);
    let written = shared.tree.nodes.iter().flat_map(|node| &node.module.resources);
    let checked = written.clone().filter(|(_, resource)| !resource.lifecycle.postconditions.is_empty());
    let provisioned = written.filter(|(_, resource)| !resource.provisioners.is_empty());
    let checked = checked.map(|(name, _)| name).collect();
    let provisioned = provisioned.map(|(name, _)| name).collect();
    let imports = evaluation.imports().unwrap_or_default();
    let module = state.module();
    let builder = Builder { shared, module, blocks: &blocks, imports, checked, provisioned };
    let mut resources =
        ProgramResources { providers: shared.providers.values().cloned().collect(), ..Default::default() };
    let mut used = evaluation.written_providers();
    for ((module, call), block) in &blocks.calls {
        if depends(block) {
            resources.families.push(Arc::new(builder.family(block, Repeated::Call(module.clone(), call.clone()))));
        }
    }
    for (address, (block, stem)) in &blocks.resources {
        let mut imports = builder.imports.iter().filter(|import| import.is_into(address));
        if block.kind != KeyKind::Once || imports.clone().any(|import| import.is_open || !import.uses.is_empty()) {
            resources.families.push(Arc::new(builder.family(block, Repeated::Block(address.clone()))));
        }
        // What is to be imported must never be created instead.
        if imports.any(|import| import.is_open) {
            continue;
        }
        let BlockKeys::Known(keys) = &block.keys else { continue };
        let moved = builder.moved(address, block);
        for key in keys {
            let instance = InstanceAddress { resource: address.clone(), key: key.clone() };
            let Some(object) = evaluation.configured(&instance) else { continue };
            let own = stem.clone().instance(key.as_ref().map(address::key).unwrap_or_default());
            resources.instances.push(Arc::new(builder.instance(&object, own, &moved)));
            used.insert(object.provider.clone());
        }
    }
    let used = used.iter().filter(|provider| !provider.source.is_built_in() && !shared.is_given(provider));
    resources.provider_configs = used.map(|provider| Arc::new(builder.provider_config(evaluation, provider))).collect();
    resources
}

/// The Resource of an object that a `removed` block is about.
pub fn removed(shared: &Arc<Shared>, record: &Record) -> Option<Instance> {
    let (origin, module) = (&shared.origin, shared.lock().module());
    if record.source != module.source_file {
        return None;
    }
    let object = address::instance(&record.address)?;
    let (_, removed) = shared.tree.removed(&object)?;
    let place = problem::place(removed.range, &shared.tree.sources, &origin.directory);
    let recorded = record.current.iter().flat_map(|current| current.hooks.iter());
    let hooks: Vec<Hook> = match removed.provisioners.as_slice() {
        // Those that the block had.
        [] => recorded.map(provisioners::as_recorded).collect(),
        own => {
            let shared = Arc::clone(shared);
            let of = Provisioned { shared, object, uses: Arc::default(), place: place.clone(), is_removed: true };
            provisioners::hooks(&of, own)
        }
    };
    Some(Instance {
        deleting: true,
        deletion_policy: if removed.destroy { DeletionPolicy::Delete } else { DeletionPolicy::Orphan },
        hooks: hooks.into(),
        source: place,
        ..Instance::of_module(&module, record.address.clone(), record.type_name.clone())
    })
}

/// The configuration of a provider, of which no object has to be configured.
pub fn provider_template(shared: &Arc<Shared>, provider: &ProviderAddress) -> ProviderBody {
    let state = shared.lock();
    let configured = state.evaluation.provider(provider).ok().flatten();
    let named = configured.map(|configured| configured.uses.clone()).unwrap_or_default();
    let uses = Blocks::of(&shared.origin.name, &state.evaluation).uses(&named).into();
    ProviderBody { shared: Arc::clone(shared), provider: provider.clone(), uses, place: None }
}

struct Builder<'a> {
    shared: &'a Arc<Shared>,
    /// The Module with its inputs.
    module: Arc<Instance>,
    blocks: &'a Blocks,
    /// The `import` blocks.
    imports: Vec<EvaluatedImport>,
    /// The resources that may have postconditions.
    checked: HashSet<&'a ResourceName>,
    /// The resources that may have provisioners.
    provisioned: HashSet<&'a ResourceName>,
}

impl Builder<'_> {
    fn name(&self) -> &Name {
        &self.shared.origin.name
    }

    fn family(&self, block: &KnownBlock, of: Repeated) -> Family {
        let address = of.stem(self.name()).single();
        let imports = self.imports.iter().filter(|import| match &of {
            Repeated::Block(address) => import.is_into(address),
            Repeated::Call(..) => false,
        });
        let mut named = block.uses.clone();
        named.extend(imports.clone().flat_map(|import| import.uses.iter().cloned()));
        let is_open = imports.clone().any(|import| import.is_open);
        let uses: Arc<[Use]> = self.blocks.uses(&named).into();
        let mut groups = self.blocks.groups(self.name(), &named);
        groups.extend(self.blocks.groups_around(self.name(), &block.module));
        let references: Arc<[Reference]> = self.references(&uses, groups, &[]).into();
        let place = self.place(block.range);
        let keys =
            Keys { shared: Arc::clone(self.shared), of: of.clone(), kind: block.kind, uses, place: place.clone() };
        let template = match &block.keys {
            BlockKeys::Known(known) if named.is_empty() && !is_open => Template::literal(keys_value(block.kind, known)),
            _ => template(keys),
        };
        let (repeat, enabled) = match block.kind {
            KeyKind::Once | KeyKind::Enabled => (None, Some(template)),
            KeyKind::Count => (Some(Repeat::Count(template)), None),
            KeyKind::ForEach => (Some(Repeat::ForEach(template)), None),
        };
        let type_name = match &of {
            Repeated::Block(address) => address.resource.kind.clone(),
            Repeated::Call(..) => Arc::default(),
        };
        let repetition = Repetition { repeat, enabled, import: None, references: references.clone() };
        let shared = Instance {
            references,
            repetition: Some(Arc::new(repetition)),
            moved_from: match &of {
                Repeated::Block(address) => self.moved(address, block),
                Repeated::Call(..) => Arc::default(),
            },
            ..self.plain(address.clone(), type_name, place.clone())
        };
        let expansion = match &block.keys {
            BlockKeys::Known(_) if is_open => Expansion::Pending,
            BlockKeys::Known(keys) => Expansion::Known(instance_keys(block.kind, keys)),
            BlockKeys::Unknown => Expansion::Pending,
            BlockKeys::Failed => Expansion::Failed(vec![problem::consequence(&address, place)]),
        };
        Family { shared: Arc::new(shared), expansion }
    }

    /// The former addresses of the objects of a block.
    fn moved(&self, address: &ResourceAddress, block: &KnownBlock) -> Arc<[MovedFrom]> {
        let keys = if let BlockKeys::Known(keys) = &block.keys { keys.as_slice() } else { &[] };
        moved::former(&self.shared.tree, self.name(), address, block.kind.has_keys(), keys).into()
    }

    /// What is imported into an object.
    fn import(&self, object: &InstanceAddress) -> Option<model::ImportRequest> {
        let mut requests = self.imports.iter().flat_map(|import| &import.requests);
        requests.find(|request| request.to == *object).and_then(value::import)
    }

    /// The provisioners of an object.
    fn hooks(&self, object: &Object, uses: &Arc<[Use]>, place: Option<&Source>) -> Vec<Hook> {
        let block = &object.address.resource;
        if !self.provisioned.contains(&block.resource) {
            return Vec::new();
        }
        let node = self.shared.tree.module(&block.module);
        let Some(resource) = node.and_then(|node| node.module.resources.get(&block.resource)) else {
            return Vec::new();
        };
        let of = Provisioned {
            shared: Arc::clone(self.shared),
            object: object.address.clone(),
            uses: uses.clone(),
            place: place.cloned(),
            is_removed: false,
        };
        provisioners::hooks(&of, &resource.provisioners)
    }

    fn instance(&self, object: &Object, own: Address, moved: &Arc<[MovedFrom]>) -> Instance {
        let imports = self.imports.iter().filter(|import| import.is_into(&object.address.resource));
        let imports = imports.flat_map(|import| &import.uses);
        let named: BTreeSet<&Dependency> = object.uses.iter().chain(object.depends_on.iter()).chain(imports).collect();
        let uses: Arc<[Use]> = self.blocks.uses(named.iter().copied()).into();
        let mut groups = self.blocks.groups(self.name(), named);
        let place = self.place(object.range);
        groups.extend(self.blocks.groups_around(self.name(), &object.address.resource.module));
        let is_data = object.address.resource.resource.mode == Mode::Data;
        let lifecycle = &object.lifecycle;
        let (triggers, targets): (Vec<_>, Vec<_>) =
            lifecycle.replace_triggered_by.iter().map(|trigger| self.trigger(trigger)).unzip();
        let conditions = self.checked.contains(&object.address.resource.resource).then(|| Condition {
            condition: template(Postconditions(self.body(object, &uses, place.as_ref()))),
            message: Template::literal(Value::from("the postcondition is not met")),
            at: Path::of(&["postcondition"]),
        });
        let kind = object.address.resource.resource.kind.clone();
        Instance {
            provider_config: self.shared.provider_config(&object.provider),
            config: template(self.body(object, &uses, place.as_ref())),
            references: self.references(&uses, groups, &targets).into(),
            reads_after: is_data.then(|| self.reads_after(object)),
            create_before_destroy: lifecycle.create_before_destroy,
            prevent_destroy: lifecycle.prevent_destroy,
            ignore_changes: ignored(&lifecycle.ignore_changes),
            ignores_write_only: true,
            ephemeral: value::ephemeral_paths(&object.config).into(),
            postconditions: conditions.into_iter().collect(),
            triggers: triggers.into(),
            moved_from: Arc::clone(moved),
            hooks: self.hooks(object, &uses, place.as_ref()).into(),
            import: self.import(&object.address),
            deletion_policy: if lifecycle.forget { DeletionPolicy::Orphan } else { self.module.deletion_policy },
            ..self.plain(own, kind, place)
        }
    }

    fn reads_after(&self, object: &Object) -> Arc<[ReadsAfter]> {
        let mut reads = Vec::new();
        for after in &object.reads_after {
            let uses = self.blocks.uses([&after.dependency]);
            let targets = uses.iter().flat_map(|used| used.addresses(&self.shared.links));
            reads.extend(targets.map(|target| ReadsAfter { target, transitive: after.transitive }));
        }
        reads.into()
    }

    fn body(&self, object: &Object, uses: &Arc<[Use]>, place: Option<&Source>) -> Body {
        Body {
            shared: Arc::clone(self.shared),
            instance: object.address.clone(),
            uses: Arc::clone(uses),
            place: place.cloned(),
        }
    }

    fn provider_config(&self, evaluation: &Evaluation, provider: &ProviderAddress) -> ProviderConfig {
        let configured = evaluation.provider(provider).ok().flatten();
        let (named, ephemeral) = configured
            .map(|configured| (configured.uses.clone(), value::ephemeral_paths(&configured.config)))
            .unwrap_or_default();
        let uses: Arc<[Use]> = self.blocks.uses(&named).into();
        let references = self.references(&uses, self.blocks.groups(self.name(), &named), &[]);
        let spec = self.shared.providers.get(&provider.source);
        let place = evaluation.provider_range(provider).and_then(|range| self.place(range));
        let place = place.or_else(|| spec.and_then(|spec| spec.source.clone()));
        let body =
            ProviderBody { shared: Arc::clone(self.shared), provider: provider.clone(), uses, place: place.clone() };
        ProviderConfig {
            name: config_name(self.name(), provider).into(),
            provider: spec.map(|spec| spec.provider.name.clone()).unwrap_or_default(),
            config: template(body),
            ephemeral: ephemeral.into(),
            inputs: Inputs::default(),
            service_account: "".into(),
            runner: None,
            references: references.into(),
            problems: Vec::new(),
            source: place,
            lines: Lines::default(),
        }
    }

    fn plain(&self, address: Address, type_name: Arc<str>, place: Option<Source>) -> Instance {
        Instance { source: place, ..Instance::of_module(&self.module, address, type_name) }
    }

    fn place(&self, range: hcl::Range) -> Option<Source> {
        problem::place(range, &self.shared.tree.sources, &self.shared.origin.directory)
    }

    /// The references of what uses these objects and module calls. All objects of a Module have what it depends on.
    fn references(&self, uses: &[Use], groups: Vec<Address>, triggers: &[Address]) -> Vec<Reference> {
        let mut references: Vec<Reference> = Vec::new();
        for used in uses {
            match used {
                Use::Variable(variable) => references.extend(self.shared.links.references(variable).cloned()),
                _ => {
                    let targets = used.addresses(&self.shared.links);
                    references.extend(targets.into_iter().map(|target| reference(target, Path::default())));
                }
            }
        }
        references.extend(groups.into_iter().map(|group| reference(group, Path::default())));
        let triggers = triggers.iter().enumerate();
        references.extend(triggers.map(|(index, target)| reference(target.clone(), trigger_path(index))));
        references.extend(self.module.references.iter().filter(|reference| reference.explicit).cloned());
        references.sort();
        references.dedup();
        references
    }

    /// An entry of `replace_triggered_by`, and the object that it names.
    fn trigger(&self, trigger: &Trigger) -> (load::Trigger, Address) {
        let block = address::stem(self.name(), &trigger.resource).family();
        let target = match &trigger.key {
            Some(key) => Address { key: address::key(key), ..block },
            None if self.blocks.is_keyed(&trigger.resource) => block,
            None => block.as_reference(),
        };
        let path: Vec<Segment> = trigger.path.iter().filter_map(segment).collect();
        let depth = match path.is_empty() {
            true => 0,
            false => path.len() + usize::from(target.is_instance()),
        };
        let attribute = Attribute { of: target.clone(), path: Path(path) };
        let suffix: String = if attribute.path.0.is_empty() { String::new() } else { format!(".{}", attribute.path) };
        (load::Trigger { text: format!("{target}{suffix}").into(), path: template(attribute), depth }, target)
    }
}

/// The place of an entry of `replace_triggered_by`, by which the engine finds its reference.
fn trigger_path(index: usize) -> Path {
    Path::of(&["spec", "lifecycle", "replaceTriggeredBy"]).index(index)
}

fn reference(target: Address, at: Path) -> Reference {
    use model::InstanceKey;
    let selector = match &target.key {
        InstanceKey::None | InstanceKey::All => None,
        InstanceKey::Index(index) => Some(Segment::Index(usize::try_from(*index).unwrap_or(usize::MAX))),
        InstanceKey::Key(key) => Some(Segment::Name(key.clone())),
    };
    let selector = selector.map(InstanceSelector::Instance);
    Reference { target, at, explicit: false, selector, segments: Arc::default() }
}

fn instance_keys(kind: KeyKind, keys: &[Option<Key>]) -> InstanceKeys {
    match kind {
        KeyKind::Once | KeyKind::Enabled if keys.is_empty() => InstanceKeys::Disabled,
        KeyKind::Once | KeyKind::Enabled => InstanceKeys::One,
        KeyKind::Count => InstanceKeys::Count(keys.len() as u64),
        KeyKind::ForEach => {
            let texts = keys.iter().filter_map(|key| match key {
                Some(Key::Text(text)) => Some((text.clone(), Value::Bool(true))),
                _ => None,
            });
            InstanceKeys::Keys(texts.collect())
        }
    }
}

fn ignored(changes: &IgnoreChanges) -> Arc<[IgnoredChange]> {
    match changes {
        IgnoreChanges::None => Arc::default(),
        IgnoreChanges::All => [IgnoredChange::All].into(),
        IgnoreChanges::Paths(paths) => {
            let changes = paths.iter().map(|traversal| {
                let root = Segment::Name(traversal.root.text.as_str().into());
                let segments = std::iter::once(root).chain(traversal.steps.iter().filter_map(segment));
                IgnoredChange::At(Path(segments.collect()))
            });
            changes.collect()
        }
    }
}

/// A step as a part of a path. Splats have none.
fn segment(step: &hcl::Step) -> Option<Segment> {
    match step {
        hcl::Step::Attribute(name) => Some(Segment::Name(name.text.as_str().into())),
        hcl::Step::Index { key: hcl::Literal::String(key), .. } => Some(Segment::Name(key.as_str().into())),
        hcl::Step::Index { key: hcl::Literal::Number(digits), .. } => digits.parse().ok().map(Segment::Index),
        hcl::Step::Index { .. } | hcl::Step::Splat { .. } => None,
    }
}
