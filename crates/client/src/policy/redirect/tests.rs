use super::*;

const FROM: &str = "https://user:pw@origin.example/a/b?q=1#frag";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn at<'a>(from: &'a Url, status: u16, location: &'a [u8]) -> Redirection<'a> {
    Redirection {
        method: &Method::GET,
        url: from,
        body: Body::Empty,
        status: StatusCode::from_u16(status).unwrap(),
        location: Some(location),
        previous: &[],
    }
}

fn follow(policy: &Policy, response: &Redirection<'_>) -> Follow {
    match policy.decide(response) {
        Ok(Verdict::Follow(follow)) => *follow,
        other => panic!("{:?} should be followed, not {other:?}", response.location),
    }
}

#[test]
fn methods() {
    // status, method, then the method after it and whether the body goes.
    let table = [
        (301, "GET", "GET", false),
        (301, "HEAD", "HEAD", false),
        (301, "POST", "GET", true),
        (301, "PUT", "PUT", false),
        (301, "PATCH", "PATCH", false),
        (301, "DELETE", "DELETE", false),
        (302, "GET", "GET", false),
        (302, "HEAD", "HEAD", false),
        (302, "POST", "GET", true),
        (302, "PUT", "PUT", false),
        (302, "PROPFIND", "PROPFIND", false),
        (303, "GET", "GET", true),
        (303, "HEAD", "HEAD", true),
        (303, "POST", "GET", true),
        (303, "PUT", "GET", true),
        (303, "DELETE", "GET", true),
        (307, "GET", "GET", false),
        (307, "HEAD", "HEAD", false),
        (307, "POST", "POST", false),
        (307, "PUT", "PUT", false),
        (308, "GET", "GET", false),
        (308, "POST", "POST", false),
        (308, "DELETE", "DELETE", false),
    ];
    let from = url(FROM);
    for (status, method, after, drop_body) in table {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut response = at(&from, status, b"/next");
        response.method = &method;
        response.body = Body::Replayable;
        let follow = follow(&Policy::default(), &response);
        assert_eq!((follow.method.as_str(), follow.drop_body), (after, drop_body), "{status}");
        assert_eq!(follow.strip.body, drop_body);
    }
}

#[test]
fn locations() {
    let table: [(&[u8], &str); 35] = [
        (b"/x", "https://user:pw@origin.example/x#frag"),
        (b"x", "https://user:pw@origin.example/a/x#frag"),
        (b"./x", "https://user:pw@origin.example/a/x#frag"),
        (b"../x", "https://user:pw@origin.example/x#frag"),
        (b"../../../x", "https://user:pw@origin.example/x#frag"),
        (b"?p=2", "https://user:pw@origin.example/a/b?p=2#frag"),
        (b"#other", "https://user:pw@origin.example/a/b?q=1#other"),
        (b"x#", "https://user:pw@origin.example/a/x#"),
        (b"/x#own", "https://user:pw@origin.example/x#own"),
        (b"  /x \t", "https://user:pw@origin.example/x#frag"),
        (b"https://origin.example/x", "https://user:pw@origin.example/x#frag"),
        (b"https://origin.example:443/x", "https://user:pw@origin.example/x#frag"),
        (b"HTTPS://ORIGIN.EXAMPLE/x", "https://user:pw@origin.example/x#frag"),
        (b"https:/x", "https://user:pw@origin.example/x#frag"),
        (b"https://eve:evil@origin.example/x", "https://user:pw@origin.example/x#frag"),
        (b"https://origin.example:8443/x", "https://origin.example:8443/x#frag"),
        (b"http://origin.example/x", "http://origin.example/x#frag"),
        (b"https://other.example/x", "https://other.example/x#frag"),
        (b"https://eve:evil@other.example/x", "https://other.example/x#frag"),
        (b"https://user:pw@other.example/x", "https://other.example/x#frag"),
        (b"//other.example/x", "https://other.example/x#frag"),
        (b"/\\other.example/x", "https://other.example/x#frag"),
        (b"\\\\other.example/x", "https://other.example/x#frag"),
        (b"https://origin.example@other.example/", "https://other.example/#frag"),
        (b"https://sub.origin.example/", "https://sub.origin.example/#frag"),
        (b"https://origin.example./", "https://origin.example./#frag"),
        (b"https://other.example", "https://other.example/#frag"),
        (b"https://[::1]:8/x", "https://[::1]:8/x#frag"),
        (b"https://0x7f.1/", "https://127.0.0.1/#frag"),
        (b"/a b", "https://user:pw@origin.example/a%20b#frag"),
        (b"/%zz", "https://user:pw@origin.example/%zz#frag"),
        ("/caf\u{e9}".as_bytes(), "https://user:pw@origin.example/caf%C3%A9#frag"),
        (b"/caf\xe9", "https://user:pw@origin.example/caf%E9#frag"),
        ("https://b\u{fc}cher.example/".as_bytes(), "https://xn--bcher-kva.example/#frag"),
        (b"http:x", "http://x/#frag"),
    ];
    let from = url(FROM);
    for (location, expected) in table {
        let follow = follow(&Policy::default(), &at(&from, 302, location));
        let shown = String::from_utf8_lossy(location);
        assert_eq!(follow.url.as_str(), expected, "Location: {shown}");
        let same = expected.starts_with("https://user:pw@");
        assert_eq!(follow.strip.cross_origin, !same, "Location: {shown}");
    }
}

