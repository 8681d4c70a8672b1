use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use super::*;
use crate::{
    Ask, AsyncPeer, BlockingPeer, Cold, Deliver, Protocol, Seen, Setup, Upload, binary::Flavor,
    peer::Outgoing,
};

/// What a fake client saw.
#[derive(Default)]
struct Log {
    made: AtomicU64,
    made_cold: AtomicU64,
    exchanges: AtomicU64,
    under_way: AtomicU64,
    most: AtomicU64,
}

/// A client without a network: each exchange takes `time`, and every one in `fails` is an error.
#[derive(Clone)]
struct Fake<const CONFIGURED: bool> {
    log: Arc<Log>,
    time: Duration,
    fails: u64,
}

const fn cold(configured: bool) -> Cold {
    if configured { Cold::Configured } else { Cold::NewClient }
}

impl<const C: bool> Fake<C> {
    fn new(log: &Arc<Log>, time: Duration, fails: u64) -> Self {
        Self { log: log.clone(), time, fails }
    }

    fn made(self, setup: &Setup) -> Self {
        let count = if setup.cold { &self.log.made_cold } else { &self.log.made };
        count.fetch_add(1, SeqCst);
        self
    }

    fn result(&self, ask: &Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let number = self.log.exchanges.fetch_add(1, SeqCst);
        if number % self.fails == self.fails - 1 {
            return Err("it does that".into());
        }
        seen.status(200);
        match ask.deliver {
            Deliver::Bytes => seen.whole(b"abc"),
            _ => b"abc".iter().for_each(|byte| seen.piece(&[*byte])),
        }
        Ok(())
    }
}

impl<const C: bool> AsyncPeer for Fake<C> {
    const COLD: Cold = cold(C);

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let under_way = self.log.under_way.fetch_add(1, SeqCst) + 1;
        self.log.most.fetch_max(under_way, SeqCst);
        match self.time.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(self.time).await,
        }
        self.log.under_way.fetch_sub(1, SeqCst);
        self.result(&ask, seen)
    }
}

impl<const C: bool> BlockingPeer for Fake<C> {
    const COLD: Cold = cold(C);

    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        if let Outgoing::Stream(mut pieces) = ask.upload {
            std::io::copy(&mut pieces, &mut std::io::sink())?;
            return Err("it takes no streams".into());
        }
        self.result(&ask, seen)
    }
}

fn job() -> Job {
    Job {
        url: "http://localhost/".into(),
        ops: 100,
        in_flight: 1,
        upload: Upload::None,
        deliver: Deliver::Bytes,
        body: 3,
        cold: false,
        rate: None,
        warm_up: 10,
    }
}

fn setup() -> Setup {
    Setup { config: "x".into(), protocol: Protocol::Http1, ca: None, cold: false }
}

fn sample(answer: Answer) -> Sample {
    match answer {
        Answer::Sample(sample) => *sample,
        Answer::Unsupported(why) => panic!("unsupported: {why}"),
    }
}

fn run<const C: bool>(fake: Fake<C>, flavor: Flavor, jobs: &[Job]) -> Vec<Sample> {
    let make = Arc::new(move |setup: &Setup| Ok(fake.clone().made(setup)));
    let mut session = async_session(setup(), flavor, &make).unwrap();
    jobs.iter().map(|job| sample(session.answer(job))).collect()
}

#[test]
fn every_exchange_is_made_once_with_so_many_under_way() {
    for (flavor, in_flight) in
        [(Flavor::Current, 1), (Flavor::Current, 64), (Flavor::Multi, 1), (Flavor::Multi, 64)]
    {
        let log = Arc::default();
        let fake = Fake::<true>::new(&log, Duration::ZERO, u64::MAX);
        let samples = run(fake, flavor, &[Job { in_flight, deliver: Deliver::Sink, ..job() }]);
        let [sample] = &samples[..] else { panic!("one job") };
        assert_eq!((sample.ops, sample.bytes), (100, 300));
        assert_eq!((sample.latency.len(), sample.first_byte.len()), (100, 100));
        assert_eq!(sample.failures, []);
        assert_eq!(log.exchanges.load(SeqCst), 110);
        match flavor {
            Flavor::Current => assert_eq!(log.most.load(SeqCst), u64::from(in_flight)),
            Flavor::Multi => assert!(log.most.load(SeqCst) <= u64::from(in_flight)),
        }
    }
}

