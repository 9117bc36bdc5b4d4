# make serve | make test: each does all set-up on a fresh machine with Python >= 3.11.
PYTHON      ?= python3
HOST        ?= 127.0.0.1
PORT        ?= 8080
ARGS        ?=
# The build of PyTorch: TORCH_INDEX is the package index to take it from (a CPU or a CUDA build), empty for pip's own.
# A change of either takes effect after `make clean`.
TORCH       ?= torch==2.13.0
TORCH_INDEX ?=

VENV   := .venv
BIN    := $(VENV)/bin
SERVE  := $(VENV)/.serve-ready
TESTED := $(VENV)/.test-ready

.PHONY: serve test test-all lint page-tools clean

serve: $(SERVE)
	$(BIN)/audio8-gateway serve --host $(HOST) --port $(PORT) $(ARGS)

test: $(TESTED) page-tools
	$(BIN)/python -m pytest -m "not gpu and not slow" $(ARGS)

test-all: $(TESTED) page-tools
	$(BIN)/python -m pytest --timeout 1800 -m "not gpu" $(ARGS)

lint: $(TESTED)
	$(BIN)/python -m pip install --quiet "ruff>=0.14,<1"
	$(BIN)/ruff check gateway inference protocol examples tests
	$(BIN)/ruff format --check gateway inference protocol examples tests

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is not Python >= 3.11; choose another one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "$(PYTHON) cannot make virtual environments (on Debian: apt-get install python3-venv)"; exit 1; }

# PyTorch first and by itself: resolved together with the rest, an index with several builds may give another one.
$(SERVE): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet "$(TORCH)" $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(TESTED): $(SERVE)
	$(BIN)/python -m pip install --quiet -e ".[test]"
	@touch $@

# What the page tests run on.  Installing it is only possible for root on a system with apt.
page-tools:
	@missing=""; \
	  command -v chromium chromium-browser google-chrome >/dev/null || missing="chromium"; \
	  command -v node >/dev/null || missing="$$missing nodejs"; \
	  [ -n "$$missing" ] || exit 0; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing for the page tests: $$missing"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null && exit 0; \
	  fi; \
	  echo "cannot install from here: $$missing; the page tests that need it will not run"

clean:
	rm -rf $(VENV) .clients build dist *.egg-info
