//! Misbehaviour is what the table says, seen with nothing but a socket.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use common::*;
use mimus_testkit::{Origin, Port, bad_routes};

/// The bytes after the head, and how they ended.
fn after_head(origin: &Origin, path: &str) -> (String, Vec<u8>, std::io::Result<()>) {
    let (bytes, end) = talk(origin, get_close(path));
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    (String::from_utf8_lossy(&bytes[..at]).into_owned(), bytes[at..].to_vec(), end)
}

/// Asks for a row, reads some of what comes, and leaves.
fn meet(origin: &Origin, path: &str) {
    let mut stream = connect(origin, Port::Http);
    stream.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    stream.write_all(get_close(path).as_bytes()).unwrap();
    let mut got = 0;
    let mut piece = vec![0; 64 * 1024];
    while got < 2 << 20 {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(len) => got += len,
        }
    }
    drop(stream);
    assert_eq!(fetch(origin, "/get").status, 200, "after {path}");
}

#[test]
fn every_row_does_something_and_leaves_the_origin_well() {
    let origin = origin();
    let paths: Vec<&str> = bad_routes().map(|route| route.pattern).collect();
    assert!(paths.len() > 100, "{}", paths.len());
    std::thread::scope(|scope| {
        for share in paths.chunks(paths.len().div_ceil(8)) {
            let origin = &origin;
            scope.spawn(move || share.iter().for_each(|path| meet(origin, path)));
        }
    });
    // `upload-stall` does not look whether its client is still there: that is what it is for.
    eventually("all but one are gone", || origin.open_connections() <= 1);
    for path in paths {
        let asked = origin.requests().iter().filter(|seen| seen.target == path).count();
        assert_eq!(asked, 1, "{path}");
    }
}

#[test]
fn truncations_end_in_order_and_short() {
    let origin = origin();
    for (path, left) in [
        ("/bad/truncate", 50),
        ("/bad/truncate-empty", 0),
        ("/bad/truncate-chunked", 10),
        ("/bad/truncate-in-chunk", 8),
        ("/bad/truncate-in-size", 11),
        ("/bad/truncate-last-crlf", 13),
        ("/bad/huge-length", 5),
    ] {
        let (_, body, end) = after_head(&origin, path);
        assert_eq!(body.len(), left, "{path}");
        assert!(end.is_ok(), "{path}: {end:?}");
    }
    assert_eq!(talk(&origin, get("/bad/close-before-head")).0, b"");
    assert!(!talk(&origin, get("/bad/close-in-head")).0.ends_with(b"\r\n\r\n"));
}

#[test]
fn resets_are_resets_after_exactly_what_was_sent() {
    let origin = origin();
    for (path, sent) in [
        ("/bad/reset-before-head", 0),
        ("/bad/reset-in-head", 41),
        ("/bad/reset-after-head", 40),
        ("/bad/reset-mid-body", 90),
        ("/bad/reset-in-chunk", 55),
    ] {
        let mut stream = connect(&origin, Port::Http);
        // Long enough for this test to have read what came before the RST.
        stream.write_all(get(&format!("{path}?ms=200")).as_bytes()).unwrap();
        let (bytes, end) = read_all(&mut stream);
        assert_eq!(end.expect_err(path).kind(), ErrorKind::ConnectionReset, "{path}");
        assert_eq!(bytes.len(), sent, "{path}: {}", bytes.escape_ascii());
    }
}

#[test]
fn stalls_say_so_much_and_no_more_and_see_the_client_leave() {
    let origin = origin();
    for (path, sent) in [
        ("/bad/stall-before-head", 0),
        ("/bad/stall-in-head", 42),
        ("/bad/stall-after-head", 40),
        ("/bad/stall-mid-body", 90),
        ("/bad/stall-in-chunk", 55),
        ("/bad/stall-before-last-crlf", 60),
    ] {
        let mut stream = connect(&origin, Port::Http);
        stream.write_all(get(path).as_bytes()).unwrap();
        stream.read_exact(&mut vec![0; sent]).expect(path);
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let silence = stream.read(&mut [0]).expect_err(path);
        assert_eq!(silence.kind(), ErrorKind::WouldBlock, "{path}");
    }
    eventually("stalls end with their clients", || origin.open_connections() == 0);
}

