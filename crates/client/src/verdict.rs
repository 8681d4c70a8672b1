//! What an outcome leads to: the policies asked one after the other, and their answers carried out.

use std::time::{Instant, SystemTime};

use http::StatusCode;
use mimus_proto::{Fields, ResponseHead};
use url::Url;

use crate::{
    Body, Error, Kind, Result,
    call::{Call, Outcome},
    client::Inner,
    conn::Exchange,
    observe::{Observation, tell},
    policy::{
        auth::{Credentials, DigestSession},
        redirect::{self, Follow, Redirection, Referer},
        retry::{self, Attempted, Ending, Failure, History, Now},
    },
    request::{Request, set},
    response::Hop,
};

/// What a call does next.
pub(crate) enum Next {
    /// This is the answer.
    Done(Box<Exchange>, ResponseHead),
    /// Another exchange, at this time or at once.
    Again { at: Option<Instant> },
    /// The call failed.
    Fail(Error),
}

/// What the policies remember from one exchange of a call to the next.
#[derive(Default)]
pub(crate) struct Memory {
    /// The URLs asked before the present one.
    previous: Vec<Url>,
    retries: History,
    digest: Option<DigestSession>,
}

impl Memory {
    /// The value of `Authorization` for the next exchange.
    pub(crate) fn authorization(
        &mut self,
        request: &Request,
        client: &Inner,
    ) -> Result<Option<String>> {
        if request.fields.contains("authorization") {
            return Ok(None);
        }
        if let Some(digest) = &mut self.digest {
            let target = request.target.origin_form();
            return digest
                .authorize(&request.method, target, request.body.as_bytes())
                .map(Some)
                .map_err(|e| Error::request("the digest cannot be computed").caused_by(e));
        }
        let netrc = || {
            let host = request.target.url.host_str()?;
            client.netrc.as_ref()?.lookup(host)
        };
        match &request.settings.auth {
            Some(credentials) => Ok(credentials.preemptive()),
            None => Ok(netrc().and_then(|found| found.preemptive())),
        }
    }
}

impl Call<'_> {
    /// Asks the policies in order: the first that wants something has it.
    pub(crate) fn judge(&mut self, outcome: Outcome) -> Next {
        let Outcome { sent, reused, heard, result } = outcome;
        let (exchange, head) = match result {
            Ok(answer) => answer,
            Err(error) => {
                let ending = Ending::Failed(failure(&error));
                return match self.retry(sent, reused, heard, ending, None) {
                    Some(at) => self.again_after(at, Some(&error)),
                    None => Next::Fail(error),
                };
            }
        };
        self.keep_cookies(&head.fields);
        match self.answer_challenge(&head) {
            Ok(true) => return self.leave(exchange, None),
            Ok(false) => {}
            Err(error) => return Next::Fail(error),
        }
        match self.redirection(&head) {
            Ok(redirect::Verdict::Stop) => {}
            Ok(redirect::Verdict::Follow(follow)) => {
                return match self.follow(*follow, head) {
                    Ok(()) => self.leave(exchange, None),
                    Err(error) => Next::Fail(error),
                };
            }
            Err(error) => {
                let error = Error::new(Kind::Redirect, "the redirect was not followed");
                return Next::Fail(error.after_sending(true).caused_by(error_source(error)));
            }
        }
        let ending = Ending::Status(head.status);
        match self.retry(sent, reused, heard, ending, head.fields.get("retry-after")) {
            Some(at) => {
                let next = self.again_after(at, None);
                exchange.abandon();
                next
            }
            None => Next::Done(exchange, head),
        }
    }
}
