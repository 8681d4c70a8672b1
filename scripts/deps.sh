#!/usr/bin/env bash
# Installs what is missing for one purpose: `build`, `bench`, `bench-python` or `conformance`.
# Does nothing when all is there. Installs on Debian and its kin only; elsewhere it names what to install.
set -euo pipefail

readonly MIN_RUST=1.89
# The benchmark's statistics crate asks for more than Mimus does.
MIN_RUST_BENCH=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$(dirname "$0")/../bench/runner/Cargo.toml")
readonly MIN_RUST_BENCH
# Kept beside the build, so that nothing lands in the user's own directories.
readonly TOOLS="${CARGO_TARGET_DIR:-target}/tools/bin"
# What is built with Go, for conformance and the bench of Python: the name it gets, and where it comes from.
readonly GO_TOOLS="
go-httpbin            github.com/mccutchen/go-httpbin/v2/cmd/go-httpbin@v2.26.0
h2specd               github.com/summerwind/h2spec/cmd/h2specd@v2.2.1+incompatible
grpc-interop-server   google.golang.org/grpc/interop/server@v1.85.0
grpc-interop-client   google.golang.org/grpc/interop/client@v1.85.0
connectconformance    connectrpc.com/conformance/cmd/connectconformance@v1.0.6
referenceclient       connectrpc.com/conformance/cmd/referenceclient@v1.0.6
"

# Servers live in sbin, which is not on every user's path.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

say() { printf 'deps: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# bindgen loads libclang at build time; its -dev package is not needed.
have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null && return 0
    # Read to the end: `grep -q` would close the pipe and pipefail would call that a failure.
    ldconfig -p 2>/dev/null | grep -c libclang >/dev/null
}

# Prints the Debian packages for what is missing.
missing_for() {
    case "$1" in
        build)
            have cc && have c++ || echo build-essential
            have make || echo make
            have cmake || echo cmake
            have clang || echo clang
            have_libclang || echo libclang-dev
            have pkg-config || echo pkg-config
            have git || echo git
            # Tests of the Python package make keys with it.
            have openssl || echo openssl
            have python3 || echo python3
            # Debian's Python makes no virtual environments without this.
            python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || echo python3-venv
            have curl || have rustc || echo curl ca-certificates
            ;;
        bench | bench-python)
            have strace || echo strace
            have valgrind || echo valgrind
            # isahc's curl links the system's OpenSSL.
            pkg-config --exists openssl 2>/dev/null || echo libssl-dev
            [ "$1" = bench-python ] || return 0
            "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
            have go || echo golang-go
            ;;
        conformance)
            have nginx || echo nginx-light
            have squid || echo squid
            have tinyproxy || echo tinyproxy
            have microsocks || echo microsocks
            have danted || echo dante-server
            have nghttpd || echo nghttp2-server
            have haproxy || echo haproxy
            # Tells a browser whom to trust, where there is one.
            if have chromium || have firefox || have firefox-esr; then have certutil || echo libnss3-tools; fi
            have go || echo golang-go
            ;;
    esac
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() {
    have apt-get || return 1
    [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }
}

# Debian starts a server when it installs it, and at every boot from then on. The policy hook forbids
# the first, for this installation only; `disable` the second, and only for what was just installed.
readonly HOOK=/usr/sbin/policy-rc.d
apt_install() {
    local status=0 package
    if [ ! -e "$HOOK" ]; then
        trap 'as_root rm -f "$HOOK"' EXIT
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$HOOK" >/dev/null
        as_root chmod 755 "$HOOK"
    fi
    export DEBIAN_FRONTEND=noninteractive
    { as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends "$@"; } \
        >&2 </dev/null || status=$?
    for package in "$@"; do
        case "$package" in
            nginx-light) disable nginx ;;
            dante-server) disable danted ;;
            squid | tinyproxy | microsocks | haproxy) disable "$package" ;;
            # nghttpx, which comes with nghttpd.
            nghttp2-server) disable nghttpx ;;
        esac
    done
    return "$status"
}

disable() {
    have systemctl || return 0
    as_root systemctl disable --quiet "$1" >&2 || say "could not disable the service $1"
}

# Required packages end the run when they cannot be had; servers of conformance are only skipped.
provide() {
    local purpose=$1 packages
    read -ra packages <<<"$(missing_for "$purpose" | tr '\n' ' ')"
    [ "${#packages[@]}" -gt 0 ] || return 0
    if ! can_install; then
        say "missing, and not installable here (needs apt-get, and root or sudo without a password)."
        say "Install with your system's package manager (Debian names): ${packages[*]}"
        return 1
    fi
    say "installing ${packages[*]}"
    apt_install "${packages[@]}" || { say "apt-get could not install: ${packages[*]}"; return 1; }
}

check_rust() {
    if ! have rustc || ! have cargo; then
        say "no Rust toolchain: install rustc and cargo >= $MIN_RUST, see https://rustup.rs"
        return 1
    fi
    if ! rust_is "$MIN_RUST"; then
        say "$(rustc --version) is too old: $MIN_RUST or later is needed (rustup update stable)"
        return 1
    fi
    check_component rustfmt fmt
    check_component clippy clippy
}

