//! `lifecycle.preventDestroy`: whether an object may be destroyed.
//!
//! The expression applies only to a planned destroy. Its current value is recorded for a later destroy without a
//! Resource, or when something that the expression reads no longer exists: what is deleted is deleted in any order. As in
//! Terraform, a value of the wrong type or a sensitive value is always an error. An unknown value or
//! null only prevents a destroy.

use std::borrow::Cow;

use super::ObjectBlock;
use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, Node, PlanInput};
use super::missing_reference::not_found;
use crate::load::expression::{Scope, Variable};
use crate::load::{Instance, InstanceScope};
use model::{Action, ChangeCause, Diagnostic, Lifecycle, Path, Reason, RecordedObject, Value, Words};

/// The result of the expression of `preventDestroy`.
#[derive(Debug, PartialEq, Eq)]
pub enum Protection {
    /// Whether a destroy is prevented.
    Known(bool),
    /// The value is known only after a step.
    Unknown,
    Null,
    /// Something that the expression reads no longer exists, for this reason. The last known value applies.
    LastKnown(String),
    /// Something that the expression reads is not available at the moment.
    Unavailable(Box<Diagnostic>),
    /// The expression cannot be evaluated or has an invalid value.
    Invalid(Box<Diagnostic>),
}

/// Evaluates the expression of `preventDestroy` of an instance. `None` if it has none.
pub fn protection(instance: &Instance, scope: &dyn Scope) -> Option<Protection> {
    let value = match instance.prevent_destroy_when.as_ref()?.evaluate(&InstanceScope { instance, others: scope }) {
        Ok(value) => value,
        Err(mut problems) => {
            let problem = problems.swap_remove(0);
            return Some(wrong(instance, Diagnostic { path: None, ..problem }));
        }
    };
    Some(match &value {
        Value::Sensitive(_) => {
            let what = "the value must not be sensitive, because plans and status show whether an object is protected";
            wrong(instance, Diagnostic::general(Reason::InvalidExpression, what))
        }
        Value::Bool(prevented) => Protection::Known(*prevented),
        Value::String(text) if matches!(text.as_ref(), "true" | "false") => Protection::Known(text.as_ref() == "true"),
        Value::Unknown => Protection::Unknown,
        Value::Null => Protection::Null,
        _ => wrong(instance, Diagnostic::general(Reason::InvalidExpression, "the value is neither true nor false")),
    })
}

fn wrong(instance: &Instance, problem: Diagnostic) -> Protection {
    let address = Some(instance.address.clone());
    let problem = Diagnostic { address, ..problem }.at(field());
    Protection::Invalid(Box::new(problem))
}

fn field() -> Path {
    Path::of(&["spec", "lifecycle", "preventDestroy"])
}

/// The protection of an object, also if it is no longer desired.
fn protection_of(scope: &EvalScope<'_, '_>, node: Node<'_>) -> Option<Protection> {
    let instance = node
        .instance
        // Most objects have no expression.
        .filter(|instance| instance.prevent_destroy_when.is_some())
        .and_then(|_| node.own_instance())
        .or_else(|| {
            let successor = node.successor.filter(|instance| instance.prevent_destroy_when.is_some())?;
            Some(Cow::Borrowed(successor.as_ref()))
        })?;
    let protection = protection(&instance, scope)?;
    if node.desired || matches!(protection, Protection::Known(_)) {
        return Some(protection);
    }
    let missing: Vec<Diagnostic> = missing(scope.input, &instance);
    let may_return = missing.iter().find(|problem| matches!(problem.reason, Reason::Waiting | Reason::OperationFailed));
    Some(match (may_return, missing.first()) {
        (Some(problem), _) => Protection::Unavailable(Box::new(problem.clone())),
        (None, Some(problem)) => Protection::LastKnown(format!("{}: {}", problem.reason, problem.summary)),
        (None, None) => protection,
    })
}

