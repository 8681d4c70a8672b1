//! Ctrl-C: the terminal is left in order and the partial file as it is, ready for -C -.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use indicatif::ProgressBar;

use crate::{exit::Exit, output};

/// The bar on the screen, if there is one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);
/// Somebody else minds Ctrl-C.
static IGNORED: AtomicBool = AtomicBool::new(false);

/// What the first Ctrl-C does instead of ending the process.
type First = Box<dyn FnOnce() + Send>;
static FIRST: Mutex<Option<First>> = Mutex::new(None);

/// Makes Ctrl-C end the process in order.
pub(crate) fn install() {
    // When it cannot be installed the default action remains, which ends the process as well.
    let _ = ctrlc::set_handler(|| {
        if IGNORED.load(Ordering::Acquire) {
            return;
        }
        happened();
    });
}

/// Ctrl-C, whether it came as a signal or as a key.
pub(crate) fn happened() {
    let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(first) = first {
        return first();
    }
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(bar) = bar {
        bar.abandon();
        output::tell("");
    }
    std::process::exit(Exit::Interrupted as i32);
}

/// Makes the first Ctrl-C do this; the second ends the process as ever.
pub(crate) fn first(action: impl FnOnce() + Send + 'static) {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
}

/// Tells which bar to leave in order.
pub(crate) fn set_bar(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Ignores Ctrl-C until the guard is dropped.
pub(crate) fn ignored() -> Ignored {
    IGNORED.store(true, Ordering::Release);
    Ignored
}

/// While it lives, Ctrl-C does nothing.
#[must_use]
pub(crate) struct Ignored;

impl Drop for Ignored {
    fn drop(&mut self) {
        IGNORED.store(false, Ordering::Release);
    }
}