#[test]
fn drips_take_their_time() {
    let origin = origin();
    for path in ["/bad/drip-head?ms=4", "/bad/drip-body?ms=10&n=20", "/bad/chunk-split?ms=4"] {
        let begin = Instant::now();
        let answer = fetch(&origin, path);
        assert_eq!(answer.status, 200);
        assert!(begin.elapsed() >= Duration::from_millis(180), "{path}: {:?}", begin.elapsed());
    }
    assert_eq!(fetch(&origin, "/bad/drip-head").text(), "ok");
}

#[test]
fn broken_heads_are_broken_as_told() {
    let origin = origin();
    let raw = |path: &str| String::from_utf8_lossy(&talk(&origin, get_close(path)).0).into_owned();
    assert!(!raw("/bad/bare-lf").contains('\r'));
    assert!(raw("/bad/bare-cr").contains("b\rc: d\r\n"));
    assert!(raw("/bad/obs-fold").contains("x-a: b\r\n  c\r\n"));
    assert!(raw("/bad/space-before-colon").contains("content-length : 2\r\n"));
    assert!(raw("/bad/nul-in-value").contains("x-a: b\0c\r\n"));
    assert!(!raw("/bad/garbage-head").starts_with("HTTP/"));
}

#[test]
fn large_heads_have_the_size_told() {
    let origin = origin();
    let (head, body, _) = after_head(&origin, "/bad/many-headers");
    assert_eq!(head.lines().filter(|line| line.starts_with("x-")).count(), 10_000);
    assert_eq!(body, b"ok");
    let (head, body, _) = after_head(&origin, "/bad/big-header");
    assert_eq!(
        head.len(),
        (1 << 20) + "HTTP/1.1 200 OK\r\nx-long: \r\ncontent-length: 2\r\n\r\n".len()
    );
    assert_eq!(body, b"ok");
}

