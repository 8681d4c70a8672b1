use std::collections::BTreeMap;

use super::*;

/// The brands of a Chromium of this version (`components/embedder_support/user_agent_utils.cc`): the
/// version decides what the meaningless one is called, and in which order they stand.
fn brands(version: usize, own: Option<(&str, &str)>, full: bool) -> String {
    const CHARS: [char; 11] = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_'];
    const ORDERS: [[usize; 3]; 6] =
        [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let (first, second) = (CHARS[version % 11], CHARS[(version + 1) % 11]);
    let grease = ["8", "99", "24"][version % 3];
    let grease = if full { format!("{grease}.0.0.0") } else { grease.to_owned() };
    let chromium = version.to_string();
    let mut brands = vec![
        format!("\"Not{first}A{second}Brand\";v=\"{grease}\""),
        format!("\"Chromium\";v=\"{chromium}\""),
    ];
    let order = match own {
        None => vec![version % 2, (version + 1) % 2],
        Some((name, version)) => {
            brands.push(format!("\"{name}\";v=\"{version}\""));
            ORDERS[chromium.parse::<usize>().expect("a number") % 6].to_vec()
        }
    };
    let mut shuffled = vec![String::new(); brands.len()];
    for (brand, place) in brands.into_iter().zip(order) {
        shuffled[place] = brand;
    }
    shuffled.join(", ")
}

#[test]
fn brands_are_those_of_captured_builds() {
    let headless =
        |version: usize| brands(version, Some(("HeadlessChrome", &version.to_string())), false);
    assert_eq!(
        headless(131),
        r#""HeadlessChrome";v="131", "Chromium";v="131", "Not_A Brand";v="24""#
    );
    assert_eq!(
        headless(147),
        r#""HeadlessChrome";v="147", "Not.A/Brand";v="8", "Chromium";v="147""#
    );
    assert_eq!(
        headless(149),
        r#""HeadlessChrome";v="149", "Chromium";v="149", "Not)A;Brand";v="24""#
    );
    assert_eq!(
        headless(153),
        r#""HeadlessChrome";v="153", "Not_A Brand";v="8", "Chromium";v="153""#
    );
    assert_eq!(brands(150, None, false), r#""Not;A=Brand";v="8", "Chromium";v="150""#);
    assert_eq!(brands(156, None, false), r#""Not:A-Brand";v="8", "Chromium";v="156""#);
}

#[test]
fn every_profile_that_is_compiled_in_is_whole() {
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(profile.name(), name);
        assert!(profile.sources().next().is_some(), "{name}");
        for (kind, way) in Kind::ALL.into_iter().flat_map(|kind| Way::ALL.map(|way| (kind, way))) {
            profile.template(kind, way).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let again =
            Profile::from_toml(&profile.to_toml()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.to_toml(), profile.to_toml());
    }
    for (alias, name) in Profile::aliases() {
        assert_eq!(Profile::named(alias).expect(alias).name(), name);
    }
    for (base, _) in compiled::BASES {
        // It may have the name of an alias.
        assert!(Profile::named(base).map_or(true, |profile| profile.name() != *base), "{base}");
    }
}

/// The files that are compiled in, one of which says `to` instead of `from`.
fn files_with(file: &str, from: &str, to: &str) -> BTreeMap<String, String> {
    let files = compiled::PROFILES.iter().chain(compiled::BASES);
    let mut files: BTreeMap<_, _> =
        files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let text = files.get_mut(file).expect(file);
    assert!(text.contains(from), "{file} has no {from}");
    *text = text.replacen(from, to, 1);
    files
}

#[test]
fn a_file_that_is_wrong_fails_the_build_and_is_named_with_the_place_and_the_reason() {
    let error = |file, from, to| table::of(&files_with(file, from, to)).expect_err(to);
    assert_eq!(
        error("firefox", "weight = 42", "weight = 0"),
        "firefox-140-linux.toml, which extends firefox-140.toml, which extends firefox.toml: the profile \
         \"firefox-140-linux\": kinds.form-post.weight: it is not from 1 to 256"
    );
    assert_eq!(
        error("safari", "base = true", "base = false"),
        "safari.toml: the profile \"safari\": missing field `title`"
    );
    assert_eq!(
        error("safari-26-ios", "aliases = [\"safari-ios\"]", "aliases = [\"safari\"]"),
        "safari-26-macos.toml: aliases: \"safari\" is safari-26-ios's, too"
    );
    let says = |file, from, to, expected: &[&str]| {
        let error = error(file, from, to);
        for part in expected {
            assert!(error.contains(part), "{to}: {error}");
        }
    };
    says("chromium", "grease = true", "grease =", &["chromium.toml: ", "not TOML", "line"]);
    says("chromium", "grease = true", "greese = true", &["chromium.toml: ", "tls", "`greese`"]);
    says("chromium", "\"x25519\"", "\"x25518\"", &["chromium.toml: ", "tls", "\"x25518\""]);
    says("chromium", "min_version = \"1.2\"", "min_version = \"1.3\"", &["tls", "cipher_suites"]);
    says(
        "edge-156-linux",
        "user-agent",
        "usr-agent",
        &["edge-156-linux.toml", "values.usr-agent: no"],
    );
    says("edge-156-linux", "chromium-156", "chromium-1", &["extends: \"chromium-1\" is no file"]);
    says("edge-156-linux", "name = \"edge", "name = \"edg", &["edge-156-linux.toml: name: "]);
    says("edge-156-linux", "extends", "base = 1\nextends", &["edge-156-linux.toml: ", "base"]);
    says(
        "chrome-131-linux",
        "extends",
        "base = true\nextends",
        &["chrome-131-linux.toml: base: nothing extends it"],
    );
    says(
        "firefox-153",
        "base = true",
        "base = true\naliases = [\"fox\"]",
        &["firefox-153.toml: aliases: \"fox\" stands for a base"],
    );
}

#[test]
fn the_brands_and_versions_of_each_agree() {
    for name in Profile::names() {
        let profile = Profile::named(name).expect(name);
        let file = &profile.0.file;
        let agent = &file.values["user-agent"];
        let Some(sent) = file.values.get("sec-ch-ua") else {
            assert!(!agent.contains("Chrome/"), "{name}");
            continue;
        };
        let chrome = agent.split("Chrome/").nth(1).expect(name);
        let version: usize = chrome.split('.').next().and_then(|v| v.parse().ok()).expect(name);
        let own = match profile.browser() {
            "chromium" => None,
            "chrome" => Some(("Google Chrome", version.to_string())),
            "edge" => Some(("Microsoft Edge", profile.version().to_owned())),
            other => panic!("no brand of {other} is known"),
        };
        let own = own.as_ref().map(|(name, version)| (*name, version.as_str()));
        assert_eq!(*sent, brands(version, own, false), "{name}");
        assert_eq!(profile.version(), version.to_string(), "{name}");
        let platform = &file.values["sec-ch-ua-platform"];
        let (word, mobile) = match profile.platform() {
            "linux" => ("X11; Linux x86_64", "\"Linux\""),
            "windows" => ("Windows NT 10.0; Win64; x64", "\"Windows\""),
            "macos" => ("Macintosh; Intel Mac OS X 10_15_7", "\"macOS\""),
            "android" => ("Linux; Android 10; K", "\"Android\""),
            other => panic!("no user agent of {other} is known"),
        };
        assert!(agent.contains(word) && platform == mobile, "{name}");
        let is_mobile = if profile.platform() == "android" { "?1" } else { "?0" };
        assert_eq!(file.values["sec-ch-ua-mobile"], is_mobile, "{name}");
    }
}

#[test]
fn a_safari_says_its_version_and_its_system() {
    for name in Profile::names().filter(|name| name.starts_with("safari-")) {
        let profile = Profile::named(name).expect(name);
        let agent = &profile.0.file.values["user-agent"];
        let (system, token) = match profile.platform() {
            "macos" => ("Macintosh; Intel Mac OS X 10_15_7", "Safari/605.1.15"),
            "ios" => ("iPhone; CPU iPhone OS 18_", "Mobile/15E148 Safari/604.1"),
            other => panic!("no Safari of {other} is known"),
        };
        let version = format!("Version/{} {token}", profile.version());
        assert!(agent.contains(system) && agent.ends_with(&version), "{name}: {agent}");
        assert_eq!(profile.verified(), Verified::No, "{name}");
    }
    assert_eq!(Profile::named("safari").expect("an alias").platform(), "macos");
    assert_eq!(Profile::named("safari-ios").expect("an alias").platform(), "ios");
}

#[test]
fn a_name_that_is_none_tells_those_near() {
    let error = Profile::named("chrome-156-linx").expect_err("there is none");
    assert_eq!(error.near().first(), Some(&"chrome-156-linux"));
    assert!(error.to_string().contains("near to it: chrome-156-linux"), "{error}");
    assert_eq!(Profile::named("lynx-2.9").expect_err("there is none").near(), &[] as &[&str]);
}

#[test]
fn what_is_made_of_a_name_is_shared() {
    let (one, other) = (Profile::named("firefox"), Profile::named("firefox-159-linux"));
    let (one, other) = (one.expect("it is there"), other.expect("it is there"));
    assert_eq!(one, other);
    assert!(Arc::ptr_eq(one.http2_opening(), other.http2_opening()));
}

#[test]
fn a_file_of_ones_own_extends_one_that_is_compiled_in() {
    let text = r#"
        name = "mine"
        extends = "chrome-156-linux"
        [values]
        accept-language = "de"
        [kinds.fetch]
        weight = 3
    "#;
    let profile = Profile::from_toml(text).expect("it is whole");
    assert_eq!((profile.name(), profile.version()), ("mine", "156"));
    assert_eq!(profile.weight(Kind::FETCH), Some(2));
    // What is like it, too.
    assert_eq!(profile.weight(Kind::Xhr), Some(2));
    assert_eq!(profile.weight(Kind::Navigate), Some(255));
    assert_eq!(profile.0.file.values["accept-language"], "de");
}

#[test]
fn a_file_of_ones_own_extends_what_a_name_stands_for() {
    for (alias, version) in [("chrome", "156"), ("firefox", "159"), ("chromium-150", "150")] {
        let text = format!("name = \"mine\"\nextends = \"{alias}\"");
        let profile = Profile::from_toml(&text).unwrap_or_else(|e| panic!("{alias}: {e}"));
        assert_eq!(profile.version(), version);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let says = |change: &str, expected: &str| {
        let text = format!("name = \"mine\"\nextends = \"chrome-156-linux\"\n{change}");
        let error = Profile::from_toml(&text).expect_err(change).to_string();
        assert!(error.contains(expected), "{change}: {error}");
    };
    says("[kinds.nonsense]\nlike = \"fetch\"", "no kind \"nonsense\"");
    says("[kinds.xhr]\nlike = \"nonsense\"", "like one that is not there");
    says("[kinds.xhr]\nlike = \"xhr\"", "like one that is not there");
    says("[kinds.fetch]\nweight = 0", "not from 1 to 256");
    says("[values]\nUser-Agent = \"x\"", "lower case");
    says("[values]\nuser-agent = \"x\\ny\"", "control character");
    says("[values]\n\"a b\" = \"x\"\n[kinds.fetch]\norder = [\"a b\"]", "not a token");
    says("[http2]\nsettings = [[1, 2], [1, 3]]", "comes twice");
    says("colour = \"blue\"", "unknown field");
    let missing = Profile::from_toml("name = \"mine\"").expect_err("nothing is there");
    assert!(missing.to_string().contains("missing field"), "{missing}");
    assert!(Profile::from_toml("name = ").expect_err("no TOML").to_string().contains("not TOML"));
    says("[kinds.fetch]\norder = [\"user:a b\"]", ".order: \"a b\": the field name is not a token");
    says("[values]\nusr-agent = \"x\"", "values.usr-agent: no kind of request has this field");
    says("[http2]\nfirst_stream = 2", "http2.first_stream: ");
    says("[http2]\nwindow_increment = 4000000000", "http2.window_increment: ");
    says("[http2]\nstream_window_increment = 2147483647", "http2.stream_window_increment: ");
    says("[http2]\nsettings = [[4, 2147483648]]", "http2.settings: ");
    says("[http2]\npseudo = [\"path\", \"path\", \"method\", \"scheme\"]", "http2.pseudo: ");
    says("[tls]\ncipher_suites = []", "tls: ClientHello: cipher_suites: ");
    says("aliases = [\"me\"]", "unknown field");
    let none = Profile::from_toml("extends = \"chrom\"").expect_err("there is none");
    assert!(none.near().contains(&"chrome"));
    assert!(
        Profile::from_toml("extends = 3").expect_err("no name").to_string().contains("extends")
    );
    let near = Profile::from_file("/no/such/file.toml").expect_err("there is none").to_string();
    assert!(near.contains("cannot be read"), "{near}");
}
