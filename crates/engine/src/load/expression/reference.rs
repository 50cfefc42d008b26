//! References between objects, from expressions and `dependsOn`.

use std::sync::Arc;

use super::Variable;
use model::{Address, Path, Segment};

/// A dependency and its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The referenced object or family. It may not exist.
    pub target: Address,
    /// The path of the expression, such as `spec.config.input`, or of the entry in `dependsOn`.
    pub at: Path,
    /// The reference comes from `dependsOn`, not from an expression.
    pub explicit: bool,
    /// The selected instance if the target is a family.
    pub selector: Option<InstanceSelector>,
    /// What the expression reads of the target, for messages. Empty for `dependsOn`.
    pub segments: Arc<[Segment]>,
}

/// How an expression selects an instance of a family. In `${web.id}` the first segment can also be an attribute; this
/// is known only when all Resources are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceSelector {
    /// `web[0]`, `web["blue"]` or `web.blue`.
    Instance(Segment),
    /// `web[each.key]`: a variable and the segments after it.
    Variable(Variable, Arc<[Segment]>),
}
