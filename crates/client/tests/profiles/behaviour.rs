//! What follows from who asks, what the user says besides, and what the server wants to know.

use std::time::Duration;

use mimus::{
    Client, ClientBuilder,
    profile::{Credentials, Kind, Mode},
};

use crate::{
    capture::{self, Asked},
    peer::{Peer, Speaks},
};

fn builder(peer: &Peer) -> ClientBuilder {
    let tls = mimus::TlsConfig::builder().add_ca(peer.ca.as_bytes()).build().unwrap();
    Client::builder()
        .no_proxy()
        .tls(tls)
        .timeout(Duration::from_secs(60))
        .resolve("a.test", None, [peer.addr])
        .resolve("b.test", None, [peer.addr])
        .resolve("localhost", None, [peer.addr])
}

fn silent(_: &str) -> Vec<(&'static str, String)> {
    Vec::new()
}

/// All requests that came, in the order in which their connections were made.
fn heard(peer: &Peer) -> Vec<Asked> {
    let connections = peer.heard.lock().unwrap().clone();
    let requests = connections.into_iter().flat_map(|mut bytes| {
        std::iter::from_fn(move || capture::next_request(&mut bytes)).collect::<Vec<_>>()
    });
    requests.collect()
}

fn names(asked: &Asked) -> Vec<&str> {
    asked.fields.iter().map(|(name, _)| name.as_str()).collect()
}

/// The one request that a client makes when it is told to.
async fn one(
    profile: &str,
    url: &str,
    change: impl FnOnce(mimus::RequestBuilder) -> mimus::RequestBuilder,
) -> Asked {
    let speaks = if url.starts_with("https") { Speaks::Http1 } else { Speaks::Plain };
    let peer = Peer::start(speaks, Vec::new(), silent);
    let client = builder(&peer).profile(profile).profile_client_hello(false).build().unwrap();
    let response = change(client.get(url)).send().await.unwrap();
    response.bytes().await.unwrap();
    heard(&peer).remove(0)
}

/// What is said of the page that asks: site, referrer, origin.
fn of_page(asked: &Asked) -> [Option<&str>; 3] {
    ["sec-fetch-site", "referer", "origin"].map(|name| asked.get(name))
}

#[tokio::test]
async fn who_asks_is_told_as_the_fetch_standard_has_it() {
    let fetch = |page: &'static str| {
        one("chrome", "https://a.test/x", move |r| r.kind(Kind::FETCH).initiator(page))
    };
    let same = fetch("https://a.test/page?q#part").await;
    assert_eq!(of_page(&same), [Some("same-origin"), Some("https://a.test/page?q"), None]);
    let port = fetch("https://a.test:8443/page").await;
    let origin = Some("https://a.test:8443");
    assert_eq!(of_page(&port), [Some("same-site"), Some("https://a.test:8443/"), origin]);
    let sub = fetch("https://user:secret@www.a.test/page").await;
    assert_eq!(
        of_page(&sub),
        [Some("same-site"), Some("https://www.a.test/"), Some("https://www.a.test")]
    );
    let other = fetch("https://b.test/page").await;
    assert_eq!(
        of_page(&other),
        [Some("cross-site"), Some("https://b.test/"), Some("https://b.test")]
    );
    let scheme = fetch("http://a.test/page").await;
    assert_eq!(
        of_page(&scheme),
        [Some("cross-site"), Some("http://a.test/"), Some("http://a.test")]
    );
}

