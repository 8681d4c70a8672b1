//! One call, as a request of the runner describes it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use futures_util::{Stream, stream};
use mimus::{
    Client, Coding,
    grpc::{self, Metadata, Raw, Status, Streaming},
};
use prost::Message;
use tokio::{sync::mpsc, time::sleep};

use crate::wire::{self, Answer, Any, Header, Request, RpcError, RpcStatus, When};

/// Makes the call and tells what came of it.
pub(crate) async fn make(client: &Client, request: Request) -> Result<Answer> {
    ensure!(request.protocol == wire::PROTOCOL_GRPC, "only gRPC is spoken");
    ensure!(request.codec == wire::CODEC_PROTO, "only the binary serialization is spoken");
    let method = method(client, &request)?;
    let messages: Vec<Bytes> = request.request_messages.iter().map(|m| m.value.clone()).collect();
    let call = Call {
        method,
        delay: Duration::from_millis(request.request_delay_ms.into()),
        cancel: request.cancel.map(|cancel| cancel.when.unwrap_or(When::AfterCloseSendMs(0))),
    };
    match (request.stream_type, &messages[..]) {
        (wire::UNARY, [message]) => Ok(call.unary(message.clone()).await),
        (wire::SERVER_STREAM, [message]) => Ok(call.server_streaming(message.clone()).await),
        (wire::UNARY | wire::SERVER_STREAM, _) => bail!("not exactly one message"),
        (wire::CLIENT_STREAM, _) => Ok(call.client_streaming(messages).await),
        (wire::HALF_DUPLEX, _) => Ok(call.half_duplex(messages).await),
        (wire::FULL_DUPLEX, _) => Ok(call.full_duplex(messages).await),
        (other, _) => bail!("the kind of call {other} is not known"),
    }
}

fn method(client: &Client, request: &Request) -> Result<grpc::Method<Raw>> {
    let scheme = if request.server_tls_cert.is_empty() { "http" } else { "https" };
    let channel = client.grpc(format!("{scheme}://{}:{}", request.host, request.port))?;
    let service = request.service.as_deref();
    let service = service.unwrap_or("connectrpc.conformance.v1.ConformanceService");
    let Some(name) = request.method.as_deref() else { bail!("no method is named") };
    let mut method = channel.method(&format!("{service}/{name}"), Raw);
    for Header { name, value } in &request.request_headers {
        for value in value {
            method = match name.to_ascii_lowercase().ends_with("-bin") {
                // The runner gives such values as they look on the wire.
                true => method.metadata_bin(name, &base64(value)?),
                false => method.metadata(name, value),
            };
        }
    }
    if let Some(timeout) = request.timeout_ms {
        method = method.timeout(Duration::from_millis(timeout.into()));
    }
    if request.message_receive_limit > 0 {
        method = method.max_receive(usize::try_from(request.message_receive_limit)?);
    }
    match request.compression {
        0 | wire::COMPRESSION_IDENTITY => Ok(method),
        wire::COMPRESSION_GZIP => Ok(method.send_compressed(Coding::Gzip)),
        other => bail!("the compression {other} is not spoken"),
    }
}

/// What a `-bin` value on the wire stands for.
fn base64(value: &str) -> Result<Vec<u8>> {
    let mut fields = mimus::Fields::new();
    fields.append("x-bin", value)?;
    let decoded = Metadata::received(fields).get_bin("x-bin");
    decoded.ok_or_else(|| anyhow::anyhow!("{value:?} is not base64"))
}

struct Call {
    method: grpc::Method<Raw>,
    /// Before each request.
    delay: Duration,
    cancel: Option<When>,
}

impl Call {
    /// When the requests are out: the time after which the call is given up.
    fn patience(&self) -> Option<Duration> {
        match self.cancel {
            Some(When::BeforeCloseSend(())) => Some(Duration::ZERO),
            Some(When::AfterCloseSendMs(time)) => Some(Duration::from_millis(time.into())),
            Some(When::AfterNumResponses(_)) | None => None,
        }
    }

