//! The table that `make conformance` writes into the documentation.

use std::{collections::BTreeSet, path::Path};

use mimus::profile::Profile;

#[test]
fn every_profile_has_its_line_in_the_documented_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/PROFILES.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("<!-- conformance: begin -->").unwrap();
    let (table, _) = rest.split_once("<!-- conformance: end -->").unwrap();
    let lines = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let named: BTreeSet<&str> = lines.map(|(name, _)| name).collect();
    let known: BTreeSet<&str> = Profile::names().collect();
    assert_eq!(named, known, "make conformance ONLY=profiles WRITE=1 brings it up to date");
}
