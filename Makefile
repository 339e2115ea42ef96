# Everything a person does with this project. Each target sets the project up first, once: the stamps in .venv are
# renewed only when pyproject.toml or constraints.txt changes, so from the second time on nothing needs a network.

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
# What the demo needs, and what everything else does.
DEMO    := samples,look,serve
ALL     := $(DEMO),track,tune,music,images,sound,parquet,excel,hf,onnx,meteor,dev
# One thread a worker: two workers with two threads each on two cores only wait for one another.
PYTEST  := OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n 2 --dist worksteal -rs
NAME    ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check bench regress soak docs notebooks pictures wheel

help:
	@echo "make demo    train the date reader live, score it, look inside (minutes)"
	@echo "make test    run the tests"
	@echo "make check   ruff and mypy"
	@echo "make bench   list the benchmarks; make bench NAME=intervals runs one"
	@echo "make regress  train the short rows of the results anew and compare (ten minutes, needs SEQLOOM_DATA)"
	@echo "make soak    the tests marked soak: long searches for rare failures"
	@echo "make docs    build the documentation into site/"
	@echo "make notebooks  write the lessons of the course as notebooks into notebooks/"
	@echo "make pictures  draw the pictures of the documentation anew (minutes)"
	@echo "make wheel   build the wheel into dist/"

.venv/.ready-demo: pyproject.toml constraints.txt
	@echo "Setting up what the demo needs (once)"
	@$(PYTHON) tools/install.py $(DEMO)
	@touch $@

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up everything that tests and checks need (once)"
	@$(PYTHON) tools/install.py $(ALL)
	@touch .venv/.ready-demo $@

demo: .venv/.ready-demo
	@.venv/bin/python -m seqloom.demo

test: .venv/.ready
	$(PYTEST) tests

check: .venv/.ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: .venv/.ready
ifeq ($(NAME),)
	@for file in benchmarks/[a-z]*.py; do printf '%-12s %s\n' "$$(basename $$file .py)" "$$(sed -n '1s/"""//gp' $$file)"; done
else
	.venv/bin/python benchmarks/$(NAME).py
endif

regress: .venv/.ready
	.venv/bin/python benchmarks/regress.py

soak: .venv/.ready
	$(PYTEST) -m soak --hypothesis-profile soak --timeout 3600 tests

docs: .venv/.ready
	.venv/bin/mkdocs build --strict --site-dir site

notebooks: .venv/.ready
	.venv/bin/python -m seqloom course --into notebooks

pictures: .venv/.ready
	.venv/bin/python docs/pictures.py
	.venv/bin/python docs/course_pictures.py

wheel: .venv/.ready
	.venv/bin/python -m build --wheel --no-isolation --outdir dist
