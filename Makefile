# Python packages go into .venv; nothing here needs root but `system-packages`.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-all test-kernel test-pythons bench install-node check format system-packages requirements clean

help:
	@echo "make demo             the agent on a simulated node: flaps as they happen, and where to look"
	@echo "make test             set up, check style and types, run the tests"
	@echo "make test-all         the long ones as well: twenty seeds of random flaps (15 minutes)"
	@echo "make test-kernel      of the tests those in virtual machines: real RDMA devices, real systemd (5 minutes)"
	@echo "make test-pythons     most tests with Python 3.10 and 3.13"
	@echo "make bench            what flapd takes and how fast it is, beside its budgets (10 minutes)"
	@echo "make install-node     install it on this node, as a service of systemd (needs root)"
	@echo "make system-packages  what Debian or Ubuntu must bring (needs root): $(SYSTEM_PACKAGES)"
	@echo "make format           put the code into its form"
	@echo "make requirements     pin anew what pyproject.toml asks for (needs uv)"
	@echo "make clean            remove .venv and caches; then PYTHON=... chooses another Python"

SYSTEM_PACKAGES := fuse3 iproute2 python3-venv systemd \
  qemu-system-x86 mmdebstrap debian-archive-keyring cpio e2fsprogs xz-utils
PROGRAMS := prometheus prometheus-alertmanager

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

check: .venv/ready
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary

format: .venv/ready
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

system-packages:
	@scripts/system-packages $(SYSTEM_PACKAGES)
	@scripts/unpack-programs $(PROGRAMS)

requirements:
	@command -v uv >/dev/null || { echo "pinning needs uv on the PATH" >&2; exit 1; }
	@cd requirements && for set in runtime dev; do \
	  uv pip compile ../pyproject.toml $$([ $$set = dev ] && echo --group ../pyproject.toml:dev) \
	    --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	    --quiet --output-file $$set.txt; done

clean:
	@rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
