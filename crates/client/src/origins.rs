//! What a client remembers of the origins it talked to.

use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The most origins that are remembered. Beyond it all are forgotten: to ask again costs one request.
const MOST: usize = 1000;

/// Some https origins, by authority.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// There are any: asked before each call.
    any: AtomicBool,
    authorities: Mutex<HashSet<Box<str>>>,
}

impl Origins {
    fn lock(&self) -> MutexGuard<'_, HashSet<Box<str>>> {
        self.authorities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, authority: &str) {
        let mut authorities = self.lock();
        if authorities.len() >= MOST {
            authorities.clear();
        }
        authorities.insert(authority.into());
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn contains(&self, authority: &str) -> bool {
        self.any.load(Ordering::Acquire) && self.lock().contains(authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_of_many_names_fills_the_memory() {
        let origins = Origins::default();
        assert!(!origins.contains("0.example"));
        for number in 0..10 * MOST {
            origins.insert(&format!("{number}.example"));
            assert!(origins.contains(&format!("{number}.example")));
            assert!(origins.lock().len() <= MOST);
        }
    }
}
