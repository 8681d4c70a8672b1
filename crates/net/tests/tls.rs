//! TLS against rustls, over loopback.
#![allow(missing_docs, clippy::unwrap_used)]

mod tls_peer;

use std::{
    io::{Read as _, Write as _},
    sync::{Arc, Mutex, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use mimus_net::{
    DialErrorKind, Phase,
    dial::Host,
    rt::{Probe, io as verbs},
    tls::{self, EarlyData, Roots, TlsConfig, TlsSocket, TlsVersion},
};
use rustls::{
    HandshakeKind, StreamOwned,
    version::{TLS12, TLS13},
};
use tls_peer::*;

#[test]
fn a_handshake_tells_what_it_agreed_on() {
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    for (version, name) in [(&TLS13, "TLSv1.3"), (&TLS12, "TLSv1.2")] {
        let server = serve(identity.server_with(&[version], None), echo);
        run(async {
            let config = ca.client().build().unwrap();
            let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
            ping(&mut *socket).await;
            let info = socket.tls().unwrap();
            assert_eq!(info.version, name);
            assert!(info.cipher.starts_with("TLS_"), "{}", info.cipher);
            assert!(info.group.is_some());
            assert!(info.signature.is_some());
            assert!(!info.resumed);
            assert_eq!(info.certificates.len(), 1);
        });
    }
}

#[test]
fn the_name_is_compared_without_case_and_final_dot() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    run(async {
        let config = ca.client().build().unwrap();
        let mut socket = connect(server.addr, &config, "Bird.Test.").await.unwrap();
        ping(&mut *socket).await;
    });
}

#[test]
fn an_address_is_verified_as_an_address() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["127.0.0.1"]).server(), echo);
    run(async {
        let config = ca.client().build().unwrap();
        let plan = plan(&config);
        let here = Host::Addr([127, 0, 0, 1].into(), 0);
        let mut socket = tls::connect(tcp(server.addr).await, &plan, &here, 1).await.unwrap();
        ping(&mut *socket).await;
        let there = Host::Addr([127, 0, 0, 2].into(), 0);
        let error = tls::connect(tcp(server.addr).await, &plan, &there, 1).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::Certificate);
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    });
}

/// Connects to a server with `identity` as `bird.test`, and gives the error's sentence.
fn rejected(config: &TlsConfig, identity: &Identity) -> String {
    let server = serve(identity.server(), echo);
    let error = run(connect(server.addr, config, "bird.test")).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (DialErrorKind::Certificate, Phase::Tls), "{error}");
    error.to_string()
}

#[test]
fn a_certificate_is_rejected_for_a_reason() {
    let ca = Authority::new();
    let config = ca.client().build().unwrap();

    let other = rejected(&config, &ca.issue(&["fish.test", "*.cat.test"]));
    assert!(other.contains("it is for fish.test, *.cat.test"), "{other}");

    let expired = rejected(
        &config,
        &ca.issue_with(&["bird.test"], |params| {
            params.not_before = rcgen::date_time_ymd(2019, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 2, 3);
        }),
    );
    assert!(expired.contains("it expired on Feb  3 00:00:00 2020"), "{expired}");

    let early = rejected(
        &config,
        &ca.issue_with(&["bird.test"], |params| {
            params.not_before = rcgen::date_time_ymd(2090, 1, 1);
            params.not_after = rcgen::date_time_ymd(2091, 1, 1);
        }),
    );
    assert!(early.contains("it is not valid before Jan  1 00:00:00 2090"), "{early}");

    let unknown = rejected(&config, &Authority::named("Mallory").issue(&["bird.test"]));
    assert!(unknown.contains("its issuer \"Mallory\" is not trusted"), "{unknown}");

    let forged = rejected(&config, &Authority::new().issue(&["bird.test"]));
    assert!(forged.contains("but not its signature"), "{forged}");

    let own = rcgen::generate_simple_self_signed(vec!["bird.test".to_owned()]).unwrap();
    let own = Identity { chain: own.cert.pem(), key: own.signing_key.serialize_pem() };
    let self_signed = rejected(&config, &own);
    assert!(self_signed.contains("self-signed"), "{self_signed}");
}

