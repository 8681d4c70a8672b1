//! What the listener sees of clients: ours, and one that is written by hand.

use std::io::{Read, Write};
use std::iter;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mimus::blocking::Client;
use mimus::fingerprint::{
    Answer, Asked, ExtensionId, Frame, Listener, Seen, Serving, Site, Transport,
};
use mimus::tls::{Roots, TlsConfig};

/// Generous: what is waited for comes at once.
const LIMIT: Duration = Duration::from_secs(60);

/// Answers with what was asked for, and sends on what was seen when the connection is over.
struct Echo(Sender<Seen>);

impl Site for Echo {
    fn answer(&self, _: &Seen, asked: &Asked<'_>) -> Answer {
        Answer::new("text/plain", format!("{} {}", asked.method, asked.target))
    }

    fn left(&self, seen: &Seen) {
        let _ = self.0.send(seen.clone());
    }
}

struct Rig {
    serving: Serving,
    tls: TlsConfig,
    seen: Receiver<Seen>,
}

fn rig() -> Rig {
    let listener = Listener::bind("127.0.0.1:0", &["localhost", "127.0.0.1"]).expect("a listener");
    let tls = TlsConfig::builder().roots(Roots::None).add_ca(listener.authority_pem());
    let (sender, seen) = channel();
    let serving = listener.serve(Echo(sender)).expect("a thread");
    Rig { serving, tls: tls.build().expect("TLS"), seen }
}

impl Rig {
    fn client(&self) -> Client {
        let builder = Client::builder().tls(self.tls.clone()).timeout(LIMIT);
        builder.proxies(mimus::Proxies::none()).build().expect("a client")
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.serving.local_addr().port())
    }

    fn seen(&self) -> Seen {
        self.seen.recv_timeout(LIMIT).expect("a connection that ended")
    }
}

