//! A queue that namespaces share: each one's items stay in order, and the namespaces take turns, so that the many items
//! of one delay those of the others by at most one each.

use std::collections::{BTreeMap, VecDeque};

use model::Namespace;

#[derive(Debug)]
pub struct FairQueue<T> {
    of: BTreeMap<Namespace, VecDeque<T>>,
    /// The namespaces with items; the first one is next.
    order: VecDeque<Namespace>,
    length: usize,
}

/// What to do with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Take,
    /// It cannot be taken now.
    Keep,
    Drop,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), order: VecDeque::new(), length: 0 }
    }
}

impl<T> FairQueue<T> {
    pub fn push(&mut self, namespace: &Namespace, item: T) {
        let items = self.of.entry(namespace.clone()).or_default();
        if items.is_empty() {
            self.order.push_back(namespace.clone());
        }
        items.push_back(item);
        self.length += 1;
    }

    pub fn total(&self) -> usize {
        self.length
    }

    /// How many items a namespace has.
    pub fn len_of(&self, namespace: &str) -> usize {
        self.of.get(namespace).map_or(0, VecDeque::len)
    }

    /// Removes and returns the next item that `choose` takes.
    pub fn pop(&mut self, mut choose: impl FnMut(&T) -> Choice) -> Option<T> {
        for _ in 0..self.order.len() {
            let namespace = self.order.pop_front()?;
            let items = self.of.get_mut(&namespace)?;
            let before = items.len();
            let taken = take(items, &mut choose);
            self.length -= before - items.len();
            if items.is_empty() {
                // Frees the memory of a burst.
                self.of.remove(&namespace);
            } else {
                self.order.push_back(namespace);
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }
}

fn take<T>(items: &mut VecDeque<T>, choose: &mut impl FnMut(&T) -> Choice) -> Option<T> {
    let mut at = 0;
    while let Some(item) = items.get(at) {
        match choose(item) {
            Choice::Take => return items.remove(at),
            Choice::Keep => at += 1,
            Choice::Drop => drop(items.remove(at)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[(&str, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::default();
        items.iter().for_each(|(namespace, item)| queue.push(&(*namespace).into(), *item));
        queue
    }

    #[test]
    fn namespaces_take_turns() {
        let mut queue = queue(&[("a", 1), ("a", 2), ("a", 3), ("b", 10), ("c", 20), ("c", 21)]);
        assert_eq!((queue.total(), queue.len_of("a"), queue.len_of("d")), (6, 3, 0));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(|_| Choice::Take)).collect();
        assert_eq!(order, [1, 10, 20, 2, 21, 3]);
        assert!(queue.total() == 0 && queue.of.is_empty() && queue.order.is_empty());
    }

    #[test]
    fn an_item_that_cannot_be_taken_keeps_its_place() {
        let mut queue = queue(&[("a", 1), ("a", 2), ("b", 10)]);
        let even = |item: &u32| if item.is_multiple_of(2) { Choice::Take } else { Choice::Keep };
        assert_eq!((queue.pop(even), queue.pop(even), queue.pop(even)), (Some(2), Some(10), None));
        assert_eq!((queue.total(), queue.pop(|_| Choice::Drop), queue.total()), (1, None, 0));
    }
}
