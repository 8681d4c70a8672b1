# shellcheck shell=bash
# Virtual environments; for the scripts beside this, which source it.

# Makes the environment $1 with the requirements in $2, of the interpreter in PYTHON: once, and again when one of them
# has changed.
make_venv() {
    local python=${PYTHON:-python3} wanted
    wanted=$("$python" -VV && cat "$2")
    if [ -e "$1/ready" ] && [ "$(cat "$1/ready")" = "$wanted" ]; then return 0; fi
    say "making $1"
    rm -rf "$1"
    "$python" -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    printf '%s\n' "$wanted" >"$1/ready"
}
