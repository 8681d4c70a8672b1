use super::*;
use proptest::prelude::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// 15 January 2027, 08:00 UTC.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn set(jar: &Jar, from: &str, value: &str) -> Result<(), Rejected> {
    jar.set_at(&url(from), value.as_bytes(), now())
}

fn sent(jar: &Jar, to: &str) -> String {
    sent_at(jar, to, now())
}

fn sent_at(jar: &Jar, to: &str, at: SystemTime) -> String {
    String::from_utf8(jar.cookies_at(&url(to), at).unwrap_or_default()).unwrap()
}

#[test]
fn where_cookies_go() {
    // set from, value, sent to, what is sent.
    let table = [
        ("http://a.example/", "k=v", "http://a.example/", "k=v"),
        ("http://a.example/", "k=v", "https://a.example:8443/x", "k=v"),
        ("http://a.example/", "k=v", "http://b.a.example/", ""),
        ("http://a.example/", "k=v", "http://b.example/", ""),
        ("http://b.a.example/", "k=v; Domain=a.example", "http://a.example/", "k=v"),
        ("http://b.a.example/", "k=v; Domain=.a.example", "http://c.a.example/", "k=v"),
        ("http://b.a.example/", "k=v; domain=A.EXAMPLE", "http://a.example/", "k=v"),
        ("http://b.a.example/", "k=v; Domain=a.example", "http://xa.example/", ""),
        ("http://b.a.example/", "k=v; Domain=", "http://b.a.example/", "k=v"),
        ("http://127.0.0.1/", "k=v; Domain=127.0.0.1", "http://127.0.0.1/", "k=v"),
        ("http://[::1]/", "k=v", "http://[::1]:80/", "k=v"),
        ("http://localhost/", "k=v", "http://localhost:8080/", "k=v"),
        ("http://a.example/x/y", "k=v", "http://a.example/x/z", "k=v"),
        ("http://a.example/x/y", "k=v", "http://a.example/x", "k=v"),
        ("http://a.example/x/y", "k=v", "http://a.example/", ""),
        ("http://a.example/x/y", "k=v; Path=/", "http://a.example/", "k=v"),
        ("http://a.example/", "k=v; Path=/x", "http://a.example/x/y", "k=v"),
        ("http://a.example/", "k=v; Path=/x", "http://a.example/xy", ""),
        ("http://a.example/", "k=v; Path=x", "http://a.example/y", "k=v"),
        ("https://a.example/", "k=v; Secure", "https://a.example/", "k=v"),
        ("https://a.example/", "k=v; Secure", "http://a.example/", ""),
        ("http://localhost/", "k=v; Secure", "http://localhost/", "k=v"),
        ("http://127.0.0.1/", "k=v; Secure", "http://127.0.0.1/", "k=v"),
        ("http://a.example/", "k=v; HttpOnly; SameSite=Lax", "http://a.example/", "k=v"),
        ("http://a.example/", "k=", "http://a.example/", "k="),
        ("http://a.example/", " k = v w ;x", "http://a.example/", "k=v w"),
        ("http://a.example/", "k=\"v\"", "http://a.example/", "k=\"v\""),
        ("http://a.example/", "k=a=b%20c", "http://a.example/", "k=a=b%20c"),
        ("http://a.example/", "k=caf\u{e9}", "http://a.example/", "k=caf\u{e9}"),
        ("http://a.example/", "k=a\tb", "http://a.example/", ""),
    ];
    for (from, value, to, expected) in table {
        let jar = Jar::new();
        let _ = set(&jar, from, value);
        assert_eq!(sent(&jar, to), expected, "{value} from {from} to {to}");
    }
}