#[test]
fn a_servers_own_certificate_can_be_trusted_and_no_other_by_it() {
    let own = |name: &str| {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        // None that may sign others.
        params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
        let key = rcgen::KeyPair::generate().unwrap();
        let chain = params.self_signed(&key).unwrap().pem();
        Identity { chain, key: key.serialize_pem() }
    };
    let (bird, other, fish) = (own("bird.test"), own("bird.test"), own("fish.test"));
    let trust = |identity: &Identity| {
        let config = TlsConfig::builder().roots(Roots::None).add_ca(identity.chain.as_bytes());
        config.build().unwrap()
    };
    let server = serve(bird.server(), echo);
    run(async {
        ping(&mut *connect(server.addr, &trust(&bird), "bird.test").await.unwrap()).await;
    });
    assert!(rejected(&trust(&bird), &other).contains("self-signed"));
    assert!(rejected(&trust(&fish), &fish).contains("it is for fish.test"));
    let issued = Authority::new().issue(&["bird.test"]);
    let server = serve(issued.server(), echo);
    run(async {
        ping(&mut *connect(server.addr, &trust(&issued), "bird.test").await.unwrap()).await;
    });
}

#[test]
fn the_dangers_do_what_they_say_and_no_more() {
    let ca = Authority::new();
    let (stranger, fish) = (Authority::new().issue(&["fish.test"]), ca.issue(&["fish.test"]));
    let any = TlsConfig::builder().danger_accept_any_certificate(true).build().unwrap();
    let names = ca.client().danger_ignore_hostname(true).build().unwrap();
    rejected(&names, &stranger);
    for (config, identity) in [(&any, &stranger), (&names, &fish)] {
        let server = serve(identity.server(), echo);
        run(async { ping(&mut *connect(server.addr, config, "bird.test").await.unwrap()).await });
    }
}

/// RFC 9113 section 9.1.1.
#[test]
fn what_a_connection_was_shown_is_verified_anew_for_another_host() {
    let ca = Authority::new();
    let names = ["bird.test", "*.fish.test", "f*.cat.test", "127.0.0.1", "::1"];
    let server = serve(ca.issue(&names).server(), echo);
    let config = ca.client().build().unwrap();
    let shown = |config: &TlsConfig| {
        run(async {
            let mut socket = connect(server.addr, config, "bird.test").await.unwrap();
            // Its tickets come with what it says.
            ping(&mut *socket).await;
            socket.tls().unwrap().clone()
        })
    };
    let info = shown(&config);
    for (name, good) in [
        ("bird.test", true),
        ("BIRD.test.", true),
        ("one.fish.test", true),
        ("fish.test", false),
        ("a.one.fish.test", false),
        ("fat.cat.test", false),
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("cow.test", false),
        ("", false),
    ] {
        assert_eq!(config.accepts_for(&host(name), &info), good, "{name:?}");
    }
    for (ip, good) in [("127.0.0.1", true), ("::1", true), ("::2", false)] {
        assert_eq!(config.accepts_for(&Host::Addr(ip.parse().unwrap(), 0), &info), good, "{ip}");
    }
    // A resumed session has the certificates of the first.
    let resumed = shown(&config);
    assert!(resumed.resumed && config.accepts_for(&host("one.fish.test"), &resumed));

    let nothing = {
        let mut info = info.clone();
        info.certificates.clear();
        info
    };
    let garbage = {
        let mut info = info.clone();
        info.certificates[0].truncate(40);
        info
    };
    for info in [nothing, garbage] {
        assert!(!config.accepts_for(&host("bird.test"), &info));
    }
    // Whoever is not trusted is so for no host.
    assert!(!Authority::new().client().build().unwrap().accepts_for(&host("bird.test"), &info));
    let me = ca.issue(&["me"]);
    for config in [
        ca.client().danger_accept_any_certificate(true),
        ca.client().danger_ignore_hostname(true),
        ca.client().identity(me.chain.as_bytes(), me.key.as_bytes()),
    ] {
        let config = config.build().unwrap();
        assert!(!config.may_span_hosts());
        assert!(!config.accepts_for(&host("bird.test"), &info));
    }
}

#[test]
fn what_ended_since_is_no_longer_good_for_anyone() {
    let ca = Authority::new();
    let old = ca.issue_with(&["bird.test"], |params| {
        params.not_before = rcgen::date_time_ymd(2010, 1, 1);
        params.not_after = rcgen::date_time_ymd(2011, 1, 1);
    });
    let server = serve(old.server(), echo);
    let blind = ca.client().danger_accept_any_certificate(true).build().unwrap();
    let info = run(connect(server.addr, &blind, "bird.test")).unwrap().tls().unwrap().clone();
    assert!(!ca.client().build().unwrap().accepts_for(&host("bird.test"), &info));
    // For what a client shows, a server's certificate it is not.
    let client = ca.issue_with(&["bird.test"], |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    let server = serve(client.server(), echo);
    let info = run(connect(server.addr, &blind, "bird.test")).unwrap().tls().unwrap().clone();
    assert!(!ca.client().build().unwrap().accepts_for(&host("bird.test"), &info));
}

#[test]
fn an_added_authority_stands_beside_the_built_in_ones() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    for roots in [Roots::Native, Roots::Webpki] {
        let without = TlsConfig::builder().roots(roots).build().unwrap();
        let with = TlsConfig::builder().roots(roots).add_ca(&ca.der()).build().unwrap();
        run(async {
            let error = connect(server.addr, &without, "bird.test").await.unwrap_err();
            assert_eq!(error.kind(), DialErrorKind::Certificate);
            ping(&mut *connect(server.addr, &with, "bird.test").await.unwrap()).await;
        });
    }
}

#[test]
fn a_client_certificate_is_presented_when_asked_for() {
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    let me = ca.issue(&["me"]);
    for version in [&TLS12, &TLS13] {
        let server = serve(identity.server_with(&[version], Some(&ca)), echo);
        run(async {
            let config = ca.client().identity(me.chain.as_bytes(), me.key.as_bytes());
            let config = config.build().unwrap();
            ping(&mut *connect(server.addr, &config, "bird.test").await.unwrap()).await;

            let nobody = ca.client().build().unwrap();
            let refusal = match connect(server.addr, &nobody, "bird.test").await {
                Err(error) => error.to_string(),
                // In TLS 1.3 the client is done before the server has judged it.
                Ok(mut socket) => read_once(&mut *socket).await.unwrap_err().to_string(),
            };
            assert!(refusal.contains("sent the alert"), "{refusal}");
        });
    }
}

#[test]
fn the_second_connection_resumes_the_first() {
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    for version in [&TLS12, &TLS13] {
        let server = serve(identity.server_with(&[version], None), echo);
        let config = ca.client().build().unwrap();
        run(async {
            for n in 0..3 {
                let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
                ping(&mut *socket).await;
                let info = socket.tls().unwrap();
                assert_eq!(info.resumed, n > 0);
                assert_eq!(info.certificates.len(), 1);
            }
            // Another name is another server.
            assert!(connect(server.addr, &config, "fish.test").await.is_err());
            let off = ca.client().session_resumption(false).build().unwrap();
            for _ in 0..2 {
                ping(&mut *connect(server.addr, &off, "bird.test").await.unwrap()).await;
            }
        });
        let kinds: Vec<_> = server.seen.lock().unwrap().iter().map(|s| s.kind).collect();
        let (full, resumed) = (Some(HandshakeKind::Full), Some(HandshakeKind::Resumed));
        let kinds: Vec<_> =
            kinds.into_iter().filter(|kind| [full, resumed].contains(kind)).collect();
        assert_eq!(kinds[..3], [full, resumed, resumed]);
        assert_eq!(kinds[kinds.len() - 2..], [full, full]);
    }
}

#[test]
fn alpn_picks_what_both_speak() {
    let ca = Authority::new();
    let mut config = ca.issue(&["bird.test"]).server();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server = serve(config, echo);
    run(async {
        let config = ca.client().build().unwrap();
        let mut plan = plan(&config);
        plan.alpn = vec![b"h2", b"http/1.1"];
        let socket = tcp(server.addr).await;
        let socket = tls::connect(socket, &plan, &host("bird.test"), 1).await.unwrap();
        assert_eq!(socket.tls().unwrap().alpn.as_deref(), Some(&b"http/1.1"[..]));

        plan.alpn = vec![b"h2"];
        let socket = tcp(server.addr).await;
        let error = tls::connect(socket, &plan, &host("bird.test"), 1).await.unwrap_err();
        assert!(error.to_string().contains("no_application_protocol (120)"), "{error}");
        plan.alpn = vec![b""];
        let error = tls::connect(tcp(server.addr).await, &plan, &host("bird.test"), 1).await;
        assert_eq!(error.unwrap_err().kind(), DialErrorKind::Config);
    });
}