#[test]
fn endless_things_go_on_and_keep_their_pieces_whole() {
    let origin = origin();
    for (path, begin, piece) in [
        ("/bad/endless-head", "HTTP/1.1 200 OK\r\n", "x-more: and more\r\n"),
        ("/bad/endless-1xx", "", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
        ("/bad/endless-100", "", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("/bad/huge-header", "HTTP/1.1 200 OK\r\nx-long: ", "a"),
    ] {
        let mut stream = connect(&origin, Port::Http);
        stream.write_all(get(path).as_bytes()).unwrap();
        let mut got = vec![0; 8 << 20];
        stream.read_exact(&mut got).expect(path);
        let rest = got.strip_prefix(begin.as_bytes()).expect(path);
        let mut pieces = rest.chunks_exact(piece.len());
        assert!(pieces.all(|one| one == piece.as_bytes()), "{path}");
    }
    eventually("they end with their clients", || origin.open_connections() == 0);
}

#[test]
fn framing_is_wrong_as_told() {
    let origin = origin();
    let (head, body, _) = after_head(&origin, "/bad/conflicting-lengths");
    assert!(head.contains("content-length: 5\r\ncontent-length: 6\r\n"));
    assert_eq!(body, b"hello!");
    let (head, body, _) = after_head(&origin, "/bad/length-and-chunked");
    assert!(head.contains("content-length: 3\r\ntransfer-encoding: chunked\r\n"));
    assert_eq!(body, b"5\r\nhello\r\n0\r\n\r\n");
    let (head, body, _) = after_head(&origin, "/bad/extra-bytes");
    assert!(head.contains("content-length: 5\r\n") && body.len() > 5);
    let (_, body, _) = after_head(&origin, "/bad/second-response");
    assert!(body.starts_with(b"helloHTTP/1.1 200 OK\r\n"));
    for (path, size) in [
        ("/bad/chunk-plus", "+5"),
        ("/bad/chunk-negative", "-5"),
        ("/bad/chunk-0x", "0x5"),
        ("/bad/chunk-overflow", "10000000000000005"),
        ("/bad/chunk-max", "ffffffffffffffff"),
    ] {
        let (_, body, _) = after_head(&origin, path);
        assert_eq!(body, format!("{size}\r\nhello\r\n0\r\n\r\n").as_bytes());
    }
    let (_, body, _) = after_head(&origin, "/bad/chunk-long-size");
    assert!(body.len() > 1 << 20 && body[..1 << 20].iter().all(|&byte| byte == b'0'));
}

#[test]
fn a_strange_but_right_chunked_body_is_read_by_its_framing() {
    let origin = origin();
    assert_eq!(fetch(&origin, "/bad/chunk-one-byte").body, vec![b'x'; 1000]);
    assert_eq!(fetch(&origin, "/bad/chunk-leading-zeros").text(), "hello");
    let (_, body, _) = after_head(&origin, "/bad/chunk-split?ms=0");
    assert!(body.starts_with(b"5\r\nhello\r\nA;x=\"y\"\r\n"));
}

#[test]
fn a_connection_closes_unannounced_after_so_many_requests() {
    let origin = origin();
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(get("/bad/close-after?n=2").as_bytes()).unwrap();
    for _ in 0..2 {
        let answer = read_answer(&mut stream);
        assert_eq!((answer.status, answer.header("connection")), (200, None));
        stream.write_all(get("/get").as_bytes()).unwrap();
    }
    assert_eq!(read_answer(&mut stream).json()["request_number"], 3);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);

    let mut stream = connect(&origin, Port::Http);
    stream.write_all(get("/bad/close-after?ms=80").as_bytes()).unwrap();
    let begin = Instant::now();
    assert_eq!(read_answer(&mut stream).status, 200);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert!(begin.elapsed() >= Duration::from_millis(75));
}

#[test]
fn the_next_request_is_read_and_not_answered() {
    let origin = origin();
    for (path, reset) in [("/bad/close-on-next", false), ("/bad/close-on-next?reset&body", true)] {
        origin.reset();
        let mut stream = connect(&origin, Port::Http);
        stream.write_all(get(path).as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream).text(), "once\n");
        let post = "POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        stream.write_all(post.as_bytes()).unwrap();
        let (bytes, end) = read_all(&mut stream);
        assert!(bytes.is_empty());
        assert_eq!(end.is_err(), reset, "{end:?}");
        let seen = origin.requests();
        assert_eq!((seen.len(), seen[1].method.as_str()), (2, "POST"));
        assert_eq!(seen[1].body_complete, reset);
    }
}

#[test]
fn what_is_announced_is_not_what_happens() {
    let origin = origin();
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(get("/bad/close-kept").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).header("connection"), Some("close"));
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).json()["request_number"], 2);
    stream.write_all(get("/bad/keep-closed").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).header("keep-alive"), Some("timeout=60"));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let (bytes, _) = talk(&origin, get("/bad/unasked-408"));
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\r\n\r\nokHTTP/1.1 408 "), "{text}");
}

#[test]
fn an_early_413_comes_before_the_upload_ends() {
    let origin = origin();
    let head =
        |path: &str| format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(head("/bad/early-413").as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!((answer.status, answer.header("connection")), (413, None));
    stream.write_all(&[b'x'; 1000]).unwrap();
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).json()["request_number"], 2);

    let mut stream = connect(&origin, Port::Http);
    stream.write_all(head("/bad/early-413-drop?ms=500").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 413);
    stream.write_all(&[b'x'; 500]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_expectation_is_ignored_or_refused() {
    let origin = origin();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
    };
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(head("/bad/expect-ignored").as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"hi").unwrap();
    assert_eq!(read_answer(&mut stream).text(), "2 bytes\n");
    assert_eq!(send(&origin, head("/bad/expect-refused")).status, 417);
}

/// How many bytes a reader yields, all zero.
fn zeros(mut reader: impl Read) -> u64 {
    let mut piece = vec![0; 1 << 20];
    let mut count = 0;
    loop {
        match reader.read(&mut piece).expect("a right stream") {
            0 => return count,
            len => {
                assert!(piece[..len].iter().all(|&byte| byte == 0));
                count += len as u64;
            }
        }
    }
}

