# ratoon: `make run` builds it and runs the whole pipeline on the sample data, `make test` runs all tests.
# Both install what they need; `make help` lists the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)
RATOON := $(TARGET)/release/ratoon
VENV := .venv
SPARK_VENV := .venv-spark
BENCH_VENV := .bench/venv
# Programs that only those who build ratoon need.
TOOLS := .tools
# A Python environment, empty; what makes one is a package of its own on Debian.
make_venv = $(PYTHON) -m venv --clear $(1) || { apt-get install -y python3-venv && $(PYTHON) -m venv --clear $(1); }
# Asked for when it is needed: a target before it may have installed it.
BROWSER = $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

# What the stage targets work on: make ingest PIPELINE=my.toml ARGS='--force --snapshot 2024-03-02'
PIPELINE ?= pipelines/campus.toml
ARGS ?=
SAMPLES := pipelines/campus.toml pipelines/entertainment.toml pipelines/drugs.toml

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z][a-z -]*:.*## / { n = split($$1, name, " "); \
	  for (i = 1; i <= n; i++) printf "  make %-13s %s\n", name[i], $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## the program, in target/release
	$(CARGO) build --release --locked

.PHONY: run
run: build ## the whole pipeline on the sample data; says what it saved, what it made and what to try next
	@for pipeline in $(SAMPLES); do \
	  echo "== ratoon run $$pipeline"; $(RATOON) run $$pipeline $(ARGS) | sed '/^next: /d'; echo; \
	done
	@echo "== ratoon schedule --updates out/datis.csv --period hour --polls 2   (its log is made by ratoon synth)"
	@$(RATOON) synth -q --force --log datis out/datis.csv
	@$(RATOON) schedule --updates out/datis.csv --period hour --polls 2 --out out/datis | sed '/^overall/,$$d'
	@echo "Try next:"
	@echo "  $(RATOON) plan pipelines/campus.toml --explain -v   # what each way would have cost, and why one was taken"
	@echo "  open out/campus/report.html in a browser                  # all that the nights brought, in one file"
	@echo "  $(RATOON) triage pipelines/campus.toml              # what of the newest night to read first"
	@echo "  $(RATOON) delta pipelines/campus.toml               # what the newest night changed"
	@echo "  $(RATOON) urls pipelines/campus.toml people         # pages; show one of them against its old version:"
	@echo "  $(RATOON) show pipelines/campus.toml http://www.fernhill.example/people/miriam-okafor-4.html --snapshot 2024-03-02 --html page.html"
	@echo "  $(RATOON) sql pipelines/campus.toml 'select speaker.text as speaker, url, since from mentions_talk'"
	@echo "  $(RATOON) tables                                    # tables and columns, to open in polars, DuckDB or pandas"

.PHONY: test
test: $(VENV)/.crawlers $(VENV)/.browser $(SPARK_VENV)/.done wheel ## all tests
	RATOON_PYTHON=$(abspath $(VENV)/bin/python) RATOON_BROWSER=$(BROWSER) \
	  RATOON_SPARK_PYTHON=$(abspath $(SPARK_VENV)/bin/python) \
	  RATOON_WHEEL=$$(ls $(abspath $(TARGET))/wheels/ratoon-*.whl) \
	  $(CARGO) test --release --locked -- --include-ignored

# What was compiled is taken as it is: maturin asks for the same build in the same folder.
.PHONY: wheel
wheel: build $(VENV)/.done ## a wheel with the program and its Python module, in target/wheels
	rm -f $(TARGET)/wheels/ratoon-*.whl
	cd pipelines/python && CARGO_TARGET_DIR=$(abspath $(TARGET)) $(abspath $(VENV))/bin/maturin build --quiet --release --locked \
	  --compatibility linux --out $(abspath $(TARGET))/wheels
	@ls $(TARGET)/wheels/ratoon-*.whl

# The web tables and deltas of the WHOWEDA paper's example, drawn as graphs: January, February, and what changed.
.PHONY: figures-webs
figures-webs: build ## the graphs of the WHOWEDA paper's example, in out/figures/webs
	$(RATOON) run -q pipelines/drugs.toml
	$(RATOON) web pipelines/drugs.toml drugs --at 2001-01-15 --svg out/figures/webs/january --force
	$(RATOON) web pipelines/drugs.toml drugs --at 2001-02-15 --svg out/figures/webs/february --force
	$(RATOON) web pipelines/drugs.toml drugs --at 2001-02-15 --delta --svg out/figures/webs/delta --force

