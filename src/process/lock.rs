//! Locks that a panic elsewhere does not take away.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also when somebody panicked who held it. For what is changed by whole steps under the lock, so that it
/// is whole whenever the lock is free.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
