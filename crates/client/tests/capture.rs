//! A profile captured from our own client as a browser says what that browser's profile says.

use std::time::Duration;

use mimus::{
    blocking::Client,
    fingerprint::{Frame, Seen},
    profile::{
        Kind, Profile,
        capture::{CaptureError, Captured, Pages},
    },
    tls::{BORINGSSL_IS_PATCHED, Roots, TlsConfig},
};

/// Generous: what is waited for comes at once.
const LIMIT: Duration = Duration::from_secs(60);

/// Goes through the pages as a browser of this profile does.
fn seen_of(profile: &Profile, connections: usize) -> Vec<Seen> {
    let pages = Pages::start(connections).expect("servers");
    let tls = TlsConfig::builder().roots(Roots::None).add_ca(pages.authority_pem());
    let tls = tls.build().expect("TLS");
    let client = Client::builder().profile(profile).tls(tls).timeout(LIMIT);
    let client = client.proxies(mimus::Proxies::none()).build().expect("a client");
    let ask = |url: &str, kind: Kind| {
        let request = client.get(url).kind(kind).initiator(pages.url());
        request.send().expect("an answer").bytes().expect("a body");
    };
    let load = |root: &str| {
        for (path, kind) in [
            ("style.css", Kind::Style),
            ("script.js", Kind::Script),
            ("image.svg", Kind::Image),
            ("frame", Kind::Iframe),
            ("fetch", Kind::FETCH),
            ("xhr", Kind::Xhr),
        ] {
            ask(&format!("{root}{path}"), kind);
        }
    };
    client.get(pages.url()).send().expect("an answer").bytes().expect("a body");
    load(pages.url());
    for url in &pages.urls()[1..] {
        ask(&format!("{url}other"), Kind::FETCH);
    }
    let http1 = pages.urls().last().expect("a server of HTTP/1.1");
    ask(&format!("{http1}other"), Kind::FETCH);
    let alone = client.get(format!("{http1}other")).version(http::Version::HTTP_11);
    alone.send().expect("an answer").bytes().expect("a body");
    ask(&format!("{http1}again"), Kind::Navigate);
    load(http1);
    ask(&format!("{}done", pages.url()), Kind::FETCH);
    let (_, done) = pages.wait(LIMIT);
    assert!(done, "the last page was asked for");
    pages.seen()
}

fn http2_of(profile: &Profile) -> Vec<(String, String)> {
    profile.entries().into_iter().filter(|(place, _)| place.starts_with("http2.")).collect()
}

/// What comes back is the same, whether all of a set of lengths was seen or not.
fn round_trip(name: &str) {
    let profile = Profile::named(name).expect("a profile");
    let captured = Captured::from_seen(&seen_of(&profile, 6), None).expect("a profile");
    let notes = captured.notes.join("\n");
    assert_eq!(captured.nearest.name(), name, "{notes}");
    assert_eq!(captured.profile.client_hello(), profile.client_hello(), "{notes}");
    assert_eq!(http2_of(&captured.profile), http2_of(&profile), "{notes}");
    let differences = captured.differences();
    assert!(differences.is_empty(), "{differences:?} {notes}");
    assert!(!notes.contains("order is what came"), "{notes}");
    let again = Profile::from_toml(&captured.toml).expect("a file");
    assert_eq!(again.browser(), profile.browser());
    assert_eq!((again.version(), again.platform()), (profile.version(), profile.platform()));
}

#[test]
fn a_chromium_is_what_was_shipped() {
    round_trip("chromium-156-linux");
}

#[test]
fn a_chrome_of_another_platform_is_told_by_what_it_says() {
    round_trip("chrome-153-windows");
}

#[test]
fn a_firefox_is_what_was_shipped() {
    if BORINGSSL_IS_PATCHED {
        round_trip("firefox-153-linux");
    }
}

#[test]
fn an_edge_is_no_chrome() {
    round_trip("edge-156-android");
}

/// A browser that is none of ours, as a file that changes what one says.
const OTHER: &str = r#"
name = "other"
extends = "chromium-156-linux"
version = "157"

[values]
user-agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/157.0.0.0 Safari/537.36"

[http2]
settings = [[2, 0], [4, 1048576]]
window_increment = 1000000
pseudo = ["method", "path", "authority", "scheme"]

[tls]
groups = ["x25519", "secp256r1"]
key_shares = ["x25519"]
signed_certificate_timestamps = false

[kinds.fetch]
weight = 99
[kinds.fetch.values]
accept = "text/x-wren"
[kinds.script.values]
accept = "text/x-robin"
"#;