#[test]
fn locations_that_cannot_be_followed() {
    let table: [(&[u8], &str); 15] = [
        (b"https://", "Location is no URL"),
        (b"https://:80/", "Location is no URL"),
        (b"///other.example/x", "Location is no URL"),
        (b"https://a:99999/", "Location is no URL"),
        (b"https://[::1/", "Location is no URL"),
        (b"https://a b/", "Location is no URL"),
        (b"https://\xff\xfe/", "Location is no URL"),
        (b"/a\tb", "control characters"),
        (b"/a\nb", "control characters"),
        (b"/a\0b", "control characters"),
        (b"/a\x7fb", "control characters"),
        (b"file:///etc/passwd", "scheme `file`"),
        (b"javascript:alert(1)", "scheme `javascript`"),
        (b"ftp://other.example/", "scheme `ftp`"),
        (b"data:text/plain,x", "scheme `data`"),
    ];
    let from = url(FROM);
    for (location, expected) in table {
        let error = Policy::default().decide(&at(&from, 302, location)).unwrap_err();
        assert!(error.to_string().contains(expected), "{location:?}: {error}");
        let repeats = error.source().is_some_and(|s| error.to_string().contains(&s.to_string()));
        assert!(!repeats, "{error} repeats its source");
    }
}

#[test]
fn responses_that_are_delivered() {
    let from = url(FROM);
    let stop = |policy: &Policy, response: &Redirection<'_>| {
        assert_eq!(policy.decide(response).unwrap(), Verdict::Stop, "{response:?}");
    };
    for status in [200, 201, 300, 304, 305, 306, 399, 404] {
        stop(&Policy::default(), &at(&from, status, b"/x"));
    }
    stop(&Policy::default(), &at(&from, 302, b""));
    stop(&Policy::default(), &at(&from, 302, b" \t "));
    stop(&Policy::default(), &Redirection { location: None, ..at(&from, 302, b"") });
    stop(&Policy::none(), &at(&from, 302, b"/x"));
    stop(&Policy::none(), &at(&from, 302, b"file:///x"));
    stop(&Policy::same_host(), &at(&from, 302, b"https://other.example/"));
    stop(&Policy::same_origin(), &at(&from, 302, b"https://origin.example:8443/"));
    follow(&Policy::same_host(), &at(&from, 302, b"https://origin.example:8443/"));
    follow(&Policy::same_origin(), &at(&from, 302, b"/x"));
}