#[test]
fn bombs_are_right_streams_of_zeros_and_small() {
    let origin = origin();
    const MIB: u64 = 1 << 20;
    let gzip = fetch(&origin, "/bad/bomb-gzip?mib=9");
    assert_eq!(zeros(flate2::read::GzDecoder::new(&gzip.body[..])), 9 * MIB);
    assert!(gzip.body.len() < 12_000, "{}", gzip.body.len());
    let twice = fetch(&origin, "/bad/bomb-gzip-gzip?mib=9");
    let inner = flate2::read::GzDecoder::new(&twice.body[..]);
    assert_eq!(zeros(flate2::read::GzDecoder::new(inner)), 9 * MIB);
    assert!(twice.body.len() < 2_000, "{}", twice.body.len());
    let brotli = fetch(&origin, "/bad/bomb-brotli?mib=9");
    assert_eq!(zeros(brotli::Decompressor::new(&brotli.body[..], 4096)), 9 * MIB);
    assert!(brotli.body.len() < 1_000, "{}", brotli.body.len());
    let zstd = fetch(&origin, "/bad/bomb-zstd?mib=9");
    assert_eq!(zeros(zstd::stream::read::Decoder::new(&zstd.body[..]).unwrap()), 9 * MIB);
    assert!(zstd.body.len() < 400, "{}", zstd.body.len());
}

#[test]
fn a_whole_bomb_arrives_as_a_body_of_some_mebibytes() {
    let origin = origin();
    let gzip = fetch(&origin, "/bad/bomb-gzip");
    assert!((9 << 20..12 << 20).contains(&gzip.body.len()), "{}", gzip.body.len());
    // ISIZE counts modulo 2^32: 10 GiB leave 2 GiB.
    assert_eq!(gzip.body[gzip.body.len() - 4..], (2u32 << 30).to_le_bytes());
    let zstd = fetch(&origin, "/bad/bomb-zstd");
    assert_eq!(zstd.body.len(), 6 + 4 * 81_920);
}

#[test]
fn broken_codings_do_not_decode() {
    let origin = origin();
    let decode = |path: &str| {
        let answer = fetch(&origin, path);
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut out).map(|_| out)
    };
    for path in ["/bad/gzip-garbage", "/bad/gzip-truncated", "/bad/gzip-checksum"] {
        assert!(decode(path).is_err(), "{path}");
    }
    assert!(decode("/bad/gzip-trailing").is_ok());
    let chain = fetch(&origin, "/bad/coding-chain?n=3");
    assert_eq!(chain.header("content-encoding"), Some("gzip, gzip, gzip"));
}

#[test]
fn ports_misbehave_before_http_begins() {
    let origin = origin();
    let mut stream = connect(&origin, Port::SpeaksFirst);
    let early = read_answer(&mut stream);
    assert_eq!(early.text(), "too early");
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).json()["request_number"], 1);

    let refused = origin.addr(Port::Refused).unwrap();
    let error = std::net::TcpStream::connect(refused).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let full = origin.addr(Port::NoAccept).unwrap();
    let error = std::net::TcpStream::connect_timeout(&full, Duration::from_millis(300));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);

    let reset = origin.addr(Port::ResetOnAccept).unwrap();
    let end = std::net::TcpStream::connect(reset).and_then(|mut s| s.read(&mut [0]));
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(connect(&origin, Port::CloseOnAccept).read(&mut [0]).unwrap(), 0);

    let begin = Instant::now();
    let mut slow = connect(&origin, Port::SlowAccept);
    slow.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut slow).status, 200);
    assert!(begin.elapsed() >= Duration::from_millis(490));
    drop((stream, slow));

    let mut deaf = connect(&origin, Port::NeverRead);
    deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let piece = vec![0; 1 << 20];
    let stuck = (0..64).find_map(|_| deaf.write_all(&piece).err());
    assert_eq!(stuck.expect("buffers end").kind(), ErrorKind::WouldBlock);
    drop(deaf);
    // Its FIN waits behind what was not read; the next client's does not.
    let mut brief = connect(&origin, Port::NeverRead);
    brief.write_all(b"GET").unwrap();
    eventually("both are accepted", || origin.open_connections() == 2);
    drop(brief);
    eventually("the client's leaving is seen", || origin.open_connections() == 1);
}
