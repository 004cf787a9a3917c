# Python packages go into .venv; nothing here needs root but `system-packages`.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-all test-kernel test-pythons bench install-node packages check format system-packages dashboards requirements clean

help:
	@echo "make demo             a simulated job on 128 nodes: three flaps, which port did it, what they cost (90 s)"
	@echo "make test             set up, check style and types, run the tests"
	@echo "make test-all         the long ones as well: more seeds, all packages, every verdict (an hour)"
	@echo "make test-kernel      of the tests those in virtual machines: real RDMA devices, real systemd (8 minutes)"
	@echo "make test-pythons     most tests with Python 3.10 and 3.13"
	@echo "make bench            what flapd takes and how fast it is, beside its budgets (10 minutes)"
	@echo "make install-node     install it on this node, as a service of systemd (needs root)"
	@echo "make packages         debs and rpms for air-gapped nodes, into dist/ (DIST=debian-12: only that)"
	@echo "make system-packages  what Debian or Ubuntu must bring (needs root): $(SYSTEM_PACKAGES)"
	@echo "make format           put the code into its form"
	@echo "make dashboards       make deploy/grafana/*.json anew of the code beside them"
	@echo "make requirements     pin anew what pyproject.toml asks for (needs uv)"
	@echo "make clean            remove .venv and caches; then PYTHON=... chooses another Python"

SYSTEM_PACKAGES := chromium fish fuse3 iproute2 python3-venv systemd zsh \
  qemu-system-x86 mmdebstrap debian-archive-keyring cpio e2fsprogs rpm xz-utils
PROGRAMS := prometheus prometheus-alertmanager nats-server

.venv/ready: requirements/dev.txt pyproject.toml scripts/set-up
	@PYTHON=$(PYTHON) scripts/set-up
	@touch $@

demo: .venv/ready
	@$(BIN)/python -m simulators.demo

test: check
	@$(BIN)/python -m pytest -q

test-all: check
	@$(BIN)/python -m pytest -q -m ""

test-kernel: .venv/ready
	@$(BIN)/python -m pytest -q tests/kernel

test-pythons:
	@scripts/test-pythons

bench: .venv/ready
	@$(BIN)/python -m tests.bench $(BENCH)

install-node:
	@PYTHON=$(PYTHON) scripts/install-node

packages: .venv/ready
	@scripts/build-packages $(DIST)

check: .venv/ready
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@! $(BIN)/python -c 'import grafana_foundation_sdk' 2>/dev/null || \
	  $(BIN)/mypy --no-error-summary --python-version 3.11 deploy

format: .venv/ready
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

system-packages:
	@scripts/system-packages $(SYSTEM_PACKAGES)
	@scripts/unpack-programs $(PROGRAMS)

dashboards: .venv/ready
	@$(BIN)/python -m deploy.grafana

requirements:
	@command -v uv >/dev/null || { echo "pinning needs uv on the PATH" >&2; exit 1; }
	@cd requirements && for set in runtime dev; do \
	  uv pip compile ../pyproject.toml $$([ $$set = dev ] && echo --group ../pyproject.toml:dev) \
	    --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	    --quiet --output-file $$set.txt; done

clean:
	@rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
