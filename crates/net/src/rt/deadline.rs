//! A deadline that costs nothing until something has to wait for it.

use std::{
    io,
    task::{Context, Poll},
    time::Instant,
};

use super::sys::timed_out;

/// A reactor's timer.
pub trait Timer {
    /// Ready once the instant it was last set to has passed.
    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Moves it.
    fn reset(&mut self, at: Instant);
}

/// The deadline of a socket, with the timer that watches it.
///
/// The timer is made by the first operation that is pending with a deadline set, and dropped after
/// [some](UNTIMED) in a row that were pending without one. Moving the deadline later leaves the timer alone: it
/// fires early, once, and is moved then. So a run of exchanges, each with a timeout of its own, costs one timer
/// event per timeout and not one per exchange.
#[derive(Debug)]
pub(super) struct Deadline<T> {
    at: Option<Instant>,
    armed: Option<(T, Instant)>,
    /// How many waits there were without a deadline since the last with one.
    untimed: u8,
}

/// So many waits in a row without a deadline tell that there is none any more, and not only between exchanges.
const UNTIMED: u8 = 8;

impl<T: Timer> Deadline<T> {
    pub(super) fn none() -> Self {
        Deadline { at: None, armed: None, untimed: 0 }
    }

    pub(super) fn set(&mut self, at: Option<Instant>) {
        self.at = at;
    }

    /// What a pending operation comes to: the time-out error once the deadline has passed.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        make: impl FnOnce(Instant) -> T,
    ) -> Poll<io::Error> {
        let Some(at) = self.at else {
            // A timer that is left would cost the runtime a look at the clock at each turn, and wake for
            // nothing.
            self.untimed = self.untimed.saturating_add(1);
            if self.untimed == UNTIMED {
                self.armed = None;
            }
            return Poll::Pending;
        };
        self.untimed = 0;
        let (timer, armed_for) = self.armed.get_or_insert_with(|| (make(at), at));
        if *armed_for > at {
            timer.reset(at);
            *armed_for = at;
        }
        while timer.poll_fired(cx).is_ready() {
            // Compared with what it was armed for and not with the clock, which a test may stop.
            if *armed_for == at {
                self.armed = None;
                return Poll::Ready(timed_out());
            }
            timer.reset(at);
            *armed_for = at;
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc, task::Waker, time::Duration};

    use super::*;

    /// A timer on a clock that the test moves, counting what is done to it.
    #[derive(Debug)]
    struct Fake {
        at: Instant,
        now: Rc<Cell<Instant>>,
        resets: Rc<Cell<usize>>,
    }

    impl Timer for Fake {
        fn poll_fired(&mut self, _: &mut Context<'_>) -> Poll<()> {
            if self.now.get() >= self.at { Poll::Ready(()) } else { Poll::Pending }
        }

        fn reset(&mut self, at: Instant) {
            self.at = at;
            self.resets.set(self.resets.get() + 1);
        }
    }

    struct Rig {
        deadline: Deadline<Fake>,
        start: Instant,
        now: Rc<Cell<Instant>>,
        resets: Rc<Cell<usize>>,
        made: usize,
    }

    impl Rig {
        fn new() -> Self {
            let start = Instant::now();
            let now = Rc::new(Cell::new(start));
            Rig { deadline: Deadline::none(), start, now, resets: Rc::default(), made: 0 }
        }

        fn ms(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn set(&mut self, ms: u64) {
            self.deadline.set(Some(self.ms(ms)));
        }

        fn expired_at(&mut self, ms: u64) -> bool {
            self.now.set(self.ms(ms));
            let (now, resets, made) = (&self.now, &self.resets, &mut self.made);
            self.deadline
                .poll(&mut Context::from_waker(Waker::noop()), |at| {
                    *made += 1;
                    Fake { at, now: now.clone(), resets: resets.clone() }
                })
                .is_ready()
        }
    }

    #[test]
    fn a_later_deadline_costs_nothing_until_the_timer_fires() {
        let mut rig = Rig::new();
        rig.set(100);
        assert!(!rig.expired_at(0));
        for exchange in 1..50 {
            rig.set(100 + exchange);
            assert!(!rig.expired_at(exchange));
        }
        assert_eq!((rig.made, rig.resets.get()), (1, 0));
        assert!(!rig.expired_at(120), "fired for the first deadline, which has been moved");
        assert_eq!(rig.resets.get(), 1);
        assert!(rig.expired_at(149));
    }

    #[test]
    fn an_earlier_deadline_is_kept() {
        let mut rig = Rig::new();
        rig.set(1000);
        assert!(!rig.expired_at(0));
        rig.set(10);
        assert!(!rig.expired_at(9));
        assert!(rig.expired_at(10));
        rig.set(20);
        assert!(!rig.expired_at(11), "usable again after a time-out");
        rig.deadline.set(None);
        assert!(!rig.expired_at(5000));
    }

    #[test]
    fn a_deadline_that_was_taken_back_leaves_no_timer_to_whoever_waits() {
        let mut rig = Rig::new();
        rig.set(100);
        assert!(!rig.expired_at(0));
        rig.deadline.set(None);
        for _ in 1..UNTIMED {
            assert!(!rig.expired_at(1));
        }
        assert!(rig.deadline.armed.is_some(), "the next exchange may have one again");
        assert!(!rig.expired_at(1));
        assert!(rig.deadline.armed.is_none());
        rig.set(200);
        assert!(!rig.expired_at(150));
        assert!(rig.expired_at(200));
        assert_eq!((rig.made, rig.resets.get()), (2, 0));
    }
}
