//! Safari's profiles against what public tables print of Safari: nobody captured one for us.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mimus::blocking::Client;
use mimus::fingerprint::{
    Answer, Asked, ExtensionId, Frame, Listener, Seen, Serving, Site, Transport, akamai,
};
use mimus::profile::{Kind, Profile, Verified};
use mimus::tls::{BORINGSSL_IS_PATCHED, Roots, TlsConfig};

/// Generous: what is waited for comes at once.
const LIMIT: Duration = Duration::from_secs(60);

/// What the tables have of one version. They are named by `source` in the profiles.
struct Published {
    profiles: [&'static str; 2],
    ja3: &'static str,
    ja3n: &'static str,
    ja4: &'static str,
    peetprint: &'static str,
    groups: &'static [u16],
    versions: &'static [u16],
    padded: bool,
    /// In the HEADERS of a navigation, as on the wire.
    weight: Option<u8>,
}

/// What Akamai's form says of all of them.
const HTTP2: &str = "2:0;3:100;4:2097152;9:1|10420225|0|m,s,a,p";

const PUBLISHED: [Published; 2] = [
    Published {
        profiles: ["safari-26-macos", "safari-26-ios"],
        ja3: "ecdf4f49dd59effc439639da29186671",
        ja3n: "771,4866-4867-4865-49196-49195-52393-49200-49199-52392-49162-49161-49172-49171-157-156-53-47-\
               49160-49170-10,0-5-10-11-13-16-18-23-27-43-45-51-65281,4588-29-23-24-25,0",
        ja4: "t13d2013h2_a09f3c656075_7f0f34a4126d",
        peetprint: "GREASE-772-771|2-1.1|GREASE-4588-29-23-24-25|1027-2052-1025-1283-2053-2053-1281-2054-\
                    1537-513|1|1|GREASE-4866-4867-4865-49196-49195-52393-49200-49199-52392-49162-49161-\
                    49172-49171-157-156-53-47-49160-49170-10|0-10-11-13-16-18-23-27-43-45-5-51-65281-\
                    GREASE-GREASE",
        groups: &[0x11ec, 0x1d],
        versions: &[0x0304, 0x0303],
        padded: false,
        weight: None,
    },
    Published {
        profiles: ["safari-18-macos", "safari-18-ios"],
        ja3: "773906b0efdefa24a7f2b8eb6985bf37",
        ja3n: "771,4865-4866-4867-49196-49195-52393-49200-49199-52392-49162-49161-49172-49171-157-156-53-47-\
               49160-49170-10,0-5-10-11-13-16-18-21-23-27-43-45-51-65281,29-23-24-25,0",
        ja4: "t13d2014h2_a09f3c656075_e42f34c56612",
        peetprint: "GREASE-772-771-770-769|2-1.1|GREASE-29-23-24-25|1027-2052-1025-1283-2053-2053-1281-2054-\
                    1537-513|1|1|GREASE-4865-4866-4867-49196-49195-52393-49200-49199-52392-49162-49161-\
                    49172-49171-157-156-53-47-49160-49170-10|0-10-11-13-16-18-21-23-27-43-45-5-51-65281-\
                    GREASE-GREASE",
        groups: &[0x1d],
        versions: &[0x0304, 0x0303, 0x0302, 0x0301],
        padded: true,
        weight: Some(255),
    },
];

/// Between one GREASE and the other.
const ORDER: [u16; 13] = [0, 23, 65281, 10, 11, 16, 5, 13, 18, 51, 45, 43, 27];

/// The fields of a navigation, behind the pseudo-fields.
const NAVIGATION: [&str; 8] = [
    "sec-fetch-dest",
    "user-agent",
    "accept",
    "sec-fetch-site",
    "sec-fetch-mode",
    "accept-language",
    "priority",
    "accept-encoding",
];

/// Sends on what was seen when a connection is over.
struct Watching(std::sync::mpsc::Sender<Seen>);

impl Site for Watching {
    fn answer(&self, _: &Seen, _: &Asked<'_>) -> Answer {
        Answer::new("text/plain", "chirp")
    }

