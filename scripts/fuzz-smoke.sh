#!/usr/bin/env bash
# Runs each fuzz target for some seconds (first argument). A crash, a hang or 2 GiB fails.
set -euo pipefail

readonly SECONDS_EACH=${1:-30}
readonly LOG="${CARGO_TARGET_DIR:-target}/fuzz-smoke.log"
shopt -s nullglob
targets=(fuzz/fuzz_targets/*.rs)
if [ "${#targets[@]}" = 0 ]; then
    echo "fuzz-smoke: no fuzz targets"
    exit 0
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz-smoke: needs a nightly toolchain and cargo-fuzz:" >&2
    echo "  rustup toolchain install nightly && cargo install --locked cargo-fuzz" >&2
    exit 1
fi
mkdir -p "$(dirname "$LOG")"
for file in "${targets[@]}"; do
    target=$(basename "$file" .rs)
    if ! cargo +nightly fuzz run "$target" -- -max_total_time="$SECONDS_EACH" -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 >"$LOG" 2>&1; then
        tail -n 40 "$LOG" >&2
        echo "fuzz-smoke: $target failed" >&2
        exit 1
    fi
    runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$LOG")
    echo "fuzz-smoke: $target ok, ${runs:-?} runs in $SECONDS_EACH s"
done