#[test]
fn versions_that_do_not_meet_are_named() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server_with(&[&TLS13], None), echo);
    let config = ca.client().max_version(TlsVersion::Tls12).build().unwrap();
    let error = run(connect(server.addr, &config, "bird.test")).unwrap_err();
    assert_eq!(error.kind(), DialErrorKind::Tls);
    assert!(error.to_string().contains("no TLS version that we allow"), "{error}");
}

#[test]
fn large_transfers_arrive_whole() {
    const SIZE: usize = 32 << 20;
    let byte = |i: usize| (i % 251) as u8;
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), move |mut peer| {
        let mut all = vec![0; SIZE];
        peer.read_exact(&mut all)?;
        assert!(all.iter().enumerate().all(|(i, b)| *b == byte(i)));
        peer.write_all(&all)?;
        peer.conn.send_close_notify();
        peer.flush()
    });
    run(async {
        let config = ca.client().build().unwrap();
        let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
        let all: Vec<u8> = (0..SIZE).map(byte).collect();
        let start = Instant::now();
        write(&mut *socket, &all).await;
        assert!(read_exactly(&mut *socket, SIZE).await == all);
        eprintln!("32 MiB there and back in {:?}", start.elapsed());
        assert_eq!(read_once(&mut *socket).await.unwrap(), b"");
    });
}

#[test]
fn a_reader_sends_what_a_writer_left_behind() {
    const SIZE: usize = 8 << 20;
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), |mut peer| {
        // Until both buffers of the kernel are full.
        thread::sleep(Duration::from_millis(200));
        peer.read_exact(&mut vec![0; SIZE])?;
        peer.write_all(b"done")?;
        echo(peer)
    });
    run(async {
        let config = ca.client().build().unwrap();
        let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
        verbs::write_all(&mut *socket, &vec![1; SIZE]).await.unwrap();
        // Not flushed.
        assert_eq!(read_exactly(&mut *socket, 4).await, b"done");
    });
}

#[cfg(feature = "tokio")]
#[test]
fn tokio_drives_the_same_machine() {
    use mimus_net::{Runtime as _, dial::SocketOptions, rt::Endpoint, rt::Tokio};
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let config = ca.client().build().unwrap();
        let (runtime, options) =
            (Tokio::on(tokio::runtime::Handle::current()), SocketOptions::default());
        for _ in 0..2 {
            let endpoint = Endpoint::Tcp(server.addr);
            let socket = runtime.connect(&endpoint, &options).await.unwrap();
            let plan = plan(&config);
            let mut socket = tls::connect(socket, &plan, &host("bird.test"), 1).await.unwrap();
            let long = vec![5; 200_000];
            write(&mut *socket, &long).await;
            assert!(read_exactly(&mut *socket, long.len()).await == long);
            assert!(!socket.is_stale(Probe::Thorough));
            ping(&mut *socket).await;
            verbs::close(&mut *socket).await.unwrap();
        }
    });
}

#[test]
fn a_forged_record_ends_the_connection() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), |mut peer| {
        peer.write_all(b"true")?;
        peer.flush()?;
        peer.sock.write_all(&[&[0x17, 3, 3, 0, 40][..], &[0; 40]].concat())?;
        peer.read_to_end(&mut Vec::new()).map(drop)
    });
    run(async {
        let config = ca.client().build().unwrap();
        let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
        assert_eq!(read_exactly(&mut *socket, 4).await, b"true");
        for _ in 0..2 {
            let error = read_once(&mut *socket).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("broke the TLS protocol"), "{error}");
        }
        assert!(socket.is_stale(Probe::Free));
    });
}

#[test]
fn byte_by_byte_is_slow_but_right() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    run(async {
        let config = ca.client().build().unwrap();
        let mut watched = Watched::new(tcp(server.addr).await);
        watched.dribble = true;
        let plan = plan(&config);
        let name = host("bird.test");
        let mut socket = tls::connect(Box::new(watched), &plan, &name, 1).await.unwrap();
        ping(&mut *socket).await;
        let long = vec![7; 20_000];
        write(&mut *socket, &long).await;
        assert_eq!(read_exactly(&mut *socket, long.len()).await, long);
    });
}

