"""What a user gets who installs from a package index."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
WORKFLOW = (ROOT / ".github/workflows/tests.yml").read_text()


def readme_on_an_index() -> str:
    """Return the README with the substitutions of the build."""
    text = (ROOT / "README.md").read_text()
    for rule in README["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_no_link_of_the_readme_on_an_index_leads_to_a_file_that_is_not_there():
    text = readme_on_an_index()
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    assert "docs/reproduction.md" in text
    assert "![" not in text


def test_the_program_says_in_one_line_what_is_missing():
    code = "import sys; sys.modules['typer'] = None; from diffrac_cvx.app.entry import entry; entry()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 2
    assert run.stderr == "error: the program needs typer, which is missing: pip install 'diffrac-cvx[app]'\n"


def test_the_library_needs_nothing_of_the_extras():
    missing = "typer", "sklearn", "pandas", "pyarrow", "tqdm", "marimo", "rich"
    code = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import diffrac_cvx as dc; " + (
        "X = dc.datasets.make_planted(30, 3, rng=0).X; dc.low_rank(X, lam=0.01); dc.solve(dc.v_space(X)); dc.fista(X)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_each_python_that_is_promised_is_tested(version):
    assert f'"{version}"' in WORKFLOW
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_the_floors_are_tested_and_every_dependency_has_one():
    assert "--resolution lowest-direct" in WORKFLOW
    extras = PROJECT["project"]["optional-dependencies"].values()
    for needed in [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]:
        assert needed.startswith("diffrac-cvx[") or re.fullmatch(r"[a-z0-9-]+(\[[a-z,]+\])?>=[0-9.]+", needed), needed


def test_the_changelog_has_the_version():
    assert f"## [{PROJECT['project']['version']}]" in (ROOT / "CHANGELOG.md").read_text()
