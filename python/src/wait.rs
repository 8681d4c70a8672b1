//! How a thread of Python waits.

use std::ops::ControlFlow;

use mimus::rt;
use pyo3::prelude::*;

/// Drives `future` on this thread, which other threads of Python do not wait for. A signal is handled when it comes; if
/// its handler raises, as that of Ctrl-C does, the future is dropped, which closes its connection.
///
/// # Errors
/// What the handler of a signal raised.
pub(crate) fn wait<F: Future + Send>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F::Output: Send,
{
    let goes_on = || match Python::attach(|py| py.check_signals()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(raised) => ControlFlow::Break(raised),
    };
    match py.detach(|| rt::Blocking::block_on_interruptible(future, goes_on)) {
        ControlFlow::Continue(output) => Ok(output),
        ControlFlow::Break(raised) => Err(raised),
    }
}
