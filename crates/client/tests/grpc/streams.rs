//! Many messages one way, the other, and both.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use mimus::grpc::Code;

use crate::rig::{NOTES, Peer, channel, note, soon};

const METHOD: &str = "test.Notes/Talk";

#[tokio::test]
async fn a_stream_of_replies_ends_with_the_status() {
    let channel = channel(|peer| {
        let got = peer.note().unwrap();
        peer.head(200, &[("content-type", "application/grpc"), ("x-a", "1")]);
        for number in 0..got.number {
            peer.send(&note("", number));
        }
        peer.end(&[("grpc-status", "0"), ("x-b", "2")]);
    });
    let mut stream = channel.method(METHOD, NOTES).server_streaming(note("", 100));
    assert_eq!(soon(stream.metadata()).await.unwrap().get("x-a"), Some("1"));
    for number in 0..100 {
        assert_eq!(soon(stream.message()).await.unwrap(), Some(note("", number)));
    }
    for _ in 0..2 {
        assert_eq!(soon(stream.message()).await.unwrap(), None);
    }
    assert_eq!(stream.trailers().unwrap().get("x-b"), Some("2"));
}

#[tokio::test]
async fn replies_before_an_error_are_given_and_nothing_after_it() {
    let channel = channel(|peer| {
        peer.ok();
        peer.send(&note("", 1));
        peer.end(&[("grpc-status", "11")]);
    });
    let stream = channel.method(METHOD, NOTES).server_streaming(note("", 0));
    let all: Vec<_> = soon(stream.collect::<Vec<_>>()).await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].as_ref().unwrap().number, 1);
    assert_eq!(all[1].as_ref().unwrap_err().code(), Code::OutOfRange);
}

#[tokio::test]
async fn a_call_without_a_head_tells_why_when_it_is_read() {
    let channel = channel(|peer| peer.head(503, &[]));
    let mut stream = channel.method(METHOD, NOTES).server_streaming(note("", 0));
    for _ in 0..2 {
        assert!(soon(stream.metadata()).await.is_none());
    }
    assert_eq!(soon(stream.message()).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(soon(stream.message()).await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_of_requests_is_one_body() {
    let channel = channel(|peer| {
        let mut sum = 0;
        while let Some(note) = peer.note() {
            sum += note.number;
        }
        peer.ok();
        peer.send(&note("", sum));
        peer.done();
    });
    let method = channel.method(METHOD, NOTES);
    for count in [0, 1, 5000] {
        let requests = stream::iter((0..count).map(|number| note("a text", number)));
        let reply = soon(method.client_streaming(requests)).await.unwrap();
        assert_eq!(reply.message().number, (0..count).sum::<u32>());
    }
}

#[tokio::test]
async fn both_ways_at_once_each_waiting_for_the_other() {
    let channel = channel(|peer| {
        peer.ok();
        while let Some(got) = peer.note() {
            peer.send(&note("pong", got.number));
        }
        peer.done();
    });
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let requests =
        stream::unfold(
            receiver,
            |mut receiver| async move { Some((receiver.recv().await?, receiver)) },
        );
    let mut replies = channel.method(METHOD, NOTES).bidi(requests);
    for number in 0..50 {
        soon(sender.send(note("ping", number))).await.unwrap();
        assert_eq!(soon(replies.message()).await.unwrap(), Some(note("pong", number)));
    }
    drop(sender);
    assert_eq!(soon(replies.message()).await.unwrap(), None);
}

#[tokio::test]
async fn a_server_that_has_said_all_is_not_sent_the_rest() {
    fn refuses(peer: &mut Peer) {
        peer.note();
        peer.ok();
        peer.end(&[("grpc-status", "8"), ("grpc-message", "enough")]);
        assert!(peer.hears_the_end());
    }
    fn refuses_at_once(peer: &mut Peer) {
        peer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ngrpc-status: 8\r\n\
              grpc-message: enough\r\ncontent-length: 0\r\n\r\n",
        );
        assert!(peer.hears_the_end());
    }
    for serve in [refuses, refuses_at_once] {
        let method = channel(serve).method(METHOD, NOTES);
        let endless = || stream::iter([note("first", 0)]).chain(stream::pending());
        let status = soon(method.client_streaming(endless())).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "enough"));
        let status = soon(method.bidi(endless()).message()).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "enough"));
    }
}

#[tokio::test]
async fn dropping_a_call_cancels_it() {
    let (heard, hears) = mpsc::channel();
    let heard = std::sync::Mutex::new(heard);
    let channel = channel(move |peer| {
        peer.ok();
        peer.send(&note("", 1));
        heard.lock().unwrap().send(peer.hears_the_end()).unwrap();
    });
    let method = channel.method(METHOD, NOTES);
    let mut stream = method.server_streaming(note("", 0));
    assert!(soon(stream.message()).await.unwrap().is_some());
    drop(stream);
    let patience = Duration::from_secs(20);
    assert!(hears.recv_timeout(patience).unwrap());
    let short = Duration::from_millis(100);
    assert!(tokio::time::timeout(short, method.unary(note("", 0))).await.is_err());
    assert!(hears.recv_timeout(patience).unwrap());
}

#[tokio::test]
async fn requests_are_made_no_faster_than_they_are_taken() {
    let (go, gone) = mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    let channel = channel(move |peer| {
        peer.ok();
        peer.send(&note("here", 0));
        gone.lock().unwrap().recv().unwrap();
        let mut count = 0;
        while peer.note().is_some() {
            count += 1;
        }
        peer.send(&note("", count));
        peer.done();
    });
    const ALL: usize = 2000;
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let text = "x".repeat(64 * 1024);
    let requests = stream::iter(0..ALL).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        note(&text, 0)
    });
    let mut replies = channel.method(METHOD, NOTES).bidi(requests);
    assert_eq!(soon(replies.message()).await.unwrap(), Some(note("here", 0)));
    let stalled = tokio::time::timeout(Duration::from_millis(300), replies.message()).await;
    assert!(stalled.is_err());
    let before = made.load(Ordering::Relaxed);
    // 128 MiB in all; sockets hold a few.
    assert!(before < ALL / 4, "{before} were made for a peer that reads nothing");
    go.send(()).unwrap();
    let count = u32::try_from(ALL).unwrap();
    assert_eq!(soon(replies.message()).await.unwrap(), Some(note("", count)));
    assert_eq!(soon(replies.message()).await.unwrap(), None);
}

#[tokio::test]
async fn a_message_that_cannot_be_sent_fails_the_call_with_its_reason() {
    let channel = channel(|peer| {
        assert_eq!(peer.note(), Some(note("short", 0)));
        assert!(peer.hears_the_end());
    });
    let method = channel.method(METHOD, NOTES).max_send(100);
    let requests = stream::iter([note("short", 0), note(&"long".repeat(100), 0)]);
    let status = soon(method.client_streaming(requests)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:#}");
}
