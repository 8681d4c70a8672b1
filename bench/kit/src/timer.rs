//! Wake-ups by the nanosecond: tokio's timer counts in milliseconds, and `thread::sleep` adds the
//! thread's timer slack.

use std::{
    io,
    os::fd::OwnedFd,
    task::{Context, Poll, ready},
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::clock::now;

/// A timer, for one waiter at a time.
#[derive(Debug)]
pub(crate) enum Timer {
    /// Wakes a task.
    Async(AsyncFd<OwnedFd>),
    /// Blocks the thread.
    Blocking(OwnedFd),
}

impl Timer {
    /// A timer for the tokio runtime in whose context this is called; without one, for a thread.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        match tokio::runtime::Handle::try_current() {
            Ok(_) => {
                // SAFETY: an `OwnedFd` is open as long as it lives, and stays the same descriptor.
                let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
                Ok(Self::Async(fd))
            }
            Err(_) => Ok(Self::Blocking(fd)),
        }
    }

    /// Ready when CLOCK_MONOTONIC has reached `due`. A timer for a thread blocks it until then.
    pub(crate) fn poll_until(
        &self,
        cx: &mut Context<'_>,
        due: u64,
        armed: &mut bool,
    ) -> Poll<io::Result<()>> {
        let Self::Async(fd) = self else {
            return Poll::Ready(self.block_until(due));
        };
        while now() < due {
            if !*armed {
                arm(fd.get_ref(), due)?;
                *armed = true;
            }
            // Setting the timer again forgets that it went off, so nothing has to be read.
            ready!(fd.poll_read_ready(cx))?.clear_ready();
        }
        *armed = false;
        Poll::Ready(Ok(()))
    }

    /// Waits until CLOCK_MONOTONIC has reached `due`.
    pub(crate) async fn until(&self, due: u64) -> io::Result<()> {
        let mut armed = false;
        std::future::poll_fn(|cx| self.poll_until(cx, due, &mut armed)).await
    }

    /// Blocks the thread until CLOCK_MONOTONIC has reached `due`.
    pub(crate) fn block_until(&self, due: u64) -> io::Result<()> {
        let fd = match self {
            Self::Async(fd) => fd.get_ref(),
            Self::Blocking(fd) => fd,
        };
        if now() >= due {
            return Ok(());
        }
        arm(fd, due)?;
        rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut [0_u8; 8])).map(drop)?;
        Ok(())
    }
}

fn arm(fd: &OwnedFd, due: u64) -> io::Result<()> {
    let at = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec {
            tv_sec: (due / 1_000_000_000) as i64,
            tv_nsec: (due % 1_000_000_000) as i64,
        },
    };
    timerfd_settime(fd, TimerfdTimerFlags::ABSTIME, &at)?;
    Ok(())
}