#[tokio::test]
async fn without_a_page_a_navigation_is_the_browsers_own_and_else_the_origins_root_asks() {
    let navigation = one("chrome", "https://a.test/x", |r| r).await;
    assert_eq!(of_page(&navigation), [Some("none"), None, None]);
    assert_eq!(navigation.get("sec-fetch-user"), Some("?1"));
    let link = one("chrome", "https://a.test/x", |r| r.initiator("https://b.test/y")).await;
    assert_eq!(of_page(&link), [Some("cross-site"), Some("https://b.test/"), None]);
    let image = one("chrome", "https://a.test/x", |r| r.kind(Kind::Image)).await;
    assert_eq!(of_page(&image), [Some("same-origin"), Some("https://a.test/"), None]);
    // A referrer that the user writes is a page as well.
    let referred =
        one("chrome", "https://a.test/x", |r| r.header("Referer", "https://b.test/page")).await;
    assert_eq!(of_page(&referred), [Some("cross-site"), Some("https://b.test/page"), None]);
    // To a place in the clear nothing is told of a page that is not.
    let clear = one("firefox-153", "http://a.test/x", |r| {
        r.kind(Kind::Image).initiator("https://a.test/page")
    });
    assert_eq!(of_page(&clear.await), [None, None, None]);
}

#[tokio::test]
async fn modes_that_ask_for_no_leave_say_no_origin() {
    let no_cors = Kind::Fetch { mode: Mode::NoCors, credentials: Credentials::Include };
    let asked = one("chrome", "https://a.test/x", |r| r.kind(no_cors).initiator("https://b.test/"));
    let asked = asked.await;
    assert_eq!(of_page(&asked), [Some("cross-site"), Some("https://b.test/"), None]);
    assert_eq!(asked.get("sec-fetch-mode"), Some("no-cors"));
}

