# `make` lists what there is. Everything is installed inside the checkout: .venv, and .venvs for the environments of other frameworks.
PYTHON ?= python3
VENV ?= .venv
VENVS ?= .venvs
# What the benchmarks compare with. On machines with a GPU the plain torch brings several GB of CUDA: TORCH='torch==2.13.0+cpu' helps.
TORCH ?= torch==2.13.0
JAX ?= jax
# `make test ARGS="-R test_mul_op -V"`: only the tests whose name matches, told one by one. Everything else goes to pytest as it is.
ARGS ?=

# How many tests run at a time: one for each core. WORKERS=0 runs them one by one, in one process.
WORKERS ?= logical

BIN := $(VENV)/bin
PIP := -m pip --quiet --disable-pip-version-check
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8
PYTEST_ARGS = $(patsubst -V,-v,$(ARGS))
export FLUIDNB_VENVS := $(abspath $(VENVS))
# A crash says where, also one that comes after the last test, while the interpreter ends.
test test-more test-full: export PYTHONFAULTHANDLER := 1
# Workers fill the cores; threads of linear algebra would only get in their way.
test test-more test-full fuzz: export OPENBLAS_NUM_THREADS := 1
test test-more test-full: export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo lab docs vsix test test-more test-full fuzz test-gpu bench-gpu bench lint paddle kernels-of-jupyter node vscode lite clean
.DELETE_ON_ERROR:

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.ready-demo ## train a digit classifier and a regression, in a real IPython session
	@$(BIN)/python -m fluidnb_magics.demo

lab: $(VENV)/.ready-lab ## open JupyterLab on the tour
	@$(BIN)/jupyter lab notebooks/00_tour.ipynb

docs: $(VENV)/.ready-docs ## build the documentation site in build/docs/html
	@$(BIN)/python docs/build.py
	@echo "open build/docs/html/index.html"

vsix: $(VENV)/.made ## package the VS Code extension of the debugger as build/fluidnb-debug-VERSION.vsix
	@PYTHONPATH=. $(PYTHON) -m fluidnb.dap.vsix build

lite: $(VENVS)/lite/.ready ## build a site in build/lite that runs the notebooks in a browser, without a server
	@$(VENVS)/lite/bin/python $(PIP) wheel --no-deps --wheel-dir build/wheels .
	@$(VENVS)/lite/bin/jupyter-lite build --contents notebooks --piplite-wheels build/wheels/fluidnb-*.whl --output-dir build/lite
	@echo "serve it:  $(BIN)/python -m http.server --directory build/lite"

# tests/tools/parts.py lists which files are of which part. A file or folder in ARGS runs in either.
test: $(VENV)/.ready-test ## check style and types, run the tests that need Python alone; ARGS go to pytest
ifeq ($(strip $(ARGS)),)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
endif
	@$(PYTEST) --part test $(PYTEST_ARGS)

test-more: $(VENV)/.ready-test-more paddle node ## run the other tests: browser, terminals, CUDA emulator, real Paddle, editors
	@.ci/debian $(PYTHON) browser graphs compiler
	@$(PYTEST) --part more $(PYTEST_ARGS)

test-full: $(VENV)/.ready-test-more paddle kernels-of-jupyter node vscode ## run all cases of all tests; interrupted, it goes on where it stopped
	@.ci/debian $(PYTHON) browser graphs compiler
	@$(PYTEST) --full $(PYTEST_ARGS)