#[test]
fn what_is_not_the_nearest_s_is_in_the_file() {
    let other = Profile::from_toml(OTHER).expect("a profile");
    let captured = Captured::from_seen(&seen_of(&other, 4), Some("mine")).expect("a profile");
    let notes = captured.notes.join("\n");
    assert_eq!((captured.profile.name(), captured.profile.version()), ("mine", "157"));
    assert_eq!(captured.nearest.browser(), "chromium");
    assert_eq!(captured.profile.client_hello().map(|hello| hello.groups.len()), Some(2));
    let said = |profile: &Profile| {
        let entries = profile.entries().into_iter();
        let places = ["http2.settings", "http2.window_increment", "http2.pseudo"];
        let of_kinds =
            ["kinds.fetch.weight", "kinds.fetch.values.accept", "kinds.script.values.accept"];
        let wanted =
            entries.filter(|(place, _)| places.contains(&&**place) || of_kinds.contains(&&**place));
        wanted.collect::<Vec<_>>()
    };
    assert_eq!(said(&captured.profile), said(&other), "{notes}");
    let places: Vec<String> = captured.differences().into_iter().map(|(place, ..)| place).collect();
    for place in ["tls.groups", "tls.key_shares", "http2.settings", "values.user-agent"] {
        assert!(places.iter().any(|its| its == place), "{place} is not among {places:?}");
    }
}

/// A browser whose fields stand as in none of ours, are others, and are spelt otherwise.
const REORDERED: &str = r#"
name = "reordered"
extends = "chromium-156-linux"

[kinds.navigate]
order = [
    "Host", "User-Agent", "h1:Connection", "Accept", "*", "h2:sec-ch-ua", "Accept-Language", "h1:sec-ch-ua",
    "sec-ch-ua-mobile", "Accept-encoding", "Referer", "Sec-Fetch-Site", "Sec-GPC", "Sec-Fetch-Mode", "Cookie",
    "Sec-Fetch-Dest", "Sec-Fetch-User", "h2:priority",
]
[kinds.navigate.values]
sec-gpc = "1"

[kinds.fetch]
order = [
    "Host", "h2:priority", "Content-Length", "h1:Connection", "Accept", "Referer", "Accept-Language", "User-Agent",
    "Origin", "Accept-Encoding", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-Dest", "*", "Content-Type",
]
"#;

/// Whether it went over HTTP/2, the path, and the fields in their order, of each request.
type Asked = (bool, String, Vec<(String, String)>);

fn asked(seen: &[Seen]) -> Vec<Asked> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let over_http1 = seen.iter().flat_map(|seen| &seen.heads).map(|head| {
        let fields = head.fields.iter().filter(|(name, _)| *name != "Host");
        let fields = fields.map(|(name, value)| (name.to_owned(), text(value)));
        (false, head.target.clone(), fields.collect())
    });
    let over_http2 = seen.iter().flat_map(|seen| &seen.frames).filter_map(|frame| {
        let Frame::Headers(block) = frame else { return None };
        let fields = block.fields.iter().map(|field| (text(&field.name), text(&field.value)));
        let (pseudo, fields): (Vec<_>, Vec<_>) =
            fields.partition(|(name, _)| name.starts_with(':'));
        let path = pseudo.into_iter().find(|(name, _)| name == ":path")?;
        Some((true, path.1, fields))
    });
    let mut all: Vec<Asked> = over_http1.chain(over_http2).collect();
    // Pages are on ports of their own in each run.
    for (_, value) in all.iter_mut().flat_map(|(_, _, fields)| fields) {
        let port = value.find("localhost:").map(|at| at + "localhost:".len());
        value.retain(|letter| port.is_none() || !letter.is_ascii_digit());
    }
    all.sort();
    all
}

#[test]
fn an_order_that_is_nobodys_is_what_the_captured_one_has() {
    let original = Profile::from_toml(REORDERED).expect("a profile");
    let seen = seen_of(&original, 3);
    let captured = Captured::from_seen(&seen, None).expect("a profile");
    let notes = captured.notes.join("\n");
    for kind in ["navigate", "fetch", "xhr", "script"] {
        assert!(notes.contains(&format!("kinds.{kind}.order is what came")), "{kind}: {notes}");
    }
    let (was, is) = (asked(&seen), asked(&seen_of(&captured.profile, 3)));
    for (was, is) in was.iter().zip(&is) {
        assert_eq!(was, is, "{notes}");
    }
    assert_eq!(was.len(), is.len());
    // What nothing showed has its place all the same.
    let navigate =
        captured.toml.parse::<toml::Table>().expect("TOML")["kinds"]["navigate"]["order"].clone();
    let navigate = navigate.as_array().expect("a list").clone();
    for place in ["*", "Cookie", "Content-Type", "sec-ch-ua-arch"] {
        assert!(
            navigate.iter().any(|entry| entry.as_str() == Some(place)),
            "{place}: {navigate:?}"
        );
    }
}

#[test]
fn without_a_hello_there_is_no_profile() {
    let error = Captured::from_seen(&[], None).expect_err("nothing was seen");
    assert!(matches!(error, CaptureError::NoHello));
}