#[tokio::test]
async fn a_request_that_nobody_named_is_what_it_looks_like() {
    let peer = Peer::start(Speaks::Http1, Vec::new(), silent);
    let client = builder(&peer).profile("chrome").profile_client_hello(false).build().unwrap();
    let form = client.post("https://a.test/form").form(&[("a", "1")]).send();
    form.await.unwrap().bytes().await.unwrap();
    let json = client.post("https://a.test/json").json(&[1]).send();
    json.await.unwrap().bytes().await.unwrap();
    let [form, json] = &heard(&peer)[..] else { panic!("two requests") };
    assert_eq!(form.get("sec-fetch-mode"), Some("navigate"));
    assert_eq!(form.get("origin"), Some("https://a.test"));
    assert_eq!(form.get("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(json.get("sec-fetch-mode"), Some("cors"));
    assert_eq!(json.get("content-length"), Some("3"));
}

#[cfg(feature = "sse")]
#[tokio::test]
async fn an_event_source_is_no_navigation() {
    let peer = Peer::start(Speaks::Http1, Vec::new(), silent);
    let client = builder(&peer).profile("chrome").profile_client_hello(false).build().unwrap();
    // The answer is no stream, which is an error after it was asked for.
    let _ = client.get("https://a.test/events").event_source().next_event().await;
    let asked = heard(&peer).remove(0);
    assert_eq!(asked.get("accept"), Some("text/event-stream"));
    assert_eq!(asked.get("cache-control"), Some("no-cache"));
    assert_eq!(asked.get("sec-fetch-mode"), Some("cors"));
}

#[tokio::test]
async fn what_the_user_says_stands_where_the_browser_has_it() {
    let asked = one("chrome", "https://a.test/x", |r| {
        r.header("x-one", "1").header("accept-language", "de").header("USER-AGENT", "me")
    });
    let asked = asked.await;
    let plain = one("chrome", "https://a.test/x", |r| r).await;
    let mut expected = names(&plain);
    // Spelt as the browser spells it, where it is one of its own.
    expected.insert(2, "x-one");
    assert_eq!(names(&asked), expected);
    assert_eq!(asked.get("accept-language"), Some("de"));
    assert_eq!(asked.get("user-agent"), Some("me"));
    // Of a part the coding of the whole is no use.
    let part = one("firefox-153", "https://a.test/x", |r| r.header("Range", "bytes=0-1")).await;
    assert_eq!(part.get("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn defaults_of_the_client_are_the_users_too() {
    let peer = Peer::start(Speaks::Http1, Vec::new(), silent);
    let client = builder(&peer)
        .profile("firefox-153")
        .profile_client_hello(false)
        .default_header("Accept-Language", "fr")
        .default_header("X-Key", "k")
        .bearer_auth("t")
        .build()
        .unwrap();
    client.get("https://a.test/x").send().await.unwrap().bytes().await.unwrap();
    let asked = heard(&peer).remove(0);
    assert_eq!(asked.get("accept-language"), Some("fr"));
    let agents = names(&asked).iter().filter(|name| **name == "User-Agent").count();
    assert_eq!(agents, 1);
    assert!(asked.get("user-agent").unwrap().contains("Firefox/153.0"));
    let at = |name: &str| names(&asked).iter().position(|its| *its == name).unwrap();
    assert!(at("X-Key") < at("Connection") && at("Authorization") < at("Connection"));
}

#[tokio::test]
async fn this_machine_is_as_good_as_a_secure_place() {
    let asked = one("chrome", "http://localhost/x", |r| r).await;
    assert_eq!(asked.get("sec-fetch-site"), Some("none"));
    assert_eq!(asked.get("accept-encoding"), Some("gzip, deflate, br, zstd"));
    let asked = one("chrome", "http://a.test/x", |r| r).await;
    assert_eq!(asked.get("sec-fetch-site"), None);
    assert_eq!(asked.get("sec-ch-ua"), None);
    assert_eq!(asked.get("accept-encoding"), Some("gzip, deflate"));
}

#[tokio::test]
async fn cookies_of_the_client_go_as_far_as_the_credentials_say() {
    fn baker(path: &str) -> Vec<(&'static str, String)> {
        match path {
            "/bake" => vec![("Set-Cookie", "a=1".to_owned())],
            _ => Vec::new(),
        }
    }
    let peer = Peer::start(Speaks::Http1, Vec::new(), baker);
    let client =
        builder(&peer).profile("chrome").profile_client_hello(false).cookies(true).build().unwrap();
    let ask = |path: &str, kind: Kind, page: &str| {
        let request = client.get(format!("https://a.test{path}")).kind(kind).initiator(page);
        async { request.send().await.unwrap().bytes().await.unwrap() }
    };
    ask("/bake", Kind::Navigate, "https://a.test/").await;
    let include = Kind::Fetch { mode: Mode::Cors, credentials: Credentials::Include };
    let omit = Kind::Fetch { mode: Mode::Cors, credentials: Credentials::Omit };
    let asked = [
        (Kind::FETCH, "https://a.test/", true),
        (Kind::FETCH, "https://b.test/", false),
        (include, "https://b.test/", true),
        (omit, "https://a.test/", false),
        (Kind::Image, "https://b.test/", true),
        (Kind::Font, "https://b.test/", false),
    ];
    for (number, (kind, page, _)) in asked.into_iter().enumerate() {
        ask(&format!("/{number}"), kind, page).await;
    }
    // Those without have connections of their own.
    let heard = heard(&peer);
    for (number, (kind, page, sent)) in asked.into_iter().enumerate() {
        let path = format!("/{number}");
        let request = heard.iter().find(|request| request.path() == path).unwrap();
        assert_eq!(request.get("cookie").is_some(), sent, "{kind:?} by {page}");
    }
}

#[tokio::test]
async fn client_hints_follow_what_the_origin_asks_for() {
    fn curious(path: &str) -> Vec<(&'static str, String)> {
        match path {
            "/asks" => vec![("Accept-CH", "Sec-CH-UA-Arch, Sec-CH-UA-Bitness".to_owned())],
            "/needs" => vec![
                ("Accept-CH", "Sec-CH-UA-Arch, Sec-CH-UA-Bitness, Sec-CH-UA-Model".to_owned()),
                ("Critical-CH", "Sec-CH-UA-Model".to_owned()),
            ],
            _ => Vec::new(),
        }
    }
    let peer = Peer::start(Speaks::Http1, Vec::new(), curious);
    let client = builder(&peer).profile("chrome").profile_client_hello(false).build().unwrap();
    for url in [
        "https://a.test/",
        "https://a.test/asks",
        "https://a.test/",
        "https://b.test/",
        "https://a.test/needs",
        "https://a.test/",
    ] {
        client.get(url).send().await.unwrap().bytes().await.unwrap();
    }
    for page in ["https://a.test/", "https://b.test/"] {
        let image = client.get("https://a.test/image").kind(Kind::Image).initiator(page);
        image.send().await.unwrap().bytes().await.unwrap();
    }
    let all = heard(&peer);
    let hints = |asked: &Asked| {
        let names = ["sec-ch-ua-arch", "sec-ch-ua-bitness", "sec-ch-ua-model"];
        names.map(|name| asked.get(name).is_some())
    };
    let of = |host: &str| {
        let to = all.iter().filter(|asked| asked.authority() == host);
        to.map(|asked| (asked.path().to_owned(), hints(asked))).collect::<Vec<_>>()
    };
    let path = |path: &str, hints: [bool; 3]| (path.to_owned(), hints);
    assert_eq!(
        of("a.test"),
        [
            path("/", [false; 3]),
            path("/asks", [false; 3]),
            path("/", [true, true, false]),
            path("/needs", [true, true, false]),
            // Once more, with what it cannot do without.
            path("/needs", [true; 3]),
            path("/", [true; 3]),
            path("/image", [true; 3]),
            path("/image", [false; 3]),
        ]
    );
    assert_eq!(of("b.test"), [path("/", [false; 3])]);
}

#[tokio::test]
async fn a_redirect_tells_the_farthest_that_it_led_through() {
    fn away(path: &str) -> Vec<(&'static str, String)> {
        match path {
            "/go" => vec![("Location", "https://b.test/back".to_owned())],
            "/back" => vec![("Location", "https://a.test/end".to_owned())],
            _ => Vec::new(),
        }
    }
    let peer = Peer::start(Speaks::Http1, Vec::new(), away);
    let client = builder(&peer).profile("chrome").profile_client_hello(false).build().unwrap();
    let image = client.get("https://a.test/go").kind(Kind::Image).send().await.unwrap();
    image.bytes().await.unwrap();
    let own = client.get("https://a.test/go").send().await.unwrap();
    own.bytes().await.unwrap();
    let all = heard(&peer);
    let sites = |path: &str| {
        let to = all.iter().filter(|asked| asked.path() == path);
        to.map(|asked| asked.get("sec-fetch-site").unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sites("/go"), ["same-origin", "none"]);
    assert_eq!(sites("/back"), ["cross-site", "none"]);
    assert_eq!(sites("/end"), ["cross-site", "none"]);
}

#[tokio::test]
async fn the_same_request_again_is_the_same_over_both_versions() {
    for (profile, first) in [("chrome", 1), ("firefox-153", 3)] {
        let peer = Peer::start(Speaks::Http2, vec![vec![first], vec![first + 2]], silent);
        let client = builder(&peer).profile(profile).profile_client_hello(false).build().unwrap();
        for _ in 0..2 {
            client.get("https://a.test/x").send().await.unwrap().bytes().await.unwrap();
        }
        let wire = peer.heard.lock().unwrap()[0].clone();
        let asked = capture::requests(&capture::frames(wire));
        assert_eq!(asked[0].fields, asked[1].fields);
        assert_eq!(asked[0].get("connection"), None);
        assert!(asked[0].get("priority").is_some());
    }
    let over_http1 = one("chrome", "https://a.test/x", |r| r).await;
    assert_eq!(over_http1.get("connection"), Some("keep-alive"));
    assert_eq!(over_http1.get("priority"), None);
}

/// The header blocks of all requests on the first connection, if it is one of HTTP/2.
fn blocks_of_http2(peer: &Peer) -> Vec<Vec<u8>> {
    let wire = peer.heard.lock().unwrap().first().cloned().unwrap_or_default();
    // Behind the preface.
    if wire.len() < 24 || !wire.starts_with(b"PRI") {
        return Vec::new();
    }
    let frames = capture::frames(wire).into_iter();
    frames.filter(|f| f.kind == capture::HEADERS).map(|f| f.block().to_vec()).collect()
}

#[tokio::test]
async fn firefox_answers_each_size_that_the_server_allows_its_table() {
    // RFC 7541 section 6.3.
    const UPDATE_4096: &[u8] = &[0x3f, 0xe1, 0x1f];
    const UPDATE_8192: &[u8] = &[0x3f, 0xe1, 0x3f];
    for (settings, profile, first, expected) in [
        (&[0, 1, 0, 0, 0x10, 0][..], "firefox-159", 3, Some(UPDATE_4096)),
        (&[0, 1, 0, 0, 0x20, 0], "firefox-159", 3, Some(UPDATE_8192)),
        (&[0, 8, 0, 0, 0, 1], "firefox-159", 3, None),
        (&[0, 1, 0, 0, 0x10, 0], "chrome", 1, None),
        (&[0, 1, 0, 0, 0x20, 0], "chrome", 1, Some(UPDATE_8192)),
    ] {
        let groups = (0..3).map(|n| vec![first + 2 * n]).collect();
        let peer = Peer::start(Speaks::Http2Saying(settings), groups, silent);
        let client = builder(&peer).profile(profile).profile_client_hello(false).build().unwrap();
        for _ in 0..3 {
            client.get("https://a.test/x").send().await.unwrap().bytes().await.unwrap();
        }
        // The first answer is behind the server's settings, whether the first request was or not.
        let all = blocks_of_http2(&peer);
        let begun: Vec<_> = all.iter().map(|block| block[0] & 0xe0 == 0x20).collect();
        let updates = begun.iter().filter(|begun| **begun).count();
        assert_eq!(updates, usize::from(expected.is_some()), "{profile} {settings:x?}: {begun:?}");
        if let Some(update) = expected {
            let with = all.iter().find(|block| block[0] & 0xe0 == 0x20).unwrap();
            assert!(with.starts_with(update), "{profile} {settings:x?}: {with:x?}");
        }
    }
}

/// Begins a WebSocket, which no peer answers as one; the requests on each connection that was made for it.
async fn begin_websocket(profile: &str, speaks: Speaks) -> Vec<Vec<String>> {
    let peer = Peer::start(speaks, Vec::new(), silent);
    let client = builder(&peer).profile(profile).profile_client_hello(false).build().unwrap();
    // An extended CONNECT stays open.
    let asked = async {
        while blocks_of_http2(&peer).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        socket = client.websocket("wss://a.test/chat").connect() => drop(socket.unwrap_err()),
        () = asked => {}
    }
    let heard = peer.heard.lock().unwrap().clone();
    let all = heard.into_iter().map(|mut wire| {
        let asked = match wire.starts_with(b"PRI") {
            true => capture::requests(&capture::frames(wire)),
            false => std::iter::from_fn(|| capture::next_request(&mut wire)).collect(),
        };
        asked.iter().map(|asked| asked.method().to_owned()).collect()
    });
    all.collect()
}

#[tokio::test]
async fn firefox_offers_a_new_host_http2_for_a_websocket_and_leaves_what_takes_none() {
    const NONE: [&str; 0] = [];
    let firefox = |speaks| begin_websocket("firefox-159", speaks);
    assert_eq!(firefox(Speaks::Http2).await, [["CONNECT"]]);
    // The next connection is of HTTP/1.1, which this server has not got.
    assert_eq!(firefox(Speaks::Http2Saying(&[])).await, [NONE, NONE]);
    assert_eq!(firefox(Speaks::Http1).await, [["GET"]]);
    assert_eq!(begin_websocket("chrome", Speaks::Http2).await, [NONE]);
}

#[tokio::test]
async fn a_name_that_is_none_fails_the_build_and_tells_those_near() {
    let error = Client::builder().profile("crome-156-linux").build().unwrap_err();
    assert!(format!("{error:#}").contains("near to it: chrome-156-linux"), "{error:#}");
}
