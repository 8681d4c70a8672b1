use super::*;

/// Makes `paired_test`, which takes logarithms, see `values` themselves.
fn exp(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.exp()).collect()
}

#[test]
fn medians_and_quantiles_interpolate() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(quantile(&[0.0, 10.0], 0.95), Some(9.5));
    assert_eq!(median_of_times(&[5, 1, 9]), Some(5.0));
}

// Hollander and Wolfe's depression data, as in the documentation of R's wilcox.test:
// V = 40, one-sided p = 0.01953, two-sided twice that.
#[test]
fn the_paired_test_agrees_with_r() {
    let first = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    #[expect(clippy::approx_constant, reason = "it is a measurement")]
    let second = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    let found = paired_test(&exp(&first), &exp(&second)).expect("they differ");
    assert_eq!(found.method, Method::Exact);
    assert!((found.p - 0.039_062_5).abs() < 1e-9, "{found:?}");
    assert!((found.effect - (2.0 * 40.0 / 45.0 - 1.0)).abs() < 1e-9, "{found:?}");
}

// Darwin's maize, as in the documentation of scipy.stats.wilcoxon: p = 0.041259765625.
#[test]
fn the_paired_test_agrees_with_scipy() {
    let differences =
        [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0]
            .map(|eighths: f64| eighths / 8.0);
    let found = paired_test(&exp(&differences), &[1.0; 15]).expect("they differ");
    assert!((found.p - 0.041_259_765_625).abs() < 1e-9, "{found:?}");
}

#[test]
fn ten_pairs_of_one_mind_reach_p_below_a_hundredth() {
    let ours: Vec<f64> = (0..10).map(|round| 100.0 + f64::from(round)).collect();
    let theirs: Vec<f64> = ours.iter().map(|cost| cost * 1.1 + cost.sqrt()).collect();
    let found = paired_test(&theirs, &ours).expect("they differ");
    assert!((found.p - 2.0 / 1024.0).abs() < 1e-12, "{found:?}");
    assert_eq!((found.effect, found.pairs), (1.0, 10));
    let turned = paired_test(&ours, &theirs).expect("they differ");
    assert_eq!((turned.effect, turned.p), (-1.0, found.p));
}

#[test]
fn ties_are_tested_by_approximation_and_said_to_be() {
    let found = paired_test(&[2.0; 12], &[1.0; 12]).expect("they differ");
    assert_eq!(found.method, Method::Asymptotic);
    assert!(found.p < 0.01);
    assert_eq!(paired_test(&[1.0; 5], &[1.0; 5]), None);
}

#[test]
fn the_interval_holds_the_ratio_and_narrows_with_rounds() {
    let noisy = |rounds: usize, base: f64| -> Vec<f64> {
        (0..rounds).map(|round| base * (1.0 + 0.05 * ((round * 37 % 11) as f64 / 11.0))).collect()
    };
    let few = paired_ratio(&noisy(8, 15.0), &noisy(8, 10.0), 1).expect("values");
    assert!(few.low <= few.value && few.value <= few.high);
    assert!((few.value - 1.5).abs() < 1e-9);
    let apart = |rounds| unpaired_ratio(&noisy(rounds, 15.0), &noisy(rounds, 10.0), 1);
    let (few, many) = (apart(8).expect("values"), apart(200).expect("values"));
    assert!(many.high - many.low < few.high - few.low);
    assert!(many.excludes_one());
    assert!(paired_ratio(&[], &[], 1).is_none());
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    let above = [3.0, 4.0, 5.0, 4.5];
    let below = [1.0, 1.5, 1.2, 1.1];
    assert_eq!(paired_ratio(&above, &below, 7), paired_ratio(&above, &below, 7));
}

#[test]
fn an_inverse_turns_its_ends() {
    let ratio = Interval { value: 2.0, low: 1.6, high: 2.5 };
    assert_eq!(ratio.inverse(), Interval { value: 0.5, low: 0.4, high: 0.625 });
}

#[test]
fn samples_that_do_not_overlap_are_told_apart() {
    let a: Vec<f64> = (0..10).map(f64::from).collect();
    let b: Vec<f64> = (0..10).map(|value| f64::from(value) + 100.5).collect();
    assert!(unpaired_test(&a, &b).expect("values") < 0.001);
    assert!(unpaired_test(&a, &a).expect("values") > 0.9);
}
