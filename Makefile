# Everything a checkout needs; each target sets up what it uses.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint fuzz nightly applying bench field dist docs clean distclean

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
	MYPYPATH=benchmarks:benchmarks/field:benchmarks/campaigns .venv/bin/mypy benchmarks/*.py
	MYPYPATH=benchmarks/campaigns .venv/bin/mypy benchmarks/campaigns/*.py
	MYPYPATH=benchmarks/field .venv/bin/mypy benchmarks/field/*.py
	MYPYPATH=benchmarks/opencl .venv/bin/mypy benchmarks/opencl/*.py

test: lint ## style, types, and the tests but the long ones
	.venv/bin/python -m pytest -q -n 2 -m "not slow" --durations=40 --durations-min=3

test-all: lint ## all tests
	.venv/bin/python -m pytest -q -n 2 --dist worksteal

fuzz: setup ## a million damaged files for all that reads files (INPUTS=, SEED=, SECONDS=)
	.venv/bin/python -m tests.support.fuzzing --inputs $(or $(INPUTS),1000000) --seed $(or $(SEED),1) \
		--seconds $(or $(SECONDS),inf)

nightly: setup ## random instructions and functions, lifted, against the processor (FORMS=, FUNCTIONS=, SEED=, SECONDS=)
	.venv/bin/python -m tests.support.nightly --forms $(or $(FORMS),1000000) --functions $(or $(FUNCTIONS),10000) \
		--seed $(or $(SEED),1) --seconds $(or $(SECONDS),inf)

applying: setup ## random C programs in random layouts print the same (PROGRAMS=, SEED=, SECONDS=)
	.venv/bin/python -m tests.support.applying --programs $(or $(PROGRAMS),1000) --seed $(or $(SEED),1) \
		--seconds $(or $(SECONDS),inf)

bench: setup ## predicted speedups against hand-written ones
	$(MAKE) -s -C examples
	.venv/bin/python benchmarks/accuracy.py

FIELD = .venv/bin/python benchmarks/field/field.py

field: setup ## programs that others wrote, through the farm (ONLY=bzip2 for one, HELD_BACK=1 for the third held back)
	$(FIELD) $(if $(ONLY),--only $(ONLY)) $(if $(HELD_BACK),--held-back)

docs: setup ## the documentation as a site: docs/_build/index.html
	.venv/bin/python -m sphinx -q -W -b html docs docs/_build

dist: setup ## the wheel, in dist/
	rm -rf build dist
	.venv/bin/python -m pip wheel -q --no-deps -w dist .

clean: ## what was built, but for .venv and .tools
	$(MAKE) -s -C examples clean
	rm -rf build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean ## all that make produced
	rm -rf .venv .tools *.egg-info
