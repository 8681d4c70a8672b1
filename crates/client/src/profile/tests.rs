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
    for (name, text) in data::FILES {
        if data::BASES.contains(name) {
            // It may have the name of an alias.
            assert!(Profile::named(name).map_or(true, |profile| profile.name() != *name), "{name}");
            continue;
        }
        // Every template is made.
        let profile = Profile::from_toml(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(profile.name(), *name);
        assert!(profile.sources().next().is_some(), "{name}");
        let again =
            Profile::from_toml(&profile.to_toml()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.to_toml(), profile.to_toml());
    }
    for (alias, name) in Profile::aliases() {
        assert_eq!(Profile::named(alias).expect(alias).name(), name);
    }
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
    let none = Profile::from_toml("extends = \"chrom\"").expect_err("there is none");
    assert!(none.near().contains(&"chrome"));
    let near = Profile::from_file("/no/such/file.toml").expect_err("there is none").to_string();
    assert!(near.contains("cannot be read"), "{near}");
}