    async fn unary(self, message: Bytes) -> Answer {
        sleep(self.delay).await;
        let single = self.method.unary(message);
        let result = match self.patience() {
            None => Some(single.await),
            Some(patience) => tokio::time::timeout(patience, single).await.ok(),
        };
        let mut answer = Answer::default();
        match result {
            Some(result) => answer.single(result),
            None => answer.cancelled(),
        }
        answer
    }

    async fn client_streaming(self, messages: Vec<Bytes>) -> Answer {
        let (count, taken) = (messages.len(), Arc::new(AtomicUsize::new(0)));
        // To be cancelled before its end, the stream must not have one.
        let endless = matches!(self.cancel, Some(When::BeforeCloseSend(())));
        let (out, all_out) = tokio::sync::oneshot::channel();
        let requests = paced(messages, self.delay, endless, taken.clone(), out);
        let single = self.method.client_streaming(requests);
        let result = match self.patience() {
            None => Some(single.await),
            Some(patience) => {
                let given_up = async {
                    let _ = all_out.await;
                    sleep(patience).await;
                };
                tokio::select! {
                    biased;
                    result = single => Some(result),
                    () = given_up => None,
                }
            }
        };
        let mut answer = Answer::default();
        match result {
            Some(result) => answer.single(result),
            None => answer.cancelled(),
        }
        answer.unsent = unsent(count, &taken);
        answer
    }

    async fn server_streaming(self, message: Bytes) -> Answer {
        sleep(self.delay).await;
        let mut answer = Answer::default();
        let replies = self.method.server_streaming(message);
        self.receive(replies, &mut answer).await;
        answer
    }

    async fn half_duplex(self, messages: Vec<Bytes>) -> Answer {
        let (count, taken) = (messages.len(), Arc::new(AtomicUsize::new(0)));
        let endless = matches!(self.cancel, Some(When::BeforeCloseSend(())));
        let (out, all_out) = tokio::sync::oneshot::channel();
        let requests = paced(messages, self.delay, endless, taken.clone(), out);
        let mut replies = self.method.bidi(requests);
        let mut answer = Answer::default();
        // Requests go out while the head is awaited; servers may answer before they have heard all.
        let sent = async {
            let _ = all_out.await;
        };
        tokio::select! {
            biased;
            _ = replies.metadata() => {}
            () = sent => {}
        }
        self.receive(replies, &mut answer).await;
        answer.unsent = unsent(count, &taken);
        answer
    }

    /// One reply for each request, and then the rest.
    async fn full_duplex(self, messages: Vec<Bytes>) -> Answer {
        let count = messages.len();
        let (sender, receiver) = mpsc::channel(1);
        let requests =
            stream::unfold(receiver, |mut queue| async move { Some((queue.recv().await?, queue)) });
        let mut replies = self.method.bidi(requests);
        let mut answer = Answer::default();
        for (number, message) in messages.into_iter().enumerate() {
            sleep(self.delay).await;
            if sender.send(message).await.is_err() {
                answer.unsent = unsent_after(count, number);
                break;
            }
            if !self.reply(&mut replies, &mut answer).await {
                answer.unsent = unsent_after(count, number + 1);
                answer.end(&replies);
                return answer;
            }
        }
        if matches!(self.cancel, Some(When::BeforeCloseSend(()))) {
            answer.cancelled();
            return answer;
        }
        drop(sender);
        self.receive(replies, &mut answer).await;
        answer
    }

    /// The rest of the replies, unless the call is to be given up before.
    async fn receive(&self, mut replies: Streaming<Raw>, answer: &mut Answer) {
        if let Some(patience) = self.patience() {
            let rest = async { while self.reply(&mut replies, answer).await {} };
            if tokio::time::timeout(patience, rest).await.is_err() {
                answer.cancelled();
                return;
            }
        } else {
            while self.reply(&mut replies, answer).await {}
        }
        answer.end(&replies);
    }