/// What the expression of an object reads that does not exist: inputs, other objects, and the variables of an instance
/// whose key was removed.
fn missing(input: &PlanInput<'_>, instance: &Instance) -> Vec<Diagnostic> {
    let Some(template) = &instance.prevent_destroy_when else { return Vec::new() };
    let inputs = template.reads(Variable::Inputs).into_iter();
    let inputs = inputs.filter_map(|(_, name)| instance.inputs.problem(name.as_deref()).cloned());
    let at = field();
    let references = instance.references.iter().filter(|reference| reference.at.starts_with(&at));
    let references = references.filter(|reference| input.resolve(&reference.target).is_none());
    let references = references.map(|reference| not_found(input, &instance.address, reference));
    let variables = [(Variable::Each, "each", instance.each()), (Variable::Count, "count", instance.count())];
    let variables = variables.into_iter().filter_map(|(variable, word, value)| {
        let mut names = template.reads(variable).into_iter().map(|(_, name)| name);
        let name = names.find(|name| !is_known(value.as_ref(), name.as_deref()))?;
        let name = name.map(|name| format!(".{name}")).unwrap_or_default();
        let what = format!("`{word}{name}` is not known for an instance that was removed");
        Some(Diagnostic::general(Reason::DependencyNotFound, what))
    });
    inputs.chain(references).chain(variables).collect()
}

/// Whether an attribute of a variable, or the whole variable, is known.
fn is_known(variable: Option<&Value>, name: Option<&str>) -> bool {
    match (variable, name) {
        (None, _) => false,
        (Some(value), Some(name)) => value.get(name).is_none_or(|value| !value.has_unknown()),
        (Some(value), None) => !value.has_unknown(),
    }
}

#[derive(Default)]
pub struct ForbiddenDestroys {
    /// Blocks of whole objects.
    pub objects: Vec<(Id, Block)>,
    /// Blocks of deposed objects, by their position among those of their object.
    pub deposed: Vec<(Id, usize, Block)>,
}

/// The planned destroys that expressions forbid. Requires a decision for every object.
pub fn forbidden_destroys(scope: &EvalScope<'_, '_>) -> ForbiddenDestroys {
    let ForbiddenDestroys { mut objects, mut deposed } = ForbiddenDestroys::default();
    for (id, node) in scope.input.nodes.iter().enumerate() {
        let Some(decision) = scope.decision(id).filter(|_| !scope.input.running.contains_key(&id)) else { continue };
        let Some(protection) = protection_of(scope, *node) else { continue };
        objects.extend(refuse(scope.input, *node, decision, &protection).map(|block| (id, block)));
        for (position, old) in decision.deposed.iter().enumerate() {
            let is_running = scope.input.running_deposed.contains_key(&(id, old.key));
            if old.action == Action::Destroy && !is_running {
                let because = text_of(old.because.as_ref());
                let block = forbid(scope.input, *node, &old.object, &protection, "destroyed", &because);
                deposed.extend(block.map(|block| (id, position, block)));
            }
        }
    }
    ForbiddenDestroys { objects, deposed }
}

/// The planned replacements of objects that another address claims.
pub fn claimed(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let mut refused = Vec::new();
    for (address, held) in &input.options.claimed {
        let Some(id) = input.find(address).filter(|id| !input.running.contains_key(id)) else { continue };
        let action = decisions[id].as_ref().map(|decision| decision.action);
        let fate = match action {
            Some(Action::Replace) => "replaced",
            Some(Action::Destroy | Action::Forget) => "removed",
            _ => continue,
        };
        let message = format!("the object must be {fate}, but {}", held.message);
        refused.push((id, Block::held(ObjectBlock { message, ..held.clone() }.error(address))));
    }
    refused
}

fn refuse(input: &PlanInput<'_>, node: Node<'_>, decision: &Decision, protection: &Protection) -> Option<Block> {
    let (fate, why) = match (decision.action, protection) {
        (Action::Blocked, _) => return None,
        (_, Protection::Invalid(problem)) if node.desired => return Some(Block::broken(problem.as_ref().clone())),
        (Action::Destroy, _) => ("destroyed", text_of(decision.because.as_ref())),
        (Action::Replace, _) if !decision.forget => {
            let paths = decision.planned.as_ref().map_or(&[][..], |planned| &planned.replace_paths);
            ("replaced", replaced_why(paths, &text_of(decision.because.as_ref())))
        }
        _ => return None,
    };
    forbid(input, node, node.current()?, protection, fate, &why)
}

