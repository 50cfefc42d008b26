//! The namespaces in which changes wait: they share the memory for planned steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of these namespaces, shared by their tasks.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    namespaces: Arc<AtomicUsize>,
}

/// Whether one namespace is counted. It is not after this value is dropped.
#[derive(Debug)]
pub struct Membership {
    backlog: Backlog,
    is_counted: bool,
}

impl Backlog {
    /// How many namespaces have called [`Membership::set`] with `true` last.
    pub fn namespaces(&self) -> usize {
        self.namespaces.load(Ordering::Relaxed)
    }

    /// The membership of a namespace that is not counted yet.
    pub fn membership(&self) -> Membership {
        Membership { backlog: self.clone(), is_counted: false }
    }
}

impl Membership {
    pub fn set(&mut self, waits: bool) {
        match (std::mem::replace(&mut self.is_counted, waits), waits) {
            (false, true) => _ = self.backlog.namespaces.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.backlog.namespaces.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_counted_once_and_while_it_waits() {
        let backlog = Backlog::default();
        let (mut one, mut other) = (backlog.membership(), backlog.membership());
        assert_eq!(backlog.namespaces(), 0);
        [true, true].into_iter().for_each(|waits| one.set(waits));
        other.set(true);
        assert_eq!(backlog.namespaces(), 2);
        [false, false].into_iter().for_each(|waits| one.set(waits));
        assert_eq!(backlog.namespaces(), 1);
        drop(other);
        assert_eq!(backlog.namespaces(), 0);
    }
}
