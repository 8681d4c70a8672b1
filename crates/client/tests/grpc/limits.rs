//! What a call may take: time and room.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use mimus::grpc::{Code, DEFAULT_MAX_MESSAGE};

use crate::rig::{NOTES, Peer, channel, note, soon};

const METHOD: &str = "test.Notes/Echo";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

#[tokio::test]
async fn a_deadline_holds_whatever_the_server_does() {
    let silent = channel(|peer| {
        assert!(peer.hears_the_end());
    });
    let stalls = channel(|peer| {
        peer.ok();
        peer.send(&note("", 1));
        assert!(peer.hears_the_end());
    });
    for channel in [silent, stalls] {
        let (started, limit) = (Instant::now(), Duration::from_millis(200));
        let method = channel.method(METHOD, NOTES).timeout(limit);
        let status = soon(method.unary(note("", 0))).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:#}");
        assert!((limit..limit * 20).contains(&started.elapsed()), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_deadline_holds_while_a_stream_goes_on() {
    let channel = channel(|peer| {
        peer.ok();
        while !peer.closed() {
            peer.send(&note("again", 0));
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let method = channel.method(METHOD, NOTES).timeout(Duration::from_millis(300));
    let mut stream = method.server_streaming(note("", 0));
    let mut count = 0;
    let status = loop {
        match soon(stream.message()).await {
            Ok(Some(_)) => count += 1,
            Ok(None) => panic!("it has no end"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(count > 1, "{count}");
}

#[tokio::test]
async fn without_a_deadline_a_slow_answer_is_waited_for() {
    let channel = channel(|peer| {
        assert_eq!(peer.field("grpc-timeout"), None);
        std::thread::sleep(Duration::from_millis(300));
        peer.ok();
        std::thread::sleep(Duration::from_millis(300));
        peer.send(&note("slow", 1));
        peer.done();
    });
    let reply = soon(channel.method(METHOD, NOTES).unary(note("", 0))).await.unwrap();
    assert_eq!(reply.message().text, "slow");
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_unread() {
    fn announces(peer: &mut Peer) {
        let length = u32::try_from(DEFAULT_MAX_MESSAGE + 1).unwrap().to_be_bytes();
        peer.ok();
        peer.chunk(&[&[0][..], &length].concat());
        assert!(peer.hears_the_end());
    }
    let status = soon(channel(announces).method(METHOD, NOTES).unary(note("", 0))).await;
    assert_eq!(status.unwrap_err().code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn the_limit_can_be_set_and_is_exact() {
    let echo = |peer: &mut Peer| {
        let (_, bytes) = peer.receive().unwrap();
        peer.ok();
        peer.message(0, &bytes);
        peer.done();
    };
    let sent = note(&"x".repeat(1000), 0);
    let length = prost::Message::encoded_len(&sent);
    let method = channel(echo).method(METHOD, NOTES);
    let fits = method.clone().max_receive(length).max_send(length);
    assert_eq!(soon(fits.unary(sent.clone())).await.unwrap().into_message(), sent);
    for method in [method.clone().max_receive(length - 1), method.max_send(length - 1)] {
        let status = soon(method.unary(sent.clone())).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
    }
}

#[tokio::test]
async fn a_compressed_message_unfolds_up_to_the_limit_only() {
    let serve = |length: usize| {
        let bomb = gzip(&vec![0; length]);
        assert!(bomb.len() < 200_000);
        channel(move |peer| {
            peer.head(200, &[("content-type", "application/grpc"), ("grpc-encoding", "gzip")]);
            peer.message(1, &bomb);
            peer.done();
        })
    };
    let method = serve(100 << 20).method(METHOD, NOTES);
    let status = soon(method.unary(note("", 0))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:#}");
    // Within the limit it is only no note.
    let method = serve(DEFAULT_MAX_MESSAGE).method(METHOD, mimus::grpc::Raw);
    let reply = soon(method.unary("".into())).await.unwrap();
    assert_eq!(reply.message().len(), DEFAULT_MAX_MESSAGE);
}

#[tokio::test]
async fn compression_that_nothing_tells_of_is_an_error() {
    for encoding in ["identity", "foo"] {
        let channel = channel(move |peer| {
            peer.head(200, &[("content-type", "application/grpc"), ("grpc-encoding", encoding)]);
            peer.message(1, &gzip(b""));
            peer.done();
        });
        let status = soon(channel.method(METHOD, NOTES).unary(note("", 0))).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{encoding}");
    }
    // What is not flagged is read whatever the coding is called; what is broken is not.
    for (flag, code) in [(0, None), (1, Some(Code::Internal))] {
        let channel = channel(move |peer| {
            let encoding = if flag == 0 { "foo" } else { "gzip" };
            peer.head(200, &[("content-type", "application/grpc"), ("grpc-encoding", encoding)]);
            peer.message(flag, b"");
            peer.message(flag, b"\x1f\x8bbroken");
            peer.end(&[("grpc-status", "0")]);
        });
        let mut stream = channel.method(METHOD, mimus::grpc::Raw).server_streaming("".into());
        let mut end = None;
        while end.is_none() {
            match soon(stream.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => end = Some(None),
                Err(status) => end = Some(Some(status.code())),
            }
        }
        assert_eq!(end, Some(code));
    }
}
