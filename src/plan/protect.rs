//! `lifecycle.preventDestroy` and `preventDestroyWhen`: whether an object may be destroyed, and what is said when not.
//!
//! An expression counts only where a destroy is planned; what it says meanwhile is recorded, for the time when there is no spec to
//! ask. Terraform's rules: a value of the wrong kind, or a sensitive one, is an error at any time; one that is not known
//! yet, or null, only stops a destroy.

use std::sync::Arc;

use super::draft::{Block, Draft};
use super::scene::{Id, Scene, Subject};
use super::seen::Seen;
use crate::load::expression::Scope;
use crate::load::{Instance, Own};
use crate::model::{Action, Diagnostic, Path, Reason, Value};

/// What an expression says about destroying an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// Whether it is prevented.
    Known(bool),
    /// Only a step that has not run yet tells.
    Unknown,
    /// It is null.
    Null,
    /// It is nothing that can be understood.
    Wrong(Box<Diagnostic>),
}

/// What `preventDestroyWhen` of an instance says in a scope; `None` when it has none.
pub(super) fn protection(instance: &Instance, scope: &dyn Scope) -> Option<Protection> {
    let value = match instance.prevent_destroy_when.as_ref()?.evaluate(&Own { instance, others: scope }) {
        Ok(value) => value,
        Err(mut problems) => {
            let problem = problems.swap_remove(0);
            return Some(wrong(instance, Diagnostic { path: None, ..problem }));
        }
    };
    Some(match &value {
        Value::Sensitive(_) => {
            let what = "the value is sensitive, and whether an object is protected is told";
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
    let at = Path::default().name("spec").name("lifecycle").name("preventDestroyWhen");
    let address = Some(instance.address.clone());
    let problem = Diagnostic { address, ..problem }.at(at).from_source(instance.source.clone());
    Protection::Wrong(Box::new(problem))
}

/// Destroys that must not be.
#[derive(Default)]
pub(super) struct Refusals {
    /// What blocks an object whole.
    pub objects: Vec<(Id, Block)>,
    /// What holds a leftover, by its position among those of its object.
    pub leftovers: Vec<(Id, usize, Block)>,
}

/// Destroys that expressions forbid, once everything is decided.
pub(super) fn refusals(seen: &Seen<'_, '_>) -> Refusals {
    let Refusals { mut objects, mut leftovers } = Refusals::default();
    for (id, subject) in seen.scene.subjects.iter().enumerate() {
        let asks = |instance: &&Instance| instance.prevent_destroy_when.is_some();
        let (Some(instance), Some(draft)) = (subject.instance.map(Arc::as_ref).filter(asks), seen.draft(id)) else {
            continue;
        };
        if seen.scene.running.contains_key(&id) {
            continue;
        }
        let Some(protection) = protection(instance, seen) else { continue };
        objects.extend(refuse(seen.scene, *subject, draft, &protection).map(|block| (id, block)));
        for (position, leftover) in draft.leftovers.iter().enumerate() {
            let is_running = seen.scene.running_leftovers.contains_key(&(id, leftover.key));
            if leftover.action == Action::Destroy && !is_running {
                let because = leftover.because.as_deref().unwrap_or_default();
                let block = forbid(seen.scene, *subject, &protection, "destroyed", because);
                leftovers.extend(block.map(|block| (id, position, block)));
            }
        }
    }
    Refusals { objects, leftovers }
}

fn refuse(scene: &Scene<'_>, subject: Subject<'_>, draft: &Draft, protection: &Protection) -> Option<Block> {
    match (draft.action, protection) {
        (Action::Blocked, _) => None,
        (_, Protection::Wrong(problem)) if subject.wanted => Some(Block::broken(problem.as_ref().clone())),
        (Action::Destroy, _) => {
            forbid(scene, subject, protection, "destroyed", draft.because.as_deref().unwrap_or_default())
        }
        (Action::Replace, _) if !draft.forget => {
            let paths = draft.planned.as_ref().map_or(&[][..], |planned| &planned.replace_paths);
            let why = replaced_why(paths, draft.because.as_deref().unwrap_or_default());
            forbid(scene, subject, protection, "replaced", &why)
        }
        _ => None,
    }
}

fn forbid(
    scene: &Scene<'_>,
    subject: Subject<'_>,
    protection: &Protection,
    fate: &str,
    because: &str,
) -> Option<Block> {
    let must = format!("the object must be {fate}");
    let (what, hint) = match protection {
        Protection::Known(false) => return None,
        Protection::Known(true) => {
            let what = format!("{must}, and `preventDestroyWhen` forbids to destroy it: {because}");
            return Some(prevented_block(scene, subject, what));
        }
        Protection::Unknown => (
            format!("{must}, and `preventDestroyWhen` is not known yet: {because}"),
            "it is planned again once what the expression reads is there".to_owned(),
        ),
        Protection::Null => (
            format!("{must}, and `preventDestroyWhen` is null: {because}"),
            "let the expression give false where the object may be destroyed".to_owned(),
        ),
        Protection::Wrong(problem) => (
            format!("{must}, and `preventDestroyWhen` cannot be understood: {because}"),
            format!("correct the expression: {}", problem.summary),
        ),
    };
    Some(Block::held(Diagnostic::error(subject.address, Reason::PreventDestroy, what).hint(hint)))
}

/// Why an object is to be replaced: the attributes that force it, or what else is the matter.
pub(super) fn replaced_why(paths: &[Path], because: &str) -> String {
    if paths.is_empty() {
        return format!("it is {because}");
    }
    let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{} cannot be changed in place", names.join(", "))
}

/// A destroy that `preventDestroy` or `preventDestroyWhen` forbids, with the ways out.
pub(super) fn prevented_block(scene: &Scene<'_>, subject: Subject<'_>, what: String) -> Block {
    let local = scene.options.destroy_orphans;
    let unprotect = format!("run `purlin state unprotect {}`", subject.address);
    let hint = match subject.instance {
        None => format!(
            "to keep it bring the manifest back, for good or with `spec.lifecycle.preventDestroy: false` to remove it again \
             afterwards; or {unprotect} to let it go"
        ),
        Some(instance) => {
            let way_out = match &instance.prevent_destroy_when {
                Some(_) => "see to it that `spec.lifecycle.preventDestroyWhen` is false",
                None => "set `spec.lifecycle.preventDestroy: false`",
            };
            match (subject.may_take_back(), local) {
                (true, false) => way_out.to_owned(),
                (true, true) => format!("{way_out}, or {unprotect} when it is to be destroyed without its manifest"),
                (false, _) => format!("resolve the errors of the Resource and {way_out}, or {unprotect}"),
            }
        }
    };
    Block::held(Diagnostic::error(subject.address, Reason::PreventDestroy, what).hint(hint))
}

/// What is to be recorded of an instance's protection: what is known of it, and else what was recorded before.
pub(super) fn recorded(instance: &Instance, scope: &dyn Scope, before: bool) -> bool {
    match protection(instance, scope) {
        None => instance.prevent_destroy,
        Some(Protection::Known(prevented)) => prevented,
        Some(Protection::Unknown | Protection::Null | Protection::Wrong(_)) => before,
    }
}
