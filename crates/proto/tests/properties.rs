//! What holds for any input.

mod rig;

use bytes::Bytes;
use http::{Method, StatusCode};
use mimus_proto::h1::{Client, Limits, Server};
use mimus_proto::{BodyLength, Fields};
use proptest::collection::vec;
use proptest::prelude::*;
use rig::{Pair, Seen, asked, asked_with, body, feed, fields, pairs};

/// Lines that lead a parser into every corner, valid and not.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-zA-Z-]{1,9}: ?[ -~\t]{0,20}\r\n",
        2 => Just("Content-Length: 5\r\n".to_owned()),
        2 => Just("Transfer-Encoding: chunked\r\n".to_owned()),
        1 => Just("Connection: close\r\n".to_owned()),
        1 => Just("Upgrade: x\r\n".to_owned()),
        1 => prop::sample::select(vec![
            "A: b\n", " fold\r\n", "A : b\r\n", "A: \0\r\n", "A: b\rc\r\n", "\r\r\n", "Content-Length: 5, 5\r\n",
        ]).prop_map(str::to_owned),
    ]
}

fn start_line() -> impl Strategy<Value = String> {
    let known = vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n",
        "HTTP/1.1 404 \r\n",
        "HTTP/1.1 200\n",
        "HTTP/2 200\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\n",
        "\r\nHTTP/1.1 200 OK\r\n",
    ];
    prop_oneof![4 => Just("HTTP/1.1 200 OK\r\n".to_owned()), 4 => prop::sample::select(known).prop_map(str::to_owned)]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..30),
        Just(b"12345".to_vec()),
        Just(b"5\r\n12345\r\n0\r\n\r\n".to_vec()),
        Just(b"5;x=\"y\"\r\n12345\r\n1\r\n6\r\n0\r\nT: u\r\n\r\nmore".to_vec()),
        "[0-9a-f]{1,2}[;a]{0,2}\r\n[a-z]{0,20}(\r\n)?0?(\r\n)?(\r\n)?".prop_map(String::into_bytes),
    ]
}

prop_compose! {
    fn message()(start in start_line(), lines in vec(line(), 0..6), content in content()) -> Vec<u8> {
        [start.as_bytes(), lines.concat().as_bytes(), b"\r\n", &content[..]].concat()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_response_means_the_same_however_it_is_split(
        input in message(),
        cuts in vec(0_usize..40, 0..20),
        method in prop::sample::select(vec![Method::GET, Method::HEAD, Method::CONNECT]),
    ) {
        let offer = fields([("Host", "h"), ("Upgrade", "x")]);
        let whole = feed(&mut asked_with(&method, &offer), &input, &[]);
        let split = feed(&mut asked_with(&method, &offer), &input, &cuts);
        let dripped = feed(&mut asked_with(&method, &offer), &input, &vec![1; input.len()]);
        prop_assert_eq!(&whole, &split);
        prop_assert_eq!(&whole, &dripped);
    }

    #[test]
    fn a_request_means_the_same_however_it_is_split(
        lines in vec(line(), 0..6), content in content(), cuts in vec(0_usize..40, 0..20),
    ) {
        let head = format!("POST /p HTTP/1.1\r\nHost: h\r\n{}\r\n", lines.concat());
        let input = [head.as_bytes(), &content[..]].concat();
        let whole = feed(&mut Server::new(Limits::default()), &input, &[]);
        let split = feed(&mut Server::new(Limits::default()), &input, &cuts);
        prop_assert_eq!(whole, split);
    }

    #[test]
    fn small_limits_are_met_the_same_however_it_is_split(
        input in message(), cuts in vec(0_usize..40, 0..20), bytes in 1_u32..120, line in 1_usize..12,
    ) {
        let client = || {
            let mut limits = Limits::default();
            (limits.head_bytes, limits.chunk_line, limits.chunk_extensions) = (bytes, line, line);
            let mut client = Client::new(limits);
            client.send_head(&Method::GET, "/", &Fields::new(), BodyLength::None).expect("idle");
            rig::written(&mut client, 1);
            client
        };
        prop_assert_eq!(feed(&mut client(), &input, &[]), feed(&mut client(), &input, &cuts));
    }

    #[test]
    fn any_bytes_are_survived(input in vec(any::<u8>(), 0..200)) {
        feed(&mut asked(&Method::GET), &input, &[]);
        feed(&mut Server::new(Limits::default()), &input, &[]);
    }

    #[test]
    fn what_is_sent_is_what_arrives(
        names in vec(("[!-~&&[^\\x22(),/:;<=>?@\\[\\]{}\\\\]]{1,12}", "[!-~]([ -~\t]{0,30}[!-~])?"), 0..20),
        target in "/[!-~]{0,20}",
        pieces in vec(vec(any::<u8>(), 0..6000), 0..6),
        chunked: bool,
        echo: bool,
    ) {
        let mut sent = fields([("Host", "h")]);
        for (name, value) in &names {
            let control = ["host", "content-length", "transfer-encoding", "expect", "connection", "upgrade"];
            if !control.contains(&name.to_ascii_lowercase().as_str()) {
                sent.append(name, value).expect("made valid");
            }
        }
        let total = pieces.concat();
        let length = if chunked { BodyLength::Chunked } else { BodyLength::Known(total.len() as u64) };
        let mut pair = Pair::connect();
        pair.client.send_head(&Method::POST, &target, &sent, length).expect("idle");
        for piece in &pieces {
            pair.client.send_data(Bytes::from(piece.clone())).expect("in length");
        }
        pair.client.send_end(None).expect("whole");
        pair.settle();
        match &pair.at_server[0] {
            Seen::Request(method, seen, _, arrived) => {
                prop_assert_eq!((method, seen), (&Method::POST, &target));
                prop_assert_eq!(&arrived[..sent.len()], &pairs(&sent)[..]);
                prop_assert_eq!(arrived.len(), sent.len() + 1);
            }
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(body(&pair.at_server), &total[..]);

        let length = if echo { BodyLength::Chunked } else { BodyLength::Known(total.len() as u64) };
        pair.server.send_head(StatusCode::OK, &sent, length).expect("one answer");
        pair.server.send_data(Bytes::from(total.clone())).expect("in length");
        pair.server.send_end(None).expect("whole");
        pair.settle();
        prop_assert_eq!(body(&pair.at_client), total);
        prop_assert_eq!(pair.client.reuse(), mimus_proto::h1::Reuse::Yes);
    }
}