#[test]
fn a_small_exchange_is_one_write_and_one_read() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    run(async {
        let config = ca.client().build().unwrap();
        let watched = Watched::new(tcp(server.addr).await);
        let (reads, writes) = (Arc::clone(&watched.reads), Arc::clone(&watched.writes));
        let plan = plan(&config);
        let name = host("bird.test");
        let mut socket = tls::connect(Box::new(watched), &plan, &name, 1).await.unwrap();
        // The tickets come with the first answer, or before it.
        ping(&mut *socket).await;
        let count = || (reads.load(Ordering::SeqCst), writes.load(Ordering::SeqCst));
        let before = count();
        for _ in 0..100 {
            ping(&mut *socket).await;
        }
        assert_eq!(count(), (before.0 + 100, before.1 + 100));
    });
}

#[test]
fn an_end_without_close_notify_is_a_truncation() {
    let ca = Authority::new();
    for polite in [true, false] {
        let server = serve(ca.issue(&["bird.test"]).server(), move |mut peer| {
            peer.write_all(b"half")?;
            if polite {
                peer.conn.send_close_notify();
            }
            peer.flush()
        });
        run(async {
            let config = ca.client().build().unwrap();
            let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
            assert_eq!(read_exactly(&mut *socket, 4).await, b"half");
            for _ in 0..2 {
                match read_once(&mut *socket).await {
                    Ok(end) => assert!(polite && end.is_empty()),
                    Err(error) => {
                        assert!(!polite);
                        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
                        assert!(error.to_string().contains("close_notify"), "{error}");
                    }
                }
            }
        });
    }
}

#[test]
fn our_goodbye_is_heard() {
    let ca = Authority::new();
    let heard = Arc::new(Mutex::new(None));
    let note = Arc::clone(&heard);
    let server = serve(ca.issue(&["bird.test"]).server(), move |mut peer| {
        let mut all = Vec::new();
        let end = peer.read_to_end(&mut all).map_err(|error| error.kind());
        *note.lock().unwrap() = Some((end, all));
        peer.conn.send_close_notify();
        peer.flush()
    });
    run(async {
        let config = ca.client().build().unwrap();
        let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
        write(&mut *socket, b"bye").await;
        verbs::close(&mut *socket).await.unwrap();
        assert!(socket.is_stale(Probe::Free));
        assert_eq!(read_once(&mut *socket).await.unwrap(), b"");
    });
    assert_eq!(*heard.lock().unwrap(), Some((Ok(3), b"bye".to_vec())));
}

