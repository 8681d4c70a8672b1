//! A connection that each lane has for itself.

use std::sync::{Mutex, PoisonError};

/// What a client keeps from one exchange to the next, and its clones do not share: each begins without.
#[derive(Debug)]
pub struct Own<T>(Mutex<Option<T>>);

impl<T> Default for Own<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Clone for Own<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> Own<T> {
    /// Takes it out, for an exchange. One that fails does not put it back, so the next begins anew.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps it for the next exchange.
    pub fn keep(&self, kept: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_begins_without() {
        let first = Own::default();
        first.keep(5);
        let clone = first.clone();
        assert_eq!(clone.take(), None);
        assert_eq!(first.take(), Some(5));
        assert_eq!(first.take(), None);
    }
}
