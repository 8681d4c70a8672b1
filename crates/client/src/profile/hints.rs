//! Client hints that origins asked for (RFC 8942).

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use mimus_proto::Fields;

/// The hints that a profile may have a value of, each of which is sent only to who asked for it.
const NAMES: [&str; 10] = [
    "sec-ch-ua-full-version",
    "sec-ch-ua-arch",
    "sec-ch-ua-platform-version",
    "sec-ch-ua-model",
    "sec-ch-ua-bitness",
    "sec-ch-ua-wow64",
    "sec-ch-ua-full-version-list",
    "sec-ch-ua-form-factors",
    "sec-ch-prefers-color-scheme",
    "sec-ch-prefers-reduced-motion",
];

/// The most origins that are remembered. Beyond it all are forgotten, and ask again.
const MOST: usize = 1000;

/// Some of the hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HintSet(u16);

impl HintSet {
    /// The hint of this name, in lower case.
    pub(super) fn named(name: &str) -> Option<HintSet> {
        NAMES.iter().position(|known| *known == name).map(|at| HintSet(1 << at))
    }

    /// Those that a field lists.
    fn listed(fields: &Fields, name: &str) -> HintSet {
        let one = |token: &[u8]| {
            let is = |known: &&str| known.as_bytes().eq_ignore_ascii_case(token);
            NAMES.iter().position(is).map_or(0, |at| 1 << at)
        };
        HintSet(fields.list(name).map(one).fold(0, |all, bit| all | bit))
    }

    pub(super) fn has(self, other: HintSet) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What origins asked for, by authority: only secure ones are heard.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// There are any: asked before each call.
    any: AtomicBool,
    wanted: Mutex<HashMap<Box<str>, HintSet>>,
}

impl Hints {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, HintSet>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the origin wants.
    pub(crate) fn of(&self, authority: &str) -> HintSet {
        match self.any.load(Ordering::Acquire) {
            false => HintSet::default(),
            true => self.lock().get(authority).copied().unwrap_or_default(),
        }
    }

    /// Heeds the answer to a navigation: its Accept-CH takes the place of what was known (RFC 8942 section
    /// 3.1). Says whether it holds a hint to be critical that was not sent, so that the request is made anew.
    pub(crate) fn heed(&self, authority: &str, fields: &Fields) -> bool {
        if !fields.contains("accept-ch") {
            return false;
        }
        let wanted = HintSet::listed(fields, "accept-ch");
        let critical = HintSet(HintSet::listed(fields, "critical-ch").0 & wanted.0);
        let mut all = self.lock();
        if all.len() >= MOST {
            all.clear();
        }
        let before = all.insert(authority.into(), wanted).unwrap_or_default();
        self.any.store(true, Ordering::Release);
        !before.has(critical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: [(&str, &str); 2]) -> Fields {
        Fields::try_from(pairs).expect("valid fields")
    }

    #[test]
    fn the_last_word_of_an_origin_counts() {
        let hints = Hints::default();
        let asks =
            fields([("Accept-CH", "Sec-CH-UA-Arch, Unheard-Of"), ("accept-ch", "sec-ch-ua-model")]);
        assert!(!hints.heed("a.test", &asks));
        let named = |name| HintSet::named(name).expect("known");
        assert!(hints.of("a.test").has(named("sec-ch-ua-arch")));
        assert!(hints.of("a.test").has(named("sec-ch-ua-model")));
        assert_eq!(hints.of("b.test"), HintSet::default());
        assert!(!hints.heed("a.test", &Fields::new()));
        assert!(hints.of("a.test").has(named("sec-ch-ua-arch")));
        assert!(!hints.heed("a.test", &fields([("Accept-CH", ""), ("X", "")])));
        assert_eq!(hints.of("a.test"), HintSet::default());
    }

    #[test]
    fn a_critical_hint_asks_for_the_request_once_more_and_only_once() {
        let hints = Hints::default();
        let asks = fields([("Accept-CH", "sec-ch-ua-arch"), ("Critical-CH", "sec-ch-ua-arch")]);
        assert!(hints.heed("a.test", &asks));
        assert!(!hints.heed("a.test", &asks));
        // Of what is not accepted nothing is critical.
        let stray = fields([("Accept-CH", "sec-ch-ua-model"), ("Critical-CH", "sec-ch-ua-wow64")]);
        assert!(!hints.heed("b.test", &stray));
    }

    #[test]
    fn no_server_of_many_names_fills_the_memory() {
        let hints = Hints::default();
        let asks = fields([("Accept-CH", "sec-ch-ua-arch"), ("X", "")]);
        for number in 0..3 * MOST {
            hints.heed(&number.to_string(), &asks);
            assert!(hints.lock().len() <= MOST);
        }
    }
}
