//! What users see of a change that they approve: the digest of the change covers it, and everyone can check that.
//!
//! The digest of a change is made of a sealed digest, which has a secret salt and covers all of the change, and of what a
//! Plan shows: the object, the action, and the attributes that change. So the status of a Plan cannot show one change and
//! have the digest of another, also if a tenant has written it. Attributes that stay, reasons and messages are not covered: they can
//! be others when the change is made.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::digest::{GENERATED, digest_of, feed, with_unknown};
use super::noun;
use crate::plan::published::{lacks_values, restore};
use api::{ChangeDigest, ChangeProof, PlanSpec, PlanStatus, PlannedChange, RequiredApproval};
use model::kube_names::{SUFFIX_LENGTH, is_generated_suffix};
use model::text::hex;
use model::{Action, Address, ChangeCause, Path, Value};

/// How many changes a sentence names: more names are as good as none.
const NAMED: usize = 10;

/// What a Plan says about the changes that its digests cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The Plan has a digest, but does not say of which changes: nothing that it shows can be checked.
    pub unlisted: bool,
    /// The changes that the digests cover and that the Plan does not show.
    pub not_shown: Vec<ChangeDigest>,
    /// The changes that the Plan shows and that its digests do not cover.
    pub not_covered: Vec<Address>,
    /// The covered changes with a cause, drift or an import, which their digest does not cover.
    pub annotated: Vec<Address>,
}

/// A Plan that shows other changes than those of its digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The changes that it lists are not those of a digest.
    List,
    /// The change of this object is shown as another one.
    Change(Address),
}

impl Coverage {
    /// What someone who decides about the changes must know of them, as sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.unlisted {
            let why = "The Plan does not list the changes of its digest, so they are not shown: nothing can prove that they \
                       are those of its status.";
            sentences.push(why.to_owned());
        }
        if !self.not_shown.is_empty() {
            let names =
                listed(self.not_shown.iter().map(|change| format!("{} of {}", noun(change.action), change.address)));
            sentences.push(format!("The digest also covers changes that are not shown: {names}."));
        }
        if !self.not_covered.is_empty() && !self.unlisted {
            let names = listed(self.not_covered.iter().map(ToString::to_string));
            sentences.push(format!(
                "The digest does not cover these changes, which need no approval of this Plan: {names}."
            ));
        }
        if !self.annotated.is_empty() {
            let names = listed(self.annotated.iter().map(ToString::to_string));
            sentences
                .push(format!("The digest does not cover the causes, drift and imports of these changes: {names}."));
        }
        sentences
    }
}

/// Compares what a Plan shows with its digests. `status`: with the changes of its approvals listed
/// ([`published::unpack`](crate::plan::published::unpack)).
///
/// # Errors
/// When it shows something else.
pub fn coverage(spec: &PlanSpec, status: &PlanStatus) -> Result<Coverage, Mismatch> {
    if !is_consistent(spec, status) {
        return Err(Mismatch::List);
    }
    let covered = covered(spec, &status.approvals);
    let mut shown = BTreeSet::new();
    let (mut not_covered, mut annotated) = (Vec::new(), Vec::new());
    for change in &status.changes {
        match covered.get(&change.address).filter(|_| change.deposed_key.is_none()) {
            Some(known) if is_shown_by(change, known) => {
                shown.insert(&change.address);
                if is_annotated(change) {
                    annotated.push(change.address.clone());
                }
            }
            Some(_) => return Err(Mismatch::Change(change.address.clone())),
            None if change.action == Action::Blocked => {}
            None => not_covered.push(change.address.clone()),
        }
    }
    let not_shown = covered.iter().filter(|(address, _)| !shown.contains(*address));
    let unlisted = covered.is_empty() && spec.digest.is_some() && status.result.is_some();
    // The controller leaves something out only if the status is too large, and says so. The changes of a manifest need not be
    // due together.
    let omitted = status.omitted.unwrap_or_default();
    let is_cut = status.result.is_some() && spec.changes.is_empty() && not_shown.clone().next().is_some();
    if (unlisted && omitted.approvals == 0) || (is_cut && omitted.changes == 0) {
        return Err(Mismatch::List);
    }
    Ok(Coverage {
        unlisted,
        not_shown: not_shown.map(|(_, change)| (*change).clone()).collect(),
        not_covered,
        annotated,
    })
}

/// The changes that the digests of a Plan cover, as far as it lists them.
fn covered<'a>(spec: &'a PlanSpec, approvals: &'a [RequiredApproval]) -> BTreeMap<&'a Address, &'a ChangeDigest> {
    let listed = approvals.iter().flat_map(|approval| &approval.changes).chain(&spec.changes);
    listed.map(|change| (&change.address, change)).collect()
}

/// The first names, and how many more there are.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    let text = names[..names.len() - more].join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Whether the text of a change says more than its digest covers.
fn is_annotated(change: &PlannedChange) -> bool {
    let cause = change.because.as_deref().map(ChangeCause::published);
    let has_cause = cause.as_ref().and_then(ChangeCause::unless_forced).is_some();
    has_cause || change.imported || !change.drifted_paths.is_empty()
}