#[test]
fn http2_is_seen_frame_by_frame() {
    let rig = rig();
    let client = rig.client();
    let text = client.get(rig.url("/wren")).send().expect("an answer").text().expect("a body");
    assert_eq!(text, "GET /wren");
    let posted = client.post(rig.url("/robin")).body("chirp").send().expect("an answer");
    assert_eq!(posted.text().expect("a body"), "POST /robin");
    drop(client);

    let seen = rig.seen();
    let hello = seen.hello.as_ref().expect("a ClientHello");
    assert_eq!(hello.server_name(), Some("localhost"));
    assert_eq!(hello.alpn(), ["h2", "http/1.1"]);
    assert!(hello.ja4(Transport::Tcp).hash.starts_with("t13d"));
    assert_eq!((seen.alpn.as_deref(), seen.resumed), (Some("h2"), false));
    assert!(matches!(seen.frames[0], Frame::Settings { ack: false, .. }));
    let heads: Vec<_> = (seen.frames.iter())
        .filter_map(|frame| match frame {
            Frame::Headers(block) => Some(block.fields[0].value.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(heads, ["GET", "POST"]);

    let described = seen.describe();
    let akamai = described["http2"]["akamai"].as_str().expect("a text");
    assert!(akamai.starts_with("2:0;4:1048576"), "{akamai}");
    assert_eq!(described["tls"]["alpn"], "h2");
}

#[test]
fn a_second_connection_is_seen_to_resume() {
    let rig = rig();
    for resumed in [false, true] {
        // A client of its own has a pool of its own; the sessions are the configuration's.
        let answer = rig.client().get(rig.url("/")).send().expect("an answer");
        drop(answer.text().expect("a body"));
        let seen = rig.seen();
        let offered = seen.hello.and_then(|h| h.extension(ExtensionId::PRE_SHARED_KEY).cloned());
        assert_eq!((offered.is_some(), seen.resumed), (resumed, resumed));
    }
}

#[test]
fn http1_heads_keep_order_and_case() {
    let rig = rig();
    let mut socket = TcpStream::connect(rig.serving.local_addr()).expect("a connection");
    let head = "POST /wren HTTP/1.1\r\nHost: a\r\nX-Bird: 1\r\nx-lower: 2\r\nContent-Length: 5\r\n\
                Connection: close\r\n\r\nchirp";
    let pipelined = format!("GET /a HTTP/1.1\r\nHost: a\r\n\r\n{head}");
    socket.write_all(pipelined.as_bytes()).expect("sent");
    let mut answers = String::new();
    socket.read_to_string(&mut answers).expect("answers");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert!(answers.ends_with("POST /wren"), "{answers}");

    let seen = rig.seen();
    assert!(seen.hello.is_none() && seen.error.is_none(), "{:?}", seen.error);
    let names: Vec<&str> = seen.heads[1].fields.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Host", "X-Bird", "x-lower", "Content-Length", "Connection"]);
    let described = seen.describe();
    assert_eq!(described["http1"][1]["headers"][1][0], "X-Bird");
    assert_eq!(described["http1"][1]["version"], "HTTP/1.1");
}

#[test]
fn http2_is_seen_without_tls_too() {
    let rig = rig();
    let client = Client::builder().version(http::Version::HTTP_2).timeout(LIMIT);
    let client = client.proxies(mimus::Proxies::none()).build().expect("a client");
    let url = format!("http://{}/wren", rig.serving.local_addr());
    assert_eq!(client.get(url).send().expect("an answer").text().expect("a body"), "GET /wren");
    drop(client);
    let seen = rig.seen();
    assert!(seen.hello.is_none() && seen.heads.is_empty() && !seen.frames.is_empty());
}

#[test]
fn what_breaks_off_is_told_with_what_was_seen() {
    let rig = rig();
    // A client that trusts nobody but another authority says so after the server's first flight.
    let other = Listener::bind("127.0.0.1:0", &["localhost"]).expect("a listener");
    let tls = TlsConfig::builder().roots(Roots::None).add_ca(other.authority_pem());
    let client = Client::builder().tls(tls.build().expect("TLS")).build().expect("a client");
    client.get(rig.url("/")).send().expect_err("not trusted");
    let seen = rig.seen();
    assert!(seen.hello.is_some());
    assert!(seen.error.is_some());

    let mut socket = TcpStream::connect(rig.serving.local_addr()).expect("a connection");
    socket.write_all(&[22, 3, 1, 0, 5, 1, 2, 3]).expect("sent");
    drop(socket);
    let seen = rig.seen();
    assert!(seen.hello.is_none() && seen.error.is_some());
}

#[test]
fn a_listener_that_is_dropped_takes_no_connection() {
    let rig = rig();
    let addr = rig.serving.local_addr();
    drop(rig);
    assert!(TcpStream::connect(addr).is_err());
}

/// What a JA3 and an Akamai text describe is what is seen, and the rest is as it would be without them.
mod texts {
    use mimus::fingerprint::akamai;
    use mimus::profile::Profile;

    use super::*;

    /// What is seen of a client that asks once.
    fn seen_of(rig: &Rig, builder: mimus::ClientBuilder<mimus::Blocking>) -> Seen {
        let builder = builder.tls(rig.tls.clone()).timeout(LIMIT).no_proxy();
        let client = builder.build().expect("a client");
        client.get(rig.url("/")).send().expect("an answer").text().expect("a body");
        drop(client);
        rig.seen()
    }

    fn ja3(seen: &Seen) -> String {
        seen.hello.as_ref().expect("a ClientHello").ja3().raw
    }

    /// Of Chromium 131, in an order of one of its connections.
    const CHROMIUM: &str = "771,4865-4866-4867-49195-49199-49196-49200-52393-52392-49171-49172-156-157-47-53,\
         17513-65037-0-5-10-11-13-16-18-23-27-35-43-45-51-65281,4588-29-23-24,0";
    /// Of Firefox 140.
    const FIREFOX: &str = "771,4865-4867-4866-49195-49199-52393-52392-49196-49200-49162-49161-49171-49172-156-157-47-53,\
         0-23-65281-10-11-35-16-5-34-18-51-43-13-45-28-27-65037,4588-29-23-24-25-256-257,0";
    /// Nobody's.
    const NOBODY: &str = "771,4866-4865-49196-49195-52393,43-0-10-11-13-16-23-51-45-65281,29-24,0";
    const OPENING: &str = "3:77;1:4096;4:70000|98765|3:0:0:201,5:1:3:1|p,m,s,a";

    #[test]
    fn each_is_what_is_seen() {
        if !mimus::tls::BORINGSSL_IS_PATCHED {
            return;
        }
        let rig = rig();
        for text in [CHROMIUM, FIREFOX, NOBODY] {
            let seen = seen_of(&rig, Client::builder().ja3(text).akamai(OPENING));
            assert_eq!(ja3(&seen), text);
            assert_eq!(akamai(&seen.frames).raw, OPENING);
        }
    }

    #[test]
    fn what_they_do_not_say_is_the_nearest_browser_s() {
        if !mimus::tls::BORINGSSL_IS_PATCHED {
            return;
        }
        let rig = rig();
        for (text, name) in [(CHROMIUM, "chrome-131"), (FIREFOX, "firefox-140")] {
            let profile = Profile::named(name).expect("a profile");
            let browser = profile.client_hello().expect("a ClientHello");
            let seen = seen_of(&rig, Client::builder().ja3(text));
            let hello = seen.hello.expect("a ClientHello");
            let algorithms = hello
                .signature_algorithms()
                .iter()
                .filter(|id| !mimus::fingerprint::is_grease(**id));
            let known = browser.signature_algorithms.iter().map(|scheme| scheme.0);
            assert!(algorithms.copied().eq(known), "{text}");
            let greased = hello.cipher_suites.iter().any(|id| mimus::fingerprint::is_grease(*id));
            assert_eq!(greased, browser.grease, "{text}");
        }
    }

    #[test]
    fn over_a_profile_the_rest_is_the_profile_s() {
        if !mimus::tls::BORINGSSL_IS_PATCHED {
            return;
        }
        let rig = rig();
        let plain = seen_of(&rig, Client::builder().profile("firefox-153"));
        let mut parts: Vec<String> = ja3(&plain).split(',').map(str::to_owned).collect();
        // Another order of its extensions.
        let mut extensions: Vec<&str> = parts[2].split('-').collect();
        extensions.rotate_left(3);
        parts[2] = extensions.join("-");
        let text = parts.join(",");
        // In whatever order it is said.
        let builder = Client::builder().ja3(&*text).akamai(OPENING).profile("firefox-153");
        let seen = seen_of(&rig, builder);
        assert_eq!(ja3(&seen), text);
        let [ours, browsers] = [&seen, &plain].map(|seen| {
            let hello = seen.hello.as_ref().expect("a ClientHello");
            (hello.ja3n().raw, hello.peetprint().raw, hello.ja4(Transport::Tcp).raw)
        });
        assert_eq!(ours, browsers);
        assert_eq!(akamai(&seen.frames).raw, OPENING);
        let [ours, browsers] = [&seen, &plain].map(|seen| {
            let first = seen.frames.iter().find_map(|frame| match frame {
                Frame::Headers(block) => Some(block),
                _ => None,
            });
            let block = first.expect("a request");
            let fields = block.fields.iter().map(|field| (field.name.clone(), field.value.clone()));
            let own = fields.filter(|(name, _)| !name.starts_with(b":")).collect::<Vec<_>>();
            (block.priority, own)
        });
        assert_eq!(ours, browsers);
    }

    #[test]
    fn what_cannot_be_said_is_named() {
        let refused = |builder: mimus::ClientBuilder<mimus::Blocking>| match builder.build() {
            Err(error) => format!("{error:#}"),
            Ok(_) => panic!("it is said all the same"),
        };
        for (text, part) in [
            ("e7d705a3286e19ea42f587b344ee6865", "ja3"),
            ("769,47,0-10,29,0", "version"),
            ("771,47-x,0-10-11-13-23-65281,29,0", "cipher_suites"),
            ("771,4865-49195,0-10-11-13-21-23-43-45-51-65281,29,0", "extensions"),
            ("771,4865-49195,0-10-11-13-23-43-45-51-65281,29,0-1", "point_formats"),
        ] {
            for builder in [Client::builder(), Client::builder().profile("chrome-156")] {
                let error = refused(builder.ja3(text));
                assert!(error.contains(&format!("ClientHello: {part}: ")), "{text}: {error}");
            }
        }
        let error = refused(Client::builder().akamai("1:65536|0|0|m,a,s"));
        assert!(error.contains("the pseudo of an Akamai fingerprint"), "{error}");
    }
}

/// An ECHConfigList for servers behind `public.test`, with a key that nobody has.
fn ech_config() -> mimus::tls::EchConfigList {
    let vector = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let contents = [
        &[7, 0, 0x20][..],
        &vector(&[9; 32]),
        &vector(&[0, 1, 0, 1]),
        &[64, 11],
        b"public.test",
        &vector(&[]),
    ];
    let config = [&[0xfe, 0x0d][..], &vector(&contents.concat())].concat();
    mimus::tls::EchConfigList::from_bytes(vector(&config)).expect("a configuration")
}

#[test]
fn with_a_configuration_the_name_is_not_seen() {
    let listener =
        Listener::bind("127.0.0.1:0", &["localhost", "public.test"]).expect("a listener");
    let tls = TlsConfig::builder().roots(Roots::None).add_ca(listener.authority_pem());
    let (sender, seen) = channel();
    let serving = listener.serve(Echo(sender)).expect("a thread");
    let rig = Rig { serving, tls: tls.build().expect("TLS"), seen };
    for browser in [None, Some("chrome-156")] {
        let builder = Client::builder().tls(rig.tls.clone()).timeout(LIMIT).no_proxy();
        let builder = builder.ech(ech_config());
        let builder = match browser {
            Some(browser) => builder.profile(browser),
            None => builder,
        };
        let client = builder.build().expect("a client");
        // This server has no keys, and a certificate for the public name: the answer is not for us.
        let error = client.get(rig.url("/")).send().expect_err("a refusal");
        assert!(format!("{error:#}").contains("it gives no keys to encrypt it with"), "{error:#}");
        let hello = rig.seen().hello.expect("a ClientHello");
        assert_eq!(hello.server_name(), Some("public.test"), "{browser:?}");
        // A call can go without.
        let open = client.get(rig.url("/")).ech(mimus::tls::Ech::Off);
        open.send().expect("an answer").text().expect("a body");
        drop(client);
        // The spare connection that Chrome opens beside a navigation's is refused too, and may end later.
        let names = iter::from_fn(|| Some(rig.seen().hello?.server_name()?.to_owned()));
        let mut named = names.skip_while(|name| name == "public.test");
        assert_eq!(named.next().as_deref(), Some("localhost"), "{browser:?}");
    }
}
