#!/usr/bin/env bash
# The wheels of the Python package: one for every CPython from 3.11 on (abi3), and one for each free-threaded CPython
# that is here. Each is built for an old glibc, checked, and tested in virtual environments that know of no Rust.
#
# PYTHONS names the interpreters, where those on the path and pyenv's are not what is wanted. ADAPTERS= leaves the
# other packages out, and with them the tests of what goes between them and Mimus.
set -euo pipefail

cd "$(dirname "$0")/.."
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
readonly TARGET ROOT=$PWD TOOLS="$TARGET/wheel-tools" WHEELS="$TARGET/wheels"
# The oldest that Rust's standard library supports; what builds it is Zig's C compiler, which knows all of glibc's.
readonly PLATFORM=manylinux_2_17
readonly ADAPTERS=${ADAPTERS-httpx,httpx2,requests,scrapy}

say() { printf 'wheel: %s\n' "$*" >&2; }
. scripts/venv.sh

# "3.13" or "3.14t", for a CPython that the package supports.
version() {
    "$1" -c '
import sys, sysconfig
if sys.implementation.name != "cpython" or sys.version_info < (3, 11): sys.exit(1)
print("%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))
' 2>/dev/null
}

# Fills `pythons`: the first interpreter of each version.
declare -A pythons
find_pythons() {
    local candidates found version
    read -ra candidates <<<"${PYTHONS:-}"
    if [ "${#candidates[@]}" = 0 ]; then
        candidates=(python3 python3.{11..19} python3.{13..19}t)
        candidates+=("${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3)
    fi
    for found in "${candidates[@]}"; do
        version=$(version "$found") || continue
        : "${pythons[$version]:=$(realpath -s "$(command -v "$found")")}"
    done
    [ "${#pythons[@]}" -gt 0 ] || { say "no CPython from 3.11 on is here"; return 1; }
}

# Builds with the interpreters given. BoringSSL is built along with it, for the same glibc and with our patch; paths of
# this machine stay out.
build() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} python interpreters=() maps
    maps="-ffile-prefix-map=$TARGET=target -ffile-prefix-map=$cargo_home=cargo"
    for python in "$@"; do interpreters+=(--interpreter "$python"); done
    # Not from here: of its headers that lie below, Zig tells bindgen relative paths, which build scripts do not find.
    # The manifest is named for maturin to find pyproject.toml.
    (cd python && env -u BORING_BSSL_PATH -u CARGO_ENCODED_RUSTFLAGS PATH="$TOOLS/bin:$PATH" \
        RUSTFLAGS="--remap-path-prefix=$ROOT=mimus --remap-path-prefix=$cargo_home=cargo" \
        CFLAGS="$maps" CXXFLAGS="$maps" \
        maturin build --manifest-path "$ROOT/python/Cargo.toml" --release --locked --zig --compatibility "$PLATFORM" \
        --out "$WHEELS" "${interpreters[@]}")
}

# The source distribution.
pack() {
    "$TOOLS/bin/maturin" sdist --out "$WHEELS"
    scripts/sdist.py "$WHEELS"/*.tar.gz
    "$TOOLS/bin/twine" check --strict "$WHEELS"/*.tar.gz
}

# What is in them, what they ask of the system, and what an index would say to them.
check() {
    local wheel shown least
    "$TOOLS/bin/python" scripts/check_wheel.py --platform "$PLATFORM" \
        --nowhere "$ROOT" --nowhere "$TARGET" --nowhere "${CARGO_HOME:-$HOME/.cargo}" --nowhere "$HOME/" "$@"
    "$TOOLS/bin/twine" check --strict "$@"
    for wheel in "$@"; do
        shown=$("$TOOLS/bin/auditwheel" show "$wheel")
        # The name's tag is a promise; this is what the symbols say.
        least=$(grep -om1 'manylinux_[0-9]*_[0-9]*' <<<"$shown")
        printf '%s\n' "$least" "$PLATFORM" | sort -VC || { say "${wheel##*/} promises too much: $shown"; return 1; }
        say "${wheel##*/} asks for $least"
    done
}

# Installs the wheel $1 where there is nothing but the interpreter $2, of version $3, and runs the tests there.
try() {
    local place="$TARGET/wheel-test/$3" gil=() extras=$ADAPTERS
    case "$3" in *t) gil=(-X gil=0) extras= ;; esac
    rm -rf "$place"
    "$2" -m venv "$place"
    # Tests make keys with it.
    ln -s "$(command -v openssl)" "$place/bin/"
    local alone=(env -i "HOME=$place" PATH="$place/bin" LANG=C.UTF-8)
    "$place/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps "$1"
    # Somewhere else, for the sources are here.
    (cd "$place" && "${alone[@]}" bin/python -I "${gil[@]}" - "$place") <<'PYTHON'
import sys
import mimus
assert mimus.__file__.startswith(sys.argv[1]), mimus.__file__
assert not ("t" in sys.abiflags and sys._is_gil_enabled()), "importing it has brought the GIL back"
with mimus.Client() as client, client as again:
    assert again is client
PYTHON
    "$place/bin/pip" install --quiet --disable-pip-version-check "$1${extras:+[$extras]}" \
        -r python/tests/requirements.txt -c python/tests/types/requirements.txt
    say "testing ${1##*/} with CPython $3"
    (cd "$place" && "${alone[@]}" "MIMUS_ORIGIN=$MIMUS_ORIGIN" bin/python -I "${gil[@]}" -m pytest -q \
        -p no:cacheprovider --rootdir "$ROOT" -c "$ROOT/pyproject.toml" "$ROOT/python/tests")
}

# The origin that the tests talk to, unless MIMUS_ORIGIN names it.
origin() {
    if [ -z "${MIMUS_ORIGIN:-}" ]; then
        say "building the origin for the tests"
        cargo build --locked -p mimus-testkit --bin mimus-origin
        MIMUS_ORIGIN=$TARGET/debug/mimus-origin
    fi
    export MIMUS_ORIGIN
}

main() {
    local version wheels stable=() threaded=()
    find_pythons
    for version in "${!pythons[@]}"; do
        case "$version" in
            *t) threaded+=("${pythons[$version]}") ;;
            *) stable=("${pythons[$version]}") ;;
        esac
    done
    say "interpreters: ${!pythons[*]}"
    [ "${#threaded[@]}" -gt 0 ] || say "no free-threaded CPython is here: no wheel for one"
    make_venv "$TOOLS" scripts/wheel-requirements.txt
    rm -rf "$WHEELS"
    build "${stable[@]}" "${threaded[@]}"
    wheels=("$WHEELS"/*.whl)
    check "${wheels[@]}"
    pack
    origin
    for version in "${!pythons[@]}"; do
        case "$version" in
            *t) wheels=("$WHEELS"/*-"cp${version//./}"-*.whl) ;;
            *) wheels=("$WHEELS"/*-abi3-*.whl) ;;
        esac
        try "${wheels[0]}" "${pythons[$version]}" "$version"
    done
    say "done: $(echo "$WHEELS"/*.whl)"
}

main
