//! `lifecycle.preventDestroy`: whether an object may be destroyed.
//!
//! The expression applies only to a planned destroy. Its current value is recorded for a later destroy without a
//! Resource. As in Terraform, a value of the wrong type or a sensitive value is always an error. An unknown value or
//! null only prevents a destroy.

use std::sync::Arc;

use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, Node, PlanInput};
use crate::load::expression::Scope;
use crate::load::{Instance, InstanceScope};
use crate::model::{Action, Diagnostic, Path, Reason, Value};

/// The result of the expression of `preventDestroy`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// Whether a destroy is prevented.
    Known(bool),
    /// The value is known only after a step.
    Unknown,
    Null,
    /// The expression cannot be evaluated or has an invalid value.
    Invalid(Box<Diagnostic>),
}

/// Evaluates the expression of `preventDestroy` of an instance. `None` if it has none.
pub(super) fn protection(instance: &Instance, scope: &dyn Scope) -> Option<Protection> {
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
    let at = Path::default().name("spec").name("lifecycle").name("preventDestroy");
    let address = Some(instance.address.clone());
    let problem = Diagnostic { address, ..problem }.at(at);
    Protection::Invalid(Box::new(problem))
}

#[derive(Default)]
pub(super) struct ForbiddenDestroys {
    /// Blocks of whole objects.
    pub objects: Vec<(Id, Block)>,
    /// Blocks of deposed objects, by their position among those of their object.
    pub deposed: Vec<(Id, usize, Block)>,
}

/// The planned destroys that expressions forbid. Requires a decision for every object.
pub(super) fn forbidden_destroys(scope: &EvalScope<'_, '_>) -> ForbiddenDestroys {
    let ForbiddenDestroys { mut objects, mut deposed } = ForbiddenDestroys::default();
    for (id, node) in scope.input.nodes.iter().enumerate() {
        let Some(decision) = scope.decision(id).filter(|_| !scope.input.running.contains_key(&id)) else { continue };
        let asks = |instance: &&Arc<Instance>| instance.prevent_destroy_when.is_some();
        let Some(instance) = node.instance.filter(asks).or(node.successor.filter(asks)) else { continue };
        let Some(protection) = protection(instance, scope) else { continue };
        objects.extend(refuse(scope.input, *node, decision, &protection).map(|block| (id, block)));
        for (position, old) in decision.deposed.iter().enumerate() {
            let is_running = scope.input.running_deposed.contains_key(&(id, old.key));
            if old.action == Action::Destroy && !is_running {
                let because = old.because.as_deref().unwrap_or_default();
                let block = forbid(scope.input, *node, &protection, "destroyed", because);
                deposed.extend(block.map(|block| (id, position, block)));
            }
        }
    }
    ForbiddenDestroys { objects, deposed }
}

/// The planned replacements of objects that another address claims.
pub(super) fn claimed(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let mut refused = Vec::new();
    for (address, held) in &input.options.claimed {
        let Some(id) = input.find(address).filter(|id| !input.running.contains_key(id)) else { continue };
        let action = decisions[id].as_ref().map(|decision| decision.action);
        let fate = match action {
            Some(Action::Replace) => "replaced",
            Some(Action::Destroy | Action::Forget) => "removed",
            _ => continue,
        };
        let what = format!("the object must be {fate}, but {}", held.message);
        refused.push((id, Block::held(Diagnostic::error(address, held.reason, what))));
    }
    refused
}

fn refuse(input: &PlanInput<'_>, node: Node<'_>, decision: &Decision, protection: &Protection) -> Option<Block> {
    match (decision.action, protection) {
        (Action::Blocked, _) => None,
        (_, Protection::Invalid(problem)) if node.desired => Some(Block::broken(problem.as_ref().clone())),
        (Action::Destroy, _) => {
            forbid(input, node, protection, "destroyed", decision.because.as_deref().unwrap_or_default())
        }
        (Action::Replace, _) if !decision.forget => {
            let paths = decision.planned.as_ref().map_or(&[][..], |planned| &planned.replace_paths);
            let why = replaced_why(paths, decision.because.as_deref().unwrap_or_default());
            forbid(input, node, protection, "replaced", &why)
        }
        _ => None,
    }
}

fn forbid(input: &PlanInput<'_>, node: Node<'_>, protection: &Protection, fate: &str, because: &str) -> Option<Block> {
    let must = format!("the object must be {fate}");
    let (what, hint) = match protection {
        Protection::Known(false) => return None,
        Protection::Known(true) => {
            let what = format!("{must}, but `preventDestroy` forbids it: {because}");
            return Some(prevented_block(input, node, what));
        }
        Protection::Unknown => (
            format!("{must}, but `preventDestroy` is not known yet: {because}"),
            "it is planned again once the values in the expression are known".to_owned(),
        ),
        Protection::Null => (
            format!("{must}, but `preventDestroy` is null: {because}"),
            "make the expression return false if the object may be destroyed".to_owned(),
        ),
        Protection::Invalid(problem) => (
            format!("{must}, but `preventDestroy` is invalid: {because}"),
            format!("correct the expression: {}", problem.summary),
        ),
    };
    Some(Block::held(Diagnostic::error(node.address, Reason::PreventDestroy, what).hint(hint)))
}

/// Why an object must be replaced: the attributes that force it, or another cause.
pub(super) fn replaced_why(paths: &[Path], because: &str) -> String {
    if paths.is_empty() {
        return format!("it is {because}");
    }
    let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{} cannot be changed in place", names.join(", "))
}

/// The block of a destroy that `preventDestroy` forbids.
pub(super) fn prevented_block(input: &PlanInput<'_>, node: Node<'_>, what: String) -> Block {
    let local = input.options.destroy_orphans;
    let unprotect = format!("run `purlin state unprotect {}`", node.address);
    let hint = match (node.instance, node.successor) {
        (_, Some(successor)) if protects(successor) => format!(
            "remove the protection from `spec.lifecycle` of `{}`, to which the other objects of the family were moved",
            successor.address.name
        ),
        (None, _) => format!(
            "restore the manifest to keep the object; to destroy it, restore the manifest with \
             `spec.lifecycle.preventDestroy: false` and delete it again, or {unprotect}"
        ),
        (Some(instance), _) => {
            let way_out = match &instance.prevent_destroy_when {
                Some(_) => "make `spec.lifecycle.preventDestroy` false",
                None => "set `spec.lifecycle.preventDestroy: false`",
            };
            match (node.may_remove_protection(), local) {
                (true, false) => way_out.to_owned(),
                (true, true) => format!("{way_out}, or {unprotect} to destroy it without its manifest"),
                (false, _) => format!("resolve the errors of the Resource and {way_out}, or {unprotect}"),
            }
        }
    };
    Block::held(Diagnostic::error(node.address, Reason::PreventDestroy, what).hint(hint))
}

fn protects(resource: &Instance) -> bool {
    resource.prevent_destroy || resource.prevent_destroy_when.is_some()
}

/// The protection to record: the known value, or else the previously recorded one.
pub(super) fn recorded(instance: &Instance, scope: &dyn Scope, before: bool) -> bool {
    match protection(instance, scope) {
        None => instance.prevent_destroy,
        Some(Protection::Known(prevented)) => prevented,
        Some(Protection::Unknown | Protection::Null | Protection::Invalid(_)) => before,
    }
}
