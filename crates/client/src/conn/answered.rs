//! An exchange without a connection: a responder's future, then the body that it gave.

use std::{
    fmt, io,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http::{Method, Version};
use mimus_net::{BoxFuture, Phase, Runtime, dial::DialTimings};
use mimus_proto::{Event, Fields, Framing, ResponseHead, h1};
use sync_wrapper::SyncWrapper;
use url::Url;

use super::{Deadlines, Failure, Order};
use crate::{
    Body, BoxError, Error, Kind,
    observe::ConnectionInfo,
    policy::retry::Sent,
    responder::{Progress, Request, Responder, Response, Upload},
};

/// A responder that can take a request.
pub(crate) struct Asking {
    responder: Arc<dyn Responder>,
    runtime: Arc<dyn Runtime>,
    url: Url,
    /// The version that the request is said in.
    pub(crate) version: Version,
    pub(crate) info: Arc<ConnectionInfo>,
}

impl Asking {
    pub(crate) fn new(
        responder: Arc<dyn Responder>,
        runtime: Arc<dyn Runtime>,
        url: Url,
        version: Version,
    ) -> Self {
        let info = ConnectionInfo {
            peer: None,
            proxy: None,
            local: None,
            tls: None,
            dial: DialTimings::default(),
            established: Instant::now(),
        };
        Asking { responder, runtime, url, version, info: Arc::new(info) }
    }

    /// Asks the responder, whose future is not polled yet.
    pub(super) fn begin(self, order: Order<'_>) -> Result<Box<Answered>, Failure> {
        let Order { line, body, limits, deadlines, .. } = order;
        if self.version == Version::HTTP_11 {
            // It refuses what could not be written.
            h1::Client::new(limits)
                .send_head(line.method, line.target, line.fields, line.length)
                .map_err(Failure::Misuse)?;
        }
        let no_timers = |e| Failure::Responder(Error::request("no call can be made").caused_by(e));
        self.runtime.check().map_err(no_timers)?;
        let body = body.map_or_else(Body::empty, |body| *body);
        // What is in memory a socket would have taken at once.
        let progress = Progress::new(body.is_empty() || body.as_bytes().is_some());
        let upload = Upload::new(body, self.runtime, Arc::clone(&progress));
        let answer = self.responder.respond(Request {
            method: line.method.clone(),
            url: self.url,
            target: line.target.to_owned(),
            version: self.version,
            fields: line.fields.clone(),
            body: upload,
        });
        Ok(Box::new(Answered {
            stage: Stage::Asked(SyncWrapper::new(answer)),
            method: line.method.clone(),
            version: self.version,
            info: self.info,
            progress,
            steps: None,
            begun: false,
            failed_before: false,
            deadlines,
            until: None,
            timer: None,
        }))
    }
}

/// An exchange that a responder has.
pub(crate) struct Answered {
    stage: Stage,
    method: Method,
    version: Version,
    info: Arc<ConnectionInfo>,
    /// What it took of the request, and how far that was when `until` was set.
    progress: Arc<Progress>,
    steps: Option<u64>,
    /// The responder's future was polled.
    begun: bool,
    /// It says that the request was never sent.
    failed_before: bool,
    deadlines: Deadlines,
    until: Option<Instant>,
    timer: Option<(Instant, SyncWrapper<BoxFuture<'static, ()>>)>,
}

enum Stage {
    Asked(SyncWrapper<BoxFuture<'static, Result<Response, BoxError>>>),
    /// The head is out. So many bytes of the body are due, if that was announced.
    Answering {
        body: Box<Body>,
        left: Option<u64>,
    },
    Over,
}

impl fmt::Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl Answered {
    pub(super) fn info(&self) -> &Arc<ConnectionInfo> {
        &self.info
    }

    /// What is happening.
    pub(super) fn phase(&self) -> Phase {
        match &self.stage {
            Stage::Asked(_) if !self.progress.is_whole() => Phase::Send,
            Stage::Asked(_) => Phase::Head,
            Stage::Answering { .. } | Stage::Over => Phase::Body,
        }
    }

    /// How much of the request the responder may have seen.
    pub(super) fn sent(&self) -> Sent {
        match self.begun && !self.failed_before {
            false => Sent::Nothing,
            true if self.progress.is_whole() => Sent::Whole,
            true => Sent::Head,
        }
    }

    /// Whether it answered at all.
    pub(super) fn heard(&self) -> bool {
        !matches!(self.stage, Stage::Asked(_)) && !self.failed_before
    }

    /// Nothing of the request goes out but what the responder takes.
    pub(super) fn is_sending(&self) -> bool {
        false
    }

    pub(super) fn stop_sending(&mut self) {}

    pub(super) fn poll_rest(
        &mut self,
        _: &mut Context<'_>,
        _: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    /// Nothing comes unasked.
    pub(super) fn buffered_event(&mut self) -> Result<Option<Event>, Failure> {
        Ok(None)
    }

    /// All of the body, if it is in memory. The response is over then.
    pub(super) fn take_rest(&mut self) -> Option<Bytes> {
        let (body, left) = match &self.stage {
            Stage::Asked(_) => return None,
            Stage::Answering { body, left } => (body, left),
            Stage::Over => return Some(Bytes::new()),
        };
        let whole = body.as_bytes()?.clone();
        let fits = left.is_none_or(|left| left == whole.len() as u64);
        if !fits || body.has_trailers() {
            return None;
        }
        self.stage = Stage::Over;
        Some(whole)
    }

    /// Bytes of the body that were not handed out, where that was announced.
    pub(super) fn remaining_body(&self) -> Option<u64> {
        match &self.stage {
            Stage::Answering { left, .. } => *left,
            Stage::Asked(_) | Stage::Over => None,
        }
    }

    /// What the responder gives next.
    pub(super) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<Event, Failure>> {
        // A responder that never makes us wait is stopped here.
        if self.deadlines.total.is_some_and(|total| total <= Instant::now()) {
            return Poll::Ready(Err(self.timed_out()));
        }
        if let Poll::Ready(event) = self.poll_responder(cx, runtime) {
            return Poll::Ready(event);
        }
        ready!(self.poll_deadline(cx, runtime));
        Poll::Ready(Err(self.timed_out()))
    }

    fn poll_responder(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<Event, Failure>> {
        match &mut self.stage {
            Stage::Asked(answer) => {
                self.begun = true;
                let answer = ready!(answer.get_mut().as_mut().poll(cx));
                Poll::Ready(match answer {
                    Ok(response) => self.head(response).map(Event::Head),
                    Err(error) => Err(self.failed(error)),
                })
            }
            // What goes beyond was not announced.
            Stage::Answering { left: Some(0), .. } => Poll::Ready(Ok(self.over())),
            Stage::Answering { body, .. } => {
                let piece = ready!(body.poll_next(cx, runtime));
                Poll::Ready(self.body_event(piece))
            }
            Stage::Over => Poll::Ready(Ok(Event::End)),
        }
    }

    /// The head, behind which the body waits.
    fn head(&mut self, response: Response) -> Result<ResponseHead, Failure> {
        let Response { status, version, fields, body, mistake } = response;
        if let Some(mistake) = mistake {
            return Err(Failure::Responder(mistake));
        }
        if status.is_informational() {
            let what = format!("a responder's answer must be final, which {status} is not");
            return Err(wrong(what));
        }
        let said = fields.contains("content-length") || fields.contains("transfer-encoding");
        let version = version.unwrap_or(self.version);
        let framing = |fields: Fields| {
            let head = ResponseHead::new(status, version, fields);
            let framing = Framing::of_response(&self.method, &head);
            let misframed = |how| Failure::Proto(mimus_proto::Error::PeerMisbehaved(how));
            framing.map(|framing| (framing, head)).map_err(misframed)
        };
        let (mut found, mut head) = framing(fields)?;
        // RFC 9112 section 7.1.2: trailers need the chunked coding.
        let announced = body.length().filter(|_| !said && !body.has_trailers());
        if let (Framing::UntilClose, Some(length)) = (found, announced) {
            found = Framing::Length(length);
            crate::request::set(&mut head.fields, "Content-Length", length.to_string().as_bytes())
                .map_err(Failure::Responder)?;
        }
        self.stage = match found {
            Framing::None => Stage::Over,
            Framing::Length(left) => Stage::Answering { body: Box::new(body), left: Some(left) },
            Framing::Chunked | Framing::UntilClose => {
                Stage::Answering { body: Box::new(body), left: None }
            }
            Framing::Upgrade => return Err(wrong("a responder opens no tunnel".into())),
        };
        self.stirred();
        Ok(head)
    }

    fn body_event(&mut self, piece: Option<Result<Bytes, BoxError>>) -> Result<Event, Failure> {
        self.stirred();
        let Stage::Answering { body, left } = &mut self.stage else { return Ok(Event::End) };
        match piece {
            Some(Ok(mut piece)) => {
                if let Some(left) = left {
                    piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= piece.len() as u64;
                }
                Ok(Event::Data(piece))
            }
            Some(Err(error)) => Err(self.failed(error)),
            None if left.is_some_and(|left| left > 0) => {
                self.stage = Stage::Over;
                Err(Failure::Io(Phase::Body, io::ErrorKind::UnexpectedEof.into()))
            }
            None => match body.take_trailers() {
                Some(trailers) => {
                    self.over();
                    Ok(Event::Trailers(Fields::from(&trailers)))
                }
                None => Ok(self.over()),
            },
        }
    }

    fn over(&mut self) -> Event {
        self.stage = Stage::Over;
        Event::End
    }

    /// What the error of a responder, or of its body, amounts to.
    fn failed(&mut self, error: BoxError) -> Failure {
        let phase = self.phase();
        let error = match error.downcast::<Error>() {
            Ok(error) => {
                self.failed_before = error.is_connect() || error.phase() == Some(Phase::Pool);
                return Failure::Responder(*error);
            }
            Err(error) => error,
        };
        let error = match error.downcast::<io::Error>() {
            Ok(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.failed_before = true;
                let refused = Error::simulated(Kind::Connect, Phase::Connect);
                return Failure::Responder(refused.caused_by(error));
            }
            Ok(error) => return Failure::Io(phase, *error),
            Err(error) => error,
        };
        let refused = Error::new(Kind::Hook, "the responder gave no answer");
        Failure::Responder(refused.in_phase(phase).caused_by(error))
    }

    /// From now on the next deadline counts.
    fn stirred(&mut self) {
        self.steps = None;
    }

    /// Ready when the deadline of the phase has passed without anything happening.
    fn poll_deadline(&mut self, cx: &mut Context<'_>, runtime: &dyn Runtime) -> Poll<()> {
        loop {
            let steps = self.progress.steps();
            if self.steps != Some(steps) {
                self.steps = Some(steps);
                let limit = self.deadlines.limit(self.phase());
                self.until = self.deadlines.of(limit, Instant::now());
            }
            let Some(until) = self.until else { return Poll::Pending };
            let (at, timer) = self
                .timer
                .get_or_insert_with(|| (until, SyncWrapper::new(runtime.sleep_until(until))));
            // One that fires too early is made anew; one that is too late is of no use.
            if *at <= until {
                ready!(timer.get_mut().as_mut().poll(cx));
                if *at == until && self.progress.steps() == steps {
                    return Poll::Ready(());
                }
            }
            self.timer = None;
        }
    }

    fn timed_out(&self) -> Failure {
        let phase = self.phase();
        Failure::Io(phase, self.deadlines.passed(phase))
    }
}

/// A responder that does what none may do.
fn wrong(what: String) -> Failure {
    Failure::Responder(Error::new(Kind::Hook, what))
}
