# Everything here needs Python 3.11 or newer, make and git; `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help setup run demo size test coverage test-slow faults soak attack test-brokers test-hosts test-spark lint fmt migrate bench docs evidence evidence-audits evidence-faults fuzz reproduce screenshots outdated stop clean

VENV := .venv
PYTHON := $(VENV)/bin/python
ARGS ?=
# Where what Python compiles is kept, each of the hundreds of processes that tests start need not do it anew.
unexport PYTHONDONTWRITEBYTECODE
# Two processes by default: more than two fight over the tests' own server on small machines.
JOBS ?= 2
# What `make evidence` found; its report in Markdown is written beside it.
EVIDENCE_FILE ?= $(CURDIR)/var/evidence.json

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv hold what requirements.lock.txt names
	@sh .ci/setup

run: setup ## run the site on this machine until Ctrl-C; ARGS="--port 8080"
	@$(PYTHON) manage.py run $(ARGS)

demo: setup ## a trusted and a crowd project with simulated annotators, then the site; ARGS=--exit ends after the table
	@$(PYTHON) manage.py demo $(ARGS)

size: setup ## lines, folders, raw SQL and words of the project
	@$(PYTHON) .ci/size.py

test: setup ## all tests but the slow ones; ARGS="tests/db -k ledger"
	@$(PYTHON) -m pytest -m "not slow" -n $(JOBS) --dist worksteal $(ARGS)

# Of some tests alone no share is asked for.
coverage: setup ## which lines of the product no test runs, and whether 95 % of all are run; ARGS="tests/db -k ledger"
	@mkdir -p var && $(PYTHON) -m coverage run -m pytest -m "not slow" -n $(JOBS) --dist worksteal $(ARGS); status=$$?; \
		$(PYTHON) -m coverage combine --quiet && \
		$(PYTHON) -m coverage report $(if $(ARGS),,--fail-under=95) || status=$$?; exit $$status

test-slow: setup ## all tests, the slow ones too, but those of `make attack`, `make test-brokers`, `make test-hosts` and `make evidence`
	@$(PYTHON) -m pytest -m "not attack and not brokers and not hosts and not mutants" -n $(JOBS) --dist worksteal $(ARGS)

faults: setup ## ten minutes of kill -9 under load; DPAL_STORM_SEED=1
	@DPAL_STORM_SECONDS=$${DPAL_STORM_SECONDS:-600} $(PYTHON) -m pytest -s tests/faults/test_storm.py $(ARGS)

soak: setup ## an hour of the same
	@DPAL_STORM_SECONDS=$${DPAL_STORM_SECONDS:-3600} $(PYTHON) -m pytest -s tests/faults/test_storm.py $(ARGS)

attack: setup ## attack a site of its own, and measure what somebody else who labels notices; ARGS="-k webhooks"
	@$(PYTHON) -m pytest -s -m attack tests/faults/test_attack.py $(ARGS)

test-brokers: setup ## a site's loop on real Redis and RabbitMQ; needs redis-server and rabbitmq-server
	@$(PYTHON) -m pytest -s -m brokers tests/faults/test_brokers.py $(ARGS)

test-hosts: setup ## a site behind PgBouncer, with TLS everywhere, on two hosts with S3, with clamd; see docs/architecture.md
	@$(PYTHON) -m pytest -s tests/hosts $(ARGS)