MINUTES ?= 10
fuzz: $(VENV)/.ready-test ## random calls, programs, files, models, cells, messages and memory, MINUTES=10 in all; ARGS="calls --first 1000" chooses
	@PYTHONPATH=.:kernels:magics $(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(ARGS)

# Kernels are compiled first, by all cores, and kept; with ARGS each when it is needed. Where pytest-xdist is, WORKERS share the device.
# SANITIZER=compute-sanitizer runs a few tests under it; some ask for too much memory, which is not an error of kernels.
GPU_TESTS = $(if $(SANITIZER),tests/device/test_programs.py tests/ops/test_reduce.py,--full tests/device tests/ops tests/cuda tests/code_generator/test_cuda.py)
GPU_WORKERS = $(if $(SANITIZER),,$$($(PYTHON) -c 'import xdist' 2>/dev/null && echo --numprocesses $(WORKERS) --maxprocesses 8))
test-gpu: ## run golden programs and models, OpTests, kernels, debugger and faults on a GPU, from a plain checkout: numpy, protobuf, pytest and cupy are enough
ifeq ($(strip $(ARGS)$(SANITIZER)),)
	@PYTHONPATH=.:kernels:magics $(PYTHON) -m tests.gpu.compiled
endif
	@$(if $(SANITIZER),$(SANITIZER) --error-exitcode 1 --report-api-errors no) $(PYTHON) -m pytest -c tests/gpu/gpu.ini --rootdir . $(GPU_WORKERS) $(PYTEST_ARGS) $(GPU_TESTS)

bench-gpu: ## measure bandwidths, training steps beside torch and launches on a GPU; ARGS="bandwidth|models|launches" chooses
	@PYTHONPATH=.:kernels:magics $(PYTHON) -m tests.gpu.bench $(ARGS)

bench: $(VENV)/.ready-test-more paddle $(VENVS)/torch/.ready $(VENVS)/jax/.ready ## measure beside PaddlePaddle, PyTorch and JAX
	@$(BIN)/python -m tests.benchmarks $(ARGS)

lint: $(VENV)/.ready-test ## check style and types only
	@$(BIN)/ruff check .
	@$(BIN)/mypy

clean: ## remove everything that make made
	rm -rf $(VENV) $(VENVS) build dist .bench .test-full .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find fluidnb kernels magics tests -name __pycache__ -prune -exec rm -rf {} +

# ---- environments: a stamp in each says that it is complete ----

EXTRAS_demo := data,terminal
EXTRAS_lab := data,notebook
EXTRAS_docs := data,notebook,docs
EXTRAS_test := data,test
EXTRAS_test-more := data,notebook,test,test-more,docs

$(VENV)/.made:
	@.ci/debian $(PYTHON) venv
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.ready-%: $(VENV)/.made pyproject.toml
	@echo "installing fluidnb[$(EXTRAS_$*)] into $(VENV)"
	@$(BIN)/python $(PIP) install --editable '.[$(EXTRAS_$*)]'
	@touch $@

# A peer that cannot be installed is no reason to stop: the tests skip with the reason (and fail in CI), the benchmarks name it.
$(VENVS)/torch/.ready: SPEC = $(TORCH) numpy setuptools
$(VENVS)/jax/.ready: SPEC = $(JAX)
$(VENVS)/lite/.ready: SPEC = jupyterlite-core jupyterlite-pyodide-kernel
$(VENVS)/%/.ready: $(VENV)/.made
	@echo "installing $(SPEC) into $(@D)"
	@($(PYTHON) -m venv --clear $(@D) && $(@D)/bin/python $(PIP) install $(SPEC) && touch $@) || echo "going on without $*"

# The kernels of Jupyter that fluidnb supports; the debugger and the widgets use some of their private names.
IPYKERNEL = numpy protobuf ml_dtypes rich ipywidgets anywidget
$(VENVS)/ipykernel-6.29/.ready: SPEC = 'ipykernel==6.29.*' $(IPYKERNEL)
$(VENVS)/ipykernel-7.0/.ready: SPEC = 'ipykernel==7.0.*' $(IPYKERNEL)
$(VENVS)/ipykernel-newest/.ready: SPEC = ipykernel $(IPYKERNEL)
$(VENVS)/notebook/.ready: SPEC = 'notebook>=7,<8' $(IPYKERNEL)
$(VENVS)/nbclassic/.ready: SPEC = 'nbclassic>=1.3,<2' $(IPYKERNEL)
$(VENVS)/marimo/.ready: SPEC = 'marimo==0.25.2' $(IPYKERNEL)
kernels-of-jupyter: $(foreach name,ipykernel-6.29 ipykernel-7.0 ipykernel-newest notebook nbclassic marimo,$(VENVS)/$(name)/.ready)

# The last PaddlePaddle that reads Fluid programs has no build for newer Pythons.
PADDLE_PYTHON = $(shell for p in $(PYTHON) python3.11 python3.12; do \
	$$p -c 'import sys, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null && echo $$p && break; done)

# The public client that the debug adapter is tested with, Pyodide, and axe-core for the widgets' accessibility.
node: $(VENVS)/node/.ready
$(VENVS)/node/.ready: tests/dap/package.json tests/dap/package-lock.json $(VENV)/.made
	@.ci/debian $(PYTHON) node
	@echo "installing the packages of tests/dap/package.json into $(@D)"
	@mkdir -p $(@D) && cp tests/dap/package*.json $(@D) && npm ci --prefix $(@D) --silent --no-audit --no-fund && touch $@ || echo "going on without it"

# VS Code as a server, from the npm package code-server; what its scripts compile is for terminals and log files.
VSCODE = code-server@4.100.3
VSCODE_PACKAGES = npm install --ignore-scripts --omit=dev --silent --no-audit --no-fund --prefix
vscode: $(VENVS)/vscode/.ready
$(VENVS)/vscode/.ready: $(VENV)/.made
	@.ci/debian $(PYTHON) node
	@echo "installing $(VSCODE) into $(@D)"
	@mkdir -p $(@D) && $(VSCODE_PACKAGES) $(@D) $(VSCODE) && \
	$(VSCODE_PACKAGES) $(@D)/node_modules/code-server/lib/vscode && touch $@ || echo "going on without it"

paddle: $(VENVS)/paddle/.ready $(VENVS)/paddle3/.ready
$(VENVS)/paddle/.ready: PADDLE = paddlepaddle==2.6.2
# Paddle 3 writes models in another format, PIR.
$(VENVS)/paddle3/.ready: PADDLE = paddlepaddle==3.3.1
$(VENVS)/paddle/.ready $(VENVS)/paddle3/.ready: $(VENV)/.made
	@if [ -z "$(PADDLE_PYTHON)" ]; then echo "$(PADDLE) needs Python 3.11 or 3.12"; else \
	echo "installing $(PADDLE) into $(@D)" && $(PADDLE_PYTHON) -m venv --clear $(@D) && \
	$(@D)/bin/python $(PIP) install $(PADDLE) setuptools 'numpy<2' && touch $@ || echo "going on without $(PADDLE)"; fi
