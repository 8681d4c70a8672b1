use super::*;
use crate::testing::{Costs, record, suite};

fn made_up() -> Record {
    let gate = "[[workload.gate]]\nours = 'mimus/async'\nagainst = ['peer/best']";
    record(
        &suite(gate),
        &[
            Costs::new("floor/tokio", 15_000.0),
            Costs::new("mimus/async", 16_000.0),
            Costs::new("peer/best", 26_000.0),
        ],
    )
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let record = made_up();
    let page = html::page(&record, &analysis::analyse(&record)).expect("a page");
    for part in ["<svg", "Small GET", "mimus/async", "x floor", "class=\"pass\""] {
        assert!(page.contains(part), "no {part}");
    }
    for foreign in ["<script", "src=", "<link", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn what_a_peer_says_becomes_no_markup() {
    let mut record = made_up();
    record.workloads[0].rows[2].fail("<script>alert(1)</script>", 1);
    let page = html::page(&record, &analysis::analyse(&record)).expect("a page");
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn pictures_have_words_in_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let pictures = directory.path().join("png");
    write(&made_up(), directory.path(), Some(&pictures)).expect("it is drawn");
    let mut names: Vec<String> = std::fs::read_dir(&pictures)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["h1-gain.png", "h1-get-instructions.png", "h1-get.png"]);
    // The same drawing without a font would be a good deal smaller.
    assert!(std::fs::metadata(pictures.join("h1-get.png")).expect("a file").len() > 8_000);
}
