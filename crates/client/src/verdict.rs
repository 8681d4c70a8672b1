//! What an outcome leads to: the policies asked one after the other, and their answers carried out.

use std::time::{Instant, SystemTime};

use http::{HeaderValue, Method, StatusCode};
use mimus_proto::{
    Fields, ResponseHead,
    h2::{Code, StreamError},
};
use url::Url;

use crate::{
    Error, Kind, Result,
    auth::Credentials,
    call::{Call, Outcome, Trace},
    client::Inner,
    observe::{Observation, tell},
    policy::{
        auth::challenges,
        digest::{Challenged, DigestSession},
        redirect::{self, Follow, Redirection, Referer},
        retry::{self, Attempted, Ending, Failure, History, Now},
    },
    profile::{self, Ask},
    request::{Request, set},
    response::Hop,
};

/// What a call does next.
pub(crate) enum Next {
    /// Nothing: its outcome is the call's.
    Done,
    /// Another exchange, at this time or at once.
    Again { at: Option<Instant> },
    /// The call failed, whatever came.
    Fail(Error),
}

/// What the policies remember from one exchange of a call to the next.
#[derive(Default)]
pub(crate) struct Memory {
    /// The URLs asked before the present one.
    previous: Vec<Url>,
    retries: History,
    digest: Option<Box<DigestSession>>,
    /// Answers to a Digest challenge this request has carried.
    answers: u32,
    /// A redirect left the origin that the settings' credentials are for.
    left_origin: bool,
    /// The present URL was asked for on another host's connection, in vain.
    pub(crate) misdirected: bool,
    /// The request was made anew with the client hints that the origin holds to be critical.
    restarted: bool,
}

impl Memory {
    /// The value of `Authorization` for the next exchange.
    pub(crate) fn authorization(
        &mut self,
        request: &Request,
        client: &Inner,
    ) -> Result<Option<HeaderValue>> {
        if request.fields.contains("authorization") {
            return Ok(None);
        }
        let unusable = |e| Error::request("the credentials cannot be sent").caused_by(e);
        if let Some(digest) = self.digest.as_mut().filter(|digest| digest.is_challenged()) {
            self.answers += 1;
            let body = request.body.as_bytes().map(|body| &body[..]);
            let target = match request.server_wide {
                true => request.target.asterisk_form(false),
                false => request.target.origin_form(),
            };
            return digest
                .authorize(&request.method, target, body, &mut random)
                .map(Some)
                .map_err(unusable);
        }
        match self.credentials(request, client) {
            Some(credentials) => credentials.preemptive().map_err(unusable),
            None => Ok(None),
        }
    }

    /// Whether a redirect left the origin that the settings' credentials are for.
    pub(crate) fn left_origin(&self) -> bool {
        self.left_origin
    }

    /// The credentials for the present origin: the call's own, else the user's netrc file's.
    fn credentials(&self, request: &Request, client: &Inner) -> Option<Credentials> {
        if let Some(own) = request.settings.auth.as_ref().filter(|_| !self.left_origin) {
            return Some(own.clone());
        }
        if !self.left_origin && client.default_fields.contains("authorization") {
            return None;
        }
        let netrc = client.netrc.as_ref().filter(|_| request.settings.netrc);
        let (netrc, host) = (netrc?, request.target.url.host_str()?);
        // A redirect cannot have the default entry sent wherever it leads, nor any in the clear.
        let in_the_clear = !request.target.https && self.previous.iter().any(is_https);
        if self.left_origin && (in_the_clear || !netrc.names(host)) {
            return None;
        }
        netrc.lookup(host)
    }
}

