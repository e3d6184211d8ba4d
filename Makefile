# softcr on a bare machine: every command sets up what it needs. `make help` lists them.
# For example: make sim DURATION=60 REFERENCE=circle

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/softcr.stamp

# Whatever is given on make's command line becomes an option of softcr:
# make sim CONTROLLER.POPULATION=512 is softcr up simulation --controller.population=512. What has
# no such option is refused there.
GIVEN = $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
OPTIONS = $(foreach name,$(filter-out ARGS PYTHON,$(GIVEN)),--$(shell echo '$(name)' | tr A-Z_ a-z-)='$($(name))')

PIP := $(VENV)/bin/python -m pip -qq
INSTALL := $(PIP) install -c constraints.txt

# What the kernels of `make sim` need: installed first, so that they are compiled, in as many
# processes as there are cores, while the rest is installed.
NUMERICAL := numba numpy pin pydantic pyyaml scipy
KERNELS := rod chain softcr_simulation.warm_up:PLANT softcr_estimation.warm_up:FILTER \
	softcr_control.warm_up:MINIMUM
COMPILE := PYTHONHASHSEED=0 $(VENV)/bin/python -m softcr_models.warm_up

# pinocchio and numba's threads need the OpenMP library, which a bare Debian has not: a small wheel
# carries it, and .venv/lib is where the ROS wheels let the loader look.
HAS_LIBGOMP := $(VENV)/bin/python -c 'import ctypes; \
	[ctypes.CDLL(name) for name in ("libgomp.so.1", "libgomp.so.1.0.0")]'

.PHONY: help setup setup-cuda sim rehearsal test test-all test-wire bench wheels data docs lint clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## create .venv with everything, ROS 2 included (again only when a pin changes)

setup-cuda: $(STAMP) ## add NVIDIA's compiler: the rod's kernels for a GPU, which compile without one
	@$(INSTALL) --no-build-isolation -e '.[cuda]'

sim: $(STAMP) ## run the closed loop in simulation; options as DURATION=60 MODE=lockstep ...
	@$(VENV)/bin/softcr up simulation $(OPTIONS) $(ARGS)

rehearsal: $(STAMP) ## run the bench's system on emulated devices, as root; options as for sim
	@$(INSTALL) --no-build-isolation -e '.[ethercat]'
	@$(VENV)/bin/softcr rehearse $(OPTIONS) $(ARGS)

test test-all: export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
test test-all: export OPENBLAS_NUM_THREADS := 1
test test-all: export OMP_WAIT_POLICY := PASSIVE
# The tests start hundreds of processes, each of which would compile all sources again.
test test-all: export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(VENV)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
test: $(STAMP) ## run the quick tests; more for pytest as ARGS="-k rod -x"
	@$(COMPILE) rod fittings
	@$(PYTEST) -m "not (slow or later or papers)" $(ARGS)

test-all: $(STAMP) ## run the others: processes, clocks, wires, papers, pages
	@$(COMPILE) rod fittings constant_curvature
	@$(PYTEST) -m "(later or papers) and not slow" $(ARGS)

test-wire: export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
test-wire: $(STAMP) ## install pysoem (GPL or commercial) and run what needs it, as root
	@$(INSTALL) --no-build-isolation -e '.[ethercat]'
	@ROS_DOMAIN_ID=$$(shuf -i 1-100 -n 1) $(VENV)/bin/python -m pytest -m network $(ARGS)

bench: export OPENBLAS_NUM_THREADS := 1
bench: $(STAMP) ## measure rod, filter and controller beside their baselines
	@$(VENV)/bin/softcr study run speed

wheels: $(STAMP) ## download into .whl what the study speed/gpu needs where no registry is
	@$(VENV)/bin/python -m softcr_studies.speed.gpu_wheels .whl

data: $(STAMP) ## write the shipped recordings at full rate into build/data, from copies of their authors' repositories below FROM=...
	@$(VENV)/bin/python -m softcr_studies.recordings.full_rate '$(FROM)' build/data

docs: export OPENBLAS_NUM_THREADS := 1
docs: $(STAMP) ## build the documentation into build/docs; warnings are errors
	@$(INSTALL) --no-build-isolation -e '.[docs]'
	@$(VENV)/bin/python -m sphinx -b html -W --keep-going -q docs build/docs
	@echo "documentation: build/docs/index.html"

lint: $(STAMP) ## check style and types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

clean: ## remove .venv and what builds left; results stay
	rm -rf $(VENV) build dist install log *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): constraints.txt setup.py setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "softcr: error: $(PYTHON) is $$($(PYTHON) --version 2>&1): Python 3.10 to 3.13 is needed;" \
		"name another one: make setup PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "softcr: error: $(PYTHON) cannot make virtual environments:" \
		"sudo apt install python3-venv" >&2; exit 2; }
	@$(VENV)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing the pinned packages into $(VENV), the kernels are compiled meanwhile: a few minutes"
	@$(INSTALL) pip setuptools
	@$(INSTALL) $(NUMERICAL)
	@$(HAS_LIBGOMP) 2>/dev/null || { \
		$(INSTALL) --no-deps pykdtree && \
		cp $(VENV)/lib/python3*/site-packages/pykdtree.libs/libgomp-* $(VENV)/lib/libgomp.so.1 && \
		ln -sf libgomp.so.1 $(VENV)/lib/libgomp.so.1.0.0 && $(HAS_LIBGOMP); } || { \
		echo "softcr: error: the system lacks libgomp: sudo apt install libgomp1" >&2; exit 2; }
	@$(COMPILE) $(KERNELS) >$(VENV)/compiling.log 2>&1 & compiling=$$!; \
		PYTHONWARNINGS=ignore $(INSTALL) --no-build-isolation \
			-e '.[bench,images,lint,policy,surrogate,test,view]' \
			|| { code=$$?; kill $$compiling; exit $$code; }; \
		wait $$compiling || echo "softcr: warning: the kernels could not be compiled, as" \
			"$(VENV)/compiling.log tells; the next run tries it again" >&2
	@touch $@
