"""How the pages are built: every example runs, and every warning is an error."""

import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

HERE = Path(__file__).parent
os.environ.setdefault("MPLBACKEND", "Agg")
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generated

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
    "sphinx-mathjax-offline",  # MathJax itself: the pages ask nothing of a network
    "executed",
]
# The galleries' own index pages are not used: relaxations.rst and index.rst list the pages.
# The paper is built by the journal's own tool.
exclude_patterns = ["_build", "paper", "**/GALLERY_HEADER.rst", "auto/tutorial/index.rst", "auto/relaxations/index.rst",
                    "auto/guides/index.rst"]  # fmt: skip
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_heading_anchors = 2  # links to sections of a page, by the names that GitHub gives them
templates_path = ["_templates"]

default_role = "py:obj"
nitpicky = True
nitpick_ignore = [
    ("py:obj", "cvxpy.Problem"),  # the only thing of another package that the pages name as an object
]
autodoc_typehints = "none"  # numpydoc's sections say the types
autosummary_generate = True
numpydoc_show_class_members = False
suppress_warnings = [
    "config.cache",  # sphinx-gallery's settings are not picklable
    "sphinx_gallery.space_in_filename",  # the folder of the project may have any name
]

html_theme = "furo"
html_title = "diffrac_cvx"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False

sphinx_gallery_conf = {
    "examples_dirs": ["tutorial", "relaxations", "guides"],
    "gallery_dirs": ["auto/tutorial", "auto/relaxations", "auto/guides"],
    "filename_pattern": r"/\w+\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": ("_repr_html_",),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1000,
    "image_scrapers": ("matplotlib",),
}
logging.getLogger("fontTools").setLevel(logging.WARNING)  # of figures that an example saves
warnings.filterwarnings("ignore", category=UserWarning, message=".*FigureCanvasAgg is non-interactive.*")

PUBLIC = "rounding metrics datasets baselines paths plotting registry relaxations solvers"
SPACES = ("", *(f"{name}." for name in PUBLIC.split()))


def short_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Node | None:
    """Resolve `low_rank`, `rounding.procrustes` or `dc.Result` wherever they stand, as a reader would."""
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    target = node["reftarget"].removeprefix("dc.")
    for space in SPACES:
        if (name := f"diffrac_cvx.{space}{target}") in domain.objects:  # type: ignore[attr-defined]
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return None


def skip(app: Sphinx, kind: str, name: str, found: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what other packages' classes bring along, and fields, which the docstring of the class describes."""
    if kind == "module":
        return None
    module = getattr(getattr(found, "fget", found), "__module__", None) or ""
    return None if module.startswith("diffrac_cvx") else True


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the tables that come from the package, and connect the above."""
    generated.write(HERE / "auto")
    app.connect("missing-reference", short_name)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": False}
