//! One exchange from its request to its body, for whoever drives it.

use std::time::Instant;

use bytes::Bytes;
use mimus::{Error, Fields, Incoming, Url};
use pyo3::{prelude::*, types::PyBytes};

use crate::{
    args::{Call, Plan},
    memory::Vessel,
};

/// What an exchange comes to before Python sees it.
pub(crate) struct Answered {
    pub(crate) answer: mimus::Response,
    /// The body, where it was to be read.
    pub(crate) read: Option<(Whole, End)>,
}

/// What is known once a body is over.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) at: Option<Instant>,
    pub(crate) trailers: Option<Box<Fields>>,
}

impl End {
    pub(crate) fn of(body: &Incoming) -> Self {
        End { at: body.ended(), trailers: body.trailers().cloned().map(Box::new) }
    }
}

/// A whole body.
pub(crate) enum Whole {
    /// Where the core had it.
    Rust(Bytes),
    /// In the object that Python gets.
    Python(Py<PyBytes>),
}

/// An error, and the URL that it is about where the error itself does not say.
pub(crate) type Failed = (Error, Option<Url>);

/// From this size on a body is read straight to where Python wants it. A smaller one came with its head as often as
/// not, or costs less to copy than to make room for: that takes the interpreter's lock once more.
const LARGE: u64 = 64 * 1024;

/// Makes the exchange, with all its redirects and retries.
pub(crate) async fn exchange(client: &mimus::Client, call: Call) -> Result<Answered, Failed> {
    let Call { request, plan: Plan { stream } } = call;
    let mut answer = client.execute(request).await.map_err(|error| (error, None))?;
    if stream {
        return Ok(Answered { answer, read: None });
    }
    let mut incoming = std::mem::take(answer.body_mut());
    match read_whole(&mut incoming).await {
        Ok(whole) => Ok(Answered { answer, read: Some((whole, End::of(&incoming))) }),
        Err(error) => Err((error, Some(answer.url().clone()))),
    }
}

/// All that is left of a body.
pub(crate) async fn read_whole(incoming: &mut Incoming) -> Result<Whole, Error> {
    let size = incoming.length().filter(|&length| length >= LARGE);
    let vessel = size.and_then(|size| usize::try_from(size).ok()).and_then(|size| {
        // Without the memory it is read as it comes, and that fails where it must.
        Python::attach(|py| Vessel::new(py, size)).ok()
    });
    let Some(mut vessel) = vessel else {
        return incoming.collect().await.map(Whole::Rust);
    };
    while let Some(data) = incoming.data().await? {
        if !vessel.add(&data) {
            // It has not the length that was announced, which the core says where that is an error.
            let rest = incoming.collect().await?;
            return Ok(Whole::Rust([vessel.so_far(), &data, &rest].concat().into()));
        }
    }
    Ok(vessel.finish())
}