.PHONY: notebook
notebook: build $(VENV)/.done ## pipelines/notebook.ipynb again, with its output
	$(RATOON) run -q pipelines/campus.toml
	$(VENV)/bin/python -B tests/python/notebook.py pipelines/notebook.ipynb out/campus --write

# One crawler and its archive; all cases without CASE. The folder stays, to look at.
CASE ?=
.PHONY: test-writers
test-writers: build $(VENV)/.crawlers ## read back what wget, HTTrack, warcio, wacz wrote: CASE=wget-warc
	@cd tests/python/writers; for case in $(or $(CASE),$$($(abspath $(VENV))/bin/python -Bc "import cases; print(*cases.CASES)")); do \
	  dir=$$(mktemp -d); echo "== $$case in $$dir"; $(abspath $(VENV))/bin/python -B run.py $$case $(abspath $(RATOON)) $$dir; \
	done

# One case or all: sample, faulty, failing-worker, synthetic. The folder goes afterwards.
.PHONY: test-spark
test-spark: build $(SPARK_VENV)/.done ## nights on a small Spark on loopback against nights on one machine: CASE=sample
	@dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; \
	  $(SPARK_VENV)/bin/python -B tests/python/spark/run.py $(RATOON) $$dir $(CASE)

# Models against llama.cpp's server, with models of random weights. The server is compiled once, which takes a quarter of
# an hour on one core.
.PHONY: test-llm-server
test-llm-server: build $(TOOLS)/llm/.done ## models against llama.cpp's server
	$(TOOLS)/llm/bin/python -B tests/python/llm_server.py $(RATOON)

$(TOOLS)/llm/.done: tests/python/llm_requirements.txt
	$(PYTHON) -m venv --clear $(TOOLS)/llm
	CMAKE_BUILD_PARALLEL_LEVEL=1 CMAKE_ARGS="-DLLAVA_BUILD=OFF" nice -n 15 \
	  $(TOOLS)/llm/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# How often commands are killed, and how long each fuzzer runs.
KILLS ?= 200
.PHONY: test-faults
test-faults: build $(VENV)/.crawlers ## faults and hostile input, thoroughly: KILLS=200 SECONDS=60
	RATOON_KILLS=$(KILLS) $(CARGO) test --release --locked --test it -- --include-ignored --nocapture mishaps:: hostile:: bad_archives:: workers::
	@$(MAKE) --no-print-directory fuzz fuzz-archives fuzz-parsers

.PHONY: check
check: test deny ## what must hold before a commit: format, lints, tests, docs, what it is built from
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	$(CARGO) clippy --release --locked --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links' $(CARGO) doc --release --locked --no-deps --document-private-items

