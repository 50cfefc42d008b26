//! Follows references through variables, locals, modules and outputs to the resources that they read.

use hcl_edit::expr::{Expression, Traversal, TraversalOperator};
use hcl_edit::visit::{self, Visit};

use super::{Configuration, Source};
use crate::address::{self, Key, ModuleStep, ResourceAddress};
use model::Segment;

/// The maximum number of modules, variables and locals through which a value is followed.
const MAX_DEPTH: usize = 32;

/// A value of another resource that an argument references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedValue {
    /// The address in the configuration.
    pub resource: String,
    /// The key of the instance, if the reference has one.
    pub key: Option<Key>,
    /// The path of the attribute. Empty: it is not known.
    pub path: Vec<Segment>,
}

impl Configuration {
    /// Returns the configuration addresses in `depends_on` of a resource and of the modules that contain it.
    pub fn depends_on(&self, address: &ResourceAddress) -> Vec<String> {
        let modules = address.modules();
        let mut found = Vec::new();
        for reference in self.resource(address).into_iter().flat_map(|block| &block.depends_on) {
            self.add_dependencies(reference, &modules, &mut found);
        }
        for (depth, name) in modules.iter().enumerate() {
            let parent = &modules[..depth];
            let call = self.module(parent).and_then(|module| module.calls.get(*name));
            for reference in call.into_iter().flat_map(|call| &call.depends_on) {
                self.add_dependencies(reference, parent, &mut found);
            }
        }
        found
    }

    /// Adds what an entry of `depends_on` names: a resource, or all resources of a module.
    fn add_dependencies(&self, reference: &str, path: &[&str], found: &mut Vec<String>) {
        match address::parts(reference).as_deref() {
            Some([(word, _), (name, _)]) if word == "module" => {
                let modules = path.iter().copied().chain([name.as_str()]);
                let prefix: String = modules.map(|name| format!("module.{name}.")).collect();
                let all = self.resource_addresses().into_iter();
                found.extend(all.filter(|address| address.starts_with(&prefix)));
            }
            _ => {
                let mut targets = Vec::new();
                self.resolve(reference, path, 0, &mut targets);
                found.extend(targets.into_iter().map(|target| target.resource));
            }
        }
    }

    /// Returns the values of resources that an expression of a module reads.
    pub fn references(&self, module: &[&str], source: &Source) -> Vec<ReferencedValue> {
        let mut found = Vec::new();
        self.follow(source, module, 0, &mut found);
        found
    }

    fn follow(&self, source: &Source, module: &[&str], depth: usize, found: &mut Vec<ReferencedValue>) {
        if depth > MAX_DEPTH {
            return;
        }
        let mut references = Vec::new();
        source.collect_references(&mut references);
        for reference in references {
            self.resolve(&reference, module, depth, found);
        }
    }

    fn resolve(&self, reference: &str, path: &[&str], depth: usize, found: &mut Vec<ReferencedValue>) {
        let (Some(parts), Some(module)) = (address::parts(reference), self.module(path)) else { return };
        match &parts[..] {
            [(word, _), (name, _), ..] if word == "var" => {
                let Some((own, parent)) = path.split_last() else { return };
                let call = self.module(parent).and_then(|module| module.calls.get(*own));
                if let Some(given) = call.and_then(|call| call.arguments.get(name.as_str())) {
                    self.follow(given, parent, depth + 1, found);
                }
            }
            [(word, _), (name, _), ..] if word == "local" => {
                if let Some(local) = module.locals.get(name) {
                    self.follow(local, path, depth + 1, found);
                }
            }
            [(word, _), (name, _), (output, _), ..] if word == "module" => {
                let inner: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
                if let Some(given) = self.module(&inner).and_then(|module| module.outputs.get(output)) {
                    self.follow(&given.value, &inner, depth + 1, found);
                }
            }
            [(word, None), (type_name, None), (name, key), rest @ ..] if word == "data" => {
                add_reference(true, path, type_name, (name, key.as_ref()), rest, found);
            }
            [(word, _), ..]
                if matches!(
                    word.as_str(),
                    "data" | "local" | "each" | "count" | "path" | "self" | "terraform" | "module" | "var"
                ) => {}
            [(type_name, None), (name, key), rest @ ..] => {
                add_reference(false, path, type_name, (name, key.as_ref()), rest, found);
            }
            _ => {}
        }
    }
}

/// Adds a reference to a resource or data source of a module.
fn add_reference(
    is_data: bool,
    module: &[&str],
    type_name: &str,
    (name, key): (&str, Option<&Key>),
    rest: &[(String, Option<Key>)],
    found: &mut Vec<ReferencedValue>,
) {
    let module = module.iter().map(|name| ((*name).to_owned(), None::<Key>)).collect::<Vec<ModuleStep>>();
    let address = ResourceAddress { module, is_data, type_name: type_name.to_owned(), name: name.to_owned() };
    let path = rest.iter().flat_map(|(name, key)| {
        let key = key.as_ref().map(|key| match key {
            Key::Index(place) => Segment::Index(usize::try_from(*place).unwrap_or(usize::MAX)),
            Key::Key(key) => Segment::Name(key.as_str().into()),
        });
        [Some(Segment::Name(name.as_str().into())), key].into_iter().flatten()
    });
    let target = ReferencedValue { resource: address.in_configuration(), key: key.cloned(), path: path.collect() };
    if !found.contains(&target) {
        found.push(target);
    }
}

impl Source {
    /// Collects all references, in their order. In a plan, the longest form of each comes first.
    fn collect_references(&self, found: &mut Vec<String>) {
        match self {
            Self::Constant(_) => {}
            Self::References(references) => found.extend(references.iter().cloned()),
            Self::Expression(expression) => Traversals(found).visit_expr(expression),
            Self::Object(arguments) => arguments.values().for_each(|one| one.collect_references(found)),
            Self::List(items) => items.iter().for_each(|one| one.collect_references(found)),
            Self::Dynamic(block) => {
                block.for_each.collect_references(found);
                block.content.values().for_each(|one| one.collect_references(found));
            }
        }
    }
}

/// Collects the references of an expression.
struct Traversals<'a>(&'a mut Vec<String>);

impl Visit for Traversals<'_> {
    fn visit_traversal(&mut self, node: &Traversal) {
        if let Expression::Variable(root) = &node.expr {
            self.0.push(reference(root.as_str(), node));
        }
        visit::visit_traversal(self, node);
    }
}

/// The constant part of a reference.
pub fn reference(root: &str, traversal: &Traversal) -> String {
    let mut text = root.to_owned();
    for operator in &traversal.operators {
        match operator.value() {
            TraversalOperator::GetAttr(name) => {
                text.push('.');
                text.push_str(name.as_str());
            }
            TraversalOperator::Index(Expression::String(key)) => {
                text.push_str(&format!("[{}]", serde_json::Value::from(key.as_str())));
            }
            TraversalOperator::Index(Expression::Number(place)) => text.push_str(&format!("[{}]", place.value())),
            TraversalOperator::LegacyIndex(place) => text.push_str(&format!("[{}]", place.value())),
            _ => break,
        }
    }
    text
}
