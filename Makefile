# Two commands: `make check` runs the main job on the bundled allocator, `make test` passes the tests.
# Both set up everything they need in .venv, from Python 3.10 or newer and a C++ compiler.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SOURCES := $(shell find package model spec native fuzz scenario report cli suite \( -name lib -o -name __pycache__ \) -prune -o -type f -print) pyproject.toml CMakeLists.txt

.PHONY: bench check docs screenshots test lint native-test gpu-check ptx clean

check: $(VENV)/.installed
	$(BIN)/gallocheck check --time 40s

test: $(VENV)/.installed lint native-test
	$(BIN)/python native/driver/make_ptx.py --check
	@command -v chromium > /dev/null || { mkdir -p build; apt-get install -y chromium > build/chromium.log 2>&1; } || echo "chromium cannot be installed here: the report is not tested in a browser"
	@# a machine that is busy with other things may starve a test of its time: what failed gets one more run, alone
	$(BIN)/python -m pytest -n 3 --durations 40 tests || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none tests

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy -p gallocheck

# The native tests, under AddressSanitizer and UndefinedBehaviorSanitizer; those of two threads under ThreadSanitizer too.
native-test: $(VENV)/.ready
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DGALLOCHECK_TESTS=ON -DGALLOCHECK_SANITIZE=ON -DGALLOCHECK_TSAN=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo > build/sanitize.log 2>&1 || { cat build/sanitize.log; exit 1; }
	$(BIN)/cmake --build build/sanitize --target native_tests native_tests_tsan >> build/sanitize.log 2>&1 || { cat build/sanitize.log; exit 1; }
	build/sanitize/native/native_tests
	build/sanitize/native/native_tests_tsan

# The table of speeds, each a ratio measured side by side; ten minutes. `make bench QUICK=1`: one.
bench: $(VENV)/.installed
	@dpkg -s librapidcheck-dev > /dev/null 2>&1 || { apt-get install -y librapidcheck-dev > build/rapidcheck.log 2>&1 || echo "librapidcheck-dev cannot be installed here: its row is left out"; }
	$(BIN)/python bench/run.py $(if $(QUICK),--quick)

# The site in build/docs/html, made from the project: the prover is run and every planted defect found again. No network;
# a warning or a broken link fails it. About two minutes on two cores.
docs: $(VENV)/.installed
	cd docs/site && ../../$(BIN)/python -m generate ../../build/docs/sources
	$(BIN)/python -m sphinx -b html -q -W --keep-going -j 2 build/docs/sources build/docs/html
	cd docs/site && ../../$(BIN)/python -m generate.links ../../build/docs/html
	@echo "open build/docs/html/index.html"

# The pictures in the README, by headless Chromium: of a report, and of a page of the site that `make docs` made.
screenshots: $(VENV)/.installed
	$(BIN)/python docs/site/screenshots.py

# The whole check on a real card; docs/gpu.md. It builds what it needs, and takes .venv's Python where that is.
gpu-check:
	@sh native/gpu_check.sh

# native/driver/kernels.ptx.h from kernels.cu, by nvcc.
ptx:
	$(PYTHON) native/driver/make_ptx.py

$(VENV)/.ready: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "gallocheck needs Python 3.10 or newer; name one with make PYTHON=python3.x"; exit 3; }
	@command -v c++ > /dev/null || command -v g++ > /dev/null || { echo "gallocheck needs a C++ compiler (c++ or g++ on the PATH); install one, then run make again"; exit 3; }
	@mkdir -p build
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	@echo "building and installing gallocheck"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall .
	@touch $@

clean:
	rm -rf build $(VENV)
