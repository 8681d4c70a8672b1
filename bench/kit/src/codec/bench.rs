//! The timed loop, and the check that goes before it.

use super::{
    BATCH, Codec, Input, Row, cycles,
    rows::{KEY, event_parts, masked_by, opcode},
};
use crate::{Job, PeerError, Sample, measure::Meter};

/// Cycles are told in hundredths.
const PARTS: u64 = 100;

/// Where a codec gets its input, tells what came of one operation, and has it measured.
#[derive(Debug)]
pub struct Bench {
    row: Row,
    input: Input,
    ops: usize,
    /// Whether what came was told, and what was wrong with it.
    checked: Option<Result<(), String>>,
    /// Of each batch, hundredths of a cycle for an operation.
    times: Vec<u64>,
    /// Cycles that were timed, and all from the first to the last.
    timed: u64,
    all: u64,
    /// What was spent on all, the check before not included.
    spent: Sample,
}

/// Has `codec` measure `job`.
pub(super) fn measure<C: Codec>(codec: &mut C, row: Row, job: &Job) -> Result<Sample, PeerError> {
    let mut warm = Bench::new(row, job.warm_up)?;
    codec.run(row, &mut warm)?;
    warm.outcome()?;
    let mut bench = Bench::new(row, job.ops)?;
    codec.run(row, &mut bench)?;
    bench.outcome()?;
    let mut sample = Sample {
        ops: job.ops,
        bytes: bench.bytes(),
        latency: std::mem::take(&mut bench.times),
        ..std::mem::take(&mut bench.spent)
    };
    // Only what was timed, without what was prepared in between.
    sample.wall = (sample.wall as f64 * bench.timed as f64 / bench.all.max(1) as f64) as u64;
    Ok(sample)
}

impl Bench {
    pub(super) fn new(row: Row, ops: u64) -> Result<Self, PeerError> {
        let ops = usize::try_from(ops)?;
        let times = Vec::with_capacity(ops.div_ceil(BATCH));
        let (input, spent) = (Input::of(row), Sample::default());
        Ok(Self { row, input, ops, checked: None, times, timed: 0, all: 0, spent })
    }

    /// What to measure with.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// A message came, by parsing.
    pub fn came(&mut self, payload: &[u8]) {
        self.check(payload == self.input.payload, "the payload is not what was sent");
    }

    /// A frame was encoded.
    pub fn wrote(&mut self, frame: &[u8]) {
        let is_right = self.is_frame(frame);
        self.check(is_right, "the frame does not say what it has to");
    }

    /// The payload was masked with [`KEY`].
    pub fn masked(&mut self, masked: &[u8]) {
        let is_right = masked_by(&self.input.payload, KEY).eq(masked.iter().copied());
        self.check(is_right, "the bytes are not masked as they have to be");
    }

    /// What the check of the text found, and what it found of the same text with its last byte made 0xFF.
    pub fn told_apart(&mut self, good: bool, bad: bool) {
        self.check(good && !bad, "good UTF-8 and bad are not told apart");
    }

    /// The events of a batch were parsed: the type and the data of each.
    pub fn events<'a>(&mut self, events: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let due = (0..BATCH).map(event_parts);
        let is_right = events
            .into_iter()
            .map(|(name, data)| (name.to_owned(), data.to_owned()))
            .eq(due.map(|(name, data)| (name.to_owned(), data)));
        self.check(is_right, "the events are not those that were sent");
    }

    fn check(&mut self, is_right: bool, otherwise: &str) {
        let found = if is_right { Ok(()) } else { Err(otherwise.to_owned()) };
        // A codec that tells of several operations has to be right in all of them.
        self.checked = Some(self.checked.take().unwrap_or(Ok(())).and(found));
    }

    /// Reads a frame of RFC 6455 section 5.2 in the plainest way.
    fn is_frame(&self, frame: &[u8]) -> bool {
        let Row::Encode { kind, masked, .. } = self.row else { return false };
        let [first, second, rest @ ..] = frame else { return false };
        let (length, rest) = match (second & 0x7f, rest) {
            (126, [a, b, rest @ ..]) => (u64::from(u16::from_be_bytes([*a, *b])), rest),
            (127, [a, b, c, d, e, f, g, h, rest @ ..]) => {
                (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), rest)
            }
            (short, rest) => (u64::from(short), rest),
        };
        let says = *first == 0x80 | opcode(kind)
            && (second & 0x80 != 0) == masked
            && length == self.input.payload.len() as u64;
        says && match (masked, rest) {
            (false, payload) => payload == self.input.payload,
            (true, [a, b, c, d, payload @ ..]) => {
                masked_by(payload, [*a, *b, *c, *d]).eq(self.input.payload.iter().copied())
            }
            (true, _) => false,
        }
    }

    /// Measures. `prepare` puts in place what so many operations need, and is not timed; `timed` makes them.
    ///
    /// # Errors
    /// What was wrong with the operation that was checked, or that there was none.
    pub fn measure<S>(
        &mut self,
        state: &mut S,
        mut prepare: impl FnMut(&mut S, &Input, usize),
        mut work: impl FnMut(&mut S, &Input, usize),
    ) -> Result<(), PeerError> {
        match &self.checked {
            None => return Err("nothing was checked".into()),
            Some(Err(why)) => return Err(why.as_str().into()),
            Some(Ok(())) => {}
        }
        let meter = Meter::start();
        let (from, mut left) = (cycles::before(), self.ops);
        while left > 0 {
            let n = left.min(BATCH);
            prepare(state, &self.input, n);
            let took = timed(|| work(state, &self.input, n));
            self.times.push(took * PARTS / n as u64);
            self.timed += took;
            left -= n;
        }
        self.all += cycles::after() - from;
        meter.read(&mut self.spent)
    }

    fn outcome(&self) -> Result<(), PeerError> {
        if self.times.len() == self.ops.div_ceil(BATCH) {
            return Ok(());
        }
        Err("it measured less than it was asked to, or more".into())
    }

    /// Payload bytes of all operations.
    fn bytes(&self) -> u64 {
        let each = match self.row {
            Row::Sse { .. } => self.input.payload.len() as f64 / BATCH as f64,
            _ => self.input.payload.len() as f64,
        };
        (each * self.ops as f64) as u64
    }
}

/// The cycles that `work` takes. Never inlined: by its name the counting of instructions is switched on.
#[inline(never)]
fn timed(work: impl FnOnce()) -> u64 {
    let from = cycles::before();
    work();
    cycles::after() - from
}
