//! Single messages both ways, metadata, statuses.

use std::time::Duration;

use bytes::Bytes;
use mimus::{
    Client, Coding, Version,
    grpc::{Code, Json, Raw, Status},
    rt,
};
use serde::{Deserialize, Serialize};

use crate::rig::{NOTES, Note, Peer, channel, channel_to, framed, note, peer, soon};

const METHOD: &str = "test.Notes/Echo";

/// What a call comes to when the server does this.
async fn failure(serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> Status {
    let channel = channel(serve);
    soon(channel.method(METHOD, NOTES).unary(note("x", 1))).await.expect_err("it fails")
}

fn echo(peer: &mut Peer) {
    let got = peer.note().expect("a message");
    assert_eq!(peer.note(), None, "no more than one");
    peer.ok();
    peer.send(&got);
    peer.done();
}

#[tokio::test]
async fn a_request_looks_as_the_protocol_says() {
    let channel = channel(|peer| {
        assert!(peer.head.starts_with("POST /base/test.Notes/Echo HTTP/1.1\r\n"), "{}", peer.head);
        assert_eq!(peer.field("te"), Some("trailers"));
        assert_eq!(peer.field("content-type"), Some("application/grpc+proto"));
        assert_eq!(peer.field("grpc-accept-encoding"), Some("gzip,identity"));
        assert_eq!(peer.field("grpc-encoding"), None);
        assert_eq!(peer.field("accept-encoding"), None);
        assert_eq!(peer.field("grpc-timeout"), Some("5000000u"));
        assert_eq!(peer.field("x-token"), Some("a b"));
        assert_eq!(peer.field("x-trace-bin"), Some("AP8"));
        assert!(peer.field("user-agent").is_some_and(|agent| agent.starts_with("mimus/")));
        echo(peer);
    });
    let url = format!("{}/base/", channel_url(&channel));
    let channel = channel_to(&crate::rig::client(), &url).timeout(Duration::from_secs(5));
    let method = channel.metadata("X-Token", "a b").method(METHOD, NOTES);
    let method = method.metadata_bin("x-trace-bin", &[0, 255]);
    // The same method again: it is a value, not a call.
    for number in 0..2 {
        let reply = soon(method.unary(note("é", number))).await.unwrap();
        assert_eq!(*reply.message(), note("é", number));
    }
}

fn channel_url(channel: &mimus::grpc::Channel) -> String {
    let text = format!("{channel:?}");
    text.split('"').nth(1).expect("a URL").trim_end_matches('/').to_owned()
}

#[tokio::test]
async fn metadata_comes_before_and_after_the_message() {
    let channel = channel(|peer| {
        peer.head(
            200,
            &[("content-type", "application/grpc"), ("x-a", "1"), ("x-a", "2"), ("b-bin", "AP8=")],
        );
        peer.send(&note("", 7));
        peer.end(&[("x-cost", "3"), ("grpc-status", "0"), ("c-bin", "AA, AQ")]);
    });
    let reply = soon(channel.method(METHOD, NOTES).unary(note("", 0))).await.unwrap();
    assert_eq!(reply.metadata().get_all("x-a").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(reply.metadata().get_bin("b-bin"), Some(vec![0, 255]));
    assert_eq!(reply.metadata().get("content-type"), None);
    assert_eq!(reply.trailers().get("x-cost"), Some("3"));
    assert_eq!(reply.trailers().get("grpc-status"), None);
    let joined: Vec<_> = reply.trailers().get_all_bin("c-bin").collect();
    assert_eq!(joined, [vec![0], vec![1]]);
    assert_eq!(reply.into_message().number, 7);
}

#[tokio::test]
async fn wrong_metadata_fails_the_call_and_sends_nothing() {
    let channel = channel(|_| panic!("something was sent"));
    for (name, value) in [("grpc-timeout", "1S"), ("a-bin", "x"), ("a b", "x"), ("a", "\n")] {
        let method = channel.method(METHOD, NOTES).metadata(name, value);
        let status = soon(method.unary(note("", 0))).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{name}");
        assert!(status.message().contains(name), "{status}");
    }
}

#[tokio::test]
async fn a_status_in_the_trailers_is_the_calls() {
    let status = failure(|peer| {
        peer.head(200, &[("content-type", "application/grpc"), ("x-first", "1")]);
        peer.send(&note("not to be seen", 0));
        peer.end(&[
            ("grpc-status", "5"),
            ("grpc-message", "no %C3%A9"),
            ("grpc-status-details-bin", "CAU"),
            ("x-why", "because"),
        ]);
    })
    .await;
    assert_eq!((status.code(), status.message()), (Code::NotFound, "no é"));
    assert_eq!(status.details()[..], [8, 5]);
    assert_eq!(status.metadata().get("x-why"), Some("because"));
    assert_eq!(status.head().get("x-first"), Some("1"));
    assert_eq!(status.to_string(), "NOT_FOUND: no é");
}

#[tokio::test]
async fn a_head_alone_can_be_the_answer() {
    let status = failure(|peer| {
        peer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ngrpc-status: 7\r\n\
              grpc-message: no\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n",
        );
    })
    .await;
    assert_eq!((status.code(), status.message()), (Code::PermissionDenied, "no"));
    assert_eq!(status.metadata().get("x-a"), Some("1"));
    assert!(status.head().is_empty());
}

#[tokio::test]
async fn a_status_in_the_head_means_nothing_when_more_comes() {
    let grpc = ("content-type", "application/grpc");
    let status = failure(move |peer| {
        peer.head(200, &[grpc, ("grpc-status", "8")]);
        peer.end(&[("grpc-status", "9")]);
    });
    assert_eq!(status.await.code(), Code::FailedPrecondition);
    let status = failure(move |peer| {
        peer.head(200, &[grpc, ("grpc-status", "8")]);
        peer.send(&note("", 0));
        peer.end(&[]);
    });
    assert_eq!(status.await.code(), Code::Internal);
}

#[tokio::test]
async fn what_is_not_grpc_is_told_by_its_http_status() {
    let cases = [
        (400, Code::Internal),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (503, Code::Unavailable),
        (500, Code::Unknown),
        (200, Code::Unknown),
        // Not followed.
        (307, Code::Unknown),
    ];
    for (number, code) in cases {
        let status = failure(move |peer| {
            peer.head(number, &[("content-type", "text/html"), ("location", "/")]);
            peer.chunk(b"<html>");
            peer.end(&[]);
        })
        .await;
        assert_eq!(status.code(), code, "{number}");
    }
}

#[tokio::test]
async fn an_http_status_yields_to_one_of_grpc() {
    let status = failure(|peer| {
        peer.head(503, &[("content-type", "application/grpc")]);
        peer.end(&[("grpc-status", "10")]);
    });
    assert_eq!(status.await.code(), Code::Aborted);
    let status = failure(|peer| {
        peer.head(503, &[("content-type", "application/grpc")]);
        peer.end(&[]);
    });
    assert_eq!(status.await.code(), Code::Unavailable);
}

#[tokio::test]
async fn one_message_is_neither_none_nor_two() {
    let none = failure(|peer| {
        peer.ok();
        peer.done();
    });
    assert_eq!(none.await.code(), Code::Unimplemented);
    let two = failure(|peer| {
        peer.ok();
        peer.chunk(&[framed(0, b""), framed(0, b"")].concat());
        peer.done();
    });
    assert_eq!(two.await.code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_broken_answer_is_an_error() {
    let truncated = failure(|peer| {
        peer.ok();
        peer.chunk(&framed(0, b"abc")[..6]);
        peer.done();
    });
    assert_eq!(truncated.await.code(), Code::Internal);
    let flag = failure(|peer| {
        peer.ok();
        peer.message(2, b"");
        peer.done();
    });
    assert_eq!(flag.await.code(), Code::Internal);
    let garbage = failure(|peer| {
        peer.ok();
        peer.message(0, &[0xff; 9]);
        peer.done();
    });
    assert_eq!(garbage.await.code(), Code::Internal);
    let lost = failure(|peer| {
        peer.ok();
        peer.chunk(&framed(0, b"abc")[..6]);
    });
    assert_eq!(lost.await.code(), Code::Unavailable);
    let other = failure(|peer| {
        peer.head(200, &[("content-type", "application/grpc+json")]);
        peer.done();
    });
    assert_eq!(other.await.code(), Code::Internal);
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let channel = crate::rig::client().grpc(format!("http://{closed}")).unwrap();
    let status = soon(channel.method(METHOD, NOTES).unary(note("", 0))).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(std::error::Error::source(&status).is_some());
    assert!(format!("{status:#}").len() > status.to_string().len());
    assert!(crate::rig::client().grpc("ftp://x").is_err());
}

#[tokio::test]
async fn messages_come_whole_however_they_are_split() {
    for drip in [1, 2, 3, 7] {
        let channel = channel(move |peer| {
            let got = peer.note().expect("a message");
            peer.drip = drip;
            peer.ok();
            for byte in framed(0, &prost::Message::encode_to_vec(&got)).chunks(drip) {
                peer.chunk(byte);
            }
            peer.done();
        });
        let sent = note("a text of some length", 42);
        let reply = soon(channel.method(METHOD, NOTES).unary(sent.clone())).await.unwrap();
        assert_eq!(reply.into_message(), sent);
    }
}

#[tokio::test]
async fn messages_are_compressed_when_asked_for_and_read_when_they_are() {
    let channel = channel(|peer| {
        assert_eq!(peer.field("grpc-encoding"), Some("gzip"));
        let (flag, bytes) = peer.receive().expect("a message");
        assert_eq!(flag, 1);
        assert_eq!(bytes[..2], [0x1f, 0x8b]);
        peer.head(200, &[("content-type", "application/grpc"), ("grpc-encoding", "gzip")]);
        peer.message(1, &bytes);
        peer.done();
    });
    let method = channel.method(METHOD, NOTES).send_compressed(Coding::Gzip);
    // Empty, short, and of several pieces when it unfolds.
    for length in [0, 10, 300_000] {
        let sent = note(&"z".repeat(length), 0);
        let reply = soon(method.unary(sent.clone())).await.unwrap();
        assert_eq!(reply.into_message(), sent, "{length}");
    }
}

#[tokio::test]
async fn other_serializations() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Bird {
        name: String,
    }
    let json = channel(|peer| {
        assert_eq!(peer.field("content-type"), Some("application/grpc+json"));
        assert_eq!(peer.receive(), Some((0, br#"{"name":"wren"}"#.to_vec())));
        peer.head(200, &[("content-type", "application/grpc+json")]);
        peer.message(0, br#"{"name":"rook"}"#);
        peer.done();
    });
    let method = json.method(METHOD, Json::<Bird, Bird>::new());
    let reply = soon(method.unary(Bird { name: "wren".into() })).await.unwrap();
    assert_eq!(reply.message().name, "rook");
    let raw = channel(echo);
    let bytes = Bytes::from(prost::Message::encode_to_vec(&note("raw", 1)));
    let reply = soon(raw.method(METHOD, Raw).unary(bytes.clone())).await.unwrap();
    assert_eq!(reply.into_message(), bytes);
}

/// A client on another runtime than tokio's.
fn on(runtime: impl rt::Runtime) -> Client {
    Client::builder().no_proxy().runtime(runtime).build().unwrap()
}

async fn echoed(client: Client, url: String) -> Note {
    let method = channel_to(&client, &url).method(METHOD, NOTES);
    let reply = method.timeout(Duration::from_secs(20)).unary(note("any", 1)).await;
    reply.unwrap().into_message()
}

#[test]
fn any_runtime_and_none() {
    assert_eq!(smol::block_on(echoed(on(rt::Smol), peer(echo))), note("any", 1));
    assert_eq!(rt::Blocking::block_on(echoed(on(rt::Blocking), peer(echo))), note("any", 1));
    let client = mimus::blocking::Client::builder().no_proxy().build().unwrap();
    let method = client.grpc(peer(echo)).unwrap().version(Version::HTTP_11);
    let method = method.method(METHOD, NOTES);
    let reply = rt::Blocking::block_on(method.unary(note("blocking", 2))).unwrap();
    assert_eq!(reply.into_message(), note("blocking", 2));
}