impl Call<'_> {
    /// Asks the policies in order: the first that wants something has it.
    pub(crate) fn judge(&mut self, outcome: &Outcome) -> Next {
        let trace = outcome.trace;
        let (exchange, head) = match &outcome.result {
            Ok((exchange, head)) => (exchange, head),
            Err(error) => {
                let failure = self.learn_version(error).unwrap_or_else(|| failure(error));
                return match self.retry(trace, Ending::Failed(failure), None) {
                    Some(at) => self.again_at(at, Some(error)),
                    None => Next::Done,
                };
            }
        };
        self.keep_cookies(&head.fields);
        if self.wants_hints(&head.fields) {
            return self.again_at(None, None);
        }
        let next = match self.answers_challenge(head) || self.is_misdirected(exchange, head) {
            true => Ok(Some(None)),
            false => self.follows_redirect(head),
        };
        match next.map(|next| next.or_else(|| self.retries_status(trace, head))) {
            Ok(None) => Next::Done,
            Ok(Some(at)) => self.again_at(at, None),
            Err(error) => Next::Fail(error.after_sending(true)),
        }
    }

    /// RFC 9113 section 7: the origin wants HTTP/1.1, and has it from now on, unless the user wants
    /// another.
    fn learn_version(&self, error: &Error) -> Option<Failure> {
        let target = &self.request.target;
        let free = self.request.settings.version.is_none() && target.https;
        let (StreamError::Reset(code)
        | StreamError::NotProcessed(code)
        | StreamError::GoneAway(code)) = stream_error(error).filter(|_| free)?
        else {
            return None;
        };
        if code != Code::HTTP_1_1_REQUIRED {
            return None;
        }
        tracing::debug!(host = target.authority(), "the origin wants HTTP/1.1");
        self.client.http1_origins.insert(target.authority());
        Some(Failure::OtherVersion)
    }

    fn again_at(&self, at: Option<Instant>, error: Option<&Error>) -> Next {
        let after = at.map(|at| at.saturating_duration_since(Instant::now())).unwrap_or_default();
        if error.is_some() || at.is_some() {
            tracing::debug!(?after, error = error.map(tracing::field::display), "trying again");
            tell(&self.request.settings.hooks, &Observation::Retrying { error, after });
        }
        Next::Again { at }
    }

    fn keep_cookies(&self, fields: &Fields) {
        if let Some(store) = &self.client.cookies
            && fields.contains("set-cookie")
        {
            store.set(&self.request.target.url, &mut fields.get_all("set-cookie"));
        }
    }

    /// Takes note of the client hints that the origin asks for. Whether it does without none of those that
    /// were not sent, so that the navigation begins anew (client hints reliability, section 3.2).
    fn wants_hints(&mut self, fields: &Fields) -> bool {
        let request = &self.request;
        let navigates = profile::kind_of(request) == profile::Kind::Navigate;
        if request.settings.profile.is_none() || !request.target.https || !navigates {
            return false;
        }
        let critical = self.client.hints.heed(request.target.authority(), fields);
        let again = critical && request.method.is_safe() && self.body_is_there();
        again && !std::mem::replace(&mut self.memory.restarted, true)
    }

    /// Whether the next exchange answers a Digest challenge.
    fn answers_challenge(&mut self, head: &ResponseHead) -> bool {
        let memory = &mut self.memory;
        if let (Some(digest), Some(info)) =
            (&mut memory.digest, head.fields.get("authentication-info"))
        {
            digest.inform(info);
        }
        // The user's own field is sent as it is, so there would be nothing new to say.
        let own = self.request.fields.contains("authorization");
        if head.status != StatusCode::UNAUTHORIZED || own || !self.body_is_there() {
            return false;
        }
        let memory = &mut self.memory;
        if memory.digest.is_none()
            && let Some(Credentials::Digest { user, password }) =
                memory.credentials(&self.request, self.client)
        {
            memory.digest = Some(Box::new(DigestSession::new(user, password)));
        }
        let Some(digest) = &mut memory.digest else { return false };
        let offers: Vec<_> = head.fields.get_all("www-authenticate").flat_map(challenges).collect();
        digest.challenged(&offers, memory.answers) == Challenged::Answer
    }

    /// Changes the request into the one that a redirect asks for: `Some` when there is one.
    fn follows_redirect(&mut self, head: &ResponseHead) -> Result<Option<Option<Instant>>> {
        if !head.status.is_redirection() {
            return Ok(None);
        }
        let body = match &self.request.body {
            body if !self.body_is_there() || !body.is_replayable() => redirect::Body::Once,
            body if body.is_empty() => redirect::Body::Empty,
            _ => redirect::Body::Replayable,
        };
        let redirection = Redirection {
            method: &self.request.method,
            url: &self.request.target.url,
            body,
            status: head.status,
            location: head.fields.get("location"),
            previous: &self.memory.previous,
        };
        match self.request.settings.redirect.decide(&redirection) {
            Ok(redirect::Verdict::Stop) => Ok(None),
            Ok(redirect::Verdict::Follow(follow)) => {
                self.follow(*follow, head)?;
                Ok(Some(None))
            }
            Err(e) => Err(Error::new(Kind::Redirect, "the redirect was not followed").caused_by(e)),
        }
    }

    fn follow(&mut self, follow: Follow, head: &ResponseHead) -> Result<()> {
        tracing::debug!(status = head.status.as_u16(), "redirected");
        let happened = Observation::Redirecting { status: head.status, to: &follow.url };
        tell(&self.request.settings.hooks, &happened);
        let target = self.request.target.follow(follow.url)?;
        let request = &mut self.request;
        if request.settings.profile.is_some() {
            Ask::leave(request, &target);
        }
        let left = std::mem::replace(&mut request.target, target).url.clone();
        self.history.push(Hop {
            url: left.clone(),
            status: head.status,
            fields: head.fields.clone(),
        });
        self.memory.previous.push(left);
        request.method = follow.method;
        if request.method != Method::CONNECT {
            request.protocol = None;
        }
        // The new URL has a resource of its own.
        request.server_wide = false;
        request.fields.retain(|name, _| !follow.strip.removes(name.as_bytes()));
        if follow.strip.cross_origin {
            self.memory.left_origin = true;
            self.memory.digest = None;
        }
        self.memory.answers = 0;
        self.memory.misdirected = false;
        if follow.drop_body {
            self.drop_body();
        }
        let request = &mut self.request;
        match follow.referer {
            Referer::Keep => {}
            Referer::Remove => {
                request.fields.remove("referer");
            }
            Referer::Set(value) => set(&mut request.fields, "Referer", value.as_bytes())?,
        }
        Ok(())
    }

    fn retries_status(&mut self, trace: Trace, head: &ResponseHead) -> Option<Option<Instant>> {
        // Without a policy an answer is never retried.
        self.request.settings.retry.as_ref()?;
        let after = head.fields.get("retry-after");
        self.retry(trace, Ending::Status(head.status), after)
    }

    /// Whether to try again: `Some` with the time to wait for, if any.
    fn retry(
        &mut self,
        trace: Trace,
        ending: Ending,
        retry_after: Option<&[u8]>,
    ) -> Option<Option<Instant>> {
        let attempted = Attempted {
            method: &self.request.method,
            sent: trace.sent,
            reused: trace.reused,
            response_begun: trace.heard,
            ending,
            retry_after,
            replayable: self.body_is_there(),
            history: self.memory.retries,
        };
        let now = || Now { instant: Instant::now(), system: SystemTime::now() };
        let policy = self.request.settings.retry.as_ref();
        match retry::decide(policy, &attempted, now, self.deadline, &mut random) {
            retry::Verdict::Done => None,
            retry::Verdict::RetryNow(history) => {
                self.memory.retries = history;
                Some(None)
            }
            retry::Verdict::RetryAt(at, history) => {
                self.memory.retries = history;
                Some(Some(at))
            }
        }
    }
}

fn is_https(url: &Url) -> bool {
    url.scheme() == "https"
}

/// A failure, as far as retries tell them apart.
fn failure(error: &Error) -> Failure {
    match error.kind() {
        Kind::Timeout => Failure::Timeout,
        Kind::Certificate | Kind::Request | Kind::NotOffered => Failure::ConnectForGood,
        Kind::Resolve | Kind::Connect | Kind::Tls | Kind::Proxy => Failure::Connect,
        Kind::Closed if is_refusal(error) => Failure::Refused,
        Kind::Closed => Failure::Closed,
        _ => Failure::Other,
    }
}

/// Whether the server said that it did not process the request (RFC 9113 section 8.7).
fn is_refusal(error: &Error) -> bool {
    matches!(stream_error(error), Some(StreamError::NotProcessed(_)))
}

fn stream_error(error: &Error) -> Option<StreamError> {
    std::error::Error::source(error)?.downcast_ref().copied()
}

/// For jitter and Digest nonces. A system without randomness gets neither spread nor surprise.
fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}
