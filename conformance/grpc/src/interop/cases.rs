//! The cases, each by its name in the descriptions.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{Stream, stream};
use mimus::grpc::{Channel, Code, Metadata, Method, Prost, Status, Streaming};
use prost::Message;
use tokio::sync::mpsc;

use super::messages::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, SimpleResponse,
    StreamingInputCallRequest, StreamingInputCallResponse, StreamingOutputCallRequest,
};

const LARGE: (usize, usize) = (271_828, 314_159);
const UP: [usize; 4] = [27_182, 8, 1_828, 45_904];
const DOWN: [usize; 4] = [31_415, 9, 2_653, 58_979];
const INITIAL: (&str, &str) = ("x-grpc-test-echo-initial", "test_initial_metadata_value");
const TRAILING: (&str, [u8; 3]) = ("x-grpc-test-echo-trailing-bin", [0xab; 3]);

/// Makes the case of this name.
pub(super) async fn run(case: &str, channel: &Channel) -> Result<()> {
    match case {
        "empty_unary" => empty_unary(channel).await,
        "large_unary" => large_unary(channel).await,
        "client_streaming" => client_streaming(channel).await,
        "server_streaming" => server_streaming(channel).await,
        "ping_pong" => ping_pong(channel).await,
        "empty_stream" => empty_stream(channel).await,
        "timeout_on_sleeping_server" => timeout_on_sleeping_server(channel).await,
        "cancel_after_begin" => cancel_after_begin(channel).await,
        "cancel_after_first_response" => cancel_after_first_response(channel).await,
        "status_code_and_message" => status_code(channel, "test status message").await,
        "special_status_message" => {
            let message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
            status_code(channel, message).await
        }
        "custom_metadata" => custom_metadata(channel).await,
        "unimplemented_method" => unimplemented(channel, "TestService").await,
        "unimplemented_service" => unimplemented(channel, "UnimplementedService").await,
        _ => bail!("no such case"),
    }
}

type Codec<Q, A> = Prost<Q, A>;
type Duplex = Codec<StreamingOutputCallRequest, SimpleResponse>;

fn method<Q, A>(channel: &Channel, name: &str) -> Method<Codec<Q, A>>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    channel.method(&format!("grpc.testing.TestService/{name}"), Prost::new())
}

fn unary(channel: &Channel) -> Method<Codec<SimpleRequest, SimpleResponse>> {
    method(channel, "UnaryCall")
}

fn duplex(channel: &Channel) -> Method<Duplex> {
    method(channel, "FullDuplexCall")
}

/// A message of `up` bytes, to be answered by messages of these sizes.
fn wanting(up: usize, down: &[usize]) -> Result<StreamingOutputCallRequest> {
    let sizes = down.iter().map(|&size| Ok(ResponseParameters { size: size.try_into()? }));
    Ok(StreamingOutputCallRequest {
        response_parameters: sizes.collect::<Result<_>>()?,
        payload: Payload::zeros(up),
        response_status: None,
    })
}

/// The requests of a call, as they are sent.
fn requests<T: Send + 'static>() -> (mpsc::Sender<T>, impl Stream<Item = T> + Send + 'static) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, stream::unfold(receiver, |mut r| async move { Some((r.recv().await?, r)) }))
}

fn check_size(reply: &SimpleResponse, size: usize) -> Result<()> {
    let payload = reply.payload.as_ref().context("no payload")?;
    ensure!(payload.kind == 0, "a payload of the kind {}", payload.kind);
    ensure!(payload.body.len() == size, "{} bytes instead of {size}", payload.body.len());
    Ok(())
}

async fn check_next(replies: &mut Streaming<Duplex>, size: usize) -> Result<()> {
    let reply = replies.message().await?;
    check_size(&reply.context("the stream ended early")?, size)
}

async fn check_end(replies: &mut Streaming<Duplex>) -> Result<()> {
    ensure!(replies.message().await?.is_none(), "one message too many");
    Ok(())
}

/// What a call that has to fail failed with.
fn failure<T>(result: mimus::grpc::Result<T>, code: Code) -> Result<Status> {
    match result {
        Ok(_) => bail!("it succeeded"),
        Err(status) if status.code() == code => Ok(status),
        Err(status) => bail!("{status:#}, instead of {code}"),
    }
}

async fn empty_unary(channel: &Channel) -> Result<()> {
    let method = method::<Empty, Empty>(channel, "EmptyCall");
    ensure!(method.unary(Empty {}).await?.into_message() == Empty {}, "not empty");
    Ok(())
}

async fn large_unary(channel: &Channel) -> Result<()> {
    let (up, down) = LARGE;
    let payload = Payload::zeros(up);
    let request = SimpleRequest { response_size: down.try_into()?, payload, response_status: None };
    check_size(unary(channel).unary(request).await?.message(), down)
}

