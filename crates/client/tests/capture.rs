//! A profile captured from our own client as a browser says what that browser's profile says.

use std::time::Duration;

use mimus::{
    blocking::Client,
    fingerprint::Seen,
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
    client.get(pages.url()).send().expect("an answer").bytes().expect("a body");
    for (path, kind) in [
        ("style.css", Kind::Style),
        ("script.js", Kind::Script),
        ("image.svg", Kind::Image),
        ("frame", Kind::Iframe),
        ("fetch", Kind::FETCH),
        ("xhr", Kind::Xhr),
    ] {
        ask(&format!("{}{path}", pages.url()), kind);
    }
    for url in &pages.urls()[1..] {
        ask(&format!("{url}other"), Kind::FETCH);
    }
    let http1 = pages.urls().last().expect("a server of HTTP/1.1");
    ask(&format!("{http1}other"), Kind::FETCH);
    let alone = client.get(format!("{http1}other")).version(http::Version::HTTP_11);
    alone.send().expect("an answer").bytes().expect("a body");
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
    assert!(!notes.contains("order is not"), "{notes}");
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

#[test]
fn without_a_hello_there_is_no_profile() {
    let error = Captured::from_seen(&[], None).expect_err("nothing was seen");
    assert!(matches!(error, CaptureError::NoHello));
}