test-spark: setup ## gates and features on a real cluster, and a storm over it; needs Java 17, see docs/architecture.md
	@command -v java >/dev/null || { echo "No Java here; apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	@[ -x var/spark-venv/bin/python ] || $(VENV)/bin/uv venv --quiet --python $(PYTHON) var/spark-venv
	@$(VENV)/bin/uv pip install --quiet --python var/spark-venv/bin/python --require-hashes \
		--requirement requirements.lock.txt --requirement requirements.spark.lock.txt
	@cp $(VENV)/lib/python3*/site-packages/dpal.pth var/spark-venv/lib/python3*/site-packages/
	@DPAL_STORM_SECONDS=$${DPAL_STORM_SECONDS:-150} var/spark-venv/bin/python -m pytest -s -m spark $(ARGS)

lint: setup ## ruff, djade, mypy, import-linter, missing migrations, code that nothing uses, dead links and names in the docs
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@git ls-files '*.html' ':!docs/_templates' | xargs $(VENV)/bin/djade --target-version 5.2 --check
	@DPAL_NO_SERVERS=1 $(VENV)/bin/mypy
	@$(VENV)/bin/mypy --config-file client/pyproject.toml
	@DPAL_NO_SERVERS=1 PYTHONPATH=. $(VENV)/bin/lint-imports
	@DPAL_NO_SERVERS=1 $(PYTHON) -W "ignore:Got an error checking a consistent migration history:RuntimeWarning" \
		manage.py makemigrations --check --dry-run
	@$(PYTHON) .ci/unused.py
	@$(PYTHON) .ci/docs.py

fmt: setup ## format code and templates and mend what ruff can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .
	@git ls-files '*.html' ':!docs/_templates' | xargs $(VENV)/bin/djade --target-version 5.2

migrate: setup ## bring the database up to date
	@$(PYTHON) manage.py migrate

bench: setup ## every benchmark, ours beside its peer
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; PYTHONPATH=. $(PYTHON) $$file $(ARGS) || exit 1; done

docs: setup ## build the manual as pages into var/docs
	@[ -x var/docs-venv/bin/sphinx-build ] || $(VENV)/bin/uv venv --quiet var/docs-venv
	@$(VENV)/bin/uv pip install --quiet --python var/docs-venv/bin/python --require-hashes --requirement docs/requirements.lock.txt
	@var/docs-venv/bin/sphinx-build --quiet --fail-on-warning --keep-going docs var/docs
	@echo "The manual is in var/docs/index.html."

evidence: evidence-audits evidence-faults ## both of the next two; PART=2/6, RESUME=1 goes on where an earlier run stopped

EVIDENCE = EVIDENCE_FILE=$(EVIDENCE_FILE) DPAL_EVIDENCE_PART=$(PART) DPAL_EVIDENCE_RESUME=$(RESUME) $(PYTHON) -m pytest -p tests.evidence.report

evidence-audits: setup ## audit every mechanism with 20 times the trials of `make test`
	@DPAL_EVIDENCE_TRIALS=$${DPAL_EVIDENCE_TRIALS:-20} $(EVIDENCE) tests/statistical tests/evidence/test_sniper.py -n $(JOBS) $(ARGS)

evidence-faults: setup ## plant faults that tests must notice
	@$(EVIDENCE) tests/evidence --ignore tests/evidence/test_sniper.py -n $(JOBS) --dist loadgroup $(ARGS)

fuzz: setup ## every parser, page and API route with 50 times the examples of `make test`, drawn anew; FUZZ=500
	@DPAL_FUZZ=$(or $(FUZZ),50) $(PYTHON) -m pytest tests/pure/annotation/data/readers/test_fuzz_parsers.py \
		tests/web/dpal_site/test_fuzz_pages.py tests/web/dpal_site/test_openapi.py $(ARGS)

outdated: setup ## what is out of date: images by docker, libraries by uv, weaknesses that are known; needs a network
	@$(PYTHON) deploy/outdated.py

reproduce: setup ## the five papers' tables and figures into docs/results; DATA=FOLDER PAPER=ghassemi2016 ARGS=--small
	@$(PYTHON) -m learner.papers $(if $(DATA),--data $(DATA)) $(if $(PAPER),--paper $(PAPER)) $(ARGS)

screenshots: setup ## take the pictures of README and manual again, into docs/images
	@DPAL_SCREENSHOTS=docs/images $(PYTHON) -m pytest tests/browser/test_screenshots.py $(ARGS)

stop: ## stop the embedded servers
	@[ ! -x $(PYTHON) ] || $(PYTHON) -m dpal_site.embedded stop

clean: stop ## remove .venv and caches; the site's data under var/ stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +
