//! Who a browser says that it is.

use toml::{Table, Value};

use crate::profile::Profile;

/// Who the browser says that it is.
#[derive(Debug, Default)]
pub(super) struct Who {
    user_agent: String,
    browser: Option<&'static str>,
    version: Option<String>,
    platform: Option<&'static str>,
}

/// What a `User-Agent` has before the version. Those that others have too stand last: Edge says that it is Chrome,
/// and Chrome that it is Safari.
const BROWSERS: [(&str, &str); 5] = [
    ("Firefox/", "firefox"),
    ("Edg/", "edge"),
    ("EdgA/", "edge"),
    ("Chrome/", "chromium"),
    ("Version/", "safari"),
];

/// What it has of each platform. An iPhone is like a Mac, and Android like Linux.
const PLATFORMS: [(&str, &str); 6] = [
    ("Windows NT", "windows"),
    ("Android", "android"),
    ("iPhone", "ios"),
    ("iPad", "ios"),
    ("Mac OS X", "macos"),
    ("Linux", "linux"),
];

impl Who {
    /// Who says this of itself, in `User-Agent` and in `Sec-CH-UA`.
    pub(super) fn of(user_agent: String, brands: &str) -> Self {
        let found = BROWSERS.iter().find_map(|(token, browser)| {
            let (_, rest) = user_agent.split_once(token)?;
            // The version of a Safari goes with the system's, down to the last number.
            let is_part = |c: &char| c.is_ascii_digit() || (*browser == "safari" && *c == '.');
            let version: String = rest.chars().take_while(is_part).collect();
            Some((*browser, version))
        });
        let platform = PLATFORMS.iter().find(|(token, _)| user_agent.contains(token));
        let chrome = brands.contains("Google Chrome");
        Who {
            browser: found.as_ref().map(|(browser, _)| match *browser {
                "chromium" if chrome => "chrome",
                browser => browser,
            }),
            version: found.map(|(_, version)| version).filter(|version| !version.is_empty()),
            platform: platform.map(|(_, platform)| *platform),
            user_agent,
        }
    }

    /// How far a profile is from it: another browser, another platform, versions between.
    pub(super) fn distance(&self, profile: &Profile) -> (bool, bool, u32) {
        let own = self.version.as_deref().map(major);
        (
            self.browser.is_some_and(|browser| browser != profile.browser()),
            self.platform.is_some_and(|platform| platform != profile.platform()),
            own.map_or(0, |own| own.abs_diff(major(profile.version()))),
        )
    }

    /// Says in a file who it is; what nobody said is the nearest's.
    pub(super) fn describe(&self, file: &mut Table, near: &Profile, name: Option<&str>) {
        let browser = self.browser.unwrap_or(near.browser());
        let version = self.version.as_deref().unwrap_or(near.version());
        let platform = self.platform.unwrap_or(near.platform());
        let made = format!("{browser}-{}-{platform}-captured", major(version));
        let mut said = |key: &str, value: String| file.insert(key.to_owned(), Value::String(value));
        said("name", name.map_or(made, str::to_owned));
        said("title", format!("{browser} {version} on {platform}, as captured"));
        said("browser", browser.to_owned());
        said("version", version.to_owned());
        said("platform", platform.to_owned());
        said("verified", "partly".to_owned());
        let source = [
            format!("mimus profile capture, of {:?}", self.user_agent),
            format!("what did not show: {}", near.name()),
        ];
        let source = source.into_iter().map(Value::String).collect();
        file.insert("source".to_owned(), Value::Array(source));
    }
}

/// The first number of a version; zero where there is none.
fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shipped_profile_is_told_by_what_it_says_of_itself() {
        for name in Profile::names() {
            let profile = Profile::named(name).expect(name);
            let says = |field| profile.0.file.values.get(field).cloned().unwrap_or_default();
            let who = Who::of(says("user-agent"), &says("sec-ch-ua"));
            assert_eq!(who.browser, Some(profile.browser()), "{name}");
            assert_eq!(who.platform, Some(profile.platform()), "{name}");
            assert_eq!(who.version.as_deref(), Some(profile.version()), "{name}");
            assert_eq!(who.distance(&profile), (false, false, 0), "{name}");
        }
    }

    #[test]
    fn versions_between_are_counted_in_whole_ones() {
        let old = Profile::named("safari-18-macos").expect("it is there");
        let new = Profile::named("safari-26-macos").expect("it is there");
        let who = Who::of(old.0.file.values["user-agent"].clone(), "");
        assert_eq!(who.distance(&new), (false, false, 8));
    }

    #[test]
    fn who_says_nothing_is_nobody() {
        let who = Who::of(String::new(), "");
        assert_eq!((who.browser, who.version, who.platform), (None, None, None));
    }
}
