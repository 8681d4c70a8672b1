#!/usr/bin/env bash
# The Python package: `venv` makes the virtual environment of tests and development, `develop` puts the package
# there with a build of its own, `test` tests it with the extension that the workspace's tests have built already.
set -euo pipefail

cd "$(dirname "$0")/.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
readonly TARGET VENV="$TARGET/python-venv"
readonly REQUIREMENTS=python/tests/requirements.txt

say() { printf 'python: %s\n' "$*" >&2; }

# Made once, and again when the requirements have changed.
venv() {
    if [ -e "$VENV/ready" ] && cmp -s "$VENV/ready" "$REQUIREMENTS"; then return 0; fi
    say "making $VENV"
    rm -rf "$VENV"
    "${PYTHON:-python3}" -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check -r "$REQUIREMENTS"
    cp "$REQUIREMENTS" "$VENV/ready"
}

# The features and profile of `cargo test`, so that nothing but the extension itself is left to build.
extension() {
    read -ra members <<<"$(scripts/members.sh)"
    cargo build "${members[@]}" --all-features --locked --lib --tests
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
        PYTHONPATH=python "$VENV/bin/python" -m pytest -q "${@:2}"
        ;;
    *) say "usage: $0 venv|develop|test"; exit 2 ;;
esac
