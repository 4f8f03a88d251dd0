"""Sphinx settings of the documentation (``make site``): no network is needed, to build it or to read it."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent / "_ext")]

project = "certile"
author = "the authors of certile"
project_copyright = "the authors of certile, Apache-2.0"
html_title = "certile"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "reference"]
root_doc = "index"
exclude_patterns = ["_ext", "_static", "_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_domain_indices = False
html_use_index = False
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # it fetches pages, which a browser forbids on a disk

# Every link and anchor inside must lead somewhere; with -W a warning is an error.
nitpicky = True
# Types of Python and of other packages: their documentation is not here, and nothing is fetched.
nitpick_ignore_regex = [("py:.*", ".*")]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

# Docstrings are numpydoc with `names` of code in single backticks.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autosummary_generate = False
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False
python_maximum_signature_line_length = 90
