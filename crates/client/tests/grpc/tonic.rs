//! tonic's server answers us, and tonic's client runs over us. The clients that `tonic-build` generates
//! are calls of `tonic::client::Grpc`, which is what is called here.

use std::{convert::Infallible, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response, uri::PathAndQuery};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use mimus::{
    Coding,
    grpc::{Channel, Code},
};
use tonic::{
    Status, Streaming, body::Body, client, codec::CompressionEncoding, metadata::MetadataValue,
    server,
};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::rig::{NOTES, Note, note, soon};

type Codec = ProstCodec<Note, Note>;
type Answer<T> = Result<tonic::Response<T>, Status>;

/// The service, by tonic: what a generated server does for each path.
async fn serve(request: Request<hyper::body::Incoming>) -> Response<Body> {
    let mut grpc = server::Grpc::new(Codec::default())
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip);
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/test.Notes/Echo" => grpc.unary(service_fn(echo), request).await,
        "/test.Notes/Count" => grpc.server_streaming(service_fn(count), request).await,
        "/test.Notes/Sum" => grpc.client_streaming(service_fn(sum), request).await,
        "/test.Notes/Talk" => grpc.streaming(service_fn(talk), request).await,
        _ => Status::unimplemented("no such method").into_http(),
    }
}

async fn echo(request: tonic::Request<Note>) -> Answer<Note> {
    let (metadata, _, got) = request.into_parts();
    match got.text.as_str() {
        "fail" => {
            let details = b"\x08\x05".to_vec().into();
            let mut status = Status::with_details(tonic::Code::NotFound, "not hère", details);
            status.metadata_mut().insert("x-why", MetadataValue::from_static("because"));
            return Err(status);
        }
        "sleep" => tokio::time::sleep(Duration::from_secs(60)).await,
        _ => {}
    }
    let mut response = tonic::Response::new(got);
    if let Some(value) = metadata.get("x-a") {
        response.metadata_mut().insert("x-a", value.clone());
    }
    if let Some(value) = metadata.get_bin("x-b-bin") {
        response.metadata_mut().insert_bin("x-b-bin", value.clone());
    }
    Ok(response)
}

async fn count(
    request: tonic::Request<Note>,
) -> Answer<stream::BoxStream<'static, Result<Note, Status>>> {
    let end = request.get_ref().number;
    let notes = stream::iter((0..end).map(|number| Ok(note("count", number))));
    let last = stream::iter([Err(Status::data_loss("the end"))]).take((end % 2) as usize);
    Ok(tonic::Response::new(notes.chain(last).boxed()))
}

async fn sum(request: tonic::Request<Streaming<Note>>) -> Answer<Note> {
    let (mut notes, mut sum) = (request.into_inner(), 0);
    while let Some(note) = notes.message().await? {
        sum += note.number;
    }
    Ok(tonic::Response::new(note("sum", sum)))
}

async fn talk(
    request: tonic::Request<Streaming<Note>>,
) -> Answer<stream::BoxStream<'static, Result<Note, Status>>> {
    Ok(tonic::Response::new(request.into_inner().boxed()))
}

/// Starts a server of HTTP/2 on this runtime.
async fn channel() -> Channel {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let service = service_fn(async |request| Ok::<_, Infallible>(serve(request).await));
                let service = TowerToHyperService::new(service);
                let server = auto::Builder::new(TokioExecutor::new()).http2_only();
                let _ = server.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    crate::rig::client().grpc(format!("http://{address}")).unwrap()
}

#[tokio::test]
async fn all_four_kinds_of_calls_to_tonic() {
    let channel = channel().await;
    let method = |name: &str| channel.method(&format!("test.Notes/{name}"), NOTES);
    for coding in [None, Some(Coding::Gzip)] {
        let echo = method("Echo").send_compressed(coding).metadata("x-a", "1");
        let reply =
            soon(echo.metadata_bin("x-b-bin", &[0, 255]).unary(note("é", 7))).await.unwrap();
        assert_eq!(reply.metadata().get("x-a"), Some("1"));
        assert_eq!(reply.metadata().get_bin("x-b-bin"), Some(vec![0, 255]));
        assert_eq!(reply.into_message(), note("é", 7));

        let count = method("Count").send_compressed(coding);
        let mut replies = count.server_streaming(note("", 1000));
        let mut next = 0;
        while let Some(got) = soon(replies.message()).await.unwrap() {
            assert_eq!(got, note("count", next));
            next += 1;
        }
        assert_eq!(next, 1000);

        let requests = stream::iter((0..1000).map(|number| note("sum", number)));
        let sum = method("Sum").send_compressed(coding);
        let reply = soon(sum.client_streaming(requests)).await.unwrap();
        assert_eq!(reply.message().number, 499_500);

        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let mut replies = method("Talk").send_compressed(coding).bidi(received(receiver));
        for number in 0..20 {
            soon(sender.send(note("talk", number))).await.unwrap();
            assert_eq!(soon(replies.message()).await.unwrap(), Some(note("talk", number)));
        }
        drop(sender);
        assert_eq!(soon(replies.message()).await.unwrap(), None);
    }
}

fn received(receiver: tokio::sync::mpsc::Receiver<Note>) -> impl Stream<Item = Note> + Send {
    stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
}