    /// The next reply; `false` when there are no more, or the call was given up.
    async fn reply(&self, replies: &mut Streaming<Raw>, answer: &mut Answer) -> bool {
        if answer.error.is_some() {
            return false;
        }
        match replies.message().await {
            Ok(Some(message)) => {
                if let (true, Some(metadata)) = (answer.payloads.is_empty(), replies.head()) {
                    answer.headers = headers(metadata);
                }
                answer.payload(&message);
                let most = match self.cancel {
                    Some(When::AfterNumResponses(most)) => most as usize,
                    _ => usize::MAX,
                };
                if answer.payloads.len() >= most {
                    answer.cancelled();
                    return false;
                }
                true
            }
            Ok(None) => false,
            Err(status) => {
                answer.failed(&status);
                false
            }
        }
    }
}

/// Each message after its delay, counted when it is taken.
fn paced(
    messages: Vec<Bytes>,
    delay: Duration,
    endless: bool,
    taken: Arc<AtomicUsize>,
    all_out: tokio::sync::oneshot::Sender<()>,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let state = (messages.into_iter(), Some(all_out));
    stream::unfold(state, move |(mut messages, mut all_out)| {
        let taken = taken.clone();
        async move {
            match messages.next() {
                Some(message) => {
                    sleep(delay).await;
                    taken.fetch_add(1, Ordering::Relaxed);
                    Some((message, (messages, all_out)))
                }
                None => {
                    drop(all_out.take());
                    if endless {
                        std::future::pending::<()>().await;
                    }
                    None
                }
            }
        }
    })
}

fn unsent(count: usize, taken: &AtomicUsize) -> i32 {
    unsent_after(count, taken.load(Ordering::Relaxed))
}

fn unsent_after(count: usize, taken: usize) -> i32 {
    i32::try_from(count - taken).unwrap_or(i32::MAX)
}

fn headers(metadata: &Metadata) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    for (name, value) in metadata.fields().iter() {
        let value = String::from_utf8_lossy(value).into_owned();
        match headers.iter_mut().find(|header| header.name.eq_ignore_ascii_case(name)) {
            Some(header) => header.value.push(value),
            None => headers.push(Header { name: name.to_owned(), value: vec![value] }),
        }
    }
    headers
}

impl Answer {
    fn payload(&mut self, message: &Bytes) {
        match wire::Reply::decode(&message[..]) {
            Ok(reply) => self.payloads.push(reply.payload),
            Err(error) => {
                let status = Status::new(grpc::Code::Internal, error.to_string());
                self.failed(&status);
            }
        }
    }

    fn single(&mut self, result: grpc::Result<grpc::Reply<Bytes>>) {
        match result {
            Ok(reply) => {
                self.headers = headers(reply.metadata());
                self.trailers = headers(reply.trailers());
                self.payload(reply.message());
            }
            Err(status) => self.failed(&status),
        }
    }

    /// What a stream that is over leaves behind.
    fn end(&mut self, replies: &Streaming<Raw>) {
        if let (Some(trailers), None) = (replies.trailers(), &self.error) {
            self.trailers = headers(trailers);
            if let Some(head) = replies.head() {
                self.headers = headers(head);
            }
        }
    }

    fn failed(&mut self, status: &Status) {
        self.headers = headers(status.head());
        self.trailers = headers(status.metadata());
        let details: Vec<Any> = RpcStatus::decode(&status.details()[..])
            .map(|status| status.details)
            .unwrap_or_default();
        self.error = Some(RpcError {
            code: status.code().number(),
            message: Some(status.message().to_owned()),
            details,
        });
    }

    /// We gave the call up ourselves.
    fn cancelled(&mut self) {
        let code = grpc::Code::Cancelled.number();
        self.error = Some(RpcError { code, message: None, details: Vec::new() });
    }
}
