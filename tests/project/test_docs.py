"""Documentation: every public name is in the reference, and a page on a relaxation has all its parts."""

import re
from inspect import getdoc
from pathlib import Path

import diffrac_cvx as dc

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for folder in ("tutorial", "relaxations", "guides") for path in (DOCS / folder).glob("*.py"))
API = (DOCS / "api.rst").read_text()
MODULES = {"baselines", "datasets", "metrics", "paths", "plotting", "registry", "rounding"}


def listed(module):
    block = re.search(rf"currentmodule:: diffrac_cvx\.{module}\n(.*?)(?=currentmodule::|\Z)", API, flags=re.DOTALL)
    return set(re.findall(r"^   (\w+)$", block[1], flags=re.MULTILINE)) if block else set()


def test_every_public_name_is_in_the_reference():
    names = set(re.findall(r"^   ([\w.]+)$", API, flags=re.MULTILINE))
    assert set(dc.__all__) - MODULES - set(dc.registry.RELAXATIONS) <= names  # which docs/generated.py lists
    assert {"DiffracClustering", "MultiLabelDiffrac"} <= names
    for space in (dc.rounding, dc.metrics, dc.paths, dc.plotting):
        own = {
            name
            for name, found in vars(space).items()
            if getattr(found, "__module__", "").startswith(space.__name__) and "\nParameters\n" in (getdoc(found) or "")
        }
        assert own
        assert own <= listed(space.__name__.rpartition(".")[2])


def test_the_page_on_a_relaxation_has_its_equation_and_its_use():
    text = {path.stem: " ".join(path.read_text().split()) for path in (DOCS / "relaxations").glob("*.py")}
    assert set(text) <= set(dc.registry.RELAXATIONS)
    for name, page in text.items():
        assert "**Use it**" in page, name
        assert re.search(r"[Ee]quations? \(|[Ss]ection \d", page), name


def test_files_that_the_pages_name_are_there():
    root = DOCS.parent
    for page in [*PAGES, *DOCS.glob("*.rst")]:
        for name in re.findall(r"``((?:diffrac_cvx|experiments)/[\w/]+(?:\.py)?)/?``", page.read_text()):
            assert (root / name).exists(), f"{page.name}: {name}"


def test_the_picture_of_the_architecture_names_every_folder_and_the_page_every_place():
    package = Path(dc.__file__).parent
    picture, page = ((DOCS / f"architecture.{kind}").read_text() for kind in ("svg", "rst"))
    for folder in [path.parent for path in package.glob("*/__init__.py")]:
        assert f"{folder.name}/" in picture, folder
    assert "tests/project/test_structure.py" in page
