# The two commands are `make demo` and `make test`; `make help` lists the rest.
# Needs Python >= 3.11, a C compiler and Rust (its minimum stands in Cargo.toml); everything else goes into .venv and target.

PYTHON ?= python3
VENV := .venv
# An environment holds one MPI: .venv has Open MPI, this one MPICH, for tests.
MPICH := .venv-mpich
# The tools of `make wheel`.
WHEEL := .venv-wheel
BIN := $(VENV)/bin

# Every tool below works on this checkout's environment, whatever the caller has activated.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport CONDA_PREFIX PYTHONPATH PYTHONHOME
# The tests start Python thousands of times: each start would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE
# What maturin sets for itself; the same for cargo, so that both share one build of the Python bindings. The description
# of the interpreter is the one that maturin wrote for its first build.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
PYO3_CONFIG := $(CURDIR)/$(VENV)/.pyo3-config
# cargo shares the cores out itself: it takes no part in the jobs of a make that runs some targets at once.
SHARED = env -u MAKEFLAGS -u MFLAGS $$(test -f $(PYO3_CONFIG) && echo PYO3_CONFIG_FILE=$(PYO3_CONFIG))
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# maturin tells its steps even when it is asked to be quiet; its words are shown where it fails.
HUSH = >$(VENV)/.log.$(@F) 2>&1 || { cat $(VENV)/.log.$(@F) >&2; exit 1; }
say = @printf '== %s\n'

.DEFAULT_GOAL := help
# The order of the checks is the order of their lines; cargo itself uses every core. What keeps only one core busy runs at
# the same time as something else.
ifndef AT_ONCE
.NOTPARALLEL:
endif
AT_ONCE_TOO := $(MAKE) --no-print-directory AT_ONCE=1 --output-sync=target
.PHONY: help demo test soak figures timings lint bench fuzz sanitize conformance proofs programs prepare setup build extension site wheel clean prerequisites check-rust check-python test-rust test-python

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' \
	    '{ name[NR] = $$1; does[NR] = $$2; if (length($$1) > wide) wide = length($$1) } \
	    END { for (i = 1; i <= NR; i++) printf "%-" wide "s  %s\n", name[i], does[i] }'

demo: ## builds, then plans, proves and predicts collectives on a wafer; files go to out/
	@$(MAKE) --no-print-directory AT_ONCE=1 --jobs=2 $(VENV)/.compiled $(VENV)/.tools
	@$(MAKE) --no-print-directory extension
	$(say) "demo"
	@$(BIN)/unisono demo
	$(say) "after the answer: what MPI programs and pages need"
	@$(MAKE) --no-print-directory build

# Targets that continuous integration makes at the same time. The lints and the proofs are nice: they take the time in which
# the tests wait for processes.
BESIDE :=
test: prepare ## every test: those in Rust while those in Python run, many of which wait for processes
	@$(AT_ONCE_TOO) --jobs=3 test-rust test-python $(BESIDE)
	$(say) "all tests passed"

soak: build $(MPICH)/.tools $(WHEEL)/.tools ## the tests in their long sizes, packages, site and browser too; takes an hour
	$(say) "cargo test, long sizes"
	@$(SHARED) UNISONO_SOAK=1 cargo test --quiet --workspace --release --locked
	$(say) "pytest, every test"
	@UNISONO_SOAK=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m ""
	$(say) "CPU seconds of commands beside their budgets"
	@$(BIN)/python benches/budget.py

figures: build ## the figures of all papers, in out/
	$(say) "figures"
	@$(BIN)/unisono reproduce

timings: build ## processor and wall seconds of the Python tests by file, and build seconds by crate
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal -p tools.timings
	@$(BIN)/python -m tools.timings

lint: ## formats, lints, types and stubs
	@$(AT_ONCE_TOO) --jobs=2 check-rust check-python

