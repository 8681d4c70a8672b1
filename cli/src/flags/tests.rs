use std::time::Duration;

use clap::CommandFactory;

use super::{
    Flags, Targets,
    request::{DataKind, DataPart},
    values::{HeaderFlag, ResolveRule, ResumeAt, redirects, seconds, size},
};

fn parse(line: &str) -> Result<Flags, clap::Error> {
    Flags::from_words(format!("mimus {line}").split(' ').collect::<Vec<_>>())
}

fn targets(line: &str) -> Targets {
    parse(line).unwrap().targets().unwrap()
}

/// Whether its flags do not contradict each other, and each is documented and has a heading.
fn is_in_order<F: CommandFactory>() {
    F::command().debug_assert();
    for arg in F::command().get_arguments() {
        assert!(arg.get_help().is_some(), "{} has no help", arg.get_id());
        assert!(arg.get_help_heading().is_some(), "{} has no heading", arg.get_id());
    }
}

#[test]
fn the_flags_do_not_contradict_each_other_and_are_documented() {
    is_in_order::<Flags>();
    is_in_order::<super::fingerprint::FingerprintFlags>();
    is_in_order::<super::grpc::GrpcFlags>();
    is_in_order::<super::sse::SseFlags>();
    is_in_order::<super::ws::WsFlags>();
}

#[test]
fn a_method_may_stand_before_the_urls() {
    let table = [
        ("http://a/", None, 1),
        ("get http://a/ http://b/", Some("GET"), 2),
        ("DELETE http://a/", Some("DELETE"), 1),
        ("request PURGE http://a/", Some("PURGE"), 1),
        ("getter", None, 1),
    ];
    for (line, method, urls) in table {
        let found = targets(line);
        assert_eq!(found.method.as_ref().map(|m| m.as_str()), method, "{line}");
        assert_eq!(found.urls.len(), urls, "{line}");
    }
}

#[test]
fn what_makes_no_sense_is_not_done() {
    for line in
        ["-I -d a u", "-T - u v", "-v", "get", "request", "request PURGE", "request a(b) http://a/"]
    {
        assert!(parse(line).unwrap().targets().is_err(), "{line}");
    }
}

#[test]
fn data_keeps_the_order_of_the_command_line() {
    let flags = parse("--data-raw @1 -d 2 --json 3 --data-raw 4 -d5 u").unwrap();
    let part = |kind, text: &str| DataPart { kind, text: text.to_owned() };
    let expected = [
        part(DataKind::Raw, "@1"),
        part(DataKind::Text, "2"),
        part(DataKind::Json, "3"),
        part(DataKind::Raw, "4"),
        part(DataKind::Text, "5"),
    ];
    assert_eq!(flags.data, expected);
}

#[test]
fn bodies_exclude_each_other() {
    for line in ["-d a -F b=c u", "-F a=b -T f u", "-T f -d a u", "-u a:b --bearer t u", "-4 -6 u"]
    {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn fields_are_sent_emptied_or_removed() {
    let send = |name: &str, value: &str| HeaderFlag::Send {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let table = [
        ("X-A: b: c ", send("X-A", "b: c")),
        ("X-A:b", send("X-A", "b")),
        ("X-A;", send("X-A", "")),
        ("Accept:", HeaderFlag::Remove { name: "Accept".to_owned() }),
        ("@f", HeaderFlag::File("f".to_owned())),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<HeaderFlag>().unwrap(), expected, "{text}");
    }
    for text in ["", "X-A", "X A: b", ": b", "X-A\r\n: b"] {
        assert!(text.parse::<HeaderFlag>().is_err(), "{text:?}");
    }
}

#[test]
fn numbers_have_units_and_bounds() {
    assert_eq!(size("10k").unwrap(), 10_240);
    assert_eq!(size("3G").unwrap(), 3 << 30);
    assert!(size("k").is_err());
    assert!(size("1x").is_err());
    assert!(size("99999999999T").is_err());
    assert_eq!(seconds("0.25").unwrap(), Duration::from_millis(250));
    assert!(seconds("-1").is_err());
    assert!(seconds("NaN").is_err());
    assert!(seconds("1e300").is_err());
    assert_eq!(redirects("-1").unwrap(), usize::MAX);
    assert_eq!("-".parse::<ResumeAt>().unwrap(), ResumeAt::EndOfFile);
    assert_eq!("17".parse::<ResumeAt>().unwrap(), ResumeAt::Offset(17));
    assert!("+-".parse::<ResumeAt>().is_err());
}

#[test]
fn resolve_rules_take_both_families() {
    let rule: ResolveRule = "example.com:443:127.0.0.1,[::1]".parse().unwrap();
    assert_eq!((rule.host.as_str(), rule.port), ("example.com", 443));
    let addrs: Vec<String> = rule.addrs.iter().map(|a| a.ip().to_string()).collect();
    assert_eq!(addrs, ["127.0.0.1", "::1"]);
    let rule: ResolveRule = "[::2]:80:::1".parse().unwrap();
    assert_eq!((rule.host.as_str(), rule.addrs.len()), ("::2", 1));
    for text in ["a:1", "a:x:127.0.0.1", "a:1:", "a:1:localhost", "*:1:127.0.0.1", "-a:1"] {
        assert!(text.parse::<ResolveRule>().is_err(), "{text}");
    }
}

#[test]
fn secrets_are_not_in_debug_output() {
    let flags = parse("-u joe:hunter2 -x p -U ann:swordfish -b c=t0ken -H X:v4lue u").unwrap();
    let shown = format!("{flags:?} {:?}", flags.request.header);
    for secret in ["joe", "hunter2", "swordfish", "t0ken", "v4lue"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}