async fn client_streaming(channel: &Channel) -> Result<()> {
    let requests = UP.map(|size| StreamingInputCallRequest { payload: Payload::zeros(size) });
    let method = method::<_, StreamingInputCallResponse>(channel, "StreamingInputCall");
    let reply = method.client_streaming(stream::iter(requests)).await?;
    let size = reply.message().aggregated_payload_size;
    ensure!(usize::try_from(size)? == UP.iter().sum::<usize>(), "the server has counted {size}");
    Ok(())
}

async fn server_streaming(channel: &Channel) -> Result<()> {
    let mut request = wanting(0, &DOWN)?;
    request.payload = None;
    let mut replies = method(channel, "StreamingOutputCall").server_streaming(request);
    for size in DOWN {
        check_next(&mut replies, size).await?;
    }
    check_end(&mut replies).await
}

async fn ping_pong(channel: &Channel) -> Result<()> {
    let (sender, requests) = requests();
    let mut replies = duplex(channel).bidi(requests);
    for (up, down) in UP.into_iter().zip(DOWN) {
        sender.send(wanting(up, &[down])?).await?;
        check_next(&mut replies, down).await?;
    }
    drop(sender);
    check_end(&mut replies).await
}

async fn empty_stream(channel: &Channel) -> Result<()> {
    check_end(&mut duplex(channel).bidi(stream::empty())).await
}

async fn timeout_on_sleeping_server(channel: &Channel) -> Result<()> {
    let (sender, requests) = requests();
    let mut replies = duplex(channel).timeout(Duration::from_millis(1)).bidi(requests);
    sender.send(wanting(UP[0], &[])?).await?;
    failure(replies.message().await, Code::DeadlineExceeded).map(drop)
}

/// Dropping a call is how it is cancelled, so that nobody is left to be told CANCELLED.
async fn cancel_after_begin(channel: &Channel) -> Result<()> {
    let (sender, requests) = requests::<StreamingInputCallRequest>();
    let method = method::<_, StreamingInputCallResponse>(channel, "StreamingInputCall");
    let method = method.metadata("key1", "value1");
    let call = method.client_streaming(requests);
    let begun = tokio::time::timeout(Duration::from_millis(100), call).await;
    ensure!(begun.is_err(), "it ended by itself");
    ensure!(sender.is_closed(), "the requests outlive the call");
    empty_unary(channel).await
}

async fn cancel_after_first_response(channel: &Channel) -> Result<()> {
    let (sender, requests) = requests();
    let mut replies = duplex(channel).bidi(requests);
    sender.send(wanting(UP[0], &[DOWN[0]])?).await?;
    check_next(&mut replies, DOWN[0]).await?;
    drop(replies);
    ensure!(sender.is_closed(), "the requests outlive the call");
    empty_unary(channel).await
}

async fn status_code(channel: &Channel, message: &str) -> Result<()> {
    let status = Some(EchoStatus { code: Code::Unknown.number(), message: message.to_owned() });
    let request = SimpleRequest { response_status: status.clone(), ..SimpleRequest::default() };
    let mut got = vec![failure(unary(channel).unary(request).await, Code::Unknown)?];
    let request = StreamingOutputCallRequest { response_status: status, ..wanting(0, &[])? };
    let mut replies = duplex(channel).bidi(stream::iter([request]));
    got.push(failure(replies.message().await, Code::Unknown)?);
    for status in got {
        ensure!(status.message() == message, "the message is {:?}", status.message());
    }
    Ok(())
}

async fn custom_metadata(channel: &Channel) -> Result<()> {
    let channel = channel.clone().metadata(INITIAL.0, INITIAL.1);
    let channel = channel.metadata_bin(TRAILING.0, &TRAILING.1);
    let request =
        SimpleRequest { response_size: 1, payload: Payload::zeros(1), response_status: None };
    let reply = unary(&channel).unary(request).await?;
    check_size(reply.message(), 1)?;
    check_metadata(reply.metadata(), reply.trailers())?;

    let mut replies = duplex(&channel).bidi(stream::iter([wanting(1, &[1])?]));
    check_next(&mut replies, 1).await?;
    check_end(&mut replies).await?;
    let head = replies.head().context("no head")?;
    check_metadata(head, replies.trailers().context("no trailers")?)
}

fn check_metadata(head: &Metadata, trailers: &Metadata) -> Result<()> {
    let initial: Vec<_> = head.get_all(INITIAL.0).collect();
    ensure!(initial == [INITIAL.1], "{} came back as {initial:?}", INITIAL.0);
    let trailing: Vec<_> = trailers.get_all_bin(TRAILING.0).collect();
    ensure!(trailing == [TRAILING.1], "{} came back as {trailing:?}", TRAILING.0);
    Ok(())
}

async fn unimplemented(channel: &Channel, service: &str) -> Result<()> {
    let path = format!("grpc.testing.{service}/UnimplementedCall");
    let method = channel.method(&path, Prost::<Empty, Empty>::new());
    failure(method.unary(Empty {}).await, Code::Unimplemented).map(drop)
}
