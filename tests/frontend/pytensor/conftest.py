"""PyTensor needs Python 3.12: where it is not installed, the script ``.ci/supported`` runs these tests."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("pytensor") else ["test_*.py"]
