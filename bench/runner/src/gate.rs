//! What has to come out: rules as data, and the judging of them.

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::counts::Count;
use crate::stats::{Interval, Paired};
use crate::suite::Metric;
use crate::table;

/// The gain over a peer that is asked for where a gate does not say, as a ratio of costs.
const MIN_RATIO: f64 = 1.05;
/// The chance of being fooled that is accepted.
const MAX_P: f64 = 0.01;
/// How much worse our p95 may be than a peer's.
const MAX_P95: f64 = 1.05;

/// A rule. Exactly one of `min_ratio`, `max_ratio`, `not_behind`, `max`, `max_us` and `min_rate` says which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Who is judged.
    pub ours: String,
    /// Whom it is compared with, each on its own.
    #[serde(default)]
    pub against: Vec<String>,
    /// What is compared.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// Peer's cost over ours, at least; also p < 0.01 and our p95 at most 5 % over the peer's.
    #[serde(default)]
    pub min_ratio: Option<f64>,
    /// Our cost over the floor's, at most.
    #[serde(default)]
    pub max_ratio: Option<f64>,
    /// It must not be shown that we are slower: the interval of peer over ours reaches 1.
    #[serde(default)]
    pub not_behind: bool,
    /// What is counted, for `max`.
    #[serde(default)]
    pub count: Option<Count>,
    /// The count for each exchange, at most.
    #[serde(default)]
    pub max: Option<f64>,
    /// Bytes a second, at least.
    #[serde(default)]
    pub min_rate: Option<f64>,
    /// Microseconds by the metric, at most.
    #[serde(default)]
    pub max_us: Option<f64>,
}

/// One question that a gate asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// At least so many times as cheap as a peer, significantly, without a worse tail.
    Ahead(f64),
    /// At most so many times the floor's cost.
    Within(f64),
    /// Not shown to be slower.
    NotBehind,
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum Verdict {
    /// As asked.
    Pass(String),
    /// Not as asked.
    Fail(String),
    /// There is nothing to judge by.
    Unjudged(String),
}

/// What a comparison found, from which a rule judges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Their cost over ours.
    pub theirs_over_ours: Interval,
    /// The paired test of the two.
    pub paired: Option<Paired>,
    /// Our p95 over theirs, where exchanges are timed one by one.
    pub p95: Option<f64>,
}

impl Gate {
    /// Whether the fields make sense together.
    pub fn check(&self) -> Result<()> {
        if let Some(max) = self.max {
            ensure!(self.count.is_some(), "a gate with `max` needs `count`");
            ensure!(max > 0.0 && self.against.is_empty(), "`max` is compared with nobody");
            let alone = self.min_rate.is_none() && self.max_us.is_none();
            ensure!(alone, "a gate has one of `max`, `max_us` and `min_rate`");
            return Ok(());
        }
        if let Some(most) = self.max_us {
            ensure!(most > 0.0 && self.against.is_empty(), "`max_us` is compared with nobody");
            ensure!(self.min_rate.is_none(), "a gate has one of `max_us` and `min_rate`");
            return Ok(());
        }
        if let Some(rate) = self.min_rate {
            ensure!(rate > 0.0 && self.against.is_empty(), "`min_rate` is compared with nobody");
            return Ok(());
        }
        ensure!(!self.against.is_empty(), "a gate needs somebody to be compared with");
        let rules = usize::from(self.min_ratio.is_some())
            + usize::from(self.max_ratio.is_some())
            + usize::from(self.not_behind);
        if rules > 1 {
            bail!("a gate is one of `min_ratio`, `max_ratio`, `not_behind` and `max`");
        }
        Ok(())
    }

    /// The rule for each of `against`.
    pub fn rule(&self) -> Rule {
        match (self.max_ratio, self.not_behind) {
            (Some(ratio), _) => Rule::Within(ratio),
            (None, true) => Rule::NotBehind,
            (None, false) => Rule::Ahead(self.min_ratio.unwrap_or(MIN_RATIO)),
        }
    }

    /// Every contender that is named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.ours.as_str()).chain(self.against.iter().map(String::as_str))
    }
}

impl Rule {
    /// What is asked, in words.
    pub fn asks(self) -> String {
        match self {
            Self::Ahead(ratio) => {
                format!(">= {ratio:.2} x, p < {MAX_P}, p95 <= {MAX_P95:.2} x theirs")
            }
            Self::Within(ratio) => format!("<= {ratio:.2} x"),
            Self::NotBehind => "not behind".into(),
        }
    }

    /// The answer.
    pub fn judge(self, found: &Evidence) -> Verdict {
        match self {
            Self::Ahead(least) => ahead(least, found),
            Self::Within(most) => {
                let ours = found.theirs_over_ours.inverse();
                let why = format!("{:.3} x [{:.3}, {:.3}]", ours.value, ours.low, ours.high);
                if ours.value <= most { Verdict::Pass(why) } else { Verdict::Fail(why) }
            }
            Self::NotBehind => {
                let gain = found.theirs_over_ours;
                let why = format!("{:.3} x [{:.3}, {:.3}]", gain.value, gain.low, gain.high);
                if gain.high >= 1.0 { Verdict::Pass(why) } else { Verdict::Fail(why) }
            }
        }
    }
}

/// Whether a count for each exchange stays within a gate's `max`.
pub fn judge_count(found: Option<f64>, max: f64) -> Verdict {
    match found {
        Some(found) if found <= max => Verdict::Pass(format!("{found:.1}")),
        Some(found) => Verdict::Fail(format!("{found:.1}")),
        None => Verdict::Unjudged("not counted in this run".into()),
    }
}

