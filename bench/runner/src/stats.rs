//! The statistics: quantiles, a bootstrap interval, and the paired test. The tests and the resampling
//! are a statistics crate's.

use serde::{Deserialize, Serialize};
use stats_claw::resampling::{bootstrap_indices, percentile_ci};
use stats_claw::rng::SplitMix64;
use stats_claw::tests_stat::nonparametric::{mann_whitney_u_mode, wilcoxon_signed_rank_mode};
use stats_claw::tests_stat::{Alternative, Mode};

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;
/// What a 95 % interval leaves out.
const ALPHA: f64 = 0.05;

/// A value and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of one over the value, for a positive ratio.
    pub fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Whether 1 is outside of it.
    pub fn excludes_one(self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// How a p-value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// From the null distribution itself.
    Exact,
    /// From a normal approximation, because there were ties.
    Asymptotic,
}

/// The outcome of a paired test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Two-sided Wilcoxon signed-rank p.
    pub p: f64,
    /// Matched-pairs rank-biserial correlation: 1 if every pair favours the second, -1 the first.
    pub effect: f64,
    /// How p was found.
    pub method: Method,
    /// Pairs that differed.
    pub pairs: usize,
}

/// The value below which `q` of the sorted values lie, interpolated; `None` of nothing.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted.get(at.floor() as usize)?, sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// The median of times in nanoseconds; `None` of nothing.
pub fn median_of_times(values: &[u64]) -> Option<f64> {
    median(&values.iter().map(|&value| value as f64).collect::<Vec<_>>())
}

/// The ratio of the medians of `above` and `below`, with a percentile-bootstrap interval over rounds:
/// a resample takes whole rounds, so pairs stay pairs. `None` without values.
pub fn paired_ratio(above: &[f64], below: &[f64], seed: u64) -> Option<Interval> {
    let rounds = above.len().min(below.len());
    let value = median(above)? / median(below)?;
    let ratios = draws(rounds, seed)
        .iter()
        .filter_map(|draw| Some(median(&take(above, draw))? / median(&take(below, draw))?))
        .collect::<Vec<_>>();
    interval(value, &ratios)
}

/// As [`paired_ratio`], of two samples that have nothing to do with each other.
pub fn unpaired_ratio(above: &[f64], below: &[f64], seed: u64) -> Option<Interval> {
    let value = median(above)? / median(below)?;
    let ratios = draws(above.len(), seed)
        .iter()
        .zip(draws(below.len(), seed.wrapping_add(1)))
        .filter_map(|(a, b)| Some(median(&take(above, a))? / median(&take(below, &b))?))
        .collect::<Vec<_>>();
    interval(value, &ratios)
}

fn draws(n: usize, seed: u64) -> Vec<Vec<usize>> {
    bootstrap_indices(n, RESAMPLES, &mut SplitMix64::new(seed))
}

fn take(values: &[f64], draw: &[usize]) -> Vec<f64> {
    draw.iter().filter_map(|&at| values.get(at).copied()).collect()
}

fn interval(value: f64, resampled: &[f64]) -> Option<Interval> {
    let (low, high) = percentile_ci(resampled, ALPHA).ok()?;
    value.is_finite().then_some(Interval { value, low, high })
}

/// Wilcoxon's signed-rank test of `theirs` against `ours`, pair by pair, on the logarithms: a pair says
/// how many times one costs the other. `None` when nothing differs.
pub fn paired_test(theirs: &[f64], ours: &[f64]) -> Option<Paired> {
    let theirs = logarithms(theirs);
    let ours = logarithms(ours);
    let run = |side, mode| wilcoxon_signed_rank_mode(&theirs, &ours, side, true, mode);
    let (two_sided, method) = match run(Alternative::TwoSided, Mode::Exact) {
        Ok(result) => (result, Method::Exact),
        Err(_) => (run(Alternative::TwoSided, Mode::Asymptotic).ok()?, Method::Asymptotic),
    };
    let pairs = theirs.iter().zip(&ours).filter(|(a, b)| a != b).count();
    // The one-sided statistic is the sum of the ranks of positive differences.
    let positive =
        run(Alternative::Greater, Mode::Asymptotic).map(|result| result.statistic).ok()?;
    let all = (pairs * (pairs + 1)) as f64 / 2.0;
    Some(Paired { p: two_sided.p_value, effect: 2.0 * positive / all - 1.0, method, pairs })
}

/// Two-sided Mann-Whitney p of two samples that are not paired; `None` when there is nothing to test.
pub fn unpaired_test(a: &[f64], b: &[f64]) -> Option<f64> {
    let result = mann_whitney_u_mode(a, b, Alternative::TwoSided, true, Mode::Auto).ok()?;
    Some(result.p_value)
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

#[cfg(test)]
mod tests;
