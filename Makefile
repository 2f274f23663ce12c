# make help says what there is. Everything happens in .venv, which each target sets up by itself, once.

SHELL := bash
.DEFAULT_GOAL := help

SCALE ?= smoke
CORPUS ?=
SEEDS ?=
NLI_DATA ?=
CHAPTERS ?=
JOBS ?= $(if $(filter lab smoke,$(SCALE)),2,1)
# recipes read these from the environment, so that no sign in a file's name means something to the shell
export SCALE CORPUS SEEDS NLI_DATA CHAPTERS JOBS
# .ci/setup leaves compiling to the first import; where this is set (many containers) every import would compile again
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
STUDY := $(PY) -m nli_lib
PINS := pyproject.toml constraints.txt .ci/setup
DIAL := --scale "$$SCALE" $${CORPUS:+--corpus "$$CORPUS"}
RUN := $(DIAL) $${SEEDS:+--seeds "$$SEEDS"} --jobs "$$JOBS"

.PHONY: help study book test drill lab check clean

help:
	@echo "make study [SCALE=lab|smoke|small|full] [CORPUS=name or file] [NLI_DATA=folder] [SEEDS=n] [JOBS=n] [CHAPTERS='30 31']"
	@echo "                          run every notebook that is missing or stale, or only some, then build the book"
	@echo "make book [SCALE=small]   build the report from recorded tables: no torch, no data, no GPU"
	@echo "make test                 every test that needs no GPU, and every notebook at scale smoke"
	@echo "make drill                kills, full disks, two processes at one thing, unusual homes, a bad server, scale lab, every page of the book: twenty minutes"
	@echo "make check [SCALE=...]    what this machine lacks for a scale, and the command that fetches it"
	@echo "make lab                  open the notebooks in JupyterLab"
	@echo "make clean                remove what was built: .venv, runs, lab and smoke tables, chapters, pages"

# The book is built even when a notebook failed: it says which. The failure still ends the command.
study: .venv/.study
	@status=0; $(STUDY) run $$CHAPTERS $(RUN) || status=$$?; $(STUDY) book $(DIAL) || status=$$?; exit $$status

book: .venv/.base
	@$(STUDY) book $(DIAL)

test: .venv/.test
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(STUDY) run --scale smoke --jobs 2 || echo "the tests below say what is wrong"
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n 3 --dist worksteal -m "not gpu" # for two cores: tests wait for browsers and kernels

drill: .venv/.test
	@OMP_NUM_THREADS=1 $(PY) -m pytest -q -m "drill or slow" tests/drill tests/browser tests/learn/test_predict.py "tests/test_notebooks.py::test_what_was_planted_is_found_at_scale_lab"

lab: .venv/.lab
	@$(PY) -m jupyterlab notebooks

check: .venv/.base
	@$(STUDY) check $(DIAL)

clean:
	@test -f nli_lib/paths.py || { echo "make clean: call it in the folder of its Makefile" >&2; exit 1; }
	rm -rf $(if $(wildcard .venv/setup.log),.venv) data/runs data/results/lab data/results/smoke book/chapters book/_build book/_static/notebooks book/_static/plotly.min.js .pytest_cache .ruff_cache .hypothesis .snakemake
	find nli_lib tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Stages of .venv, each with a stamp: base (the book), study (torch and models), test, lab.
.venv/.base: $(PINS)
	@.ci/setup base

.venv/.study: .venv/.base
	@.ci/setup study

.venv/.test: .venv/.study
	@.ci/setup test

.venv/.lab: .venv/.study
	@.ci/setup lab