/// What a Plan shows, without what its digests leave open: values that were unknown, and everything if it lists no changes.
///
/// # Errors
/// When it shows something else than its digests cover.
pub fn provable(spec: &PlanSpec, mut status: PlanStatus) -> Result<(PlanStatus, Coverage), Mismatch> {
    let coverage = coverage(spec, &status)?;
    if coverage.unlisted {
        status.changes.clear();
    }
    let covered = covered(spec, &status.approvals);
    for change in status.changes.iter_mut().filter(|change| change.deposed_key.is_none()) {
        let unknown = covered.get(&change.address).map(|known| &known.unknown_paths);
        change.unknown_paths.extend(unknown.into_iter().flatten().cloned());
    }
    Ok((status, coverage))
}

/// Whether all changes that a Plan lists are those of its digests.
pub fn is_consistent(spec: &PlanSpec, status: &PlanStatus) -> bool {
    let offered = spec.digest.as_deref();
    offered.is_none_or(|digest| has_digest(&spec.changes, digest))
        && status.approvals.iter().all(|due| has_digest(&due.changes, offered.unwrap_or(&due.digest)))
}

/// Without the changes, the digest counts alone.
fn has_digest(changes: &[ChangeDigest], digest: &str) -> bool {
    changes.is_empty() || digest_of(changes) == digest
}

/// Whether a shown change is the one of a digest.
fn is_shown_by(shown: &PlannedChange, known: &ChangeDigest) -> bool {
    let Some(proof) = &shown.proof else { return false };
    shown.action == known.action
        && proof.generated.iter().all(|part| is_generated_suffix(part))
        && digest(shown, &known.unknown_paths, proof) == known.digest
}

/// The digest of a change. `unknown`: the attributes that may have any value.
pub(crate) fn digest(shown: &PlannedChange, unknown: &[Path], proof: &ChangeProof) -> String {
    let values = match &proof.values {
        Some(values) if lacks_values(shown) => values.clone(),
        _ => values(shown, unknown, &proof.generated),
    };
    let what = format!("{:?} {:?} {}", shown.action, shown.order, shown.forget);
    let mut hasher = Sha256::new();
    feed(&mut hasher, b"purlin change 5");
    for part in [&proof.sealed, &shown.address.to_string(), &shown.type_name, &what, &values] {
        feed(&mut hasher, part.as_bytes());
    }
    hex(&hasher.finalize())
}

/// What proves that a change is shown as it is. `suffixes`: the random parts of names, sorted.
pub(crate) fn proof(shown: &PlannedChange, unknown: &[Path], sealed: String, suffixes: &[String]) -> ChangeProof {
    let values_of = [&shown.before, &shown.after].into_iter().flatten();
    let text = values_of.map(ToString::to_string).collect::<String>();
    let generated: BTreeSet<usize> = text
        .as_bytes()
        .windows(SUFFIX_LENGTH)
        .filter_map(|part| suffixes.binary_search_by(|suffix| suffix.as_bytes().cmp(part)).ok())
        .collect();
    let generated: Vec<String> = generated.into_iter().map(|position| suffixes[position].clone()).collect();
    ChangeProof { sealed, values: Some(values(shown, unknown, &generated)), generated }
}

/// The digest of the attributes that change.
fn values(shown: &PlannedChange, unknown: &[Path], generated: &[String]) -> String {
    let change = restore(shown);
    let (before, mut after) = (change.before.unwrap_or_default(), change.after.unwrap_or_default());
    for path in unknown {
        after = with_unknown(&after, &path.0, true);
    }
    let mut hasher = Sha256::new();
    feed(&mut hasher, b"purlin values 1");
    feed_shown(&mut hasher, before.get("id").unwrap_or(&Value::Null), generated);
    let mut paths = before.differences(&after);
    paths.sort();
    for path in paths {
        feed(&mut hasher, path.to_string().as_bytes());
        let (old, new) = (before.at(&path).unwrap_or_default(), after.at(&path).unwrap_or_default());
        if new != Value::Unknown {
            feed_shown(&mut hasher, &old, generated);
        }
        feed_shown(&mut hasher, &new, generated);
    }
    hex(&hasher.finalize())
}

/// Adds a value as it is shown.
fn feed_shown(hasher: &mut Sha256, value: &Value, generated: &[String]) {
    match value {
        Value::Null => feed(hasher, b"null"),
        Value::Unknown => feed(hasher, b"unknown"),
        Value::Bool(value) => feed(hasher, if *value { b"true" } else { b"false" }),
        // What it is made of says only whether it changes.
        Value::Sensitive(inner) => {
            feed(hasher, b"sensitive");
            feed_shown(hasher, inner, &[]);
        }
        Value::Number(_) => {
            feed(hasher, b"number");
            feed(hasher, number(&value.to_json_text()).as_bytes());
        }
        Value::String(text) => {
            feed(hasher, b"string");
            let fixed = generated.iter().fold(text.to_string(), |text, part| text.replace(part.as_str(), GENERATED));
            feed(hasher, fixed.as_bytes());
        }
        Value::List(items) => {
            feed(hasher, b"list");
            hasher.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed_shown(hasher, item, generated));
        }
        Value::Map(map) => {
            feed(hasher, b"map");
            hasher.update((map.len() as u64).to_le_bytes());
            for (name, item) in map.iter() {
                feed(hasher, name.as_bytes());
                feed_shown(hasher, item, generated);
            }
        }
    }
}

/// A number as the API server keeps it: as a whole number of 64 bits, or with double precision.
fn number(text: &str) -> String {
    if text.parse::<i64>().is_ok() {
        return text.to_owned();
    }
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |float| float.to_string())
}