/// Whether a time in nanoseconds is at most a gate's `max_us`.
pub fn judge_time(found: Option<f64>, most: f64) -> Verdict {
    match found {
        Some(found) if found <= most * 1e3 => Verdict::Pass(table::time(found)),
        Some(found) => Verdict::Fail(table::time(found)),
        None => Verdict::Unjudged("nothing was measured".into()),
    }
}

/// Whether `found` bytes a second are at least a gate's `min_rate`.
pub fn judge_rate(found: Option<f64>, least: f64) -> Verdict {
    match found {
        Some(found) if found >= least => Verdict::Pass(table::rate(found)),
        Some(found) => Verdict::Fail(table::rate(found)),
        None => Verdict::Unjudged("nothing was measured".into()),
    }
}

fn ahead(least: f64, found: &Evidence) -> Verdict {
    let gain = found.theirs_over_ours;
    let Some(paired) = found.paired else {
        return Verdict::Unjudged("too few rounds for a paired test".into());
    };
    let mut why =
        format!("{:.3} x [{:.3}, {:.3}], p = {:.2e}", gain.value, gain.low, gain.high, paired.p);
    let mut missed = Vec::new();
    if gain.value < least {
        missed.push("ratio");
    }
    if paired.p >= MAX_P {
        missed.push("p");
    }
    if let Some(p95) = found.p95 {
        why.push_str(&format!(", p95 {p95:.3} x theirs"));
        if p95 > MAX_P95 {
            missed.push("p95");
        }
    }
    if missed.is_empty() {
        return Verdict::Pass(why);
    }
    Verdict::Fail(format!("{why}; missed: {}", missed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Method;

    fn evidence(value: f64, p: f64, p95: f64) -> Evidence {
        Evidence {
            theirs_over_ours: Interval { value, low: value * 0.98, high: value * 1.02 },
            paired: Some(Paired { p, effect: 1.0, method: Method::Exact, pairs: 12 }),
            p95: Some(p95),
        }
    }

    fn passes(rule: Rule, found: &Evidence) -> bool {
        matches!(rule.judge(found), Verdict::Pass(_))
    }

    #[test]
    fn being_ahead_needs_ratio_significance_and_tail() {
        let rule = Rule::Ahead(1.05);
        assert!(passes(rule, &evidence(1.05, 0.009, 1.05)));
        assert!(!passes(rule, &evidence(1.049, 0.001, 0.9)));
        assert!(!passes(rule, &evidence(1.5, 0.01, 0.9)));
        assert!(!passes(rule, &evidence(1.5, 0.001, 1.06)));
    }

    #[test]
    fn a_failure_says_what_was_missed() {
        let Verdict::Fail(why) = Rule::Ahead(1.5).judge(&evidence(1.2, 0.2, 1.3)) else {
            panic!("it passed");
        };
        assert!(why.ends_with("missed: ratio, p, p95"), "{why}");
    }

    #[test]
    fn without_a_test_nothing_is_judged() {
        let found = Evidence { paired: None, ..evidence(2.0, 0.001, 0.5) };
        assert!(matches!(Rule::Ahead(1.05).judge(&found), Verdict::Unjudged(_)));
    }

    #[test]
    fn a_floor_is_a_bound_from_above() {
        // Theirs over ours is 0.92: ours costs 1.087 times the floor.
        assert!(passes(Rule::Within(1.10), &evidence(0.92, 1.0, 1.0)));
        assert!(!passes(Rule::Within(1.05), &evidence(0.92, 1.0, 1.0)));
    }

    #[test]
    fn not_behind_asks_the_interval() {
        assert!(passes(Rule::NotBehind, &evidence(0.99, 1.0, 1.0)));
        assert!(!passes(Rule::NotBehind, &evidence(0.97, 1.0, 1.0)));
    }

    #[test]
    fn counts_have_a_ceiling() {
        assert!(matches!(judge_count(Some(8.0), 8.0), Verdict::Pass(_)));
        assert!(matches!(judge_count(Some(8.1), 8.0), Verdict::Fail(_)));
        assert!(matches!(judge_count(None, 8.0), Verdict::Unjudged(_)));
    }

    #[test]
    fn rates_have_a_floor() {
        assert_eq!(judge_rate(Some(1e9), 1e9), Verdict::Pass("1000 MB/s".into()));
        assert!(matches!(judge_rate(Some(0.9e9), 1e9), Verdict::Fail(_)));
        assert!(matches!(judge_rate(None, 1e9), Verdict::Unjudged(_)));
    }

    #[test]
    fn times_have_a_ceiling_in_microseconds() {
        assert_eq!(judge_time(Some(40_000.0), 40.0), Verdict::Pass("40.0 us".into()));
        assert!(matches!(judge_time(Some(40_001.0), 40.0), Verdict::Fail(_)));
        assert!(matches!(judge_time(None, 40.0), Verdict::Unjudged(_)));
    }

    #[test]
    fn a_gate_of_two_rules_is_refused() {
        for (text, is_one) in [
            ("against = ['b']\nmin_ratio = 1.1\nmax_ratio = 1.1", false),
            ("min_rate = 1e9\nmax = 3\ncount = 'allocations'", false),
            ("min_rate = 1e9\nagainst = ['b']", false),
            ("max_us = 40\nmin_rate = 1e9", false),
            ("max_us = 40\nmax = 3\ncount = 'allocations'", false),
            ("metric = 'cpu'\nmax_us = 40", true),
            ("min_rate = 1e9", true),
            ("max = 3\ncount = 'allocations'", true),
        ] {
            let gate: Gate = toml::from_str(&format!("ours = 'a'\n{text}")).expect("it parses");
            assert_eq!(gate.check().is_ok(), is_one, "{text}");
        }
    }
}