#[test]
fn one_more_than_the_limit_fails() {
    let from = url(FROM);
    let previous = vec![from.clone(); 10];
    for (followed, limit) in [(10, 10), (0, 0), (3, 2)] {
        let response = Redirection { previous: &previous[..followed], ..at(&from, 302, b"/x") };
        let error = Policy::limited(limit).decide(&response).unwrap_err();
        assert!(matches!(error, RedirectError::TooMany { limit: l } if l == limit));
    }
    let response = Redirection { previous: &previous[..9], ..at(&from, 302, b"/x") };
    follow(&Policy::default(), &response);
}

#[test]
fn a_stream_cannot_be_sent_again() {
    let from = url(FROM);
    for status in [307, 308] {
        let response =
            Redirection { method: &Method::POST, body: Body::Once, ..at(&from, status, b"/x") };
        let error = Policy::default().decide(&response).unwrap_err();
        assert!(matches!(error, RedirectError::BodyNotReplayable));
    }
    let response = Redirection { method: &Method::POST, body: Body::Once, ..at(&from, 302, b"/x") };
    assert!(follow(&Policy::default(), &response).drop_body);
}

#[test]
fn a_custom_policy_decides() {
    let policy = Policy::custom(|attempt| match attempt.url().path() {
        "/stop" => Action::Stop,
        "/fail" => Action::Fail("not there".into()),
        _ if attempt.is_cross_origin() => Action::Stop,
        _ => {
            assert_eq!(attempt.from().as_str(), FROM);
            assert_eq!((attempt.status().as_u16(), attempt.method()), (302, &Method::GET));
            assert!(attempt.previous().is_empty());
            Action::Follow
        }
    });
    let from = url(FROM);
    follow(&policy, &at(&from, 302, b"/x"));
    assert_eq!(policy.decide(&at(&from, 302, b"/stop")).unwrap(), Verdict::Stop);
    assert_eq!(policy.decide(&at(&from, 302, b"//other.example")).unwrap(), Verdict::Stop);
    let error = policy.decide(&at(&from, 302, b"/fail")).unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "not there");
    let error = policy.with_limit(0).decide(&at(&from, 302, b"/x")).unwrap_err();
    assert!(matches!(error, RedirectError::TooMany { limit: 0 }));
}

#[test]
fn stripped_fields() {
    // field, lost across origins, lost with the body.
    let table = [
        ("Authorization", true, false),
        ("AUTHORIZATION", true, false),
        ("Cookie", true, false),
        ("Cookie2", true, false),
        ("Proxy-Authorization", true, false),
        ("WWW-Authenticate", true, false),
        ("Host", true, false),
        ("Content-Type", false, true),
        ("content-length", false, true),
        ("Content-Encoding", false, true),
        ("Transfer-Encoding", false, true),
        ("Expect", false, true),
        ("Trailer", false, true),
        ("Digest", false, true),
        ("Accept", false, false),
        ("User-Agent", false, false),
        ("Content", false, false),
        ("Cookies", false, false),
        ("", false, false),
    ];
    for (name, cross_origin, body) in table {
        let of = |cross_origin, body| Strip { cross_origin, body }.removes(name.as_bytes());
        assert_eq!((of(true, false), of(false, true)), (cross_origin, body), "{name}");
        assert!(!of(false, false));
        assert_eq!(of(true, true), cross_origin || body);
    }
}

#[test]
fn referers() {
    let set = |text: &str| Referer::Set(text.to_owned());
    let full = "https://origin.example/a/b?q=1";
    let table: [(bool, &[u8], Referer); 6] = [
        (true, b"/x", set(full)),
        (true, b"https://other.example/", set("https://origin.example/")),
        (true, b"http://origin.example/", Referer::Remove),
        (false, b"/x", Referer::Keep),
        (false, b"https://other.example/", Referer::Keep),
        (false, b"http://other.example/", Referer::Remove),
    ];
    let from = url(FROM);
    for (on, location, expected) in table {
        let policy = Policy::default().with_referer(on);
        assert_eq!(follow(&policy, &at(&from, 302, location)).referer, expected);
    }
}
