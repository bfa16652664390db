"""The site: ``make docs`` builds it from these pages, and from the package itself."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "site")]
os.environ["PYTHONPATH"] = str(HERE.parent / "tests")  # of code cells: the emulator of devices

import site_pages  # noqa: E402

import esat  # noqa: E402
from esat.rules import RULES  # noqa: E402

project = "esat"
author = "the authors of esat"
copyright = author
version = release = esat.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
html_theme = "furo"
html_title = f"esat {release}"
exclude_patterns = ["_build", "Thumbs.db"]

# Every code cell runs when its page changes; an error in one ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = os.environ.get("ESAT_DOCS_CACHE", str(HERE / "_build" / ".jupyter_cache"))
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
add_module_names = False
nitpicky = False
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]
rst_prolog = ""


def setup(app):
    """Write the pages that are made from the package before anything is read."""
    site_pages.write(HERE / "reference" / "generated", RULES.list(), HERE / "_build")
    return {"parallel_read_safe": True}
