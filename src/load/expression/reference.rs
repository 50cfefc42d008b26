//! What one object needs of others: the references in its expressions, and those of `dependsOn`.

use super::Variable;
use crate::model::{Address, Path, Segment};

/// One dependency, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The object referred to, or a whole family. It may not exist.
    pub target: Address,
    /// The field with the expression, `spec.config.input`, or `spec.dependsOn[0]`.
    pub at: Path,
    /// Given in `dependsOn`, not in an expression.
    pub explicit: bool,
    /// Which instance is meant, should the Resource be a family: what the path in the expression begins with.
    pub choice: Option<Choice>,
}

/// How an expression names an instance of a family, if it is one: in `${web.id}` it may be an attribute as well, so
/// only where all Resources are known can it be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// `web[0]`, `web["blue"]` or `web.blue`.
    Instance(Segment),
    /// `web[each.key]`: by a variable of the place where the expression stands, and what follows it.
    By(Variable, Box<[Segment]>),
}
