//! The loops of a client on a runtime: closed, of so many exchanges under way at any time, and open,
//! by a schedule that does not wait.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    runtime::{self, Runtime},
    sync::Semaphore,
};

use super::{Meter, Plan, Session, Tally, answer, plan::Work};
use crate::{
    Answer, AsyncPeer, Cold, Job, PeerError, Sample, Setup, binary::Flavor, clock::now,
    timer::Timer,
};

/// The most exchanges under way by a schedule; one that would be more is a failure.
const UNDER_WAY_MAX: usize = 1024;

type Make<P> = Arc<dyn Fn() -> Result<P, PeerError> + Send + Sync>;

/// Fields drop in order: the clients within the runtime that their tasks run on.
struct Async<P> {
    kept: Vec<P>,
    cold: Vec<P>,
    make: Make<P>,
    make_cold: Make<P>,
    runtime: Runtime,
}

/// Starts the runtime and makes the client.
pub(crate) fn async_session<P, F>(
    setup: Setup,
    flavor: Flavor,
    make: &Arc<F>,
) -> Result<Box<dyn Session>, PeerError>
where
    P: AsyncPeer,
    F: Fn(&Setup) -> Result<P, PeerError> + Send + Sync + 'static,
{
    let mut builder = match flavor {
        Flavor::Current => runtime::Builder::new_current_thread(),
        Flavor::Multi => runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build()?;
    let maker = |setup: Setup| -> Make<P> {
        let make = make.clone();
        Arc::new(move || make(&setup))
    };
    let make_cold = maker(Setup { cold: true, ..setup.clone() });
    let make = maker(setup);
    let first = runtime.block_on(async { make() })?;
    Ok(Box::new(Async { kept: vec![first], cold: Vec::new(), make, make_cold, runtime }))
}

impl<P: AsyncPeer> Session for Async<P> {
    fn answer(&mut self, job: &Job) -> Answer {
        let refused = self.kept.first().and_then(|client| client.unsupported(job));
        let plan = match refused.map_or_else(|| Plan::new(job), Err) {
            Ok(plan) => plan,
            Err(why) => return Answer::Unsupported(why),
        };
        let block = match (job.cold, P::COLD) {
            (false, _) => {
                let clients = Clients::Kept(&mut self.kept, &self.make);
                self.runtime.block_on(measure(job, &plan, clients))
            }
            (true, Cold::Configured) => {
                let clients = Clients::Kept(&mut self.cold, &self.make_cold);
                self.runtime.block_on(measure(job, &plan, clients))
            }
            (true, Cold::NewClient) => {
                self.runtime.block_on(measure(job, &plan, Clients::EachTime(&self.make)))
            }
        };
        answer(job, block)
    }
}

/// Where the lanes of a job get their clients.
enum Clients<'a, P> {
    /// Clones of the first, kept from job to job: with them what connections they hold.
    Kept(&'a mut Vec<P>, &'a Make<P>),
    /// A new one for each exchange.
    EachTime(&'a Make<P>),
}

impl<P: AsyncPeer> Clients<'_, P> {
    fn take(&mut self, lanes: usize) -> Result<Vec<Client<P>>, PeerError> {
        match self {
            Self::Kept(clients, make) => {
                if clients.is_empty() {
                    clients.push(make()?);
                }
                let first = clients[0].clone();
                if clients.len() < lanes {
                    clients.resize(lanes, first);
                }
                Ok(clients.drain(..lanes).map(Client::Kept).collect())
            }
            Self::EachTime(make) => {
                Ok((0..lanes).map(|_| Client::EachTime((*make).clone())).collect())
            }
        }
    }
}

#[derive(Clone)]
enum Client<P> {
    Kept(P),
    EachTime(Make<P>),
}

/// What makes exchanges one after the other.
struct Lane<P> {
    client: Client<P>,
    work: Work,
}

