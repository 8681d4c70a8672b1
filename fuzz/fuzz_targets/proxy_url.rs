//! A proxy's URL names one host and port or is refused, and nothing said of it shows a password.

#![cfg_attr(feature = "libfuzzer", no_main)]

use std::error::Error;

use mimus_fuzz::{Choices, fuzz};
use mimus_net::proxy::{Proxy, ProxyError};

const PASSWORD: &str = "hunter2hunter2";

fn check(url: &str) -> Option<Proxy> {
    let proxy = Proxy::parse(url).ok()?;
    assert_ne!(proxy.port, 0);
    // Where a browser ends the authority and RFC 3986 does not: the host would be a guess.
    assert!(!url.contains('\\'), "{url:?} is {proxy}");
    // What is shown is the proxy itself, without its credentials.
    let shown = proxy.to_string();
    let again = Proxy::parse(&shown).unwrap_or_else(|e| panic!("{shown:?}: {e}"));
    assert_eq!(again, Proxy { auth: None, ..proxy.clone() });
    assert_eq!(again.to_string(), shown);
    assert_eq!(proxy.basic_auth().is_some(), proxy.auth.is_some());
    Some(proxy)
}

fn said_of(error: &ProxyError) -> String {
    let cause = error.source().map(ToString::to_string);
    format!("{error} {error:?} {}", cause.unwrap_or_default())
}

fuzz!("proxy_url", |data| {
    let text = String::from_utf8_lossy(data);
    check(&text);
    let mut choices = Choices::new(data);
    let before = choices.text();
    let rest = String::from_utf8_lossy(choices.rest()).into_owned();
    let url = format!("{before}{PASSWORD}{rest}");
    match Proxy::parse(&url) {
        Err(error) => assert!(!said_of(&error).contains(PASSWORD), "{url:?}: {error}"),
        // A host can be called anything.
        Ok(proxy) if proxy.host.to_string().contains(PASSWORD) => drop(check(&url)),
        Ok(proxy) => {
            assert!(!format!("{proxy} {proxy:?}").contains(PASSWORD), "{url:?}");
            check(&url);
        }
    }
});
