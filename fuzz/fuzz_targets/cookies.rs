//! A jar keeps its limits whatever it is given, sends only what a field can carry, and survives being
//! written to a file.

#![cfg_attr(feature = "libfuzzer", no_main)]

use std::time::{Duration, SystemTime};

use mimus::cookie::{Jar, Limits};
use mimus_fuzz::{Choices, fuzz};
use url::Url;

/// Some site's name is below another's, one is a public suffix, and some are no names at all.
const URLS: [&str; 8] = [
    "https://example.com/",
    "http://example.com/dir/page",
    "https://www.example.com/dir/",
    "https://example.co.uk/",
    "https://co.uk/",
    "http://localhost/",
    "http://127.0.0.1/",
    "https://[::1]/",
];

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.size, limits.per_site, limits.total) = (64, 3, 5);
    limits
}

fn urls() -> Vec<Url> {
    URLS.iter().map(|url| Url::parse(url).expect("a constant")).collect()
}

fn sent(jar: &Jar, urls: &[Url], now: SystemTime) -> Vec<Option<Vec<u8>>> {
    urls.iter().map(|url| jar.cookies_at(url, now)).collect()
}

fn check(jar: &Jar, urls: &[Url], now: SystemTime) {
    let limits = limits();
    assert!(jar.len() <= limits.total);
    for field in sent(jar, urls, now).iter().flatten() {
        assert!(http::HeaderValue::from_bytes(field).is_ok(), "{}", field.escape_ascii());
        // A semicolon ends a cookie: none can hold one.
        let cookies: Vec<&[u8]> = field.split(|&byte| byte == b';').collect();
        assert!(cookies.len() <= limits.per_site, "{}", field.escape_ascii());
        assert!(cookies.iter().all(|cookie| cookie.len() <= limits.size + 2));
        assert!(cookies.iter().all(|cookie| cookie.contains(&b'=')));
    }
}

/// What a file of the jar's own brings back.
fn check_files(jar: &Jar, urls: &[Url], now: SystemTime) {
    let before = sent(jar, urls, now);
    let json = jar.to_json(true).expect("a jar can be written");
    let from_json = Jar::with_limits(limits());
    from_json.add_json(&json, now).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(sent(&from_json, urls, now), before, "{json}");

    let netscape = jar.to_netscape(true);
    let from_netscape = Jar::with_limits(limits());
    let added = from_netscape.add_netscape(&netscape, now);
    added.unwrap_or_else(|e| panic!("{e}: {netscape:?}"));
    // The format has no way to write a tab.
    if !json.contains(r"\t") && !json.contains('\t') {
        assert_eq!(sent(&from_netscape, urls, now), before, "{netscape:?}");
    }
}

fuzz!("cookies", |data| {
    let mut choices = Choices::new(data);
    let (jar, urls) = (Jar::with_limits(limits()), urls());
    let mut now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    while !choices.is_empty() {
        let choice = usize::from(choices.byte());
        match choice >> 3 & 7 {
            0 => drop(jar.add_netscape(&choices.text(), now)),
            1 => drop(jar.add_json(&choices.text(), now)),
            2 => now += Duration::from_secs(1 << (choices.byte() & 31)),
            _ => drop(jar.set_at(&urls[choice & 7], choices.bytes(), now)),
        }
        check(&jar, &urls, now);
    }
    check_files(&jar, &urls, now);
});