# Whether the compiler is of that version or a later one.
rust_is() {
    local version
    version=$(rustc --version | awk '{ print $2 }')
    printf '%s\n' "$1" "${version%%-*}" | sort -VC
}

check_bench_rust() {
    rust_is "$MIN_RUST_BENCH" && return 0
    say "the benchmark needs Rust $MIN_RUST_BENCH or later, Mimus itself $MIN_RUST; here is $(rustc --version)"
    say "(rustup update stable)"
    return 1
}

# Only `make lint` needs these, so a missing one does not end the run.
check_component() {
    cargo "$2" --version >/dev/null 2>&1 && return 0
    if have rustup && rustup component add "$1" >&2; then return 0; fi
    say "$1 is missing and could not be added: \`make lint\` will not work (rustup component add $1)"
}

# Builds what of GO_TOOLS is not there yet, or of them only what is named. `go install` names a program after its last directory, so
# each is built in a place of its own and then given its name.
build_go_tools() {
    local name source place
    mkdir -p "$TOOLS"
    while read -r name source; do
        if [ -z "$name" ] || [ "${1:-$name}" != "$name" ] || [ -x "$TOOLS/$name" ]; then continue; fi
        have go || { say "no go: the checks that need $name will be skipped"; continue; }
        say "building $name"
        place=$(mktemp -d)
        if GOBIN="$place" go install "$source" >&2 </dev/null; then
            mv "$place"/* "$TOOLS/$name"
        else
            say "$name could not be built with $(go version): the checks that need it will be skipped"
        fi
        rm -rf "$place"
    done <<<"$GO_TOOLS"
}

# A CPython 2.7, the only one on which Autobahn's test suite runs; pyenv keeps its own beside the path.
python27() {
    local found
    for found in "$(command -v python2.7 || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/2.7.*/bin/python2.7; do
        if [ -n "$found" ] && "$found" -c 'import sys; sys.exit(sys.version_info[:2] != (2, 7))' 2>/dev/null; then
            echo "$found"
            return
        fi
    done
    return 1
}

# What is written in Python and for Node, each in a place of its own: WebSocket's servers, a judge of JA4.
build_peers() {
    local place="${TOOLS%/bin}" python log
    log="$place/peers.log"
    mkdir -p "$TOOLS"
    if [ ! -x "$place/autobahn/bin/wstest" ]; then
        if ! python=$(python27); then
            say "no CPython 2.7 (pyenv install 2.7.18): Autobahn's cases will be skipped"
        else
            say "installing Autobahn's test suite"
            {
                "$python" -m pip install -q --user virtualenv &&
                    "$python" -m virtualenv -q "$place/autobahn" &&
                    "$place/autobahn/bin/pip" install -q autobahntestsuite==25.10.1
            } >"$log" 2>&1 || say "Autobahn's test suite could not be installed ($log): its cases will be skipped"
        fi
    fi
    if [ ! -d "$place/websockets/lib" ]; then
        say "installing websockets"
        { python3 -m venv "$place/websockets" && "$place/websockets/bin/pip" install -q websockets==15.0.1; } \
            >"$log" 2>&1 || say "websockets could not be installed ($log): its checks will be skipped"
    fi
    if [ ! -d "$place/ja4plus/lib" ]; then
        say "installing ja4plus"
        { python3 -m venv "$place/ja4plus" && "$place/ja4plus/bin/pip" install -q ja4plus==1.4.0; } \
            >"$log" 2>&1 || say "ja4plus could not be installed ($log): its checks will be skipped"
    fi
    if [ ! -d "$place/node_modules/ws" ]; then
        have npm || { say "no npm: the checks that need Node's ws will be skipped"; return 0; }
        say "installing ws"
        npm install --silent --no-fund --no-audit --no-save --prefix "$place" ws@8.18.3 >"$log" 2>&1 ||
            say "ws could not be installed ($log): its checks will be skipped"
    fi
}

# The judge of ClientHellos.
build_ja4plus() {
    local place="${TOOLS%/bin}" log
    log="$place/ja4plus.log"
    [ ! -x "$place/ja4plus/bin/ja4plus" ] || return 0
    say "installing ja4plus"
    mkdir -p "$place"
    { python3 -m venv "$place/ja4plus" && "$place/ja4plus/bin/pip" install -q ja4plus==1.4.0; } >"$log" 2>&1 ||
        say "ja4plus could not be installed ($log): its checks will be skipped"
}

case "${1:-}" in
    build) provide build && check_rust ;;
    bench | bench-python)
        check_bench_rust
        provide "$1" || say "going on: what is missing is left uncounted, or shown as not built"
        [ "$1" = bench ] || build_go_tools go-httpbin
        ;;
    conformance)
        provide conformance || say "going on: checks whose server is not there are skipped"
        build_go_tools
        build_peers
        ;;
    *) echo "usage: $0 build|bench|bench-python|conformance" >&2; exit 2 ;;
esac
