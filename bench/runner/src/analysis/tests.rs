use super::*;
use crate::record::Options;
use crate::testing::{Costs, record, suite};

fn costs(async_ours: f64, peer: f64) -> Vec<Costs> {
    vec![
        Costs::new("floor/tokio", 10_000.0),
        Costs::new("mimus/async", async_ours),
        Costs::new("peer/best", peer),
    ]
}

fn row<'a>(found: &'a Analysis, id: &str) -> &'a RowSummary {
    found.workloads[0].rows.iter().find(|row| row.contender == id).expect("a row")
}

#[test]
fn a_gain_is_the_peers_cost_over_ours() {
    let found = analyse(&record(&suite(""), &costs(11_000.0, 22_000.0)));
    let peer = row(&found, "peer/best").costs[0].as_ref().expect("a cost");
    let ratio = peer.over_ours.expect("a ratio");
    assert!((ratio.value - 2.0).abs() < 0.02, "{ratio:?}");
    assert!(peer.paired.expect("a test").p < 0.01);
    let ours = row(&found, "mimus/async").costs[0].as_ref().expect("a cost");
    assert!((ours.over_floor.expect("a floor").value - 1.1).abs() < 0.01);
    assert!(ours.over_ours.is_none());
}

#[test]
fn gates_pass_and_fail_by_what_was_measured() {
    let gates = "[[workload.gate]]\nours = 'mimus/async'\nagainst = ['floor/tokio']\nmax_ratio = 1.15\n\
                 [[workload.gate]]\nours = 'mimus/async'\nagainst = ['peer/best']\nmin_ratio = 1.5";
    let verdicts = |ours, peer| {
        let found = analyse(&record(&suite(gates), &costs(ours, peer)));
        found.gates.iter().map(|g| matches!(g.verdict, Verdict::Pass(_))).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(11_000.0, 22_000.0), [true, true]);
    assert_eq!(verdicts(12_000.0, 22_000.0), [false, true]);
    assert_eq!(verdicts(11_000.0, 15_000.0), [true, false]);
}

#[test]
fn one_failed_exchange_fails_the_row_and_its_gates() {
    let gate =
        "[[workload.gate]]\nours = 'mimus/async'\nagainst = ['floor/tokio']\nmax_ratio = 9.0";
    let mut record = record(&suite(gate), &costs(11_000.0, 22_000.0));
    record.workloads[0].rows[1].fail("reset", 1);
    let found = analyse(&record);
    assert_eq!(row(&found, "mimus/async").state, State::Failed("1 failed: reset".into()));
    assert!(row(&found, "mimus/async").costs[0].is_none());
    assert!(matches!(found.gates[0].verdict, Verdict::Fail(_)));
}

#[test]
fn who_could_not_be_built_is_shown_and_judges_nobody() {
    let gate = "[[workload.gate]]\nours = 'mimus/async'\nagainst = ['peer/best']";
    let mut record = record(&suite(gate), &costs(11_000.0, 22_000.0));
    record.workloads[0].rows[2] = Row::new("peer/best".into());
    record.clients.insert("peer".into(), Built::Failed { error: "error: no cmake".into() });
    let found = analyse(&record);
    assert_eq!(row(&found, "peer/best").state, State::NotBuilt("error: no cmake".into()));
    assert!(matches!(found.gates[0].verdict, Verdict::Unjudged(_)));
}

#[test]
fn who_was_left_out_by_choice_is_not_judged() {
    let gate = "[[workload.gate]]\nours = 'mimus/async'\nagainst = ['peer/best']";
    let mut record = record(&suite(gate), &costs(11_000.0, 22_000.0));
    record.workloads[0].rows.pop();
    assert!(analyse(&record).gates.is_empty());
}

#[test]
fn a_worse_tail_fails_a_gate_that_the_median_passes() {
    let gate = "[[workload.gate]]\nours = 'mimus/async'\nagainst = ['peer/best']";
    let mut record = record(&suite(gate), &costs(11_000.0, 22_000.0));
    record.workloads[0].rows[1].latency.add(&[90_000; 5_000]);
    let Verdict::Fail(why) = &analyse(&record).gates[0].verdict else { panic!("it passed") };
    assert!(why.ends_with("missed: p95"), "{why}");
}

#[test]
fn the_options_of_a_record_are_those_of_its_run() {
    let record = record(&suite(""), &costs(1.0, 1.0));
    let text = serde_json::to_string(&record).expect("it is written");
    let back: Record = serde_json::from_str(&text).expect("it is read");
    let options: Options = back.options;
    assert_eq!(options, record.options);
    assert_eq!(back.suite, record.suite);
}
