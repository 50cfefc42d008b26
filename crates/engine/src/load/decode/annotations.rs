//! The annotations of Purlin. A misspelled one must not be ignored: an object that should move would be destroyed.

use std::sync::Arc;

use super::{Kind, Metadata, invalid};
use api::{ANNOTATIONS, Annotation};
use model::suggest::closest;
use model::{Address, Diagnostic, Diagnostics, Path, Segment, Severity, Uid};

/// The prefix that belongs to Purlin.
const PREFIX: &str = "purlin.dev/";

#[derive(Default)]
pub struct Annotations {
    pub moved_from: Vec<Address>,
    pub replace_requested: Arc<str>,
    pub reconcile_requested: Arc<str>,
    pub record: Uid,
}

/// Reads the annotations of an object of this kind.
pub fn decode(metadata: &Metadata<'_>, kind: Kind, problems: &mut Diagnostics) -> Annotations {
    let written = &metadata.annotations;
    let mut found = Annotations::default();
    unusable(written, kind.as_str(), |annotation| kind.takes(annotation), problems);
    // As for an unknown annotation, the object that it names is kept.
    for (name, value) in metadata.labels.iter().filter(|_| kind == Kind::Resource) {
        let at = Path::of(&["metadata", "labels", name]);
        let hint = format!("write the annotation `{}`", api::MOVED_FROM);
        problems.push(invalid(at, "a label does not move an object", &hint));
        found.moved_from.extend(named(value));
    }
    for (name, value) in written {
        match *name {
            api::RECONCILE_REQUESTED_AT => found.reconcile_requested = (*value).into(),
            api::RECORD if kind == Kind::Module => found.record = (*value).into(),
            // The others concern the object of a Resource.
            _ if kind != Kind::Resource => {}
            api::MOVED_FROM => {
                let former = addresses(value, problems);
                found.moved_from.splice(0..0, former);
            }
            api::REPLACE_REQUESTED_AT => found.replace_requested = (*value).into(),
            api::RECORD => found.record = (*value).into(),
            // It may mean `moved-from`. The object that it names is kept.
            _ => found.moved_from.extend(named(value)),
        }
    }
    found
}

/// Reports the annotations of a kind that has none of Purlin's.
pub fn unusable_annotations(written: &[(&str, &str)], kind: &str) -> Diagnostics {
    let mut problems = Diagnostics::new();
    unusable(written, kind, |_| false, &mut problems);
    problems
}

/// Whether the annotation belongs to Purlin, or is meant to.
pub fn is_own(name: &str) -> bool {
    name.starts_with(PREFIX) || means_moved_from(name)
}

/// Whether the name of an annotation or label means the former addresses: `moved-from` in any spelling, with a prefix of
/// Purlin or without one.
pub fn means_moved_from(name: &str) -> bool {
    let (prefix, end) = name.rsplit_once('/').unwrap_or(("", name));
    let letters = end.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase());
    letters.eq("movedfrom".chars()) && (prefix.is_empty() || prefix.to_ascii_lowercase().contains("purlin"))
}

/// Whether the problem may concern the former addresses of the object: it is in `spec.moved`, in an annotation of
/// Purlin or a label in its place, or in all annotations.
pub(crate) fn concerns_moves(problem: &Diagnostic) -> bool {
    let Some(Path(segments)) = &problem.path else { return false };
    let [Segment::Name(first), Segment::Name(second), rest @ ..] = segments.as_slice() else { return false };
    let is_of_purlin = matches!(rest.first(), Some(Segment::Name(name)) if is_own(name));
    match (&**first, &**second) {
        ("spec", "moved") => true,
        ("metadata", "annotations") => is_of_purlin || rest.is_empty(),
        ("metadata", "labels") => is_of_purlin,
        _ => false,
    }
}

/// Whether an error of a manifest leaves open which object the manifest means: its name or a former address may be
/// unknown. Until the error is corrected, no object can be destroyed for lack of a manifest.
pub fn holds_destroys(problem: &Diagnostic) -> bool {
    let Some(Path(segments)) = problem.path.as_ref().filter(|_| problem.severity == Severity::Error) else {
        return false;
    };
    let names = segments.iter().map(|segment| match segment {
        Segment::Name(name) => name.as_ref(),
        Segment::Index(_) => "",
    });
    match names.collect::<Vec<_>>().as_slice() {
        ["metadata", "annotations" | "labels", ..] | ["spec", "moved", ..] => concerns_moves(problem),
        ["metadata", "namespace", ..] => false,
        // An unknown field may be a misspelled `annotations`.
        ["metadata", ..] => true,
        _ => false,
    }
}

fn unusable(written: &[(&str, &str)], kind: &str, applies: impl Fn(&Annotation) -> bool, problems: &mut Diagnostics) {
    for (name, _) in written.iter().filter(|(name, _)| is_own(name)) {
        let at = Path::of(&["metadata", "annotations", name]);
        let Some(annotation) = ANNOTATIONS.iter().find(|annotation| annotation.name == *name) else {
            problems.push(unknown(at, name, &applies));
            continue;
        };
        if !applies(annotation) {
            problems.push(invalid(at, format!("this annotation does not apply to a {kind}"), "remove it"));
        }
    }
}

fn unknown(at: Path, name: &str, applies: &impl Fn(&Annotation) -> bool) -> Diagnostic {
    let names: Vec<&str> =
        ANNOTATIONS.iter().filter(|annotation| applies(annotation)).map(|annotation| annotation.name).collect();
    // The common prefix says nothing about similarity.
    let ends = names.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let end = name.rsplit_once('/').map_or(name, |(_, end)| end);
    let hint = match closest(end, ends) {
        Some(meant) => format!("did you mean `{PREFIX}{meant}`?"),
        None if names.is_empty() => "remove it".to_owned(),
        None => format!("known annotations are {}", names.join(", ")),
    };
    invalid(at, "unknown annotation", &hint)
}

/// The addresses that `moved-from` names.
fn addresses(text: &str, problems: &mut Diagnostics) -> Vec<Address> {
    let mut addresses = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name.parse::<Address>() {
            Ok(address) => addresses.push(address),
            Err(error) => {
                let hint =
                    "write `name`, `name[0]` or `name[\"key\"]`; separate several addresses with commas, newest first";
                let at = Path::of(&["metadata", "annotations", api::MOVED_FROM]);
                problems.push(invalid(at, format!("`{}` is not a valid address", error.0), hint));
                addresses.extend(name_of(name));
            }
        }
    }
    addresses
}

/// The Resource that an invalid address may mean. Its objects are kept.
pub fn name_of(text: &str) -> Option<Address> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The addresses that a value may name.
fn named(text: &str) -> impl Iterator<Item = Address> {
    text.split(',').filter_map(|name| name.trim().parse().ok())
}