#[test]
fn failures_are_counted_by_message_and_have_no_latency() {
    let fake = Fake::<true>::new(&Arc::default(), Duration::ZERO, 4);
    let samples = run(fake, Flavor::Current, &[Job { warm_up: 0, ..job() }]);
    assert_eq!(samples[0].ops, 75);
    assert_eq!(samples[0].latency.len(), 75);
    assert_eq!(samples[0].failures, [("it does that".to_owned(), 25)]);
}

#[test]
fn a_failure_while_warming_up_is_told() {
    let fake = Fake::<true>::new(&Arc::default(), Duration::ZERO, 10);
    let samples = run(fake, Flavor::Current, &[Job { ops: 9, ..job() }]);
    assert_eq!(samples[0].ops, 9);
    assert_eq!(samples[0].failures, [("warm-up: it does that".to_owned(), 1)]);
}

#[test]
fn a_schedule_does_not_wait_for_answers() {
    let log = Arc::default();
    let time = Duration::from_millis(20);
    let fake = Fake::<true>::new(&log, time, u64::MAX);
    let at_rate = Job { ops: 200, rate: Some(2000.0), warm_up: 1, ..job() };
    let samples = run(fake, Flavor::Current, &[at_rate]);
    let sample = &samples[0];
    assert_eq!((sample.ops, &sample.failures[..]), (200, &[][..]));
    assert!(log.most.load(SeqCst) > 10, "20 ms at 2000 a second overlap");
    assert!(sample.wall >= 199 * 500_000 + 20_000_000);
    assert!(sample.latency.iter().all(|&latency| latency >= 20_000_000));
}

#[test]
fn a_schedule_that_cannot_be_held_fails() {
    let fake = Fake::<true>::new(&Arc::default(), Duration::from_millis(200), u64::MAX);
    let flood = Job { ops: 2000, rate: Some(1e6), warm_up: 0, ..job() };
    let samples = run(fake, Flavor::Current, &[flood]);
    let [(message, n)] = &samples[0].failures[..] else { panic!("{:?}", samples[0].failures) };
    assert!(message.contains("1024"));
    assert_eq!(samples[0].ops + n, 2000);
}

#[test]
fn cold_exchanges_have_a_client_that_keeps_nothing_or_a_new_one_each() {
    let cold = Job { cold: true, ..job() };
    let jobs = [job(), cold.clone(), cold];
    let log = Arc::default();
    run(Fake::<true>::new(&log, Duration::ZERO, u64::MAX), Flavor::Current, &jobs);
    assert_eq!((log.made.load(SeqCst), log.made_cold.load(SeqCst)), (1, 1));
    let log = Arc::default();
    run(Fake::<false>::new(&log, Duration::ZERO, u64::MAX), Flavor::Current, &jobs);
    assert_eq!((log.made.load(SeqCst), log.made_cold.load(SeqCst)), (1 + 2 * 110, 0));
}

#[test]
fn a_client_that_blocks_has_the_same_counts_and_refuses_what_it_cannot_do() {
    let log: Arc<Log> = Arc::default();
    let fake = Fake::<false>::new(&log, Duration::ZERO, u64::MAX);
    let make = Arc::new(move |setup: &Setup| Ok(fake.clone().made(setup)));
    let mut session = blocking_session(setup(), make).unwrap();
    let done = sample(session.answer(&job()));
    assert_eq!((done.ops, done.bytes, done.latency.len()), (100, 300, 100));
    assert!(done.first_byte.is_empty());
    sample(session.answer(&Job { cold: true, ..job() }));
    assert_eq!(log.made.load(SeqCst), 1 + 110);
    let streamed = sample(session.answer(&Job { upload: Upload::Chunked(9), ops: 2, ..job() }));
    assert_eq!((streamed.ops, streamed.failures[0].1), (0, 2));
    for job in [
        Job { in_flight: 2, ..job() },
        Job { rate: Some(1.0), ..job() },
        Job { deliver: Deliver::Paced { size: 7 }, ..job() },
    ] {
        assert!(matches!(session.answer(&job), Answer::Unsupported(_)));
    }
}
