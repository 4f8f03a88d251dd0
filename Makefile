# `make help` lists the targets. Variables to know: PYTHON (the interpreter that makes the environment, 3.11 or
# newer) and VENV (where the environment is made); `make VENV=somewhere test` leaves .venv alone.
PYTHON ?= python3
VENV ?= .venv
# Fast tests run on all processors; PYTEST_ARGS=-n0 runs them one after the other.
PYTEST_ARGS ?= -n auto --dist loadgroup
COVERAGE_FILE ?= .coverage
SITE ?= build/site
BIN := $(VENV)/bin
STAMP := $(VENV)/.certile-installed
# Tests start hundreds of processes: compile once, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test slow thorough selftest coverage lint format types machine-fields site ci constraints clean distclean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP)  ## make the virtual environment with everything in it, at the pinned versions

# The stamp is newer than what it was made from, so a second `make install` does nothing.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "certile needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input -c constraints.txt -e '.[dev]'
	@touch $@

demo: install  ## plan ResNet-50 on two published machines, bound, compare and check (under 5 minutes)
	$(BIN)/certile bench demo

test: install  ## the tests, without those marked slow or bench
	$(BIN)/python -m pytest -q -m "not slow and not bench" $(PYTEST_ARGS)

slow: install  ## the tests marked slow or bench (README examples, versions, whole networks)
	$(BIN)/python -m pytest -q -m "slow or bench" --maxschedchunk=1 $(PYTEST_ARGS)

selftest: install  ## the adversary against every claim; ARGS='--minutes 10 --problem fusion'
	$(BIN)/python -m tests.adversary $(ARGS)

thorough: install  ## every test, those marked thorough too, and many random cases (hours)
	CERTILE_THOROUGH=1 $(BIN)/python -m pytest -q --maxschedchunk=1 $(PYTEST_ARGS)

coverage: install  ## branch coverage of the fast tests, nothing omitted
	COVERAGE_FILE=$(COVERAGE_FILE) $(BIN)/python -m pytest -q -m "not slow and not bench" \
	  --cov --cov-report=term $(PYTEST_ARGS)

lint: install  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: install  ## let ruff mend what it can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

types: install  ## mypy --strict on the four rooms, the adversary and the makers of the library
	$(BIN)/mypy

machine-fields: install  ## write the table of machine fields in docs/machines.md
	$(BIN)/python -m instances.machine.fields

site: install  ## the documentation as a site in build/site (SITE=folder): warnings are errors, every link is checked
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs $(SITE)
	$(BIN)/python docs/_ext/links.py $(SITE)

ci:  ## all that has to pass before a change lands, in environments of its own
	bash .ci/run

# Resolved in a new environment, so that nothing installed by hand gets in.
constraints:  ## let the resolver choose the versions again and write constraints.txt
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(PYTHON) -m venv "$$tmp/venv" && \
	"$$tmp/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -e '.[dev]' && \
	{ echo "# Made by \`make constraints\`: what the resolver chose for .[dev] in an empty environment. Not edited by hand."; \
	  "$$tmp/venv/bin/python" -m pip freeze --disable-pip-version-check --exclude-editable --exclude certile; } > "$$tmp/constraints.txt" && \
	cp "$$tmp/constraints.txt" constraints.txt && echo "constraints.txt: $$(grep -c == constraints.txt) packages"

clean:  ## remove caches and build folders
	rm -rf build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage .coverage.* htmlcov
	find instances hwmodels formulations solver tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## also remove the virtual environment
	rm -rf $(VENV)
