//! The messages to send: JSON documents, read while they are sent.

use std::{
    fs::File,
    io::{self, Read},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    thread,
};

use futures_channel::mpsc::{Receiver, channel};
use futures_core::Stream;
use mimus::BoxError;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use crate::exit::{Exit, Failure};

type Request = Result<DynamicMessage, BoxError>;
type Documents = Box<dyn Iterator<Item = Request> + Send>;

/// What went wrong while the requests were read, which is what the call then failed by.
#[derive(Clone, Default)]
pub(super) struct Failed(Arc<Mutex<Option<Failure>>>);

impl Failed {
    fn set(&self, failure: Failure) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }

    pub(super) fn take(&self) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Where messages come from.
pub(super) struct Input {
    documents: Option<Documents>,
    kind: MessageDescriptor,
    failed: Failed,
}

impl Input {
    /// The documents that -d names; none without it.
    pub(super) fn open(
        data: Option<&str>,
        kind: MessageDescriptor,
        failed: Failed,
    ) -> Result<Self, Failure> {
        let source: Option<Box<dyn Read + Send>> = match data {
            None => None,
            Some("@" | "@-") => Some(Box::new(io::stdin())),
            Some(data) => match data.strip_prefix('@') {
                Some(path) => {
                    Some(Box::new(File::open(path).map_err(|e| Failure::read(path, &e))?))
                }
                None => Some(Box::new(io::Cursor::new(data.to_owned()))),
            },
        };
        let (to, wrong) = (kind.clone(), failed.clone());
        let documents = source.map(|source| {
            let values = serde_json::Deserializer::from_reader(io::BufReader::new(source));
            let values = values.into_iter::<serde_json::Value>();
            let mut number = 0;
            Box::new(values.map(move |value| {
                number += 1;
                let message =
                    value.and_then(|value| DynamicMessage::deserialize(to.clone(), value));
                message.map_err(|error| {
                    let what = format!("message {number} is no {}: {error}", to.full_name());
                    let exit = if error.is_io() { Exit::Read } else { Exit::Usage };
                    wrong.set(Failure::new(exit, what.clone()));
                    what.into()
                })
            })) as Documents
        });
        Ok(Input { documents, kind, failed })
    }

    /// The message of a call that takes one.
    pub(super) fn only(self) -> Result<Request, Failure> {
        let Some(mut documents) = self.documents else {
            return Ok(Ok(DynamicMessage::new(self.kind)));
        };
        let wrong = |what: &str| Failure::new(Exit::Usage, what);
        let first = documents.next().ok_or_else(|| wrong("-d has no message"))?;
        let more = documents.next().is_some();
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        match more {
            true => Err(wrong("-d has more than the one message that the method takes")),
            false => Ok(first),
        }
    }

    /// The messages of a call that takes many. They are read on a thread of their own, because replies
    /// may come, and be shown, while somebody thinks about the next.
    pub(super) fn stream(self) -> Messages {
        let Some(documents) = self.documents else { return Messages(None) };
        let (mut sender, receiver) = channel(0);
        thread::spawn(move || {
            for message in documents {
                let wrong = message.is_err();
                let sent = mimus::rt::Blocking::block_on(async {
                    std::future::poll_fn(|cx| sender.poll_ready(cx)).await.is_ok()
                        && sender.start_send(message).is_ok()
                });
                if wrong || !sent {
                    return;
                }
            }
        });
        Messages(Some(receiver))
    }
}

/// Messages as they are read.
pub(super) struct Messages(Option<Receiver<Request>>);

impl Stream for Messages {
    type Item = Request;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Request>> {
        match &mut self.0 {
            Some(receiver) => Pin::new(receiver).poll_next(cx),
            None => Poll::Ready(None),
        }
    }
}

/// A stream of one message.
pub(super) fn once<T>(message: T) -> impl Stream<Item = T> {
    struct Once<T>(Option<T>);
    impl<T> Unpin for Once<T> {}
    impl<T> Stream for Once<T> {
        type Item = T;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
            Poll::Ready(self.0.take())
        }
    }
    Once(Some(message))
}
