//! Where copies of outputs are written: ConfigMaps and Secrets of a cluster, or files.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::CallContext;
use crate::model::data::Texts;
use crate::model::{DataRef, DriverError};

/// One copy, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct CopyOf<'a> {
    /// For whom, and as whom.
    pub context: &'a CallContext,
    /// apiVersion, kind and UID of the Resource; without a UID it is one of a file.
    pub owner: [&'a str; 3],
    /// The `ConfigMap` or Secret.
    pub target: &'a DataRef,
    /// The UID that the copy was made with; empty while it is not known whether there is one.
    pub uid: &'a str,
}

/// Writes, reads and removes copies. What is not ours is never touched: it is `AlreadyExists` for `write`, and absent
/// for the others.
pub trait Publisher: Send + Sync {
    /// Makes the copy, or makes it equal to `texts`; gives its UID. Ours is what carries our owner mark, so that a copy
    /// whose UID a crash has lost is found again.
    fn write<'a>(&'a self, copy: CopyOf<'a>, texts: &'a Texts) -> BoxFuture<'a, Result<Arc<str>, DriverError>>;

    /// What the copy holds; `None` when there is none.
    fn read<'a>(&'a self, copy: CopyOf<'a>) -> BoxFuture<'a, Result<Option<Texts>, DriverError>>;

    /// Removes the copy, if it is the one of that UID, or ours while no UID is known.
    fn remove<'a>(&'a self, copy: CopyOf<'a>) -> BoxFuture<'a, Result<(), DriverError>>;
}
