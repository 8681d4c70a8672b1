# Every habit has one name. `make` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo

# Tools that are built from source land beside the build, and are found there.
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
TOOLS := $(TARGET)/tools
export PATH := $(TOOLS)/bin:$(PATH)

# What of the workspace this compiler can build.
MEMBERS = $$(scripts/members.sh)

# Commands that the habits below run; each can be replaced on the command line.
DEMO  ?= $(CARGO) run --profile demo --locked -q -p mimus --features smol,grpc-prost,fingerprint --example demo
BENCH ?= $(CARGO) run --locked -p mimus-bench --
# The client that `make conformance` drives: MIMUS=curl proves the runner with a known-good one.
MIMUS ?= target/debug/mimus
# Areas of conformance, or workloads of the benchmark, to run, e.g. ONLY=h1; all when empty. QUICK=1 leaves
# the slow checks out, and makes a benchmark of minutes.
ONLY  ?=
QUICK ?=
# WRITE=1 has `make conformance` write the table of profiles into docs/PROFILES.md.
WRITE ?=
# `make bench`: the suite (h1, h2, grpc, ws, codec, profile, python); GATES=1 fails unless every gate passes;
# PEERS=hyper,ureq/best measures only these; PIN=split puts the server on a core of its own; OUT and PNG are directories for the run
# and for pictures.
SUITE ?= h1
GATES ?=
PEERS ?=
PIN   ?=
OUT   ?=
PNG   ?=
# `make bench-budget`: the suites that have budgets, unless SUITE names one; UPDATE=1 writes what was found into
# bench/budgets.toml.
SUITES := h1,h2,grpc,ws,codec,profile
BUDGETED = $(if $(filter file,$(origin SUITE)),$(SUITES),$(SUITE))
UPDATE ?=
# `make bench-compare`: the raw.json of the run before, and of the run after.
A ?=
B ?=
# Seconds for each fuzz target of `make fuzz-smoke`.
FUZZ_SECONDS ?= 30

.PHONY: help
help: ## list the habits (this)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install what a build needs and is missing (Debian, Ubuntu); elsewhere say what
	@scripts/deps.sh build

# `make boringssl`: the directory for it, empty or new.
DEST ?=
# `make python`: RELEASE=1 for a build to measure with.
RELEASE ?=
# `make python-memory`: how many calls of each kind.
CALLS ?= 100000

.PHONY: boringssl
boringssl: deps ## build BoringSSL with our patch into the empty directory DEST, for BORING_BSSL_PATH
	@test -n "$(DEST)" || { echo "boringssl: say where to: DEST=directory" >&2; exit 2; }
	@mkdir -p "$(DEST)"; rm -rf $(TARGET)/boringssl
	@env -u BORING_BSSL_PATH BORING_BSSL_INSTALL_DIR="$(abspath $(DEST))" \
		$(CARGO) build --locked --profile demo -p boring-sys --target-dir $(TARGET)/boringssl
	@rm -rf $(TARGET)/boringssl; echo "export BORING_BSSL_PATH=$(abspath $(DEST))"

.PHONY: demo
demo: deps ## start the embedded origin, use every feature against it, print what was right
	@$(DEMO)

