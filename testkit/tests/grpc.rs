//! The gRPC service, seen as frames of the crate `h2` and messages put together by hand.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use common::two::*;
use common::{PATIENCE, origin};
use h2::Reason;
use http::Request;
use mimus_testkit::{grpc_bad, grpc_descriptors};
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

const ECHO: &str = "/mimus.test.v1.Echo";

/// A message in its frame; `fields` are its bytes as protobuf has them.
fn framed(fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend((fields.len() as u32).to_be_bytes());
    bytes.extend(fields);
    bytes
}

/// A length-delimited field (wire type 2) of fewer than 128 bytes.
fn text(number: u8, value: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, value.len() as u8], value].concat()
}

fn varint(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn call(path: &str) -> Request<()> {
    let mut request = request("POST", path);
    let headers = request.headers_mut();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    headers.insert("te", "trailers".parse().unwrap());
    request
}

fn with(path: &str, fields: &[(&'static str, &str)]) -> Request<()> {
    let mut request = call(path);
    for (name, value) in fields {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    request
}

/// The messages of a body, each without its five bytes.
fn messages(body: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (body, Vec::new());
    while let Some((head, tail)) = rest.split_first_chunk::<5>() {
        let len = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut message = tail[..len].to_vec();
        if head[0] == 1 {
            message.clear();
            flate2::read::GzDecoder::new(&tail[..len]).read_to_end(&mut message).unwrap();
        }
        found.push(message);
        rest = &tail[len..];
    }
    assert!(rest.is_empty());
    found
}

fn contains(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

#[test]
fn the_four_kinds_of_call_answer_as_they_should() {
    let origin = origin();
    let asked = [text(1, b"wren"), varint(3, 3)].concat();
    let twice = [framed(&asked), framed(&asked)].concat();
    block_on(async {
        let mut send = connect(&origin).await;
        for (method, body, count) in [
            ("Unary", framed(&asked), 1),
            ("ClientStream", twice.clone(), 1),
            ("ServerStream", framed(&asked), 3),
            ("BidiStream", twice, 6),
        ] {
            let got = ask(&mut send, call(&format!("{ECHO}/{method}")), &body).await.unwrap();
            assert_eq!(got.trailer("grpc-status"), Some("0"), "{method}");
            assert_eq!(got.header("content-type"), Some("application/grpc"));
            let replies = messages(&got.body);
            assert_eq!(replies.len(), count, "{method}");
            assert!(replies.iter().all(|reply| contains(reply, b"wren")));
        }
    });
}

#[test]
fn failures_have_status_message_and_details_behind_messages_or_alone() {
    let origin = origin();
    let fail = [varint(1, 5), text(2, "no süch bird".as_bytes()), varint(4, 1)].concat();
    block_on(async {
        let mut send = connect(&origin).await;
        let body = framed(&text(5, &fail));
        let got = ask(&mut send, call(&format!("{ECHO}/Unary")), &body).await.unwrap();
        assert_eq!((got.header("grpc-status"), got.body.len()), (Some("5"), 0));
        assert_eq!(got.header("grpc-message"), Some("no s%C3%BCch bird"));
        assert!(got.header("grpc-status-details-bin").is_some() && got.trailers.is_empty());

        let later = [fail, varint(3, 2)].concat();
        let body = framed(&[varint(3, 9), text(5, &later)].concat());
        let got = ask(&mut send, call(&format!("{ECHO}/ServerStream")), &body).await.unwrap();
        assert_eq!((messages(&got.body).len(), got.trailer("grpc-status")), (2, Some("5")));

        let got = ask(&mut send, call(&format!("{ECHO}/Sing")), &framed(&[])).await.unwrap();
        assert_eq!(got.header("grpc-status"), Some("12"));
    });
}

#[test]
fn deadlines_metadata_and_compression_are_honoured() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        let slow = framed(&[varint(4, 127), varint(3, 127)].concat());
        let begin = Instant::now();
        let request = with(&format!("{ECHO}/ServerStream"), &[("grpc-timeout", "300m")]);
        let got = ask(&mut send, request, &slow).await.unwrap();
        assert_eq!(got.trailer("grpc-status"), Some("4"));
        assert!(begin.elapsed() >= Duration::from_millis(300));

        let fields = [
            ("echo-a", "b"),
            ("echo-trailer-c", "d"),
            ("echo-compress", "gzip"),
            ("grpc-accept-encoding", "identity, gzip"),
            ("grpc-encoding", "gzip"),
        ];
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&text(1, b"jay")).unwrap();
        let mut body = framed(&packed.finish().unwrap());
        body[0] = 1;
        let got = ask(&mut send, with(&format!("{ECHO}/Unary"), &fields), &body).await.unwrap();
        assert_eq!((got.header("echo-a"), got.trailer("echo-trailer-c")), (Some("b"), Some("d")));
        assert_eq!((got.header("grpc-encoding"), got.body[0]), (Some("gzip"), 1));
        assert!(contains(&messages(&got.body)[0], b"jay"));
    });
}

#[test]
fn a_call_that_is_given_up_ends_at_once() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        let (_response, mut out) =
            send.send_request(call("/mimus.test.v1.Bad/Silent"), false).unwrap();
        out.send_data(framed(&[]).into(), true).unwrap();
        get(&mut send, "/get").await.unwrap();
        out.send_reset(Reason::CANCEL);
        get(&mut send, "/get").await.unwrap();
    });
    assert_eq!(origin.connections()[0].h2.as_ref().unwrap().resets, [(1, 8)]);
}

