# What one needs for working on edgewright. Everything real stands in scripts/.

SHELL := /bin/bash
# Debian keeps nginx and ip where the PATH of an ordinary user doesn't look.
export PATH := $(PATH):/usr/sbin:/sbin

# Where `make run` listens.
LISTEN ?= 127.0.0.1:8080
# The name of the image that `make image` makes, and the profile that it is built with.
IMAGE ?= edgewright
PROFILE ?= release

TARGET := $(or $(CARGO_TARGET_DIR),target)
BENCH_BUILD := cargo build --locked --release -p edgewright -p edgewright-bench
BENCH := $(TARGET)/release/edgewright-bench

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## installs what is missing, builds, and starts a demo with two upstreams of its own
	@scripts/install.sh build
	@cargo run --locked -p edgewright -- demo --listen $(LISTEN)

.PHONY: test
test: ## all tests, the end-to-end ones with a real nginx included
	@scripts/install.sh test
	@scripts/test.sh

.PHONY: soak
soak: ## all tests, with the long forms of those that have one
	@scripts/install.sh test
	@EDGEWRIGHT_SOAK=1 scripts/test.sh

# What `make fuzz` runs, and for how long each.
FUZZ ?= all
SECONDS_EACH ?= 1200

.PHONY: fuzz
fuzz: ## feeds each parser with nonsense for 20 minutes (FUZZ=path SECONDS_EACH=60 for one, shorter)
	@scripts/install.sh build
	@scripts/fuzz.sh $(FUZZ) $(SECONDS_EACH)

.PHONY: check
check: ## formatting and clippy, warnings denied
	@scripts/install.sh build
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

.PHONY: bench
bench: ## what a request costs beside the floor, nginx and nginx with Lua (see bench/README.md)
	@scripts/install.sh bench
	$(BENCH_BUILD)
	$(BENCH) run --json $(TARGET)/bench.json

.PHONY: release-pgo
release-pgo: ## target/pgo/edgewright: a build with a profile of itself at work (30 minutes)
	@scripts/install.sh pgo
	$(BENCH_BUILD)
	scripts/pgo.sh

.PHONY: bench-quick
bench-quick: ## the same in two minutes, too short for conclusions
	@scripts/install.sh bench
	$(BENCH_BUILD)
	$(BENCH) run --rounds 2 --seconds 2 --rate off --json $(TARGET)/bench-quick.json

.PHONY: bench-pod
bench-pod: ## what a proxy does within the limits of a pod, in containers (10 minutes)
	@scripts/install.sh bench
	$(BENCH_BUILD)
	BINARIES=$(TARGET)/release scripts/bench-pod.sh

.PHONY: bench-hooks
bench-hooks: ## what a hook costs by itself, and what threads share in it
	@scripts/install.sh bench
	$(BENCH_BUILD)
	$(BENCH) hooks --json $(TARGET)/hooks.json

.PHONY: bench-jobs
bench-jobs: ## what each job of a script costs: native, compiled, interpreted, and beside nginx with Lua (50 minutes)
	@scripts/install.sh bench
	$(BENCH_BUILD)
	$(BENCH) jobs --json $(TARGET)/jobs.json
	$(BENCH) jobs --end-to-end --instructions --json $(TARGET)/jobs-end-to-end.json

.PHONY: bench-outage
bench-outage: ## what clients notice of a dying and of a slow target, beside nginx and HAProxy (10 minutes)
	@scripts/install.sh bench
	$(BENCH_BUILD)
	$(BENCH) outage --json $(TARGET)/outage.json

.PHONY: bench-reload
bench-reload: ## latency during reloads beside latency without, the time of a reload, and memory over 1,000 (8 minutes)
	@scripts/install.sh bench
	$(BENCH_BUILD)
	$(BENCH) reload --json $(TARGET)/reload.json

.PHONY: image
image: ## the container image
	IMAGE=$(IMAGE) PROFILE=$(PROFILE) scripts/image.sh

.PHONY: pod
pod: ## examples/pod: a gateway with the limits of a small pod, and a load (scripts/pod.sh down ends it)
	IMAGE=$(IMAGE) scripts/pod.sh

.PHONY: pod-test
pod-test: ## tries examples/pod, with compose where it is, and with docker run
	IMAGE=$(IMAGE) scripts/pod.sh test
	IMAGE=$(IMAGE) COMPOSE=none scripts/pod.sh test

.PHONY: kubernetes-test
kubernetes-test: ## puts deploy/kubernetes together with kubectl (CLUSTER=1 asks a cluster as well, by a dry run)
	scripts/test-kubernetes.sh

.PHONY: image-test
image-test: image ## builds the container image and tries it
	IMAGE=$(IMAGE) scripts/test-image.sh
