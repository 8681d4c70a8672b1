#!/usr/bin/env bash
# Runs each fuzz target for some seconds (first argument) on the stable toolchain: its seeds, then
# mutations of them. A crash fails. For coverage-guided fuzzing see fuzz/README.md.
set -euo pipefail

readonly SECONDS_EACH=${1:-30}
cd "$(dirname "$0")/../fuzz"
cargo build -q --release --locked
for file in fuzz_targets/*.rs; do
    target=$(basename "$file" .rs)
    "${CARGO_TARGET_DIR:-target}/release/$target" "-max_total_time=$SECONDS_EACH"
    echo "fuzz-smoke: $target ok"
done
