//! Proxies that answer from a script.

use std::{
    any::Any,
    collections::VecDeque,
    future::Future,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::BytesMut;
use proptest::prelude::*;

use super::{no_proxy::NoProxy, *};
use crate::rt::Probe;

/// Gives back its script, one piece a read, and remembers what was written.
#[derive(Debug)]
struct Scripted {
    pieces: VecDeque<Vec<u8>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Socket for Scripted {
    fn poll_read(
        &mut self,
        _: &mut Context<'_>,
        buf: &mut BytesMut,
        _: Wait,
    ) -> Poll<io::Result<usize>> {
        let Some(mut piece) = self.pieces.pop_front() else { return Poll::Ready(Ok(0)) };
        let n = piece.len().min(buf.capacity() - buf.len());
        let rest = piece.split_off(n);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        buf.extend_from_slice(&piece);
        Poll::Ready(Ok(n))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut written = self.written.lock().unwrap();
        bufs.iter().for_each(|buf| written.extend_from_slice(buf));
        Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn set_deadline(&mut self, _: Option<Instant>) {}

    fn is_stale(&mut self, _: Probe) -> bool {
        false
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A scripted socket never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits"),
    }
}

/// The tunnel's first words, or why there is none; and what the proxy was told.
fn talk(proxy: &str, target: &Host, pieces: &[&[u8]]) -> (Result<Vec<u8>, DialError>, Vec<u8>) {
    talk_with(&Proxy::parse(proxy).unwrap(), target, pieces, None)
}

fn talk_with(
    proxy: &Proxy,
    target: &Host,
    pieces: &[&[u8]],
    resolved: Option<IpAddr>,
) -> (Result<Vec<u8>, DialError>, Vec<u8>) {
    let written = Arc::<Mutex<Vec<u8>>>::default();
    let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
    let socket = Box::new(Scripted { pieces, written: Arc::clone(&written) });
    let tunnel = now(tunnel(proxy, socket, target, 443, resolved));
    let told = written.lock().unwrap().clone();
    let words = tunnel.map(|mut socket| {
        let mut all = BytesMut::with_capacity(64);
        // A small room, so that leftovers are handed out in parts.
        while now(read(&mut *socket, &mut all, Wait::Alone)).unwrap() > 0 {
            all.reserve(3);
        }
        all.to_vec()
    });
    (words, told)
}

fn name(name: &str) -> Host {
    Host::Name(name.to_owned())
}

fn addr(ip: &str) -> Host {
    Host::Addr(ip.parse().unwrap(), 0)
}

const OK: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

#[test]
fn connect_asks_in_authority_form_and_keeps_early_words() {
    let (words, told) = talk("http://p:8080", &name("bird.test"), &[OK, b"220 hi"]);
    assert_eq!(words.unwrap(), b"220 hi");
    assert_eq!(told, b"CONNECT bird.test:443 HTTP/1.1\r\nHost: bird.test:443\r\n\r\n");
    let together = [OK, b"220 welcome to the machine"].concat();
    let (words, _) = talk("http://p:8080", &name("bird.test"), &[&together]);
    assert_eq!(words.unwrap(), b"220 welcome to the machine");
    let (_, told) = talk("http://p", &addr("2001:db8::1"), &[OK]);
    assert!(told.starts_with(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"));
}

#[test]
fn connect_carries_credentials_and_fields() {
    let mut proxy = Proxy::parse("http://Aladdin:open%20sesame@p:1").unwrap();
    proxy.headers = vec![("User-Agent".into(), "bird".into())];
    let (words, told) = talk_with(&proxy, &name("b"), &[OK], None);
    assert!(words.is_ok());
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
    assert!(told.ends_with("\r\nUser-Agent: bird\r\n\r\n"), "{told}");

    proxy.headers = vec![("X".into(), "a\r\nEvil: 1".into())];
    let (words, told) = talk_with(&proxy, &name("b"), &[OK], None);
    assert_eq!(words.unwrap_err().kind(), DialErrorKind::Config);
    assert_eq!(told, b"");
}

#[test]
fn connect_skips_interim_answers_and_a_success_has_no_body() {
    let answer =
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    let (words, _) = talk("http://p", &name("b"), &[answer]);
    // RFC 9110 section 9.3.6: Content-Length in a 2xx to CONNECT is ignored.
    assert_eq!(words.unwrap(), b"hello");
}

#[test]
fn connect_reports_refusals() {
    for (answer, kind, said) in [
        (&b"HTTP/1.1 407 Prove it\r\n\r\n"[..], DialErrorKind::ProxyAuth, "407 Prove it"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", DialErrorKind::ProxyAuth, "401 Unauthorized"),
        (b"HTTP/1.0 503 Down\x1b[2J\r\n\r\n", DialErrorKind::Proxy, ""),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\n", DialErrorKind::Proxy, "502 Bad"),
        (b"SSH-2.0-bird\r\n", DialErrorKind::Proxy, ""),
        (b"HTTP/1.1 200", DialErrorKind::Proxy, ""),
        (b"", DialErrorKind::Proxy, ""),
    ] {
        let (words, _) = talk("http://user:secret@p", &name("b"), &[answer]);
        let error = words.unwrap_err();
        assert_eq!((error.kind(), error.phase()), (kind, Phase::Proxy), "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(!format!("{error:?}").contains("secret"));
        assert!(!error.to_string().contains('\x1b'));
    }
}

#[test]
fn an_endless_head_is_cut_off() {
    let line = [b"X: ".as_slice(), &[b'x'; 8000], b"\r\n"].concat();
    let mut pieces = vec![&b"HTTP/1.1 200 OK\r\n"[..]];
    pieces.extend(std::iter::repeat_n(&line[..], 100));
    let error = talk("http://p", &name("b"), &pieces).0.unwrap_err();
    assert_eq!(error.kind(), DialErrorKind::Proxy);
}

#[test]
fn socks5_with_and_without_credentials() {
    let granted = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00";
    let (words, told) = talk("socks5h://p", &name("bird.test"), &[b"\x05\x00", granted, b"hi"]);
    assert_eq!(words.unwrap(), b"hi");
    assert_eq!(told, b"\x05\x01\x00\x05\x01\x00\x03\x09bird.test\x01\xbb");

    let answers: [&[u8]; 3] = [b"\x05\x02", b"\x01\x00", granted];
    let (words, told) = talk("socks5://me:pw@p", &addr("127.0.0.1"), &answers);
    assert_eq!(words.unwrap(), b"");
    assert_eq!(told, b"\x05\x02\x00\x02\x01\x02me\x02pw\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb");

    let v6 = "1:2:3:4:5:6:7:8";
    let (_, told) = talk("socks5://p", &addr(v6), &[b"\x05\x00", granted]);
    let v6 = b"\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00\x07\x00\x08";
    assert_eq!(told[3..], [b"\x05\x01\x00\x04", &v6[..], b"\x01\xbb"].concat());
}

#[test]
fn socks_names_are_resolved_where_the_kind_says() {
    let granted = b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00";
    let here = Proxy::parse("socks5://p").unwrap();
    let resolved = Some([192, 0, 2, 7].into());
    let (words, told) = talk_with(&here, &name("bird.test"), &[granted], resolved);
    assert!(words.is_ok());
    assert_eq!(told[3..], *b"\x05\x01\x00\x01\xc0\x00\x02\x07\x01\xbb");
    let error = talk_with(&here, &name("bird.test"), &[granted], None).0.unwrap_err();
    assert_eq!(error.kind(), DialErrorKind::Config);
    let there = Proxy::parse("socks5h://p").unwrap();
    let (_, told) = talk_with(&there, &name("b"), &[granted], resolved);
    assert_eq!(told[3..], *b"\x05\x01\x00\x03\x01b\x01\xbb");
}

#[test]
fn socks4_and_4a() {
    let granted = b"\x00\x5a\x00\x00\x00\x00\x00\x00";
    let (words, told) = talk("socks4://me@p", &addr("1.2.3.4"), &[granted, b"hi"]);
    assert_eq!(words.unwrap(), b"hi");
    assert_eq!(told, b"\x04\x01\x01\xbb\x01\x02\x03\x04me\x00");
    let (words, told) = talk("socks4a://p", &name("bird.test"), &[granted]);
    assert!(words.is_ok());
    assert_eq!(told, b"\x04\x01\x01\xbb\x00\x00\x00\x01\x00bird.test\x00");
    let (_, told) = talk("socks4://p", &addr("::ffff:1.2.3.4"), &[granted]);
    assert_eq!(told[4..8], [1, 2, 3, 4]);
    for target in [addr("::1"), name("bird.test")] {
        let error = talk("socks4://p", &target, &[granted]).0.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::Config, "{error:?}");
    }
}

#[test]
fn every_socks_refusal_is_a_sentence() {
    let refused = |proxy: &str, answer: &[u8]| {
        let error = talk(proxy, &addr("127.0.0.1"), &[answer]).0.unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        (error.kind(), source.unwrap_or_else(|| error.to_string()))
    };
    for code in 1..=9 {
        let (kind, said) = refused("socks5://p", &[5, 0, 5, code]);
        assert_eq!(kind, DialErrorKind::Proxy);
        assert!(said.contains(&code.to_string()), "{said}");
    }
    for (code, kind) in [
        (91, DialErrorKind::Proxy),
        (92, DialErrorKind::ProxyAuth),
        (93, DialErrorKind::ProxyAuth),
        (7, DialErrorKind::Proxy),
    ] {
        let (found, said) = refused("socks4://p", &[0, code]);
        assert!(found == kind && said.contains(&code.to_string()), "{said}");
    }
    assert_eq!(refused("socks5://p", &[5, 0xff]).0, DialErrorKind::ProxyAuth);
    assert_eq!(refused("socks5://p", &[5, 2]).0, DialErrorKind::ProxyAuth);
    assert_eq!(refused("socks5://u:p@p", &[5, 0xff]).0, DialErrorKind::ProxyAuth);
    assert_eq!(refused("socks5://u:p@p", &[5, 2, 1, 1]).0, DialErrorKind::ProxyAuth);
    assert_eq!(refused("socks5://p", &[5, 1]).0, DialErrorKind::Proxy);
    assert_eq!(refused("socks5://p", b"HTTP/1.1 400").0, DialErrorKind::Proxy);
    assert_eq!(refused("socks4://p", b"HTTP/1.1 400").0, DialErrorKind::Proxy);
    assert_eq!(refused("socks5://p", &[5, 0, 5, 0, 0, 9]).0, DialErrorKind::Proxy);
    assert!(refused("socks5://p", &[5, 0, 5]).1.contains("closed"));
}

#[test]
fn what_socks_cannot_carry_is_refused_before_anything_is_sent() {
    let long = "x".repeat(256);
    for (proxy, target) in [
        ("socks5h://p".to_owned(), name(&long)),
        ("socks5h://p".to_owned(), name("")),
        ("socks4a://p".to_owned(), name(&long)),
        ("socks4a://p".to_owned(), name("a\0b")),
        (format!("socks5://{long}:x@p"), addr("1.1.1.1")),
        (format!("socks5://x:{long}@p"), addr("1.1.1.1")),
        ("socks4://a%00b@p".to_owned(), addr("1.1.1.1")),
    ] {
        let (words, told) = talk(&proxy, &target, &[]);
        assert_eq!(words.unwrap_err().kind(), DialErrorKind::Config);
        assert_eq!(told, b"");
    }
}

proptest! {
    #[test]
    fn any_split_of_the_answers_gives_the_same_tunnel(
        which in 0..4_usize,
        cuts in proptest::collection::vec(1..6_usize, 0..40),
    ) {
        let (proxy, answers): (&str, &[u8]) = [
            ("http://p", &b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nrest"[..]),
            ("socks4a://p", b"\x00\x5a\x01\x02\x03\x04\x05\x06rest"),
            ("socks5h://u:p@p", b"\x05\x02\x01\x00\x05\x00\x00\x03\x02ab\x00\x50rest"),
            ("socks5h://p", b"\x05\x00\x05\x00\x00\x040123456789abcdef\x00\x50rest"),
        ][which];
        let mut pieces = Vec::new();
        let mut rest = answers;
        for cut in cuts {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            if !piece.is_empty() {
                pieces.push(piece);
            }
            rest = more;
        }
        if !rest.is_empty() {
            pieces.push(rest);
        }
        let (words, _) = talk(proxy, &name("bird.test"), &pieces);
        prop_assert_eq!(words.unwrap(), b"rest".to_vec());
    }

    #[test]
    fn no_answer_makes_socks_panic_or_hang(
        kind in 0..2_usize,
        answer in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let proxy = ["socks4://p", "socks5://u:p@p"][kind];
        let _ = talk(proxy, &addr("1.2.3.4"), &[&answer]);
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}", host in "[a-z0-9.:]{0,20}") {
        let _ = Proxy::parse(&text);
        let _ = NoProxy::parse(&text).matches(&Host::Name(host), 80);
    }
}

#[test]
fn proxy_urls() {
    let parse = |url: &str| Proxy::parse(url).unwrap();
    for (url, shown) in [
        ("http://p:3128", "http://p:3128"),
        ("p:3128", "http://p:3128"),
        ("p", "http://p:80"),
        ("http://p:80/", "http://p:80"),
        ("HTTPS://P", "https://p:443"),
        ("socks4://1.2.3.4", "socks4://1.2.3.4:1080"),
        ("socks4a://p:80", "socks4a://p:80"),
        ("socks5://[::1]:9", "socks5://[::1]:9"),
        ("socks5h://u@p", "socks5h://p:1080"),
        ("http://bücher.test:1", "http://xn--bcher-kva.test:1"),
    ] {
        assert_eq!(parse(url).to_string(), shown);
    }
    let proxy = parse("http://us%40er:p%3Aw@p:1");
    assert_eq!(proxy.auth, Some(("us@er".into(), "p:w".into())));
    assert!(!format!("{proxy:?} {proxy}").contains("p:w"));
    assert_eq!(parse("socks5://u@p").auth, Some(("u".into(), String::new())));
    for url in [
        "",
        "http://",
        "ftp://p",
        "http://p:0",
        "http://p:99999",
        "http://p/path",
        "http://p?q",
        r"http://p:1\2",
        r"http://p\..",
        r"http://u:secret@p\@other:1",
        "http://a b",
        "http://[::1",
        "http://u:secret@",
        "http://%ff:secret@p",
        "http://u%3av:secret@p",
    ] {
        let error = Proxy::parse(url).unwrap_err();
        assert!(!format!("{error:?}{error}").contains("secret"), "{url}");
    }
}

#[test]
fn no_proxy_matches_as_curl_documents_it() {
    let list = "example.com,.dot.test bird.test:8080, 10.0.0.0/8,192.0.2.1\t[2001:db8::1]:443,\
                fe80::/10,::1,bad/99,x:y:z";
    let rules = NoProxy::parse(list);
    for (host, port, direct) in [
        (name("example.com"), 80, true),
        (name("EXAMPLE.com."), 80, true),
        (name("www.example.com"), 80, true),
        (name("notexample.com"), 80, false),
        (name("example.com.evil.test"), 80, false),
        (name("dot.test"), 80, true),
        (name("a.b.dot.test"), 80, true),
        (name("bird.test"), 8080, true),
        (name("bird.test"), 80, false),
        (addr("10.255.0.1"), 80, true),
        (name("10.1.1.1"), 80, true),
        (addr("::ffff:10.1.1.1"), 80, true),
        (addr("11.0.0.1"), 80, false),
        (addr("192.0.2.1"), 80, true),
        (addr("2001:db8::1"), 443, true),
        (addr("2001:db8::1"), 80, false),
        (addr("fe80::5"), 80, true),
        (addr("::1"), 80, true),
        (name("com"), 80, false),
        (name(""), 80, false),
    ] {
        assert_eq!(rules.matches(&host, port), direct, "{host} {port}");
    }
    assert!(NoProxy::parse("*").matches(&name("any"), 1));
    assert!(NoProxy::parse(" , ").is_empty());
}

#[test]
fn the_environment_chooses() {
    let env = |vars: &'static [(&str, &str)]| {
        move |name: &str| {
            let found = vars.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    };
    let chosen = |vars: &'static [(&str, &str)], https: bool| {
        let proxies = Proxies::from_lookup(env(vars)).unwrap();
        proxies.select(https, &name("bird.test"), 80).map(|proxy| proxy.to_string())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(chosen(&[], false), None);
    assert_eq!(chosen(&[("http_proxy", "a:1"), ("HTTP_PROXY", "b:1")], false), some("http://a:1"));
    assert_eq!(chosen(&[("HTTP_PROXY", "b:1")], false), some("http://b:1"));
    assert_eq!(chosen(&[("HTTP_PROXY", "b:1")], true), None);
    assert_eq!(chosen(&[("HTTPS_PROXY", "b:1")], true), some("http://b:1"));
    assert_eq!(chosen(&[("ALL_PROXY", "socks5://c")], true), some("socks5://c:1080"));
    assert_eq!(chosen(&[("all_proxy", "c:1"), ("http_proxy", "a:1")], false), some("http://a:1"));
    assert_eq!(chosen(&[("http_proxy", " "), ("HTTP_PROXY", "b:1")], false), some("http://b:1"));
    // CVE-2016-5385: in a CGI program HTTP_PROXY is the request's `Proxy` field.
    assert_eq!(chosen(&[("HTTP_PROXY", "b:1"), ("REQUEST_METHOD", "GET")], false), None);
    assert_eq!(
        chosen(&[("http_proxy", "a:1"), ("REQUEST_METHOD", "GET")], false),
        some("http://a:1")
    );
    assert_eq!(chosen(&[("ALL_PROXY", "c:1"), ("NO_PROXY", "bird.test")], true), None);
    assert_eq!(
        chosen(&[("ALL_PROXY", "c:1"), ("no_proxy", "x"), ("NO_PROXY", "*")], true),
        some("http://c:1")
    );
    let error = Proxies::from_lookup(env(&[("HTTPS_PROXY", "gopher://p:secret")])).unwrap_err();
    assert!(error.to_string().starts_with("HTTPS_PROXY: "), "{error}");
    assert!(!error.to_string().contains("secret"));
}

#[test]
fn rules_can_be_set_by_hand() {
    let parse = |url| Proxy::parse(url).unwrap();
    assert!(Proxies::none().is_empty());
    let proxies = Proxies::all(parse("a:1")).https(parse("b:2")).no_proxy("fish.test");
    let pick = |https, host: &str| proxies.select(https, &name(host), 80).map(|p| p.port);
    assert_eq!(pick(false, "bird.test"), Some(1));
    assert_eq!(pick(true, "bird.test"), Some(2));
    assert_eq!(pick(true, "fish.test"), None);
    assert_eq!(Proxies::none().http(parse("a:1")).select(true, &name("b"), 1), None);
}
