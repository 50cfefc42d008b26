//! Edits of a record, as values: what it becomes, or why it cannot.

use std::sync::Arc;

use super::super::failure::Failure;
use crate::model::{ObjectStatus, Operation, Record};

/// What a record becomes.
#[derive(Debug, PartialEq, Eq)]
pub enum Edited {
    /// This.
    To(Box<Record>),
    /// Nothing: it goes.
    Erased,
    /// It is that already.
    Same,
}

/// Has the next plan replace the object.
pub fn taint(record: &Record) -> anyhow::Result<Edited> {
    set_status(record, ObjectStatus::Tainted)
}

/// Takes the object for complete again.
pub fn untaint(record: &Record) -> anyhow::Result<Edited> {
    set_status(record, ObjectStatus::Ready)
}

/// Lifts the recorded `preventDestroy`, of leftovers too.
pub fn unprotect(record: &Record) -> anyhow::Result<Edited> {
    require_settled(record)?;
    let mut edited = record.clone();
    let mut lifted = false;
    for object in edited.current.iter_mut().chain(edited.deposed.values_mut()) {
        if object.prevent_destroy {
            Arc::make_mut(object).prevent_destroy = false;
            lifted = true;
        }
    }
    Ok(if lifted { Edited::To(Box::new(edited)) } else { Edited::Same })
}

/// Forgets everything about the instance. With `force` also while an operation is open: an open create is declared
/// never to have happened, so that what it was to replace is current again and can be planned anew.
pub fn remove(record: &Record, force: bool) -> anyhow::Result<Edited> {
    if !force {
        require_settled(record)?;
    }
    let Some(intent) = record.intent.as_deref().filter(|intent| intent.operation == Operation::Create) else {
        return Ok(Edited::Erased);
    };
    let mut edited = record.clone();
    edited.intent = None;
    if edited.current.is_none() {
        edited.current = intent.deposed.and_then(|key| edited.deposed.remove(&key));
    }
    Ok(if edited.has_objects() { Edited::To(Box::new(edited)) } else { Edited::Erased })
}

/// What `remove` will do, as a question ends.
pub fn removal(record: &Record) -> String {
    let address = &record.address;
    match record.intent.as_deref() {
        Some(intent) if intent.operation == Operation::Create => {
            format!(
                "The open create of `{address}` is taken never to have made anything. Should it have, that object is no longer known."
            )
        }
        _ => {
            let objects = usize::from(record.current.is_some()) + record.deposed.len();
            let noun = if objects == 1 { "object" } else { "objects" };
            format!("`{address}` ({objects} {noun}) is forgotten. What exists stays, and is no longer managed.")
        }
    }
}

/// What stays of what a record has published, when the record goes.
pub fn left_behind(record: &Record) -> Option<String> {
    let copies: Vec<String> = record.published.iter().map(|copy| copy.target.to_string()).collect();
    (!copies.is_empty()).then(|| {
        format!("What it has published stays too, until its Resource or you delete it: {}.", copies.join(", "))
    })
}

fn set_status(record: &Record, status: ObjectStatus) -> anyhow::Result<Edited> {
    require_settled(record)?;
    let mut edited = record.clone();
    let Some(current) = edited.current.as_mut() else {
        return Err(Failure::hinted(
            format!("`{}` has no current object", record.address),
            format!("`purlin state show {}` shows what is recorded", record.address),
        ));
    };
    if current.status == status {
        return Ok(Edited::Same);
    }
    Arc::make_mut(current).status = status;
    Ok(Edited::To(Box::new(edited)))
}

/// While an operation is open, nobody knows what the record will say when it ends.
pub fn require_settled(record: &Record) -> anyhow::Result<()> {
    let Some(intent) = record.intent.as_deref() else { return Ok(()) };
    let (address, operation, since) = (&record.address, intent.operation.as_str(), intent.started);
    Err(Failure::hinted(
        format!("the {operation} of `{address}` that began at {since:.0} is still open"),
        format!(
            "let it be settled first, by `purlin apply` or the controller; if that cannot be, `purlin state rm {address} --force`"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::state::fixtures::{object, record, with_intent};
    use crate::model::DeposedKey;

    fn ready() -> Record {
        Record { current: Some(Arc::new(object())), ..record("web") }
    }

    #[test]
    fn taint_and_untaint_are_each_others_reverse() {
        let Edited::To(tainted) = taint(&ready()).unwrap() else { panic!("erased") };
        assert_eq!(tainted.current.as_ref().unwrap().status, ObjectStatus::Tainted);
        assert_eq!(taint(&tainted).unwrap(), Edited::Same);
        assert_eq!(untaint(&ready()).unwrap(), Edited::Same);
        assert!(taint(&record("web")).is_err());
        assert_eq!(untaint(&tainted).unwrap(), Edited::To(Box::new(ready())));
    }

    #[test]
    fn unprotect_reaches_leftovers() {
        let mut record = record("web");
        record.deposed.insert(DeposedKey(1), Arc::new(object()));
        let Edited::To(edited) = unprotect(&record).unwrap() else { panic!("erased") };
        assert!(!edited.deposed[&DeposedKey(1)].prevent_destroy);
        assert_eq!(unprotect(&edited).unwrap(), Edited::Same);
    }

    #[test]
    fn an_open_operation_stops_every_edit() {
        let open = with_intent(ready(), Operation::Update);
        assert!(taint(&open).is_err() && unprotect(&open).is_err() && remove(&open, false).is_err());
        assert_eq!(remove(&open, true).unwrap(), Edited::Erased);
    }

    #[test]
    fn a_create_that_never_happened_gives_the_old_object_back() {
        assert_eq!(remove(&with_intent(record("web"), Operation::Create), true).unwrap(), Edited::Erased);
        let mut open = with_intent(record("web"), Operation::Create);
        open.deposed.insert(DeposedKey(1), Arc::new(object()));
        if let Some(intent) = open.intent.as_mut() {
            intent.deposed = Some(DeposedKey(1));
        }
        assert_eq!(remove(&open, true).unwrap(), Edited::To(Box::new(ready())));
    }
}