#[test]
fn a_broken_handshake_says_how() {
    let ca = Authority::new();
    let config = ca.client().build().unwrap();
    let reset = listen(|stream| {
        (&stream).read_exact(&mut [0; 5])?;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
    });
    let hang_up = listen(|mut stream| {
        let mut hello = [0; 16 * 1024];
        stream.read(&mut hello).map(drop)
    });
    let http = listen(|mut stream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    let noise = listen(|mut stream| {
        stream.write_all(&[0x16, 3, 3, 0, 4, 2, 0, 0, 0])?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    let error = |addr| run(connect(addr, &config, "bird.test")).unwrap_err();
    let source = |error: &mimus_net::DialError| {
        std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
    };
    assert_eq!(error(reset).kind(), DialErrorKind::Io);
    let hung_up = error(hang_up);
    assert_eq!(hung_up.kind(), DialErrorKind::Io);
    assert!(source(&hung_up).contains("before the handshake was done"), "{hung_up}");
    let not_tls = error(http);
    assert_eq!(not_tls.kind(), DialErrorKind::Tls);
    assert!(not_tls.to_string().contains("is not TLS"), "{not_tls}: {}", source(&not_tls));
    let broken = error(noise);
    assert_eq!(broken.kind(), DialErrorKind::Tls);
    assert!(!source(&broken).is_empty());
}

#[test]
fn a_silent_server_times_out() {
    let ca = Authority::new();
    let config = ca.client().build().unwrap();
    let addr = listen(|mut stream| stream.read_to_end(&mut Vec::new()).map(drop));
    run(async {
        let mut socket = tcp(addr).await;
        socket.set_deadline(Some(Instant::now() + Duration::from_millis(50)));
        let error = tls::connect(socket, &plan(&config), &host("bird.test"), 1).await.unwrap_err();
        assert_eq!((error.kind(), error.phase()), (DialErrorKind::Timeout, Phase::Tls));
    });
}

#[test]
fn tickets_do_not_make_an_idle_connection_stale_but_words_do() {
    let ca = Authority::new();
    for speaks in [false, true] {
        let server = serve(ca.issue(&["bird.test"]).server(), move |mut peer| {
            if speaks {
                peer.write_all(b"4")?;
            }
            peer.flush()?;
            let _ = peer.read(&mut [0]);
            Ok(())
        });
        run(async {
            let config = ca.client().build().unwrap();
            let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
            thread::sleep(Duration::from_millis(50));
            // The tickets, never read so far, are in the kernel's buffer.
            for probe in [Probe::Thorough, Probe::Thorough, Probe::Free] {
                assert_eq!(socket.is_stale(probe), speaks);
            }
        });
    }
}

#[test]
fn a_connection_that_the_server_closed_is_stale() {
    let ca = Authority::new();
    for polite in [true, false] {
        let server = serve(ca.issue(&["bird.test"]).server(), move |mut peer| {
            if polite {
                peer.conn.send_close_notify();
                peer.flush()?;
                peer.read_to_end(&mut Vec::new())?;
            }
            Ok(())
        });
        run(async {
            let config = ca.client().build().unwrap();
            let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
            thread::sleep(Duration::from_millis(50));
            assert!(socket.is_stale(Probe::Thorough));
        });
    }
}

#[test]
fn tls_goes_through_tls() {
    let ca = Authority::new();
    let (outer, inner) = (ca.issue(&["proxy.test"]), ca.issue(&["bird.test"]));
    let inner = Arc::new(inner.server());
    let server = serve(outer.server(), move |peer| {
        let inner = rustls::ServerConnection::new(Arc::clone(&inner)).unwrap();
        echo(StreamOwned::new(inner, peer))
    });
    run(async {
        let config = ca.client().build().unwrap();
        let outer = connect(server.addr, &config, "proxy.test").await.unwrap();
        let mut socket = tls::connect(outer, &plan(&config), &host("bird.test"), 1).await.unwrap();
        ping(&mut *socket).await;
        let long = vec![9; 300_000];
        let all = read_exactly;
        for _ in 0..3 {
            write(&mut *socket, &long[..60_000]).await;
            assert_eq!(all(&mut *socket, 60_000).await, long[..60_000]);
        }
    });
}

#[test]
fn secrets_are_logged_only_when_asked_for() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    let log = Log::default();
    let config = ca.client().key_log(log.clone()).build().unwrap();
    run(async { ping(&mut *connect(server.addr, &config, "bird.test").await.unwrap()).await });
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.lines().any(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")), "{text}");
}

/// A server that offers early data, and one for each later connection.
fn early_server(first: &[u8], later: &[u8], later_takes: u32) -> (Authority, Server) {
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    let mut teaching = identity.server();
    teaching.max_early_data_size = if later_takes == 0 { 16 * 1024 } else { later_takes };
    teaching.alpn_protocols = vec![first.to_vec()];
    let mut answering = identity.server();
    answering.session_storage = Arc::clone(&teaching.session_storage);
    answering.max_early_data_size = later_takes;
    answering.alpn_protocols = vec![later.to_vec()];
    let server = serve_each(vec![teaching, answering], |mut peer| {
        // What came early is not read again from the stream: answer it by its length.
        peer.write_all(b"hello")?;
        echo(peer)
    });
    (ca, server)
}

async fn early(config: &TlsConfig, server: &Server) -> Box<dyn mimus_net::Socket> {
    let mut plan = plan(config);
    plan.alpn = vec![b"one", b"two"];
    plan.early_data = true;
    tls::connect(tcp(server.addr).await, &plan, &host("bird.test"), 1).await.unwrap()
}

fn status(socket: &dyn mimus_net::Socket) -> EarlyData {
    socket.as_any().downcast_ref::<TlsSocket>().unwrap().early_data()
}

#[test]
fn early_data_is_taken() {
    let (ca, server) = early_server(b"one", b"one", 16 * 1024);
    let config = ca.client().build().unwrap();
    run(async {
        let mut socket = early(&config, &server).await;
        assert_eq!(status(&*socket), EarlyData::NotOffered);
        assert_eq!(read_exactly(&mut *socket, 5).await, b"hello");
        ping(&mut *socket).await;

        let mut socket = early(&config, &server).await;
        assert_eq!(status(&*socket), EarlyData::Pending);
        assert_eq!(socket.tls().unwrap().alpn.as_deref(), Some(&b"one"[..]));
        write(&mut *socket, b"early bird").await;
        assert_eq!(read_exactly(&mut *socket, 5).await, b"hello");
        assert_eq!(status(&*socket), EarlyData::Accepted);
        let info = socket.tls().unwrap();
        assert!(info.early_data && info.resumed && info.certificates.len() == 1);
        ping(&mut *socket).await;
    });
    assert_eq!(server.seen.lock().unwrap()[1].early, b"early bird");
}

#[test]
fn early_data_that_is_refused_is_sent_again() {
    let (ca, server) = early_server(b"one", b"one", 0);
    let config = ca.client().build().unwrap();
    run(async {
        let mut socket = early(&config, &server).await;
        assert_eq!(read_exactly(&mut *socket, 5).await, b"hello");
        ping(&mut *socket).await;

        let mut socket = early(&config, &server).await;
        write(&mut *socket, b"early bird").await;
        assert_eq!(read_exactly(&mut *socket, 15).await, b"helloearly bird");
        assert_eq!(status(&*socket), EarlyData::Rejected);
        assert!(!socket.tls().unwrap().early_data);
        ping(&mut *socket).await;
    });
    assert_eq!(server.seen.lock().unwrap()[1].early, b"");
}

#[test]
fn more_than_fits_early_waits_for_the_handshake() {
    for takes in [0, 100, 16 * 1024] {
        // The server's ticket limits it, or we do.
        let taken = (takes as usize).min(4 * 1024);
        let (ca, server) = early_server(b"one", b"one", takes);
        let config = ca.client().build().unwrap();
        let long: Vec<u8> = (0..100_000_u32).map(|i| (i % 249) as u8).collect();
        run(async {
            let mut socket = early(&config, &server).await;
            assert_eq!(read_exactly(&mut *socket, 5).await, b"hello");
            ping(&mut *socket).await;
            let mut socket = early(&config, &server).await;
            write(&mut *socket, &long).await;
            let echoed = long.len() - taken;
            let got = read_exactly(&mut *socket, 5 + echoed).await;
            assert!(got[5..] == long[long.len() - echoed..]);
        });
        assert!(server.seen.lock().unwrap()[1].early == long[..taken]);
    }
}

#[test]
fn early_data_in_a_protocol_that_changed_is_not_sent_again() {
    let (ca, server) = early_server(b"one", b"two", 16 * 1024);
    let config = ca.client().build().unwrap();
    run(async {
        let mut socket = early(&config, &server).await;
        assert_eq!(read_exactly(&mut *socket, 5).await, b"hello");
        ping(&mut *socket).await;
        let mut socket = early(&config, &server).await;
        write(&mut *socket, b"early bird").await;
        let error = read_once(&mut *socket).await.unwrap_err();
        assert!(error.to_string().contains("changed the ALPN protocol"), "{error}");
        assert!(socket.is_stale(Probe::Free));
    });
}

#[test]
fn a_wrong_configuration_is_refused_when_built() {
    let ca = Authority::new();
    let (one, two) = (ca.issue(&["a"]), ca.issue(&["b"]));
    let error =
        |builder: mimus_net::tls::TlsConfigBuilder| builder.build().unwrap_err().to_string();
    assert!(error(TlsConfig::builder().add_ca(b"bird")).contains("the added CA"));
    let mixed = ca.client().identity(one.chain.as_bytes(), two.key.as_bytes());
    assert!(error(mixed).contains("does not belong"));
    let swapped = ca.client().identity(one.key.as_bytes(), one.chain.as_bytes());
    assert!(error(swapped).contains("key"));
    assert!(error(ca.client().identity(b"", one.key.as_bytes())).contains("empty"));
    assert!(error(ca.client().identity_pkcs12(b"bird", "")).contains("PKCS#12"));
    assert!(
        error(ca.client().min_version(TlsVersion::Tls13).max_version(TlsVersion::Tls12))
            .contains("above")
    );
    let nobody = TlsConfig::builder().roots(Roots::None);
    assert!(error(nobody).contains("trusted"));
    assert!(error(ca.client().key_log_file("/nowhere/at/all")).contains("/nowhere/at/all"));
    let shown = format!("{:?}", ca.client().identity(one.chain.as_bytes(), one.key.as_bytes()));
    assert!(!shown.contains("PRIVATE"), "{shown}");
}