impl<P: AsyncPeer> Lane<P> {
    async fn exchange(&mut self, number: usize, began: u64, tally: &Tally) {
        let (ask, seen) = self.work.begin(began);
        let result = match &self.client {
            Client::Kept(client) => client.exchange(ask, seen).await,
            Client::EachTime(make) => match make() {
                Ok(client) => client.exchange(ask, seen).await,
                Err(e) => Err(e),
            },
        };
        tally.keep(number, began, &mut self.work, result);
    }

    /// Makes exchanges until there are no more.
    async fn run(mut self, tally: Arc<Tally>) -> Self {
        while let Some(number) = tally.take() {
            self.exchange(number, now(), &tally).await;
        }
        self
    }
}

async fn measure<P: AsyncPeer>(
    job: &Job,
    plan: &Plan,
    mut clients: Clients<'_, P>,
) -> Result<Sample, PeerError> {
    let lanes = clients
        .take(job.in_flight as usize)?
        .into_iter()
        .map(|client| Ok(Lane { client, work: Work::new(plan)? }))
        .collect::<Result<Vec<_>, PeerError>>()?;
    let warm_up = Arc::new(Tally::new(plan, job.warm_up)?);
    let block = Arc::new(Tally::new(plan, job.ops)?);

    let lanes = closed(lanes, &warm_up).await?;
    let meter = Meter::start();
    let lanes = match job.rate {
        None => closed(lanes, &block).await?,
        Some(rate) => open(lanes, &block, rate, plan).await?,
    };
    let sample = meter.stop(alone(warm_up)?, alone(block)?);
    if let Clients::Kept(kept, _) = clients {
        kept.extend(lanes.into_iter().filter_map(|lane| match lane.client {
            Client::Kept(client) => Some(client),
            Client::EachTime(_) => None,
        }));
    }
    sample
}

fn alone(tally: Arc<Tally>) -> Result<Tally, PeerError> {
    Arc::into_inner(tally).ok_or_else(|| "an exchange outlived its block".into())
}

/// Each lane as fast as it can. One lane is awaited where it is; more are a task each, for the whole
/// block.
async fn closed<P: AsyncPeer>(
    mut lanes: Vec<Lane<P>>,
    tally: &Arc<Tally>,
) -> Result<Vec<Lane<P>>, PeerError> {
    if lanes.len() == 1
        && let Some(lane) = lanes.pop()
    {
        return Ok(vec![lane.run(tally.clone()).await]);
    }
    let tasks: Vec<_> =
        lanes.into_iter().map(|lane| tokio::spawn(lane.run(tally.clone()))).collect();
    let mut lanes = Vec::with_capacity(tasks.len());
    for task in tasks {
        lanes.push(task.await?);
    }
    Ok(lanes)
}

/// `rate` exchanges a second, each a task of its own from when it is due, whatever became of those
/// before. Lanes are taken up again as they fall free.
async fn open<P: AsyncPeer>(
    lanes: Vec<Lane<P>>,
    tally: &Arc<Tally>,
    rate: f64,
    plan: &Plan,
) -> Result<Vec<Lane<P>>, PeerError> {
    let timer = Timer::new()?;
    let Some(Lane { client, .. }) = lanes.first() else { return Ok(lanes) };
    let pattern = client.clone();
    let free = Arc::new(Mutex::new(lanes));
    let room = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    let start = now();
    while let Some(number) = tally.take() {
        let due = start + (number as f64 * 1e9 / rate) as u64;
        timer.until(due).await?;
        let Ok(permit) = room.clone().try_acquire_owned() else {
            tally.fail(format!("more than {UNDER_WAY_MAX} exchanges under way"));
            continue;
        };
        let lane = lock(&free).pop();
        let mut lane = match lane {
            Some(lane) => lane,
            None => Lane { client: pattern.clone(), work: Work::new(plan)? },
        };
        let (tally, free) = (tally.clone(), free.clone());
        tokio::spawn(async move {
            lane.exchange(number, due, &tally).await;
            lock(&free).push(lane);
            drop((tally, free));
            drop(permit);
        });
    }
    let _all = room.acquire_many(UNDER_WAY_MAX as u32).await?;
    let lanes = std::mem::take(&mut *lock(&free));
    Ok(lanes)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