#[test]
fn what_is_rejected() {
    use Rejected::*;
    let table = [
        ("http://a.example/", "", Malformed),
        ("http://a.example/", "k", Malformed),
        ("http://a.example/", "=v", Malformed),
        ("http://a.example/", ";", Malformed),
        ("http://a.example/", "k=v\0", Malformed),
        ("http://a.example/", "k=v\r\nX: y", Malformed),
        ("http://a.example/", "k=v; Path=/\x7f", Malformed),
        ("http://a.example/", "k=v; Domain=b.example", Domain),
        ("http://a.example/", "k=v; Domain=b.a.example", Domain),
        ("http://a.example/", "k=v; Domain=example", Domain),
        ("http://127.0.0.1/", "k=v; Domain=0.0.1", Domain),
        ("http://127.0.0.1/", "k=v; Domain=1", Domain),
        ("http://shop.co.uk/", "k=v; Domain=co.uk", Domain),
        ("http://shop.co.uk/", "k=v; Domain=.uk", Domain),
        ("http://a.github.io/", "k=v; Domain=github.io", Domain),
        ("http://a.s3.amazonaws.com/", "k=v; Domain=amazonaws.com", Domain),
        ("http://x.y.ck/", "k=v; Domain=y.ck", Domain),
        ("http://x.xn--55qx5d.cn/", "k=v; Domain=xn--55qx5d.cn", Domain),
        ("http://a.internal/", "k=v; Domain=internal", Domain),
        ("http://a.example/", "k=v; Secure", Insecure),
        ("http://a.example/", "__Secure-k=v", Prefix),
        ("https://a.example/", "__secure-k=v", Prefix),
        ("https://a.example/", "__Host-k=v; Secure", Prefix),
        ("https://a.example/", "__Host-k=v; Path=/", Prefix),
        ("https://a.example/", "__Host-k=v; Secure; Path=/x", Prefix),
        ("https://a.example/", "__HOST-k=v; Secure; Path=/; Domain=a.example", Prefix),
    ];
    for (from, value, expected) in table {
        let jar = Jar::new();
        assert_eq!(set(&jar, from, value), Err(expected), "{value:?} from {from}");
        assert!(jar.is_empty());
    }
    let jar = Jar::new();
    assert_eq!(jar.set_at(&url("http://a.example/"), b"k=\xff", now()), Err(Malformed));
    let large = format!("k={}", "v".repeat(4096));
    assert_eq!(set(&jar, "http://a.example/", &large), Err(Size));
    assert_eq!(set(&jar, "http://a.example/", &large[..4097]), Ok(()));
    assert_eq!(set(&jar, "https://a.example/", "__Host-k=v; Secure; Path=/"), Ok(()));
    assert_eq!(set(&jar, "https://a.example/", "__Secure-k=v; Secure"), Ok(()));
}

#[test]
fn a_public_suffix_may_set_a_cookie_for_itself_alone() {
    let jar = Jar::new();
    assert_eq!(set(&jar, "http://github.io/", "k=v; Domain=github.io"), Ok(()));
    assert_eq!(sent(&jar, "http://github.io/"), "k=v");
    assert_eq!(sent(&jar, "http://a.github.io/"), "");
}

#[test]
fn cookies_go_by_path_length_and_then_age() {
    let jar = Jar::new();
    for (n, path) in ["/", "/x", "/x/y", "/", "/x"].iter().enumerate() {
        set(&jar, "http://a.example/", &format!("k{n}=v; Path={path}")).unwrap();
    }
    set(&jar, "http://b.a.example/", "d=v; Domain=a.example; Path=/x").unwrap();
    set(&jar, "http://a.example/", "k0=new; Path=/").unwrap();
    assert_eq!(sent(&jar, "http://a.example/x/y"), "k2=v; k1=v; k4=v; d=v; k0=new; k3=v");
    assert_eq!(sent(&jar, "http://a.example/"), "k0=new; k3=v");
}

#[test]
fn host_only_and_domain_cookies_of_one_name_live_side_by_side() {
    let jar = Jar::new();
    set(&jar, "http://a.example/", "k=1").unwrap();
    set(&jar, "http://a.example/", "k=2; Domain=a.example").unwrap();
    assert_eq!(sent(&jar, "http://a.example/"), "k=1; k=2");
    assert_eq!(sent(&jar, "http://b.a.example/"), "k=2");
}

