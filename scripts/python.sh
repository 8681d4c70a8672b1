#!/usr/bin/env bash
# The Python package: `venv` makes the virtual environment of tests and development, `develop` puts the package
# there with a build of its own, `test` tests it with the extension that the workspace's tests have built already,
# `types` checks its annotations with the extension that is there.
set -euo pipefail

cd "$(dirname "$0")/.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
readonly TARGET VENV="$TARGET/python-venv"
readonly REQUIREMENTS=python/tests/requirements.txt

say() { printf 'python: %s\n' "$*" >&2; }
. scripts/venv.sh

venv() { make_venv "$VENV" "$REQUIREMENTS"; }

# What mypy and pyright read; stubtest holds it against what is there at run time.
types() {
    local venv="$TARGET/python-types" allowed="$PWD/python/tests/types/stubtest.txt"
    make_venv "$venv" python/tests/types/requirements.txt
    [ -e python/mimus/_mimus.abi3.so ] || extension
    local status=0
    "$venv/bin/mypy" --cache-dir "$venv/cache" || status=$?
    "$venv/bin/pyright" --pythonpath "$venv/bin/python" || status=$?
    # Elsewhere, for it would find the package twice here.
    export PYTHONPATH="$PWD/python" MYPYPATH="$PWD/python"
    (cd "$venv" && bin/stubtest mimus --allowlist "$allowed") || status=$?
    return "$status"
}

# The extension, and the origin that tests talk to. The features and profile of `cargo test`, so that nothing else is
# left to build.
extension() {
    read -ra members <<<"$(scripts/members.sh)"
    cargo build "${members[@]}" --all-features --locked --lib --tests --bin mimus-origin
    # In one step: a Python that has it loaded keeps the old one.
    cp "$TARGET/debug/lib_mimus.so" python/mimus/.new.so
    mv python/mimus/.new.so python/mimus/_mimus.abi3.so
}

case "${1:-}" in
    venv) venv ;;
    develop)
        venv
        "$VENV/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2'
        VIRTUAL_ENV="$VENV" "$VENV/bin/maturin" develop --locked "${@:2}"
        say "installed; use it with $VENV/bin/python"
        ;;
    test)
        venv
        extension
        export MIMUS_ORIGIN="${MIMUS_ORIGIN:-$TARGET/debug/mimus-origin}"
        # Some tests run programs elsewhere.
        PYTHONPATH="$PWD/python" "$VENV/bin/python" -m pytest -q "${@:2}"
        ;;
    types) types ;;
    *) say "usage: $0 venv|develop|test|types"; exit 2 ;;
esac