fn text_of(cause: Option<&ChangeCause>) -> String {
    cause.map(ToString::to_string).unwrap_or_default()
}

fn forbid(
    input: &PlanInput<'_>,
    node: Node<'_>,
    object: &RecordedObject,
    protection: &Protection,
    fate: &str,
    because: &str,
) -> Option<Block> {
    let words = Words::of(node.address);
    let (must, setting) = (format!("the object must be {fate}"), words.setting(Lifecycle::PreventDestroy));
    let (what, hint) = match protection {
        Protection::Known(false) => return None,
        Protection::Known(true) => {
            let what = format!("{must}, but `{setting}` forbids it: {because}");
            return Some(prevented_block(input, node, what));
        }
        Protection::LastKnown(_) if !object.prevent_destroy => return None,
        Protection::LastKnown(missing) => (
            format!("{must}, but `{setting}` forbids it: {because}; its last known value applies ({missing})"),
            format!(
                "restore what is missing, set {}, or run `purlin state unprotect {}`",
                words.with(Lifecycle::PreventDestroy, false),
                node.address.shell_word()
            ),
        ),
        Protection::Unavailable(problem) => {
            let what = format!("{must}, but `{setting}` cannot be evaluated: {because}");
            let problem = Diagnostic::error(node.address, problem.reason, what).because(problem.message());
            return Some(Block::held(problem));
        }
        Protection::Unknown => (
            format!("{must}, but `{setting}` is not known yet: {because}"),
            "it is planned again once the values in the expression are known".to_owned(),
        ),
        Protection::Null => (
            format!("{must}, but `{setting}` is null: {because}"),
            "make the expression return false if the object may be destroyed".to_owned(),
        ),
        Protection::Invalid(problem) => (
            format!("{must}, but `{setting}` is invalid: {because}"),
            format!("correct the expression: {}", problem.summary),
        ),
    };
    Some(Block::held(Diagnostic::error(node.address, Reason::PreventDestroy, what).hint(hint)))
}

/// Why an object must be replaced: the attributes that force it, or another cause.
pub fn replaced_why(paths: &[Path], because: &str) -> String {
    if paths.is_empty() {
        return format!("it is {because}");
    }
    let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{} cannot be changed in place", names.join(", "))
}

/// The block of a destroy that `preventDestroy` forbids.
pub fn prevented_block(input: &PlanInput<'_>, node: Node<'_>, what: String) -> Block {
    let local = input.options.destroy_orphans;
    let words = Words::of(node.address);
    let (source, allowed) = (words.source(), words.with(Lifecycle::PreventDestroy, false));
    let unprotect = format!("run `purlin state unprotect {}`", node.address.shell_word());
    let hint = match (node.instance, node.successor) {
        (_, Some(successor)) if protects(successor) => format!(
            "remove the protection from `lifecycle` of `{}`, to which the other objects of the family were moved",
            successor.address.stem
        ),
        (None, _) => format!(
            "restore the {source} to keep the object; to destroy it, restore the {source} with {allowed} and delete it \
             again, or {unprotect}"
        ),
        (Some(instance), _) => {
            let way_out = match &instance.prevent_destroy_when {
                Some(_) => format!("make {} false", words.field(Lifecycle::PreventDestroy)),
                None => format!("set {allowed}"),
            };
            match (node.may_remove_protection(), local) {
                (true, false) => way_out,
                (true, true) => format!("{way_out}, or {unprotect} to destroy it without its {source}"),
                (false, _) => format!("resolve the errors of the {} and {way_out}, or {unprotect}", words.owner()),
            }
        }
    };
    Block::held(Diagnostic::error(node.address, Reason::PreventDestroy, what).hint(hint))
}

fn protects(resource: &Instance) -> bool {
    resource.prevent_destroy || resource.prevent_destroy_when.is_some()
}

/// The protection to record: the known value, or else the previously recorded one.
pub fn recorded(instance: &Instance, scope: &dyn Scope, before: bool) -> bool {
    match protection(instance, scope) {
        None => instance.prevent_destroy,
        Some(Protection::Known(prevented)) => prevented,
        Some(_) => before,
    }
}
