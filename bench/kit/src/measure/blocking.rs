//! The loop of a client that blocks: one thread, one exchange at a time.

use std::sync::Arc;

use super::{Meter, Plan, Session, Tally, answer, plan::Work};
use crate::{Answer, BlockingPeer, Cold, Job, PeerError, Sample, Setup};

struct Blocking<P, F> {
    setup: Setup,
    make: Arc<F>,
    kept: P,
    /// The client for cold exchanges, of one that can be set up for that.
    cold: Option<P>,
}

/// Makes the client.
pub(crate) fn blocking_session<P, F>(
    setup: Setup,
    make: Arc<F>,
) -> Result<Box<dyn Session>, PeerError>
where
    P: BlockingPeer,
    F: Fn(&Setup) -> Result<P, PeerError> + 'static,
{
    let kept = make(&setup)?;
    Ok(Box::new(Blocking { setup, make, kept, cold: None }))
}

impl<P, F> Session for Blocking<P, F>
where
    P: BlockingPeer,
    F: Fn(&Setup) -> Result<P, PeerError> + 'static,
{
    fn answer(&mut self, job: &Job) -> Answer {
        if job.in_flight > 1 || job.rate.is_some() {
            return Answer::Unsupported("it blocks: one exchange at a time, no schedule".into());
        }
        let plan = match self.kept.unsupported(job).map_or_else(|| Plan::new(job), Err) {
            Ok(plan) => plan,
            Err(why) => return Answer::Unsupported(why),
        };
        answer(job, self.measure(job, &plan))
    }
}

impl<P, F> Blocking<P, F>
where
    P: BlockingPeer,
    F: Fn(&Setup) -> Result<P, PeerError>,
{
    fn measure(&mut self, job: &Job, plan: &Plan) -> Result<Sample, PeerError> {
        let mut work = Work::new(plan)?;
        let (warm_up, block) = (Tally::new(plan, job.warm_up)?, Tally::new(plan, job.ops)?);
        let mut client = self.client(job.cold)?;
        client.run(&mut work, &warm_up);
        let meter = Meter::start();
        client.run(&mut work, &block);
        meter.stop(warm_up, block)
    }

    fn client(&mut self, cold: bool) -> Result<Client<'_, P, F>, PeerError> {
        Ok(match P::COLD {
            _ if !cold => Client::Kept(&mut self.kept),
            Cold::NewClient => Client::EachTime(&self.make, &self.setup),
            Cold::Configured => Client::Kept(match &mut self.cold {
                Some(client) => client,
                none => none.insert((self.make)(&Setup { cold: true, ..self.setup.clone() })?),
            }),
        })
    }
}

enum Client<'a, P, F> {
    Kept(&'a mut P),
    EachTime(&'a F, &'a Setup),
}

impl<P, F> Client<'_, P, F>
where
    P: BlockingPeer,
    F: Fn(&Setup) -> Result<P, PeerError>,
{
    fn run(&mut self, work: &mut Work, tally: &Tally) {
        while let Some(number) = tally.take() {
            let began = crate::clock::now();
            let (ask, seen) = work.begin(began);
            let result = match self {
                Self::Kept(client) => client.exchange(ask, seen),
                Self::EachTime(make, setup) => {
                    make(setup).and_then(|mut client| client.exchange(ask, seen))
                }
            };
            tally.keep(number, began, work, result);
        }
    }
}