#[test]
fn cookies_expire() {
    let day = Duration::from_secs(86_400);
    let table = [
        ("k=v", 4000, true),
        ("k=v; Max-Age=172800", 1, true),
        ("k=v; Max-Age=172800", 2, false),
        ("k=v; Expires=Sun, 17 Jan 2027 08:00:00 GMT", 1, true),
        ("k=v; Expires=Sun, 17 Jan 2027 08:00:00 GMT", 2, false),
        ("k=v; Expires=Sunday, 17-Jan-27 08:00:00 GMT", 2, false),
        ("k=v; Max-Age=172800; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 1, true),
        ("k=v; Expires=nonsense", 4000, true),
        ("k=v; Max-Age=99999999999999999999", 399, true),
        ("k=v; Max-Age=99999999999999999999", 400, false),
        ("k=v; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 400, false),
    ];
    for (value, days, alive) in table {
        let jar = Jar::new();
        set(&jar, "http://a.example/", value).unwrap();
        let later = sent_at(&jar, "http://a.example/", now() + day * days);
        assert_eq!(later == "k=v", alive, "{value} after {days} days");
        assert_eq!(jar.is_empty(), !alive, "what has expired is dropped");
    }
}

#[test]
fn an_expired_cookie_removes() {
    for end in ["Max-Age=0", "Max-Age=-5", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
        let jar = Jar::new();
        set(&jar, "http://a.example/", "k=v").unwrap();
        set(&jar, "http://a.example/", &format!("k=; {end}; Path=/other")).unwrap();
        assert_eq!(sent(&jar, "http://a.example/"), "k=v", "another path is another cookie");
        set(&jar, "http://a.example/", &format!("k=; {end}")).unwrap();
        assert!(jar.is_empty(), "{end}");
        set(&jar, "http://never.example/", &format!("k=; {end}")).unwrap();
        assert!(jar.is_empty() && jar.lock().sites.is_empty());
    }
}

#[test]
fn an_insecure_origin_cannot_hide_a_secure_cookie() {
    let jar = Jar::new();
    set(&jar, "https://a.example/", "k=v; Secure; Path=/login").unwrap();
    let insecure = Err(Rejected::Insecure);
    assert_eq!(set(&jar, "http://a.example/", "k=x; Path=/login/en"), insecure);
    assert_eq!(set(&jar, "http://b.a.example/", "k=x; Domain=a.example; Path=/login"), insecure);
    assert_eq!(set(&jar, "http://a.example/", "k=x; Path=/"), Ok(()));
    assert_eq!(set(&jar, "http://a.example/", "other=x; Path=/login"), Ok(()));
    assert_eq!(set(&jar, "https://a.example/", "k=x; Path=/login"), Ok(()));
}

#[test]
fn a_site_can_keep_so_many() {
    let jar = Jar::with_limits(Limits { per_site: 3, ..Limits::default() });
    set(&jar, "https://a.example/", "s=v; Secure").unwrap();
    for n in 0..3 {
        set(&jar, &format!("https://h{n}.a.example/"), "k=v").unwrap();
    }
    assert_eq!(jar.len(), 3);
    assert_eq!(sent(&jar, "https://h0.a.example/"), "", "the oldest insecure one went");
    assert_eq!(sent(&jar, "https://a.example/"), "s=v");
    assert_eq!(sent(&jar, "https://h1.a.example/"), "k=v");
    set(&jar, "https://h3.a.example/", "k=v").unwrap();
    assert_eq!(sent(&jar, "https://h2.a.example/"), "", "unused for longest");
    assert_eq!(sent(&jar, "https://h1.a.example/"), "k=v");
}

#[test]
fn a_jar_can_keep_so_many() {
    let jar = Jar::with_limits(Limits { total: 3, ..Limits::default() });
    set(&jar, "http://short.example/", "k=v; Max-Age=10").unwrap();
    set(&jar, "http://0.example/", "k=v").unwrap();
    set(&jar, "http://1.example/", "k=v").unwrap();
    assert_eq!(sent(&jar, "http://0.example/"), "k=v");
    let later = now() + Duration::from_secs(20);
    jar.set_at(&url("http://2.example/"), b"k=v", later).unwrap();
    assert_eq!(jar.len(), 3, "only the expired one went");
    jar.set_at(&url("http://3.example/"), b"k=v", later).unwrap();
    assert_eq!(jar.len(), 3);
    assert_eq!(sent(&jar, "http://1.example/"), "");
    assert_eq!(sent(&jar, "http://0.example/"), "k=v");
    set(&jar, "http://zero.example/", "k=v").unwrap();
    let none = Jar::with_limits(Limits { per_site: 0, total: 0, ..Limits::default() });
    set(&none, "http://a.example/", "k=v").unwrap();
    assert!(none.is_empty());
}

#[test]
fn the_trait_takes_all_and_skips_what_is_bad() {
    let jar = Jar::new();
    let site = url("https://a.example/");
    let values: [&[u8]; 4] = [b"a=1", b"\xff", b"b=2; Domain=com", b"c=3"];
    let store: &dyn CookieStore = &jar;
    store.set(&site, &mut values.into_iter());
    assert_eq!(store.cookies(&site).as_deref(), Some(&b"a=1; c=3"[..]));
    assert_eq!(store.cookies(&url("https://b.example/")), None);
    assert_eq!(store.cookies(&url("data:,x")), None);
    assert!(!format!("{jar:?}").contains("a=1"));
    jar.clear();
    assert!(jar.is_empty());
}

fn filled() -> Jar {
    let jar = Jar::new();
    set(&jar, "https://a.example/x/y", "session=1").unwrap();
    set(&jar, "https://a.example/", "s=2; Secure; HttpOnly; Max-Age=60; Path=/p").unwrap();
    set(&jar, "https://b.a.example/", "d=3; Domain=a.example; Max-Age=60").unwrap();
    set(&jar, "https://127.0.0.1/", "ip=; Max-Age=60").unwrap();
    jar
}

fn view(jar: &Jar) -> Vec<String> {
    [
        "https://a.example/p",
        "http://a.example/p",
        "https://a.example/x",
        "https://c.a.example/",
        "https://127.0.0.1/",
    ]
    .iter()
    .map(|to| sent(jar, to))
    .collect()
}

#[test]
fn json_and_back() {
    let jar = filled();
    for session in [true, false] {
        let copy = Jar::new();
        let text = jar.to_json(session).unwrap();
        assert_eq!(copy.add_json(&text, now()), Ok(if session { 4 } else { 3 }));
        assert_eq!(view(&copy) == view(&jar), session);
        let late = Jar::new();
        let added = late.add_json(&text, now() + Duration::from_secs(60));
        assert_eq!(added, Ok(usize::from(session)), "the others have expired");
    }
}

#[test]
fn netscape_and_back() {
    let jar = filled();
    let text = jar.to_netscape(true);
    assert_eq!(
        text,
        "# Netscape HTTP Cookie File\n\
         a.example\tFALSE\t/x\tFALSE\t0\tsession\t1\n\
         #HttpOnly_a.example\tFALSE\t/p\tTRUE\t1800000060\ts\t2\n\
         .a.example\tTRUE\t/\tFALSE\t1800000060\td\t3\n\
         127.0.0.1\tFALSE\t/\tFALSE\t1800000060\tip\t\n"
    );
    let copy = Jar::new();
    assert_eq!(copy.add_netscape(&text, now()), Ok(4));
    assert_eq!(view(&copy), view(&jar));
    assert_eq!(copy.to_netscape(true), text);
    assert_eq!(jar.to_netscape(false).lines().count(), 4);
}

#[test]
fn netscape_files_of_others() {
    let jar = Jar::new();
    let text = "# HTTP Cookie File\r\n\r\n\
                .a.example\tTRUE\t/\tfalse\t99999999999999\tfar\t1\r\n\
                #HttpOnly_.a.example\tTRUE\t/\tFALSE\t0\tnovalue\n\
                a.example\tFALSE\t/\tFALSE\t1\told\t1\n\
                .co.uk\tTRUE\t/\tFALSE\t0\tsuper\t1\n";
    assert_eq!(jar.add_netscape(text, now()), Ok(3));
    assert_eq!(sent(&jar, "http://a.example/"), "far=1; novalue=");
    assert_eq!(sent(&jar, "http://shop.co.uk/"), "");
}

#[test]
fn what_is_no_cookie_file() {
    let good = "a.example\tFALSE\t/\tFALSE\t0\tk\thunter2\n";
    for bad in [
        "hunter2",
        "a.example\tFALSE\t/\tFALSE\t0",
        "a.example\tmaybe\t/\tFALSE\t0\tk\thunter2",
        "a.example\tFALSE\t/\tFALSE\tsoon\tk\thunter2",
        "a.example\tFALSE\t/\tFALSE\t0\tk\thunter2\tmore",
        "a b\tFALSE\t/\tFALSE\t0\tk\thunter2",
        "a.example\tFALSE\t/\tFALSE\t0\tk\thunter2; Domain=com",
        "a.example\tFALSE\t/\tFALSE\t0\t\thunter2",
    ] {
        let jar = Jar::new();
        let error = jar.add_netscape(&format!("{good}{bad}\n"), now()).unwrap_err();
        assert_eq!(error.line(), 2, "{bad}");
        assert!(!error.to_string().contains("hunter2") && jar.is_empty());
    }
    let jar = Jar::new();
    let bad = "[\n{\"raw_cookie\": \"hunter2\", \"path\": [\"/\", true]}]";
    for text in ["", "{}", "[1]", bad] {
        let error = jar.add_json(text, now()).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("line") && !shown.contains("hunter2"));
    }
}

#[test]
fn a_file_cannot_smuggle_a_field() {
    let jar = Jar::new();
    let text = r#"[{"raw_cookie": "k=a\r\nX: y", "path": ["/", true],
        "domain": {"HostOnly": "a.example"}, "expires": "SessionEnd"},
        {"raw_cookie": "k=v", "path": ["/", true], "domain": "Empty", "expires": "SessionEnd"}]"#;
    assert_eq!(jar.add_json(text, now()), Ok(0));
}

