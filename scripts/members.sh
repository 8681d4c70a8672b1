#!/usr/bin/env bash
# Prints what of the workspace this compiler can build, as arguments for cargo: the benchmark asks for a
# newer one than Mimus does, and without it everything else still has to pass.
set -euo pipefail

needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$(dirname "$0")/../bench/runner/Cargo.toml")
version=$(rustc --version | awk '{ print $2 }')
if printf '%s\n' "$needed" "${version%%-*}" | sort -VC; then
    echo --workspace
else
    echo "leaving mimus-bench out: it needs Rust $needed, here is $version" >&2
    echo --workspace --exclude mimus-bench
fi