EXAMPLES := $(basename $(notdir $(wildcard crates/client/examples/*.rs)))

.PHONY: examples
examples: deps ## run every example of use against the embedded origin; fails if one fails
	@$(CARGO) build -q --locked -p mimus --features smol,tower $(addprefix --example ,$(EXAMPLES))
	@for name in $(EXAMPLES); do \
		echo "== $$name"; \
		NO_PROXY='*' timeout 60 $(CARGO) run -q --locked -p mimus --features smol,tower --example $$name; \
	done

.PHONY: test
test: deps ## all tests and doctests; the last line sums them: `N passed, N failed`
	@scripts/test.sh

.PHONY: python
python: deps ## the Python package, built into the virtual environment target/python-venv; RELEASE=1 optimised
	@scripts/python.sh develop --profile $(if $(RELEASE),release,dev)

.PHONY: wheel
wheel: deps ## wheels of the Python package for old glibc, without Rust; checked and tested; and its source distribution
	@scripts/wheel.sh

.PHONY: python-types
python-types: ## mypy, pyright and stubtest over the Python package as built (make python); fails unless all are clean
	@scripts/python.sh types

.PHONY: python-memory
python-memory: deps ## resident memory over CALLS (100000) calls of each kind in Python; fails unless it stays
	@MIMUS_CALLS=$(CALLS) scripts/python.sh test -s python/tests/test_memory.py

.PHONY: lint
lint: deps ## formatting, clippy, dependency policy
	@# A workspace of its own, which is built late and refuses a lock file that is out of date.
	@$(CARGO) metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 >/dev/null
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy $(MEMBERS) --all-targets --all-features --locked -- -D warnings
	@$(MAKE) --no-print-directory deny

.PHONY: deny
deny: ## licences, bans and sources of all dependencies (no network needed)
	@if $(CARGO) deny --version >/dev/null 2>&1; \
	then $(CARGO) deny --all-features --locked check --hide-inclusion-graph bans licenses sources; \
	else echo "deny: not checked, cargo-deny is not installed (make deny-install)"; fi

.PHONY: deny-install
deny-install: ## build cargo-deny if missing; takes minutes, so only CI does it unasked
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install -q --locked --root $(TOOLS) cargo-deny

.PHONY: advisories
advisories: ## known vulnerabilities in dependencies (fetches the RustSec database)
	$(CARGO) deny --all-features --locked check advisories

.PHONY: size
size: ## largest files and functions; fails over 900 lines a file or 120 a function
	@python3 scripts/size.py

.PHONY: doc
doc: deps ## API documentation, warnings refused
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(MEMBERS) --all-features --no-deps --locked

.PHONY: bench-deps
bench-deps: deps
	@scripts/deps.sh bench$(if $(filter python,$(SUITE)),-python)

.PHONY: bench
bench: bench-deps ## measure against everybody: SUITE=h1 QUICK=1 GATES=1 PEERS=.. ONLY=.. PIN=.. OUT=.. PNG=..
	@$(BENCH) run --suite $(SUITE) $(if $(QUICK),--quick) $(if $(GATES),--require-gates) \
		$(if $(PEERS),--peers $(PEERS)) $(if $(ONLY),--only $(ONLY)) $(if $(PIN),--pin $(PIN)) \
		$(if $(OUT),--out $(OUT)) $(if $(PNG),--png $(PNG))

.PHONY: bench-smoke
bench-smoke: bench-deps ## two minutes of it, with one peer: fails if an exchange fails
	@$(BENCH) run --suite $(SUITE) --quick --peers hyper/best --no-counts

.PHONY: bench-budget
bench-budget: bench-deps ## instructions, system calls and allocations against bench/budgets.toml; UPDATE=1 writes it
	@$(BENCH) budget --suite $(BUDGETED) $(if $(UPDATE),--update)

.PHONY: bench-idle
bench-idle: deps ## memory of 10 000 idle connections and WebSockets, plain and TLS; fails over 4 and 8 KiB of heap each
	@$(CARGO) build --release --locked -p mimus-bench-server -p mimus-bench-idle
	@$(TARGET)/release/bench-idle

.PHONY: bench-compare
bench-compare: bench-deps ## what changed beyond noise: A=before/raw.json B=after/raw.json
	@$(BENCH) compare "$(A)" "$(B)"

.PHONY: fuzz-smoke
fuzz-smoke: deps ## each fuzz target for FUZZ_SECONDS
	@scripts/fuzz-smoke.sh $(FUZZ_SECONDS)

.PHONY: conformance
conformance: deps ## against servers nobody here wrote: all areas, or ONLY=h1, h2, grpc, ws, sse, profiles, python; QUICK=1; MIMUS=curl
	@scripts/deps.sh conformance
	@if [ "$(MIMUS)" = target/debug/mimus ]; then $(CARGO) build -q --locked -p mimus-cli --bin mimus; fi
	@if [ "$(MIMUS)" = target/debug/mimus ] && [ -f conformance/grpc/Cargo.toml ]; then \
		$(CARGO) build -q --locked -p mimus-conformance-grpc; fi
	@if [ "$(MIMUS)" = target/debug/mimus ] && [ -f conformance/ws/Cargo.toml ]; then \
		$(CARGO) build -q --locked -p mimus-conformance-ws; fi
	@if [ "$(MIMUS)" = target/debug/mimus ] && [ -n "$(filter python,$(or $(ONLY),python))" ]; then \
		$(CARGO) build -q --locked -p mimus-python --features abi3; fi
	@python3 conformance/run.py --client "$(MIMUS)" $(if $(QUICK),--quick) $(if $(WRITE),--write) $(ONLY)

.PHONY: clean
clean: ## remove everything built
	$(CARGO) clean
