//! Two directions of one thing, of which each may be waited for by a task of its own.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Wake, Waker},
};

/// Which direction is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Reading,
    Writing,
}

/// Who waits, by direction. As a waker it wakes both: for what has room for one waker only, and where
/// each may have to do what the other needs.
#[derive(Debug, Default)]
pub(crate) struct Halves(Mutex<[Option<Waker>; 2]>);

impl Halves {
    fn lock(&self) -> MutexGuard<'_, [Option<Waker>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait(&self, half: Half, waker: &Waker) {
        let mut wakers = self.lock();
        let place = &mut wakers[half as usize];
        if place.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let left = place.replace(waker.clone());
        drop(wakers);
        drop(left);
    }

    pub(crate) fn take(&self, half: Half) -> Option<Waker> {
        self.lock()[half as usize].take()
    }
}

impl Wake for Halves {
    fn wake(self: Arc<Self>) {
        let wakers = std::mem::take(&mut *self.lock());
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Half {
    pub(crate) fn other(self) -> Half {
        match self {
            Half::Reading => Half::Writing,
            Half::Writing => Half::Reading,
        }
    }
}
