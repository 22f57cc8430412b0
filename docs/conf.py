"""How the pages are built: every example runs, and every warning is an error."""

import os
import sys
import warnings
from pathlib import Path

from sphinx.util.typing import ExtensionMetadata

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import tables_of_pages

import diffrac_cvx

project = "diffrac_cvx"
author = "The diffrac_cvx authors"
project_copyright = author
version = release = diffrac_cvx.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "auto/**/*.md5"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "py:obj"
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath"]
suppress_warnings = [
    "config.cache",
    "sphinx_gallery.space_in_filename",  # the folder of the project may have any name
    "myst.xref_missing",  # reproduction.md links to figures/two_class.md, which is no page of these
]

html_theme = "furo"
html_title = "diffrac_cvx"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False

sphinx_gallery_conf = {
    "examples_dirs": ["tutorial", "relaxations", "guides"],
    "gallery_dirs": ["auto/tutorial", "auto/relaxations", "auto/guides"],
    "filename_pattern": r"/\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "plot_gallery": True,
    "min_reported_time": 1000,
}

warnings.filterwarnings("ignore", category=UserWarning, message=".*FigureCanvasAgg is non-interactive.*")


def setup(app: object) -> ExtensionMetadata:
    """Write the tables that are made from the package itself."""
    tables_of_pages.write(Path(__file__).parent / "auto")
    return {"parallel_read_safe": False}
