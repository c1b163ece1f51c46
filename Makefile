# Everything runs in .venv, which the first target to need it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?=
EXPERIMENTS := trees_per_top balance top_trees small_data big_data billion rare_classes
# What was compiled is kept here, so that the next installation compiles only what changed.
BUILD := -Cbuild-dir='build/{wheel_tag}'
CPP := $(shell find cpp -name '*.cpp' -o -name '*.hpp')
SOURCES := $(shell find cpp src -type f -not -name '*.pyc') CMakeLists.txt pyproject.toml

.PHONY: demo test test-all test-cpp test-python test-slow test-asan fuzz torture torture-memory torture-cluster bench bench-scale bench-raster bench-cluster sweep experiments experiments-quick lint format clean

demo: $(VENV)/.installed
	$(BIN)/oldgrowth demo

test: test-cpp test-python

# Also what takes long and rarely breaks.
test-all: test test-slow

test-cpp: $(VENV)/.installed-dev
	$(BIN)/cmake -S . -B build/cpp -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DOLDGROWTH_PYTHON=OFF -DOLDGROWTH_TESTS=ON -DOLDGROWTH_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo
	$(BIN)/cmake --build build/cpp
	$(BIN)/ctest --test-dir build/cpp --parallel 2 --output-on-failure

test-python: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses auto -m "not slow and not torture"

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses auto -m slow
	$(BIN)/python -m pytest --numprocesses auto --on-disk tests/estimators/test_estimators.py tests/estimators/test_weights.py tests/estimators/test_compare_sklearn.py

# The extension under the address sanitizer: predictions of every kind of forest with evictions forced, files that change.
ASAN_LIBRARIES = $(foreach name,asan ubsan stdc++,$(shell $(CXX) -print-file-name=lib$(name).so))
test-asan: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet nanobind
	$(BIN)/cmake -S . -B build/asan -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DOLDGROWTH_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
	$(BIN)/cmake --build build/asan --target _core
	rm -rf build/asan/package && mkdir build/asan/package && cp -r src/oldgrowth build/asan/package && cp build/asan/_core*.so build/asan/package/oldgrowth
	LD_PRELOAD="$(ASAN_LIBRARIES)" ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/asan/package $(BIN)/python -m pytest -n0 tests/forest/test_evicted.py -k "evictions or damaged or changed_temporary"

fuzz: test-cpp
	build/cpp/fuzz_forest 1000000
	$(BIN)/python -m pytest --every tests/forest/test_model_damage.py
	$(BIN)/python tests/torture/fuzz_model.py --mutations 20000

torture: $(VENV)/.installed-dev
	$(BIN)/python tests/torture/kill_resume.py --kills 200 --writes 100
	$(BIN)/python tests/torture/power_cut.py --cuts 100
	$(BIN)/python tests/torture/damage.py --forgeries 300
	$(BIN)/python tests/torture/faults.py
	$(BIN)/python tests/torture/labels.py 60

torture-memory: $(VENV)/.installed-dev
	$(BIN)/python tests/torture/memory_grid.py --named all --cases 100
	$(BIN)/python tests/torture/memory_predictions.py

torture-cluster: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses auto tests/cluster tests/dask

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/compare.py $(if $(SETS),--sets $(SETS)) $(if $(DATA),--data $(DATA))
	$(if $(SETS),,$(BIN)/python benchmarks/model_file.py $(if $(DATA),--data $(DATA)))

bench-scale: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/scale.py $(SCALE)

bench-raster: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/scenes.py $(RASTERS)

bench-cluster: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/cluster.py $(CLUSTER)

sweep: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/sweep.py $(if $(DATA),--data $(DATA))

# One after the other: each is to have the machine for itself. What is finished is not run again.
experiments: SIZE := full
experiments-quick: SIZE := quick
experiments experiments-quick: $(VENV)/.installed-rivals
	for name in $(EXPERIMENTS); do \
	  $(BIN)/python benchmarks/experiments/$$name.py --size $(SIZE) $(if $(DATA),--data $(DATA)) || exit 1; \
	done

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/python cpp/check_includes.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

clean:
	rm -rf build $(VENV)

$(VENV)/bin/python:
	@echo "Setting up .venv and building: one to two minutes the first time."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(SOURCES) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(BUILD) '.[plot,raster]'
	touch $@

$(VENV)/.installed-dev: $(SOURCES) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(BUILD) '.[dev]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(SOURCES) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(BUILD) '.[bench]'
	touch $@

$(VENV)/.installed-rivals: $(SOURCES) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(BUILD) '.[rivals]'
	touch $@ $(VENV)/.installed-bench