    fn left(&self, seen: &Seen) {
        let _ = self.0.send(seen.clone());
    }
}

struct Rig {
    serving: Serving,
    authority: Vec<u8>,
    seen: Receiver<Seen>,
}

fn rig(protocols: &[&str]) -> Rig {
    let listener = Listener::bind_with("127.0.0.1:0", &["localhost"], protocols);
    let listener = listener.expect("a listener");
    let authority = listener.authority_pem().to_vec();
    let (sender, seen) = channel();
    let serving = listener.serve(Watching(sender)).expect("a thread");
    Rig { serving, authority, seen }
}

impl Rig {
    /// What one request of this kind looks like, on a connection of its own.
    fn ask(&self, profile: &str, kind: Kind) -> Seen {
        // Of its own, so that no session is resumed.
        let tls = TlsConfig::builder().roots(Roots::None).add_ca(&self.authority).build();
        let client = Client::builder().tls(tls.expect("TLS")).timeout(LIMIT).profile(profile);
        let client = client.proxies(mimus::Proxies::none()).build().expect("a client");
        let url = format!("https://localhost:{}/", self.serving.local_addr().port());
        let answer = client.get(url).kind(kind).send().expect("an answer");
        assert_eq!(answer.text().expect("a body"), "chirp");
        drop(client);
        self.seen.recv_timeout(LIMIT).expect("a connection that ended")
    }
}

/// Whether the test can be made; that it has to be, `MIMUS_REQUIRE_PATCH` says.
fn patched() -> bool {
    let required = std::env::var_os("MIMUS_REQUIRE_PATCH").is_some();
    assert!(BORINGSSL_IS_PATCHED || !required, "this build's BoringSSL lacks Mimus's patch");
    BORINGSSL_IS_PATCHED
}

fn expect_hello(seen: &Seen, published: &Published) {
    let hello = seen.hello.as_ref().expect("a ClientHello");
    assert_eq!(hello.ja3().hash, published.ja3, "{}", hello.ja3().raw);
    assert_eq!(hello.ja3n().raw, published.ja3n);
    assert_eq!(hello.ja4(Transport::Tcp).hash, published.ja4);
    assert_eq!(hello.peetprint().raw, published.peetprint);
    let ids: Vec<u16> = hello.extensions.iter().map(|extension| extension.id.0).collect();
    let grease = |id: u16| id & 0x0f0f == 0x0a0a;
    let [first, inner @ ..] = &ids[..] else { panic!("no extensions") };
    let (order, rest) = inner.split_at(ORDER.len());
    assert_eq!(order, ORDER);
    assert!(grease(*first) && grease(rest[0]) && *first != rest[0], "{ids:?}");
    assert_eq!(rest[1..] == [21], published.padded, "{rest:?}");
    assert_eq!(hello.message.len() == 512, published.padded, "{}", hello.message.len());
    let greased = |list: &[u16]| grease(list[0]) && !list[1..].iter().any(|id| grease(*id));
    let shares: Vec<u16> = hello.key_shares().iter().map(|share| share.group).collect();
    assert!(greased(&shares) && greased(hello.versions()) && greased(hello.groups()));
    assert_eq!(shares[1..], *published.groups);
    assert_eq!(hello.versions()[1..], *published.versions);
    assert!(greased(&hello.cipher_suites));
    assert!(!hello.signature_algorithms().iter().any(|scheme| grease(*scheme)));
    assert_eq!(hello.certificate_compression(), [1]);
    assert!(hello.extension(ExtensionId(35)).is_none());
}

/// How the connection opens, and its first request.
fn expect_http2(seen: &Seen, published: &Published, agent: &str) {
    assert_eq!(akamai(&seen.frames).raw, HTTP2);
    let frames = &seen.frames;
    assert!(matches!(frames[0], Frame::Settings { ack: false, .. }), "{:?}", frames[0]);
    assert!(matches!(frames[1], Frame::WindowUpdate { stream: 0, .. }), "{:?}", frames[1]);
    let Some(Frame::Headers(block)) = frames.iter().find(|f| matches!(f, Frame::Headers(_))) else {
        panic!("no request");
    };
    assert_eq!(block.stream, 1);
    let priority = block.priority.map(|p| (p.depends_on, p.exclusive, p.weight));
    assert_eq!(priority, published.weight.map(|weight| (0, false, weight)));
    let names: Vec<&[u8]> = block.fields.iter().map(|field| &field.name[..]).collect();
    assert_eq!(names[4..], NAVIGATION.map(str::as_bytes));
    assert_eq!(names[..4], [":method", ":scheme", ":authority", ":path"].map(str::as_bytes));
    assert_eq!(block.fields[5].value, agent.as_bytes());
}

#[test]
fn what_is_sent_is_what_the_tables_print() {
    if !patched() {
        return;
    }
    let rig = rig(&["h2", "http/1.1"]);
    for published in &PUBLISHED {
        for name in published.profiles {
            let profile = Profile::named(name).expect(name);
            assert_eq!((profile.browser(), profile.verified()), ("safari", Verified::No));
            assert!(profile.sources().count() >= 2, "{name}");
            let entries = profile.entries();
            let (_, agent) = entries.iter().find(|(at, _)| at == "values.user-agent").expect(name);
            let seen = rig.ask(name, Kind::Navigate);
            expect_hello(&seen, published);
            expect_http2(&seen, published, agent.trim_matches('"'));
        }
    }
}

#[test]
fn each_of_its_kinds_can_be_asked_for_over_either_version() {
    if !patched() {
        return;
    }
    let (over_http2, over_http1) = (rig(&["h2"]), rig(&["http/1.1"]));
    for (kind, dest) in [
        (Kind::Navigate, "document"),
        (Kind::FETCH, "empty"),
        (Kind::Image, "image"),
        (Kind::Style, "style"),
    ] {
        let seen = over_http2.ask("safari", kind);
        let Some(Frame::Headers(block)) =
            seen.frames.iter().find(|frame| matches!(frame, Frame::Headers(_)))
        else {
            panic!("no request");
        };
        let first = &block.fields[4];
        assert_eq!((&first.name[..], &first.value[..]), (&b"sec-fetch-dest"[..], dest.as_bytes()));
        let seen = over_http1.ask("safari", kind);
        let fields: Vec<&str> = seen.heads[0].fields.iter().map(|(name, _)| name).collect();
        assert_eq!((fields[0], fields.last()), ("Host", Some(&"Connection")));
        let lower: Vec<String> = fields.iter().map(|name| name.to_ascii_lowercase()).collect();
        let own: Vec<_> =
            NAVIGATION.iter().filter(|name| lower.iter().any(|its| its == *name)).collect();
        assert_eq!(own.len(), NAVIGATION.len(), "{fields:?}");
    }
}
