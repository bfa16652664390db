# Two commands for a new user: `make demo` and `make test`. Both make their own environment first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without what setuptools says of editable installations.
INSTALL = PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo wheel test lint docs doctest browser-check wheel-check kernels bench bench-peers gpu-build-check \
	gpu-check gpu-bench gpu-carry clean

demo: $(VENV)/.examples
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal

# A wheel, in the folder dist, that brings compiled rules: the one of `pip wheel .` compiles them when first used.
wheel: $(VENV)/.examples
	$(BIN)/python -m tools.wheel

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing_of_users.py

# The site, in docs/_build/html: every code cell runs when its page has changed, and warnings are errors.
docs: .docs-env/.created
	PYTHONWARNINGS=ignore::PendingDeprecationWarning .docs-env/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	.docs-env/bin/python tools/check_links.py docs/_build/html

# Examples in docstrings, one call of each function, and the code in README and pages.
doctest: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal tests/documents/test_documentation.py

# Builds sdist and wheel, and tries the wheel in an empty environment.
wheel-check: $(VENV)/.created
	$(BIN)/python tools/check_wheel.py

# The page of save_html in headless Chromium, which this installs on Debian where it is missing.
browser-check: $(VENV)/.test
	command -v chromium chromium-browser google-chrome || apt-get install -y --no-install-recommends chromium
	$(BIN)/python -m pytest tests/tools/drawing/test_browser.py

# The files that tests compare the source of kernels with.
kernels: $(VENV)/.test
	PYTHONPATH=tests:. $(BIN)/python -m codegen.kernel_files
	PYTHONPATH=tests:. $(BIN)/python -m gpu.kernel_files

# What printed kernels become on devices, which takes numba-cuda and its compilers, but no device.
gpu-build-check: $(VENV)/.gpu
	PYTHONPATH=tests:. $(BIN)/python -m pytest -n auto --dist worksteal tests/gpu/compiled
	PYTHONPATH=tests:. $(BIN)/python -m benchmarks.device_code

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.kernels

# The environments of the libraries esat is compared with: .peers/jax and so on.
bench-peers: $(VENV)/.bench
	$(BIN)/python -m benchmarks.peers.environments

# With a CUDA device: everything that runs there against NumPy, then under NVIDIA's sanitizer.
gpu-check: $(VENV)/.gpu
	$(BIN)/python -m tools.gpu_check

# With a CUDA device: times beside those of cupy, and of JAX and torch where they are installed.
gpu-bench: $(VENV)/.gpu
	$(BIN)/python -m benchmarks.gpu --processes 4

# The folder .gpu-carry, for a machine with a CUDA device and no network.
gpu-carry: $(VENV)/.test
	$(BIN)/python tools/gpu_carry.py

$(VENV)/.created: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "esat needs Python 3.11 or newer; call make with PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	touch $@

$(VENV)/.examples: $(VENV)/.created
	$(INSTALL) --editable '.[examples]'
	touch $@

$(VENV)/.test: $(VENV)/.created
	$(INSTALL) --editable '.[examples,test]'
	touch $@

$(VENV)/.gpu: $(VENV)/.created
	$(INSTALL) --editable '.[examples,gpu,test]' nvidia-cuda-nvdisasm
	touch $@

$(VENV)/.bench: $(VENV)/.created
	$(INSTALL) --editable . matplotlib
	touch $@

.docs-env/.created: pyproject.toml
	$(PYTHON) -m venv .docs-env
	.docs-env/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs,examples]'
	touch $@

clean:
	rm -rf $(VENV) .docs-env docs/_build docs/reference/generated .peers build *.egg-info .mypy_cache .ruff_cache .pytest_cache
