"""How sphinx builds these pages: `make docs`, into build/docs."""

import importlib.metadata
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

from generate import write_all  # noqa: E402
from generate.results import write_results  # noqa: E402

project = "softcr"
author = "the authors of softcr"
copyright = "the authors of softcr, Apache-2.0"
try:
    release = importlib.metadata.version("softcr")
except importlib.metadata.PackageNotFoundError:
    release = "unknown"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_generated/*.md", "results/tables"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
default_role = "code"  # single backticks of docstrings
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "softcr"
html_static_path = ["_static"]
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}

write_all()
write_results()