RECORD = --record
bench: build ## speed of the library and of the command line; figures go to benches/results, unless RECORD is empty
	$(say) "cargo bench"
	@$(SHARED) cargo bench --workspace --locked >$(VENV)/.log.$(@F)
	@$(BIN)/python benches/cargo_bench.py $(RECORD) <$(VENV)/.log.$(@F)
	$(say) "sweep of Fig. 8"
	@$(BIN)/python benches/sweep.py $(RECORD)
	$(say) "2D reduces beyond the paper"
	@$(BIN)/python benches/beyond.py $(RECORD) --small
	$(say) "projects in CSL"
	@$(BIN)/python benches/csl.py $(RECORD) --sides 16
	$(say) "forests on networks"
	@$(BIN)/python benches/forests.py $(RECORD)
	$(say) "broadcasts and reduces beside allreduces"
	@$(BIN)/python benches/guidelines.py $(RECORD)
	$(say) "all-gathers beside TE-CCL's"
	@$(BIN)/python benches/teccl.py $(RECORD)
	$(say) "all-gathers around failures"
	@$(BIN)/python benches/failures.py $(RECORD) --cases dgx-a100-x4 dgx-h100-x8
	$(say) "planned allreduces beside the library's"
	@$(BIN)/python benches/mpi/allreduce.py $(RECORD)
	$(say) "programs of tasks beside the same by hand"
	@$(BIN)/python benches/mpi/tasks.py $(RECORD)
	$(say) "strong scaling of programs of tasks, predicted"
	@$(BIN)/python benches/scaling.py $(RECORD) --most 64
	$(say) "allreduces with and without switches that reduce"
	@$(BIN)/python benches/reducing.py $(RECORD) --machines dgx-h100 dgx-h100-x8-sharp
	$(say) "one question asked in every way"
	@$(BIN)/python benches/one_time.py $(RECORD)
	$(say) "choices on networks beside simulations"
	@$(BIN)/python benches/networks.py $(RECORD)
	$(say) "steps of programs on 16,384 accelerators"
	@$(BIN)/python benches/programs.py $(RECORD)
	$(say) "exponents of planning, proving and simulating among ranks"
	@$(BIN)/python benches/exponents.py $(RECORD)
	$(say) "studies on a Dask cluster, killed"
	@$(BIN)/python benches/studies.py $(RECORD)
	$(say) "CPU seconds of commands beside their budgets"
	@$(BIN)/python benches/budget.py $(RECORD)
	@$(BIN)/python docs/results_page.py | sed -n '/^## Slower/,/^## MPI/p'

# Counters of the coverage, which the stable compiler makes; they are for the program only, so a triple keeps them out of what
# is compiled for the build itself. The objects have a folder of their own.
COUNTED := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
fuzz: $(VENV)/.crates ## fuzzes FUZZ_TARGET (all) for FUZZ_SECONDS (3600), guided by coverage; files go to target/fuzz
	$(say) "building the fuzz targets"
	@host=$$(rustc -vV | sed -n 's/^host: //p'); \
	    env RUSTFLAGS="$(COUNTED)" cargo build --quiet --release --locked --package unisono-fuzz --target $$host --target-dir target/fuzz/build && \
	    target/fuzz/build/$$host/release/unisono-fuzz

sanitize: build ## the unsafe code under valgrind, and what the compiler made of truth values; takes minutes
	$(say) "valgrind"
	@$(BIN)/python tests/mpi/sanitize.py
	$(say) "truth values that are read and never computed"
	@$(SHARED) RUSTFLAGS="--emit=mir,link" cargo build --quiet --release --locked --package unisono-py --package unisono-preload --target-dir target/mir
	@$(BIN)/python -m tools.undefined_flags target/mir/release/deps

conformance: build $(MPICH)/.tools ## every algorithm under programs that check results and errors, at 2 to 9 ranks; takes minutes
	$(say) "conformance"
	@$(BIN)/python -m tests.mpi.conformance $(CONFORMANCE)

proofs: build ## the proofs in Coq and their checker of certificates, beside the other checkers; takes minutes
	$(say) "Coq and OCaml"
	@proofs/install
	$(say) "proofs"
	@nice $(MAKE) --no-print-directory -C proofs
	$(say) "the proved checker beside the others"
	@nice $(MAKE) --no-print-directory -C proofs compare PYTHON=../$(BIN)/python

programs: build ## whole programs under a tuned plan and without: the same output, and both times; takes minutes
	$(say) "programs under a plan"
	@$(BIN)/python benches/mpi/programs.py

# The tools are installed while the crates compile.
prepare:
	@$(AT_ONCE_TOO) --jobs=3 setup $(PAGE)

setup: $(VENV)/.compiled $(VENV)/.tools $(MPICH)/.tools ## .venv with the exact tools, .venv-mpich with a second MPI, and the crates

build: extension ## the extension module, the library for MPI programs, and the program .venv/bin/unisono
	$(say) "building the library for MPI programs, and the fabric of labs"
	@$(SHARED) cargo build --quiet --release --locked --package unisono-py --package unisono-preload --package unisono-fabric
	@mkdir -p python/unisono/_lib $(VENV)/etc/unisono
	@install -C "$${CARGO_TARGET_DIR:-target}"/release/libunisono_preload.so "$${CARGO_TARGET_DIR:-target}"/release/unisono-fabric python/unisono/_lib/
	@echo "$(CURDIR)/$(MPICH)/bin" > $(VENV)/etc/unisono/mpi-folders
	@$(MAKE) --no-print-directory $(PAGE)

# The extension module and the program, without what MPI programs and pages need.
extension: $(VENV)/.package
	@$(BIN)/python tools/report_types.py
	$(say) "building the extension module (release)"
	@$(SHARED) $(BIN)/maturin develop --quiet --release --locked --skip-install $(HUSH)

