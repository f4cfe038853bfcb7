# Everything a checkout needs; each target sets up what it uses.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint bench clean distclean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 18

setup: ## system packages, .venv, CRIU (does nothing when all is there)
	@scripts/setup

demo: setup ## advise an example: prints the ranking and the path of report.html
	.venv/bin/layout-advise demo

lint: setup ## style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	MYPYPATH=benchmarks .venv/bin/mypy benchmarks/*.py

test: lint ## style, types, and the tests but the long ones
	.venv/bin/python -m pytest -q -n 2 -m "not slow"

test-all: lint ## all tests
	.venv/bin/python -m pytest -q -n 2 --dist worksteal

bench: setup ## predicted speedups against hand-written ones
	$(MAKE) -s -C examples
	.venv/bin/python benchmarks/accuracy.py

clean: ## what was built, but for .venv and .tools
	$(MAKE) -s -C examples clean
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean ## all that make produced
	rm -rf .venv .tools *.egg-info