#[test]
fn what_no_server_could_set_stays_out_of_a_jar() {
    let add = |domain: &str, path: &str| {
        let jar = Jar::new();
        let text = format!(
            r#"[{{"raw_cookie": "k=v", "path": ["{path}", true],
            "domain": {domain}, "expires": "SessionEnd"}}]"#
        );
        let added = jar.add_json(&text, now()).unwrap();
        // What was taken can be written, and read again.
        assert_eq!(Jar::new().add_netscape(&jar.to_netscape(true), now()), Ok(added));
        added
    };
    for (domain, path) in [
        (r#"{"Suffix": "a.#xample"}"#, "/"),
        (r#"{"Suffix": "A.example"}"#, "/"),
        (r#"{"HostOnly": "a.example\nb.example"}"#, "/"),
        (r#"{"HostOnly": "a.example/x"}"#, "/"),
        (r#"{"HostOnly": ""}"#, "/"),
        (r#"{"HostOnly": "a.example"}"#, ""),
        (r#"{"HostOnly": "a.example"}"#, r"/\nb.example"),
        (r#"{"HostOnly": "a.example"}"#, "/; Domain=example"),
    ] {
        assert_eq!(add(domain, path), 0, "{domain} {path:?}");
    }
    assert_eq!(add(r#"{"HostOnly": "[::1]"}"#, "/x"), 1);
    assert_eq!(add(r#"{"Suffix": "a.example"}"#, "/"), 1);
}

proptest! {
    #[test]
    fn any_set_cookie_is_survived(
        value in "[ -~\t\u{e9}]{0,20}|(k=v|; ?(Max-Age|Expires|Domain|Path|Secure)=?[-+a-z0-9./, ]{0,30}){0,6}",
    ) {
        let jar = Jar::new();
        let site = url("https://a.example/x");
        let _ = jar.set_at(&site, value.as_bytes(), now());
        let sent = jar.cookies_at(&site, now()).unwrap_or_default();
        prop_assert!(!sent.iter().any(|byte| byte.is_ascii_control()));
    }
}