# Looks at what was fetched for the build, without a network. A database of known weaknesses is read where one is at hand.
ADVISORIES ?= $(firstword $(wildcard $(HOME)/.cargo/advisory-dbs/* $(HOME)/.cargo/advisory-db))
.PHONY: deny
deny: $(TOOLS)/bin/cargo-deny ## licences, bans and sources of all dependencies
	$(CARGO) fetch --locked --quiet
	PATH="$(abspath $(TOOLS)/bin):$$PATH" $(CARGO) deny --offline check licenses bans sources
	@if [ -n "$(ADVISORIES)" ]; then PATH="$(abspath $(TOOLS)/bin):$$PATH" $(CARGO) deny --offline check --disable-fetch advisories; \
	else echo "advisories were NOT checked: no database of them is at hand (cargo deny fetch db)"; fi

$(TOOLS)/bin/cargo-deny:
	$(CARGO) install cargo-deny --version 0.20.2 --locked --quiet --root $(TOOLS)

.PHONY: ingest plan match extract delta stats schedule close report triage due status verify audit
ingest plan match extract delta stats schedule close report triage due status verify audit: build ## a stage, or a look at what is done: PIPELINE=… ARGS=…
	$(RATOON) $@ $(PIPELINE) $(ARGS)

# How long each kind is fuzzed, in seconds of processor time: on a busy machine it takes longer.
SECONDS ?= 60
.PHONY: fuzz
fuzz: build ## recycled against from scratch on random pages: SECONDS=60
	@for kind in regex dictionary edit record command; do $(RATOON) fuzz $$kind --cpu-seconds $(SECONDS) --seed $$RANDOM; done

.PHONY: fuzz-archives
fuzz-archives: build ## damaged archives of every layout through their readers: SECONDS=60
	@for layout in warc warc-zst wacz httrack arc wet mirror manifest; do \
	  $(RATOON) fuzz archive-$$layout --cpu-seconds $(SECONDS) --seed $$RANDOM; done

.PHONY: fuzz-parsers
fuzz-parsers: build ## damaged input for everything else that is read: pages, lines, logs, files of a store: SECONDS=60
	@for parser in html xhtml xml text body url date pipeline log weights schedule poll-command gold log-file terms argument sql \
	  worker model model-server evidence parcel parquet store rows elements night; do \
	  $(RATOON) fuzz parse-$$parser --cpu-seconds $(SECONDS) --seed $$RANDOM; done

.PHONY: bench
bench: build .bench/pairs/.done ## benchmarks: ratios within one run
	$(CARGO) bench --locked --profile release --benches

.PHONY: evaluate
evaluate: build $(VENV)/.done ## the plan selector against every fixed plan, as in the paper's Figures 7 to 10: ARGS=--quick
	$(VENV)/bin/python tests/benches/plans.py $(ARGS)

.PHONY: figures
figures: build $(VENV)/.done ## the papers' figures, in out/figures with one page: ARGS='--nights 30' or ARGS=--full
	$(VENV)/bin/python tests/benches/figures.py --ratoon $(RATOON) $(ARGS)
	@if grep -q '^figures-webs:' $(firstword $(MAKEFILE_LIST)); then $(MAKE) --no-print-directory figures-webs; fi
	$(VENV)/bin/python tests/benches/figures.py --only index

.PHONY: bench-nights
bench-nights: build $(BENCH_VENV)/.peers ## what polls and nights cost, by the size of the corpus: ARGS=--quick
	$(BENCH_VENV)/bin/python tests/benches/nights.py --ratoon $(RATOON) $(ARGS)

.PHONY: bench-peers
bench-peers: build $(BENCH_VENV)/.against ## ratoon beside what people would use instead, on releases of packages: ARGS=--quick
	$(BENCH_VENV)/bin/python tests/benches/against --ratoon $(RATOON) $(ARGS)

# Real page pairs: consecutive releases of packages, fetched by pip.
.bench/pairs/.done: tests/benches/pairs.py $(VENV)/.done
	$(VENV)/bin/python tests/benches/pairs.py
	touch $@

.PHONY: clean
clean: ## what the pipelines wrote (not what was compiled)
	rm -rf out

# A Python with the readers that people open tables with; tests only.
$(VENV)/.done: tests/python/requirements.txt
	$(call make_venv,$(VENV))
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# A Spark with its Python, and a Java to run it; tests only.
$(SPARK_VENV)/.done: tests/python/spark/requirements.txt
	command -v java >/dev/null || apt-get install -y default-jre-headless || { apt-get update && apt-get install -y default-jre-headless; }
	$(call make_venv,$(SPARK_VENV))
	$(SPARK_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Programs that ratoon is measured beside have a Python of their own: what comes with some of them changes what others write,
# whose archives tests read back.
$(BENCH_VENV)/.made:
	$(call make_venv,$(BENCH_VENV))
	touch $@

# Those of whole nights.
$(BENCH_VENV)/.peers: tests/benches/requirements.txt $(BENCH_VENV)/.made
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# What ratoon is measured against; CocoIndex is left out where there is no wheel of it.
$(BENCH_VENV)/.against: tests/benches/against/requirements.txt $(BENCH_VENV)/.made
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -r $< || \
	  $(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -r <(grep -v '^cocoindex' $<)
	command -v npm >/dev/null || apt-get install -y npm || { apt-get update && apt-get install -y npm; }
	touch $@

# Crawlers whose archives are read back in tests, cron, which is asked whether it takes our crontabs, and other clocks.
$(VENV)/.crawlers: $(VENV)/.done
	{ command -v wget && command -v httrack && command -v crontab && command -v faketime; } >/dev/null || \
	  apt-get install -y wget httrack cron faketime || { apt-get update && apt-get install -y wget httrack cron faketime; }
	touch $@

# A browser that shows pages of ours to tests: what it loads, runs and draws.
$(VENV)/.browser: $(VENV)/.done
	{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || apt-get install -y chromium || { apt-get update && apt-get install -y chromium; }
	touch $@
