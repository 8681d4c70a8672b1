#!/usr/bin/env bash
# Runs every test there is and ends with one line that sums them: `N passed, N failed`.
set -euo pipefail

readonly LOG="${CARGO_TARGET_DIR:-target}/test.log"
mkdir -p "$(dirname "$LOG")"
status=0

# Tests that need our patch of BoringSSL skip themselves without it, which is only right where somebody chose
# another BoringSSL.
if [ -z "${BORING_BSSL_PATH:-}${CMAKE:-}" ]; then export MIMUS_REQUIRE_PATCH=1; fi

read -ra members <<<"$(scripts/members.sh)"
cargo test "${members[@]}" --all-features --locked --no-fail-fast 2>&1 | tee "$LOG" || status=$?
for suite in scripts/tests conformance/tests; do
    [ -d "$suite" ] || continue
    python3 -m unittest discover -v -s "$suite" 2>&1 | tee -a "$LOG" || status=$?
done

scripts/python.sh test 2>&1 | tee -a "$LOG" || status=$?

# pytest: "2 failed, 118 passed, 1 skipped in 61.30s (0:01:01)", its words in any order.
# libtest: "test result: ok. 5 passed; 0 failed; ..."; unittest -v: "test_x (...) ... ok|FAIL|ERROR".
awk '
    /^test result: / { passed += $4; failed += $6 }
    /^test_.* \.\.\. ok$/ { passed++ }
    /^test_.* \.\.\. (FAIL|ERROR)$/ { failed++ }
    /^[0-9]+ (passed|failed|skipped|error).* in [0-9.]+s/ {
        for (i = 1; i < NF; i++) {
            if ($(i + 1) ~ /^passed/) passed += $i
            if ($(i + 1) ~ /^(failed|error)/) failed += $i
        }
    }
    END { printf "%d passed, %d failed\n", passed, failed }
' "$LOG"
if [ "$status" != 0 ]; then
    echo "test: not all of it built and passed, see above" >&2
fi
exit "$status"