#[test]
fn reflection_gives_the_files_of_the_descriptor_set_one_by_one() {
    let origin = origin();
    let set = FileDescriptorSet::decode(&grpc_descriptors()[..]).unwrap();
    block_on(async {
        let mut send = connect(&origin).await;
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let questions = [
                framed(&text(7, b"")),
                framed(&text(4, b"mimus.test.v1.Echo")),
                framed(&text(3, b"mimus/test/v1/types.proto")),
                framed(&text(4, b"mimus.test.v1.Nothing")),
            ]
            .concat();
            let got = ask(&mut send, call(&path), &questions).await.unwrap();
            let answers = messages(&got.body);
            assert_eq!((answers.len(), got.trailer("grpc-status")), (4, Some("0")));
            assert!(contains(&answers[0], b"mimus.test.v1.Echo"));
            let has =
                |answer: &[u8], file: &FileDescriptorProto| contains(answer, &file.encode_to_vec());
            assert!(has(&answers[1], &set.file[1]) && !has(&answers[1], &set.file[0]));
            assert!(has(&answers[2], &set.file[0]));
            assert!(contains(&answers[3], b"no such file or symbol"));
        }
    });
}

#[test]
fn calls_go_wrong_each_in_its_way() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        for row in grpc_bad() {
            let body = framed(&[]);
            let asked = ask(&mut send, call(row.path), &body);
            let never = row.path.ends_with("Silent") || row.path.ends_with("Stalled");
            // On a slow machine the others may take their time; these do not answer there either.
            let limit = if never { Duration::from_millis(500) } else { PATIENCE };
            let got = tokio::time::timeout(limit, asked).await;
            assert_eq!(got.is_err(), never, "{}", row.path);
            match got {
                Err(_) => {}
                Ok(Err(error)) => assert!(reason(&error).is_some() && row.what.contains("RST")),
                Ok(Ok(got)) => {
                    let said = got.trailer("grpc-status").or(got.header("grpc-status"));
                    let right = said.and_then(|code| code.parse::<i32>().ok());
                    // No row says plainly what a right client makes of it, but two.
                    let plain = right.is_some_and(|code| row.codes.contains(&code));
                    assert_eq!(plain, row.path.contains("Broken"), "{}: {said:?}", row.path);
                }
            }
        }
    });
}