# The program of the pages that `unisono view` writes: two files, made by the Node.js of the environment.
PAGE := python/unisono/_web/view.js
web/node_modules/.stamp: web/package-lock.json $(VENV)/.tools
	@cd web && env PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --silent --no-audit --no-fund --no-update-notifier
	@touch $@
$(PAGE): web/node_modules/.stamp web/package.json web/tsconfig.json web/vite.config.js $(wildcard web/src/*)
	$(say) "building the program of the pages"
	@cd web && env PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent build $(subst $(VENV)/,../$(VENV)/,$(HUSH))
	@touch $@

site: build ## the documentation as a site, in out/site
	$(say) "building the site"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "wrote out/site/index.html"

wheel: $(PAGE) $(WHEEL)/.tools ## the source archive and a manylinux wheel, in out/packages
	$(say) "building the packages (minutes, the first time)"
	@$(WHEEL)/bin/python tools/wheel.py

clean: ## removes what was built, .venv included
	rm -rf $(VENV) $(MPICH) $(WHEEL) target out .mypy_cache .ruff_cache .pytest_cache .hypothesis python/unisono/_core*.so python/unisono/_lib python/unisono/_web python/unisono/base/_reported.py web/node_modules
	find python tests examples benches docs -name __pycache__ -type d -prune -exec rm -rf {} +

prerequisites:
	@tools/prerequisites "$(PYTHON)"

# The stamps: each is younger than all it was made from, and needs no network once it is there.
$(VENV)/.builder: requirements-dev.txt | prerequisites
	$(say) "setting up $(VENV)"
	@"$(PYTHON)" -m venv $(VENV)
	@sed -n '/^maturin==/,/[^\\]$$/p' requirements-dev.txt >$(VENV)/builder.txt
	@$(BIN)/python -m pip install --quiet --no-compile --no-deps --requirement $(VENV)/builder.txt
	@touch $@

$(VENV)/.tools: requirements-dev.txt $(VENV)/.builder
	@$(BIN)/python -m pip install --quiet --no-compile --requirement requirements-dev.txt
	@touch $@

$(MPICH)/.tools: requirements-mpich.txt | prerequisites
	$(say) "setting up $(MPICH)"
	@"$(PYTHON)" -m venv $(MPICH)
	@$(MPICH)/bin/python -m pip install --quiet --no-compile --requirement requirements-mpich.txt
	@touch $@

$(WHEEL)/.tools: requirements-wheel.txt | prerequisites
	$(say) "setting up $(WHEEL)"
	@"$(PYTHON)" -m venv $(WHEEL)
	@$(WHEEL)/bin/python -m pip install --quiet --no-compile --requirement requirements-wheel.txt
	@touch $@

$(VENV)/.crates: Cargo.lock | prerequisites
	$(say) "fetching the crates"
	@cargo fetch --quiet --locked
	@mkdir -p $(VENV) && touch $@

# The first build needs one tool of the environment: the other ones are installed while it compiles.
$(VENV)/.compiled: $(VENV)/.builder $(VENV)/.crates
	$(say) "compiling (minutes, the first time)"
	@rm -f $(PYO3_CONFIG)
	@$(BIN)/maturin develop --quiet --release --locked --skip-install $(HUSH)
	@cp -p "$${CARGO_TARGET_DIR:-target}"/maturin/pyo3-config-*.txt $(PYO3_CONFIG) 2>/dev/null || true
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.tools $(VENV)/.compiled
	$(say) "installing unisono into $(VENV)"
	@PIP_NO_INDEX=1 PIP_QUIET=1 $(BIN)/maturin develop --quiet --release --locked $(HUSH)
	@touch $@

check-rust: build
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	    { echo "error: the tests need rustfmt and clippy beside cargo (with rustup: 'rustup component add rustfmt clippy')." >&2; exit 1; }
	$(say) "cargo fmt"
	@cargo fmt --all --check
	$(say) "cargo clippy"
	@nice $(SHARED) cargo clippy --quiet --workspace --all-targets --release --locked -- -D warnings

test-rust: build
	$(say) "cargo test"
	@$(SHARED) cargo test --quiet --workspace --release --locked

check-python: build
	$(say) "ruff"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	$(say) "mypy"
	@nice $(BIN)/mypy --strict python/unisono tests/python tests/mpi examples benches docs proofs
	$(say) "stubs of the extension module"
	@nice $(BIN)/python -m mypy.stubtest unisono._core

# The plus lets the lines of this recipe appear as they come, and not at its end.
test-python: build $(MPICH)/.tools
	$(say) "pytest"
	+@$(BIN)/python -m pytest --numprocesses auto --dist worksteal
