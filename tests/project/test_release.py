"""Installation from a package index."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

import diffrac_cvx as dc
from experiments.harness.command import find_experiments

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
RECIPE = (ROOT / ".github/recipe/meta.yaml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOW = (ROOT / ".github/workflows/tests.yml").read_text()


def test_no_link_of_the_readme_on_an_index_leads_to_a_file_that_is_not_there():
    text = (ROOT / "README.md").read_text()
    for rule in README["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    assert "docs/reproduction.md" in text
    assert "![" not in text


def test_the_program_says_in_one_line_what_is_missing():
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.argv[1:] = ['cluster', 'heart', '-q']; "
        "from diffrac_cvx.app.entry import entry; entry()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 2
    assert run.stderr == "error: the package sklearn is not installed. Run: pip install 'diffrac-cvx[app]'\n"


def test_the_library_needs_nothing_of_the_extras():
    missing = "sklearn", "pandas", "pyarrow", "tqdm", "marimo"
    code = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import diffrac_cvx as dc; " + (
        "X = dc.datasets.make_planted(30, 3, rng=0).X; dc.low_rank(X, lam=0.01); dc.solve(dc.v_space(X)); dc.fista(X)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_each_python_that_is_promised_and_the_floors_are_tested_and_every_dependency_has_a_floor_and_a_pin():
    for version in ("3.11", "3.12", "3.13"):
        assert f'"{version}"' in WORKFLOW
        assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]
    promised = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if "3." in name]
    matrix = yaml.safe_load(WORKFLOW)["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python-version"] == promised, "another one may fail"
    assert all(other["may-fail"] and other["python-version"] not in promised for other in matrix["include"])
    assert "--resolution lowest-direct" in WORKFLOW
    extras = PROJECT["project"]["optional-dependencies"]
    for needed in sum(extras.values(), PROJECT["project"]["dependencies"]):
        assert needed.startswith("diffrac-cvx[") or re.fullmatch(r"[a-z0-9-]+(\[[a-z,]+\])?>=[0-9.]+", needed), needed
    pins = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    assert all(re.fullmatch(r"[a-z0-9.-]+==[a-z0-9.+!]+", pin) for pin in pins.splitlines()), "no address, no range"
    for needed in [*PROJECT["project"]["dependencies"], *extras["experiments"], *extras["dev"]]:
        name = re.match(r"[a-z0-9-]+", needed)[0]
        assert name == "diffrac-cvx" or re.search(rf"^{name}==", pins, flags=re.MULTILINE), needed


def test_the_hooks_of_a_commit_run_the_pinned_tools_of_make_check():
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [one["repo"] for one in repositories] == ["local"], "versions are in constraints.txt alone"
    entries = [hook["entry"].replace(" --force-exclude", "") for one in repositories for hook in one["hooks"]]
    recipe = re.search(r"\ncheck:.*\n((?:\t.*\n)+)", MAKEFILE)[1]
    assert entries == [f".venv/bin/python -m {command}" for command in re.findall(r"\$\(RUN\) (.*)", recipe)]


def test_only_a_wheel_that_was_tested_is_published_by_a_job_that_builds_nothing():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    publish = jobs["publish"]
    assert (jobs["test"]["needs"], publish["needs"], publish["environment"]) == ("build", "test", "pypi")
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert not any("run" in step for step in publish["steps"])
    assert jobs["test"]["strategy"]["matrix"]["python-version"] == re.findall(r"Python :: (3\.\d+)", str(PROJECT))


def test_every_target_of_make_that_contributors_and_workflows_are_told_to_run_exists():
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.MULTILINE))
    targets |= {name.replace("_", "-") for name in find_experiments()}
    files = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / ".github").rglob("*.[my]*")]
    text = "\n".join(path.read_text() for path in files)
    named = " ".join(re.findall(r"(?:`|run: |^    )make ((?:[a-z][a-z-]*\b *)+)", text, flags=re.MULTILINE)).split()
    assert {"check", "test-all", "wheel", "sdist", "mutation", "benchmark"} <= set(named)
    started = yaml.safe_load((ROOT / ".github/workflows/benchmark.yml").read_text())[True]  # YAML 1.1 reads on as true
    assert {*named, *started["workflow_dispatch"]["inputs"]["target"]["options"]} - targets == set()


def test_version_date_title_and_keywords_are_the_same_wherever_they_stand():
    project, citation = PROJECT["project"], yaml.safe_load((ROOT / "CITATION.cff").read_text())
    archive = json.loads((ROOT / ".zenodo.json").read_text())
    version, released = re.search(r"\n## \[(.*)\] - (.*)\n", (ROOT / "CHANGELOG.md").read_text()).groups()
    assert {dc.__version__, project["version"], citation["version"], archive["version"]} == {version}
    assert f'\n  version: "{version}"\n' in RECIPE
    assert archive["publication_date"] == str(citation["date-released"]) == released
    assert archive["title"] == citation["title"]
    assert archive["description"] == citation["abstract"]
    assert archive["keywords"] == citation["keywords"] == project["keywords"]
    assert archive["license"] == citation["license"].lower() == project["license"].lower()
    addresses = {citation["references"][0]["url"], archive["related_identifiers"][0]["identifier"]}
    assert addresses == {*project["urls"].values()}


def test_the_recipe_for_conda_needs_what_the_library_and_the_program_need():
    run = re.search(r"\n  run:\n((?:    - .*\n)+)", RECIPE)[1]
    needed = {line.strip("- ").replace(" ", "") for line in run.splitlines()} - {"python>=3.11"}
    extras = PROJECT["project"]["optional-dependencies"]
    given = [*PROJECT["project"]["dependencies"], *extras["app"]]
    assert needed == {name.replace("matplotlib", "matplotlib-base") for name in given}


def named_in(path):
    """Return the top-level packages that a file imports anywhere, also by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "find_spec")):
            yield from (part.value.partition(".")[0] for part in node.args if isinstance(part, ast.Constant))


def test_every_package_that_a_table_needs_is_declared():
    """An optional import would silently drop a method from the table."""
    extras = PROJECT["project"]["optional-dependencies"]
    declared = {re.match(r"[\w-]+", name)[0] for name in sum(extras.values(), PROJECT["project"]["dependencies"])}
    modules = {name.replace("-", "_") for name in declared} | {"sklearn", "diffrac_cvx", "experiments"}
    brought = {"distributed"}  # by dask[distributed]
    typing = {"typing_extensions"}  # read by a type checker alone
    files = [path for folder in ("experiments", "diffrac_cvx") for path in (ROOT / folder).rglob("*.py")]
    used = {name for path in files for name in named_in(path)}
    assert {"gemclus", "pymanopt", "rdata", "distributed"} <= used
    assert used - modules - brought - typing - set(sys.stdlib_module_names) == set()
