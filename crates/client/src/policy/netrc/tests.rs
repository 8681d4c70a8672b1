use super::*;
use proptest::prelude::*;

fn login(netrc: &Netrc, host: &str) -> Option<(String, String)> {
    shown(netrc.lookup(host))
}

fn shown(found: Option<Credentials>) -> Option<(String, String)> {
    match found? {
        Credentials::Basic { user, password } => Some((user, password.expose().to_owned())),
        other => panic!("{other:?} is not Basic"),
    }
}

fn pair(user: &str, password: &str) -> Option<(String, String)> {
    Some((user.to_owned(), password.to_owned()))
}

#[test]
fn files() {
    // text, host, login.
    let table = [
        ("", "a", None),
        ("machine a login u password p", "a", pair("u", "p")),
        ("machine a login u password p", "b", None),
        ("machine A.Example login u password p", "a.example", pair("u", "p")),
        ("machine a\n\tlogin u\r\n\tpassword p\n", "a", pair("u", "p")),
        ("machine a password p login u", "a", pair("u", "p")),
        ("machine a login u", "a", pair("u", "")),
        ("machine a password p", "a", None),
        ("machine a login u account x password p", "a", pair("u", "p")),
        ("machine a login 1 machine a login 2", "a", pair("1", "")),
        ("machine a password p machine a login 2", "a", pair("2", "")),
        ("machine a login u password p default login d password e", "b", pair("d", "e")),
        ("machine a login u password p default login d password e", "a", pair("u", "p")),
        ("default login d password e machine a login u", "a", pair("u", "")),
        ("default login d password e machine a", "a", None),
        ("# machine a login x\nmachine a # the rest is a note\n login u", "a", pair("u", "")),
        ("machine a login u password p#1", "a", pair("u", "p#1")),
        ("machine a login \"u v\" password \"p\\\"\\\\\\t\\x\"", "a", pair("u v", "p\"\\\tx")),
        ("machine a login \"\" password \"# p\"", "a", pair("", "# p")),
        ("macdef init\ncd /tmp\nlogin no\n\nmachine a login u", "a", pair("u", "")),
        (
            "machine b macdef init\r\nmachine a login no\r\n\r\nmachine a login u",
            "a",
            pair("u", ""),
        ),
        ("machine b login x\nmacdef last\nmachine a login u", "a", None),
        ("machine a login p\u{e4}ul password \u{1f511}", "a", pair("p\u{e4}ul", "\u{1f511}")),
        ("machine login login password password machine", "login", pair("password", "machine")),
    ];
    for (text, host, expected) in table {
        let netrc: Netrc = text.parse().unwrap();
        assert_eq!(login(&netrc, host), expected, "{text:?}");
    }
}

#[test]
fn one_user_among_several() {
    let text = "machine a login u password 1 machine a login v password 2 default login w";
    let netrc: Netrc = text.parse().unwrap();
    assert_eq!(shown(netrc.lookup_user("a", "v")), pair("v", "2"));
    assert_eq!(shown(netrc.lookup_user("a", "w")), None, "the default is not for a");
    assert_eq!(shown(netrc.lookup_user("b", "w")), pair("w", ""));
    assert_eq!(shown(netrc.lookup_user("b", "v")), None);
}

#[test]
fn what_is_no_netrc_file() {
    let table = [
        ("machine a\nlogin u\npasword hunter2", 3, "no keyword"),
        ("login u", 1, "`login` comes before any `machine`"),
        ("\npassword hunter2", 2, "`password` comes before any `machine`"),
        ("machine", 1, "nothing follows `machine`"),
        ("machine a login", 1, "nothing follows `login`"),
        ("machine a\n\npassword \"hunter2\n\"", 3, "a quote"),
        ("machine a password \"hunter2\\", 1, "a quote"),
        ("hunter2", 1, "no keyword"),
    ];
    for (text, line, expected) in table {
        let error = text.parse::<Netrc>().unwrap_err();
        let shown = error.to_string();
        assert_eq!(error.line(), line, "{text:?}: {shown}");
        assert!(shown.contains(expected), "{text:?}: {shown}");
        assert!(!shown.contains("hunter2") && !format!("{error:?}").contains("hunter2"));
    }
}

#[test]
fn passwords_do_not_show() {
    let netrc: Netrc = "machine a login u password hunter2".parse().unwrap();
    assert!(!format!("{netrc:?}").contains("hunter2"));
}

#[test]
fn modes() {
    for (mode, exposed) in [(0o100600, false), (0o100400, false), (0o100644, true), (0o620, true)] {
        assert_eq!(Netrc::is_exposed(mode), exposed, "{mode:o}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_to_an_end(text in "(machine|login|password|macdef|default|[a\"\\\\# \n\u{e4}]){0,20}") {
        let _ = text.parse::<Netrc>();
    }
}
