//! What the exchanges of a job have in common, and what each lane of them has of its own.

use std::{io, sync::Arc};

use bytes::Bytes;

use crate::{
    Ask, Deliver, Job, Messages, Outgoing, Pieces, Seen, Upload,
    clock::now,
    seen::{Expect, STAMP},
    upload::Pace,
};

/// How much slower each exchange is made by `MIMUS_BENCH_SLOW`, in nanoseconds.
const SLOWER: u64 = 2_000;

/// What the exchanges of a job have in common.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    url: Arc<str>,
    upload: Upload,
    /// The body of a known upload, made once.
    known: Bytes,
    /// The messages of a WebSocket, made once.
    messages: Option<Messages>,
    deliver: Deliver,
    in_flight: u32,
    expect: Expect,
    slow: bool,
}

impl Plan {
    /// # Errors
    /// Why the job makes no sense.
    pub(super) fn new(job: &Job) -> Result<Self, String> {
        let stamped = match (job.upload, job.deliver) {
            (Upload::Paced { size, .. }, _) | (_, Deliver::Paced { size }) => Some(size as usize),
            _ => None,
        };
        if stamped.is_some_and(|size| size < STAMP) {
            return Err(format!("a paced piece needs {STAMP} bytes for its stamp"));
        }
        if job.in_flight == 0 {
            return Err("in_flight is 0".into());
        }
        if job.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err("the rate is not above 0".into());
        }
        let known = match job.upload {
            Upload::Known(n) => {
                let n = usize::try_from(n).map_err(|_| "the upload is too large for memory")?;
                Bytes::from(vec![b'm'; n])
            }
            _ => Bytes::new(),
        };
        let messages = match job.upload {
            Upload::Messages { count, size, text } => Some(Messages::new(count, size, text)),
            _ => None,
        };
        let expect = match job.upload {
            Upload::Paced { pieces, .. } => Expect::Report { pieces },
            _ => Expect::Length { bytes: job.body, deliver: job.deliver },
        };
        Ok(Self {
            url: job.url.as_str().into(),
            upload: job.upload,
            known,
            messages,
            deliver: job.deliver,
            in_flight: job.in_flight,
            expect,
            slow: std::env::var_os("MIMUS_BENCH_SLOW").is_some_and(|value| value == "1"),
        })
    }

    /// Whether exchanges have a first byte to time.
    pub(super) fn streams(&self) -> bool {
        match self.expect {
            Expect::Report { .. } => true,
            Expect::Length { deliver, .. } => deliver != Deliver::Bytes,
        }
    }

    /// How many bytes each exchange sends.
    pub(super) fn sent(&self) -> u64 {
        match self.upload {
            Upload::None => 0,
            Upload::Known(n) | Upload::Chunked(n) => n,
            Upload::Paced { pieces, size, .. } => u64::from(pieces) * u64::from(size),
            Upload::Messages { count, size, .. } => u64::from(count) * u64::from(size),
        }
    }

    /// How many paced pieces there are in an exchange.
    pub(super) fn pieces(&self) -> u64 {
        match self.expect {
            Expect::Report { pieces } => pieces.into(),
            Expect::Length { bytes, deliver: Deliver::Paced { size } } => bytes / u64::from(size),
            Expect::Length { .. } => 0,
        }
    }
}

/// Exchanges of a job, one after the other.
#[derive(Debug)]
pub(super) struct Work {
    plan: Plan,
    seen: Seen,
    pace: Option<Arc<Pace>>,
}

impl Work {
    pub(super) fn new(plan: &Plan) -> io::Result<Self> {
        let pace = match plan.upload {
            Upload::Paced { .. } => Some(Arc::new(Pace::new()?)),
            _ => None,
        };
        Ok(Self { plan: plan.clone(), seen: Seen::new(plan.expect), pace })
    }

    /// Begins an exchange that was due at `began`.
    pub(super) fn begin(&mut self, began: u64) -> (Ask<'_>, &mut Seen) {
        if self.plan.slow {
            slow_down();
        }
        self.seen.begin(began);
        if let Some(messages) = &mut self.plan.messages {
            messages.advance();
            self.seen.expect(messages);
        }
        let upload = match (self.plan.upload, &self.pace) {
            (Upload::None, _) => Outgoing::None,
            (Upload::Known(_), _) => Outgoing::Known(self.plan.known.clone()),
            (Upload::Chunked(total), _) => Outgoing::Stream(Pieces::even(total)),
            (Upload::Paced { pieces, size, every_ns }, Some(pace)) => {
                Outgoing::Stream(Pieces::paced(pieces, size, every_ns, pace.clone()))
            }
            (Upload::Messages { .. }, _) => Outgoing::None,
            (Upload::Paced { .. }, None) => unreachable!("made with the work"),
        };
        let Plan { url, deliver, in_flight, messages, .. } = &self.plan;
        let (deliver, in_flight) = (*deliver, *in_flight);
        (Ask { url, upload, in_flight, deliver, messages: messages.as_ref() }, &mut self.seen)
    }

    /// Checks the exchange that was made last.
    pub(super) fn check(&mut self) -> Result<Told<'_>, String> {
        self.seen.check()?;
        Ok(Told {
            bytes: self.seen.bytes() + self.plan.sent(),
            first_byte: match self.plan.streams() {
                true => self.seen.first_byte(self.pace.as_deref().map(Pace::first)),
                false => None,
            },
            delays: self.seen.delays(),
        })
    }
}

/// What an exchange that went well told.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) bytes: u64,
    pub(super) first_byte: Option<u64>,
    pub(super) delays: &'a [u64],
}

fn slow_down() {
    drop(std::hint::black_box(Box::new([0_u8; 64])));
    let until = now() + SLOWER;
    while now() < until {
        std::hint::spin_loop();
    }
}
