use super::*;
use crate::testing::{Costs, record_in_mood, suite};

fn run(ours: Costs, mood: f64, seed: u64) -> Record {
    let costs = [Costs::new("floor/tokio", 15_000.0), ours, Costs::new("peer/best", 26_000.0)];
    record_in_mood(&suite(""), &costs, mood, seed)
}

fn calls(before: &Record, after: &Record, contender: &str) -> Vec<(String, Call)> {
    let all = changes(before, after).into_iter().filter(|change| change.contender == contender);
    all.map(|change| (change.what, change.call)).collect()
}

fn ours() -> Costs {
    Costs::new("mimus/async", 16_000.0)
}

#[test]
fn noise_is_not_called_a_change() {
    for seed in 2..12 {
        for change in changes(&run(ours(), 1.0, 1), &run(ours(), 1.0, seed)) {
            assert_eq!(change.call, Call::Same, "{change:?}");
        }
    }
}

#[test]
fn a_slower_day_of_the_machine_is_not_called_a_change() {
    let found = calls(&run(ours(), 1.0, 1), &run(ours(), 1.25, 2), "mimus/async");
    assert!(found.iter().all(|(_, call)| *call == Call::Same), "{found:?}");
}

#[test]
fn two_microseconds_more_are_caught() {
    let slowed = Costs { counts: ours().counts, ..Costs::new("mimus/async", 18_000.0) };
    let found = calls(&run(ours(), 1.0, 1), &run(slowed, 1.1, 2), "mimus/async");
    assert!(found.contains(&("latency".into(), Call::Worse)), "{found:?}");
    let found = calls(
        &run(Costs::new("mimus/async", 18_000.0), 1.0, 1),
        &run(ours(), 1.0, 2),
        "mimus/async",
    );
    assert!(found.contains(&("latency".into(), Call::Better)), "{found:?}");
}

#[test]
fn one_more_allocation_is_caught() {
    let mut more = ours();
    more.counts.allocations = Some(8.0);
    let found = calls(&run(ours(), 1.0, 1), &run(more, 1.0, 2), "mimus/async");
    let worse: Vec<_> = found.iter().filter(|(_, call)| *call == Call::Worse).collect();
    assert_eq!(worse, [&("allocations".to_owned(), Call::Worse)]);
}

#[test]
fn a_slower_peer_is_no_regression_of_ours() {
    let mut after = run(ours(), 1.0, 2);
    let slow = [Costs::new("floor/tokio", 15_000.0), ours(), Costs::new("peer/best", 40_000.0)];
    after.workloads = record_in_mood(&suite(""), &slow, 1.0, 2).workloads;
    let before = run(ours(), 1.0, 1);
    let peer = calls(&before, &after, "peer/best");
    assert!(peer.contains(&("latency".into(), Call::Worse)), "{peer:?}");
    assert_eq!(report(&before, &after), ExitCode::SUCCESS);
}

#[test]
fn exchanges_that_began_to_fail_are_a_regression() {
    let before = run(ours(), 1.0, 1);
    let mut after = run(ours(), 1.0, 2);
    after.workloads[0].rows[1].fail("reset", 3);
    let found = calls(&before, &after, "mimus/async");
    assert_eq!(found, [("exchanges".to_owned(), Call::Broken)]);
    assert_eq!(report(&before, &after), ExitCode::FAILURE);
}

#[test]
fn counts_may_vary_a_little() {
    assert_eq!(call_count(10_000.0, 10_300.0), Call::Same);
    assert_eq!(call_count(10_000.0, 10_301.0), Call::Worse);
    assert_eq!(call_count(3.0, 3.1), Call::Same);
    assert_eq!(call_count(10_000.0, 9_000.0), Call::Better);
}