#[tokio::test]
async fn statuses_of_tonic() {
    let channel = channel().await;
    let status = soon(channel.method("test.Notes/Echo", NOTES).unary(note("fail", 0))).await;
    let status = status.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, "not hère"));
    assert_eq!(status.details()[..], [8, 5]);
    assert_eq!(status.metadata().get("x-why"), Some("because"));
    let status = soon(channel.method("test.Notes/None", NOTES).unary(note("", 0))).await;
    assert_eq!(status.unwrap_err().code(), Code::Unimplemented);
    let mut replies = channel.method("test.Notes/Count", NOTES).server_streaming(note("", 3));
    for number in 0..3 {
        assert_eq!(soon(replies.message()).await.unwrap(), Some(note("count", number)));
    }
    assert_eq!(soon(replies.message()).await.unwrap_err().code(), Code::DataLoss);
    let method = channel.method("test.Notes/Echo", NOTES).timeout(Duration::from_millis(200));
    let status = soon(method.unary(note("sleep", 0))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

/// What a generated client holds.
async fn generated() -> client::Grpc<Channel> {
    let mut grpc = client::Grpc::new(channel().await.metadata("x-a", "of the channel"));
    grpc.ready().await.unwrap();
    grpc
}

fn path(name: &str) -> PathAndQuery {
    format!("/test.Notes/{name}").parse().unwrap()
}

#[tokio::test]
async fn all_four_kinds_of_calls_by_tonic() {
    for compressed in [false, true] {
        let mut grpc = generated().await;
        if compressed {
            grpc = grpc
                .send_compressed(CompressionEncoding::Gzip)
                .accept_compressed(CompressionEncoding::Gzip);
        }
        let codec = Codec::default;
        let request = tonic::Request::new(note("é", 7));
        let reply = soon(grpc.unary(request, path("Echo"), codec())).await.unwrap();
        assert_eq!(reply.metadata().get("x-a").unwrap(), "of the channel");
        assert_eq!(reply.into_inner(), note("é", 7));

        let request = tonic::Request::new(note("", 100));
        let replies = soon(grpc.server_streaming(request, path("Count"), codec())).await.unwrap();
        let replies: Vec<_> = soon(replies.into_inner().collect::<Vec<_>>()).await;
        assert!(replies.iter().all(Result::is_ok));
        assert_eq!(replies.len(), 100);

        let request = tonic::Request::new(stream::iter((0..100).map(|n| note("", n))));
        let reply = soon(grpc.client_streaming(request, path("Sum"), codec())).await.unwrap();
        assert_eq!(reply.into_inner().number, 4950);

        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let request = tonic::Request::new(received(receiver));
        let replies = soon(grpc.streaming(request, path("Talk"), codec())).await.unwrap();
        let mut replies = replies.into_inner();
        for number in 0..20 {
            soon(sender.send(note("talk", number))).await.unwrap();
            assert_eq!(soon(replies.message()).await.unwrap(), Some(note("talk", number)));
        }
        drop(sender);
        assert_eq!(soon(replies.message()).await.unwrap(), None);
    }
}

#[tokio::test]
async fn tonic_is_told_of_failures_in_its_own_terms() {
    let mut grpc = generated().await;
    let request = tonic::Request::new(note("fail", 0));
    let status = soon(grpc.unary(request, path("Echo"), Codec::default())).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (tonic::Code::NotFound, "not hère"));
    assert_eq!(status.details()[..], [8, 5]);

    let mut request = tonic::Request::new(note("sleep", 0));
    request.set_timeout(Duration::from_millis(200));
    let status = soon(grpc.unary(request, path("Echo"), Codec::default())).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded, "{status}");

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let channel = crate::rig::client().grpc(format!("http://{closed}")).unwrap();
    let mut grpc = client::Grpc::new(channel);
    let request = tonic::Request::new(note("", 0));
    let status = soon(grpc.unary(request, path("Echo"), Codec::default())).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
    assert!(status.message().contains("refused"), "{status}");
}

#[tokio::test]
async fn tonic_hears_of_an_answer_that_broke_off_or_ended_early() {
    let broken = crate::rig::channel(|peer| {
        peer.ok();
        peer.send(&note("", 1));
    });
    let mut grpc = client::Grpc::new(broken);
    let request = tonic::Request::new(note("", 0));
    let replies = grpc.server_streaming(request, path("Count"), Codec::default()).await.unwrap();
    let mut replies = replies.into_inner();
    assert_eq!(soon(replies.message()).await.unwrap(), Some(note("", 1)));
    assert_eq!(soon(replies.message()).await.unwrap_err().code(), tonic::Code::Unavailable);

    let early = crate::rig::channel(|peer| {
        peer.note();
        peer.ok();
        peer.end(&[("grpc-status", "8")]);
        assert!(peer.hears_the_end());
    });
    let mut grpc = client::Grpc::new(early);
    let endless = stream::iter([note("", 0)]).chain(stream::pending());
    let request = tonic::Request::new(endless);
    let status = soon(grpc.client_streaming(request, path("Sum"), Codec::default())).await;
    assert_eq!(status.unwrap_err().code(), tonic::Code::ResourceExhausted);
}
