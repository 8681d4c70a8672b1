//! Every route, over plain sockets and TLS, by a client that shares no code with the server.

#![expect(clippy::unwrap_used, reason = "a test")]

mod raw;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use raw::{Client, Server, now};

const MS: u64 = 1_000_000;

#[test]
fn bytes_and_chunks_of_every_size() {
    let server = Server::start();
    for mut client in server.both() {
        for size in [0, 1, 1000, 4096, 4097, 16_384, 65_536, 262_145, 10_000_000] {
            let known = client.get(&format!("/b/{size}"));
            assert_eq!((known.status, known.body.len()), (200, size));
            assert_eq!(known.fields.lines().count(), 4, "{}", known.fields);
            let chunked = client.get(&format!("/c/{size}"));
            assert_eq!((chunked.status, chunked.body.len()), (200, size));
        }
    }
}

#[test]
fn a_head_may_come_byte_by_byte() {
    let server = Server::start();
    for mut client in server.both() {
        for byte in b"GET /b/5 HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\r\n" {
            client.send([*byte]);
        }
        assert_eq!(client.answer().body.len(), 5);
        assert_eq!(client.get("/b/6").body.len(), 6);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start();
    for mut client in server.both() {
        let sizes = [1, 100_000, 0, 3, 50_000];
        let mut wire = String::new();
        for size in sizes {
            wire += &format!(
                "GET /b/{size} HTTP/1.1\r\n\r\nPOST /up HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
            );
        }
        client.send(wire + "GET /b/");
        for size in sizes {
            assert_eq!(client.answer().body.len(), size);
            assert_eq!(client.answer().body, b"ok");
        }
        client.send("7 HTTP/1.1\r\n\r\n");
        assert_eq!(client.answer().body.len(), 7);
    }
}

#[test]
fn uploads_of_known_length() {
    let server = Server::start();
    for mut client in server.both() {
        for size in [0, 1, 65_536, 5_000_000] {
            client.send(format!("POST /up HTTP/1.1\r\nContent-Length: {size}\r\n\r\n"));
            client.send(vec![b'x'; size]);
            let answer = client.answer();
            assert_eq!((answer.status, answer.body), (200, b"ok".to_vec()));
        }
    }
}

#[test]
fn chunked_uploads_split_at_any_byte() {
    let server = Server::start();
    let wire = b"POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
    for mut client in server.both() {
        for split in 1..wire.len() {
            client.send(&wire[..split]);
            std::thread::sleep(Duration::from_micros(200));
            client.send(&wire[split..]);
            assert_eq!(client.answer().body, b"ok", "{split}");
        }
    }
}

#[test]
fn a_client_that_expects_is_told_to_go_on() {
    let server = Server::start();
    for mut client in server.both() {
        client.send("POST /up HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!(client.head(), (100, String::new()));
        client.send("abc");
        assert_eq!(client.answer().status, 200);
        client.send("POST /up HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc");
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn a_paced_answer_is_stamped_and_spaced() {
    let server = Server::start();
    for mut client in server.both() {
        for (pieces, size, every) in [(8, 16_384, 2 * MS), (20, 8, MS / 4), (3, 1_000_000, 0)] {
            let asked = now();
            client.send(format!("GET /paced/{pieces}/{size}/{every} HTTP/1.1\r\n\r\n"));
            assert_eq!(client.head().0, 200);
            let mut stamps = Vec::new();
            loop {
                let chunk = client.chunk();
                if chunk.is_empty() {
                    break;
                }
                assert_eq!(chunk.len(), size);
                stamps.push(u64::from_le_bytes(chunk[..8].try_into().unwrap()));
                assert!(stamps.last().unwrap() <= &now());
            }
            assert_eq!(stamps.len(), pieces);
            assert!(stamps[0] >= asked && stamps.is_sorted());
            // None is early: a busy machine makes them late, and each is due from the first one's time.
            for (number, stamp) in stamps.iter().enumerate().skip(1) {
                assert!(stamp + MS / 100 >= asked + number as u64 * every, "{number}");
            }
            // Not later than a loaded machine explains.
            let whole = stamps[pieces - 1] - stamps[0];
            assert!(whole < pieces as u64 * every + 1000 * MS, "{whole}");
        }
        assert_eq!(client.get("/b/1").body.len(), 1);
    }
}

#[test]
fn a_paced_answer_waits_without_spinning() {
    let server = Server::start();
    let mut client = server.plain();
    let cpu = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        let fields: Vec<u64> = stat
            .rsplit(") ")
            .next()
            .unwrap()
            .split(' ')
            .skip(11)
            .take(2)
            .map(|field| field.parse().unwrap())
            .collect();
        fields.iter().sum::<u64>()
    };
    client.get("/b/1");
    let (before, began) = (cpu(), Instant::now());
    client.get("/paced/2/8/500000000");
    assert!(began.elapsed() >= Duration::from_millis(499));
    // Ticks of 10 ms: a loop that spins would take about 50.
    assert!(cpu() - before <= 5, "{}", cpu() - before);
}

#[test]
fn a_paced_upload_is_told_its_delays() {
    let server = Server::start();
    for mut client in server.both() {
        client.send("POST /paced?size=5000 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        let (mut first, mut second) = (now().to_le_bytes().to_vec(), now().to_le_bytes().to_vec());
        first.resize(5000, 0);
        second.resize(5000, 0);
        // The first is whole at once; the second ends 30 ms later, in a chunk of its own.
        client.send(b"1388\r\n");
        client.send(&first);
        client.send(b"\r\n1000\r\n");
        client.send(&second[..4096]);
        std::thread::sleep(Duration::from_millis(30));
        client.send([b"\r\n388\r\n", &second[4096..], b"\r\n0\r\n\r\n"].concat());
        let answer = client.answer();
        let delays: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let delays: Vec<u64> = delays["delay"]
            .as_array()
            .unwrap()
            .iter()
            .map(|delay| delay.as_u64().unwrap())
            .collect();
        assert_eq!(delays.len(), 2);
        assert!(
            delays[0] < 1000 * MS && delays[1] >= 30 * MS && delays[1] < 1000 * MS,
            "{delays:?}"
        );
        assert!(delays[0] < delays[1], "{delays:?}");
    }
}

#[test]
fn pieces_that_arrive_together_share_their_time() {
    let server = Server::start();
    let mut client = server.plain();
    let base = now() - 1000;
    let body: Vec<u8> = (0..3).flat_map(|piece| (base + piece).to_le_bytes()).collect();
    let head = b"POST /paced?size=8 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n18\r\n";
    client.send([&head[..], &body, b"\r\n0\r\n\r\n"].concat());
    let delays: serde_json::Value = serde_json::from_slice(&client.answer().body).unwrap();
    let delays = delays["delay"].as_array().unwrap().clone();
    let delay = |piece: usize| delays[piece].as_u64().unwrap();
    assert_eq!((delay(0) - delay(1), delay(1) - delay(2)), (1, 1));
}

#[test]
fn bad_requests_are_answered_and_closed() {
    let server = Server::start();
    for (request, status) in [
        ("nonsense\r\n\r\n", 400),
        ("GET /b/x HTTP/1.1\r\n\r\n", 400),
        ("GET /paced/5/7/1 HTTP/1.1\r\n\r\n", 400),
        ("POST /paced HTTP/1.1\r\nContent-Length: 8\r\n\r\n", 400),
        ("POST /paced?size=8 HTTP/1.1\r\nContent-Length: 7\r\n\r\n1234567", 400),
        ("POST /up HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        ("GET /nowhere HTTP/1.1\r\n\r\n", 404),
        ("DELETE /up HTTP/1.1\r\n\r\n", 404),
    ] {
        for mut client in server.both() {
            // More than the server reads before it answers: a reset would lose the answer.
            client.send([request.as_bytes(), &[b'x'; 100_000]].concat());
            let answer = client.answer();
            assert_eq!(answer.status, status, "{request:?}");
            assert!(answer.fields.contains("connection: close\n"));
            assert!(client.is_closed(), "{request:?}");
        }
    }
}

#[test]
fn a_client_that_closes_is_closed() {
    let server = Server::start();
    for path in ["/b/3", "/b/300000", "/c/300000", "/paced/2/8/1000"] {
        for mut client in server.both() {
            client.send(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n"));
            let answer = client.answer();
            assert_eq!(answer.status, 200);
            assert!(answer.fields.contains("connection: close\n"));
            assert!(client.is_closed(), "{path}");
        }
    }
}

#[test]
fn a_client_that_goes_leaves_the_server_well() {
    let server = Server::start();
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    let before = descriptors();
    for request in [
        "GET /b/1000000000 HTTP/1.1\r\n\r\n",
        "GET /c/1000000000 HTTP/1.1\r\n\r\n",
        "GET /paced/1000000/16384/1000 HTTP/1.1\r\n\r\n",
        "GET /paced/2/8/3600000000000 HTTP/1.1\r\n\r\n",
        "POST /up HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc",
        "POST /paced?size=8 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "GET /b/1",
    ] {
        let (mut tcp, mut ssl) = (server.tcp(), server.ssl());
        tcp.write_all(request.as_bytes()).unwrap();
        ssl.write_all(request.as_bytes()).unwrap();
        if request.starts_with("GET /b/1000") || request.starts_with("GET /paced") {
            tcp.read_exact(&mut [0; 100]).unwrap();
            ssl.read_exact(&mut [0; 100]).unwrap();
        }
        drop((tcp, ssl));
        for mut client in server.both() {
            assert_eq!(client.get("/b/10").body.len(), 10, "{request}");
        }
    }
    // What they held is free again.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let open = descriptors();
        if open <= before {
            break;
        }
        assert!(Instant::now() < deadline, "{open} descriptors are open, not {before}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_thousand_idle_connections_do_no_harm() {
    let server = Server::start();
    let mut idle: Vec<Client> = (0..1000).map(|_| server.plain()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/b/2").body.len(), 2);
    }
    assert_eq!(idle[500].get("/b/20000").body.len(), 20_000);
}

#[test]
fn a_session_is_resumed() {
    use boring::ssl::{SslConnector, SslMethod, SslSessionCacheMode};
    use std::sync::{Arc, Mutex};

    let server = Server::start();
    let kept = Arc::new(Mutex::new(None));
    let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
    connector.set_verify(boring::ssl::SslVerifyMode::NONE);
    connector
        .set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
    let keeper = Arc::clone(&kept);
    connector.set_new_session_callback(move |_, session| *keeper.lock().unwrap() = Some(session));
    let connector = connector.build();
    for resumed in [false, true] {
        let mut ssl = connector.configure().unwrap().into_ssl("localhost").unwrap();
        if let Some(session) = &*kept.lock().unwrap() {
            // SAFETY: the session came from a connection of this connector's context.
            unsafe { ssl.set_session(session).unwrap() };
        }
        let mut stream = ssl.connect(server.tls_socket()).unwrap();
        stream.write_all(b"GET /b/1 HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(stream.ssl().session_reused(), resumed);
    }
}

#[test]
fn it_ends_with_its_input() {
    let server = Server::start();
    let _open = server.plain();
    assert!(server.end());
}
