//! Former addresses of the objects of a Resource.
use model::{Address, InstanceKey, Path};

/// A former address of an object: an entry of `spec.moved`, or an address in the annotation `purlin.dev/moved-from`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MovedFrom {
    pub from: Address,
    /// The instance to which the object belongs now, at the end of a chain of entries. `None`: the Resource itself, or,
    /// for a whole family, the instance with the same key.
    pub to: Option<InstanceKey>,
    /// The number of the entry in `spec.moved`. `None`: the annotation.
    pub entry: Option<usize>,
}

impl MovedFrom {
    /// An address in the annotation.
    pub fn annotation(from: Address) -> Self {
        Self { from, to: None, entry: None }
    }

    /// Whether it names a Resource as a whole, so that each instance comes from the one with its key.
    pub fn is_whole(&self) -> bool {
        self.to.is_none() && self.from.key == InstanceKey::None
    }

    /// The field that contains it.
    pub fn path(&self) -> Path {
        match self.entry {
            Some(entry) => Path::of(&["spec", "moved"]).index(entry),
            None => Path::of(&["metadata", "annotations", api::MOVED_FROM]),
        }
    }

    /// The field that contains it, in words.
    pub fn field(&self) -> String {
        match self.entry {
            Some(entry) => format!("`spec.moved[{entry}]`"),
            None => format!("the annotation `{}`", api::MOVED_FROM),
        }
    }
}
