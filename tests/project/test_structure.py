"""Structure of the package: imports between modules, and public names."""

import ast
import importlib
import inspect
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import FunctionType

import pytest

import diffrac_cvx as dc

ROOT = Path(dc.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.name != "__init__.py"]
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in FILES}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}

# A module imports from its own layer and from those before it.
LAYERS = [
    ["errors"],
    ["machine.*"],
    ["points.*", "metrics"],
    ["problem.*"],
    ["rounding.*", "datasets.*"],
    ["certificates.*"],
    ["relaxations.*", "solvers.*"],
    ["baselines"],
    ["registry"],
    ["comparison.*", "paths", "estimators.*", "typing"],
    ["plotting.*"],
    ["app.*"],
]
PROOFS = {
    *(name for name in MODULES if name.startswith("problem.penalties.") and name != "problem.penalties.lassos"),
    *(f"certificates.{name}" for name in ("proof", "label_bounds", "screening", "values")),
}
FAST = [name for name in MODULES if name.startswith("solvers.") and name != "solvers.reference"]
MAY_IMPORT = {
    "cvxpy": {name for name in MODULES if name.startswith("relaxations.")} | {"solvers.reference"},
    "dask": {"points.chunks"},
    "distributed": set(),
    "marimo": {"app.page.notebook"},
    "matplotlib": {"plotting.canvas", "app.render"},
    "openpyxl": {"datasets.file_columns"},
    "pandas": {"comparison.comparing", "comparison.validation"},
    "rich": {"app.cli.console"},
    "requests": {"datasets.real"},
    "jinja2": {"app.render"},
    "sklearn": {"baselines", "datasets.real", "app.cli.cluster"}
    | {f"estimators.{name}" for name in ("affine", "classifier", "clustering", "clustering_cv", "multi_label")},
}


def layer(name):
    package = name.split(".")[0] + ".*"
    return next((i for i, names in enumerate(LAYERS) if name in names or package in names), None)


def names_imported(tree):
    """Return all dotted names that a module imports anywhere; from a import b counts as a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{ast.unparse(node)} is relative"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imported(name):
    """Return all dotted names that a module of the package imports."""
    return list(names_imported(TREES[name]))


@cache
def siblings(name):
    """Return the modules of this package that a module imports; a subpackage's __init__ means all its modules."""
    found = set()
    for first, *parts in (full.split(".") for full in imported(name)):
        if first == "diffrac_cvx":
            candidates = {".".join(parts[:k]) for k in (1, 2, 3, 4)} & set(MODULES)
            found.add(max(candidates, key=len) if candidates else parts[0] or "__init__")
    return found


def libraries(name):
    """Return the top-level packages that a module imports, including this one."""
    return {full.partition(".")[0] for full in imported(name)}


def public_functions():
    """Return the public functions of dc and its public modules, by dotted name."""
    for place in ("", "baselines", "datasets", "metrics", "paths", "rounding"):
        space = getattr(dc, place) if place else dc
        for name in dir(space):
            found = getattr(space, name)
            if isinstance(found, FunctionType) and name[0] != "_" and found.__module__.startswith(space.__name__):
                yield f"{place}.{name}".lstrip("."), found


PUBLIC = dict(public_functions())


# Imports


def test_a_module_imports_from_its_own_layer_or_those_before_it():
    for name in MODULES:
        assert layer(name) is not None, f"{name} has no place in LAYERS"
        for other in siblings(name):
            assert layer(other) is not None, f"{name} imports {other}, which has no place in LAYERS"
            assert layer(other) <= layer(name), f"{name} imports {other}"


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: siblings(name) & set(MODULES) for name in MODULES}
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(MODULES)
    paths = {path.relative_to(ROOT.parent): path for path in ROOT.parent.glob("experiments/**/*.py")}
    modules = {".".join(path.with_suffix("").parts): ast.parse(whole.read_text()) for path, whole in paths.items()}
    graph = {
        name: {place for full in names_imported(tree) for place in (full, full.rpartition(".")[0]) if place in modules}
        for name, tree in modules.items()
    }
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(modules) > 100


def test_how_points_are_stored_is_known_in_their_folder_alone():
    forms = {"DenseRows", "StreamedRows", "SparseColumns", "Chunks"}
    for name in MODULES:
        if not name.startswith("points."):
            named = {node.id for node in ast.walk(TREES[name]) if isinstance(node, ast.Name)}
            assert forms.isdisjoint(named | {full.rpartition(".")[2] for full in imported(name)}), name


def test_an_outside_library_is_imported_only_where_it_belongs():
    for library, places in MAY_IMPORT.items():
        assert {name for name in MODULES if library in libraries(name)} <= places, library


def test_fast_solvers_do_not_build_on_the_relaxations():
    reached, waiting = set(), set(FAST)
    while waiting:
        module = waiting.pop()
        reached.add(module)
        waiting |= siblings(module) - reached if module in MODULES else set()
    assert not any(module.startswith("relaxations") for module in reached)
    assert not any("cvxpy" in libraries(module) for module in reached & set(MODULES))


def test_what_a_bracket_rests_on_imports_nothing_that_searches():
    for name in PROOFS:
        inside = {other for other in siblings(name) if other.startswith("certificates")}
        assert inside <= {*PROOFS, "certificates.block_problem"}, name


def test_what_can_make_a_bracket_false_is_at_most_two_thousand_lines():
    assert sum(len(MODULES[name].read_text().splitlines()) for name in [*PROOFS, "points.floating_point"]) <= 2000


@pytest.mark.parametrize("place", ["diffrac_cvx", "experiments"])
def test_importing_a_module_by_its_dotted_name_gives_the_module(place):
    hidden = []
    for path in sorted((ROOT.parent / place).rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        if path.stem in ("__init__", "__main__"):
            continue
        package, _, leaf = ".".join(parts).rpartition(".")
        importlib.import_module(f"{package}.{leaf}")
        if not inspect.ismodule(getattr(importlib.import_module(package), leaf)):
            hidden.append(f"{package} exports {leaf}, which hides its module of that name")
    assert not hidden


# What users reach


@pytest.mark.parametrize(
    "names",
    {
        "": "Bracket Penalty Relaxation Result Status baselines certify_labels certify_v certify_y constrained_alpha "
        "correlation datasets fista lifted low_rank metrics penalized_nu rounding solve v_space v_space_normalized",
        "Penalty": "l1",
        "Relaxation": "name equation problem",
        "Result": "value lower upper gap F V status n_iter seconds",
        "datasets": "load make_planted names",
        "metrics": "clustering_error squared_correlation",
        "paths": "lambda_path leading_direction nu_path",
        "rounding": "goemans_williamson kmeans_centered refine sign_centered sign_leading sign_second",
    }.items(),
    ids=lambda names: names[0] or "diffrac_cvx",
)
def test_the_names_of_the_contract_exist(names):
    place, wanted = names
    space = getattr(dc, place) if place else dc
    missing = set(wanted.split()) - set(dir(space)) - set(getattr(space, "__dataclass_fields__", ()))
    assert not missing


def test_a_public_function_documents_its_parameters_its_errors_and_its_source():
    for name, function in PUBLIC.items():
        text = inspect.getdoc(function) or ""
        assert text.partition("\n")[0].endswith("."), f"the first line of {name} is a sentence"
        elsewhere = re.search("Parameters.* and errors are those of", text)
        formats = name in {"format_lower", "format_upper"}  # which raise nothing and compute nothing
        if len(text.splitlines()) > 1 and inspect.signature(function).parameters and not elsewhere:
            assert "\nParameters\n----------\n" in text, name
            assert "\nRaises\n------\n" in text or "\nSource: " in text or formats, name
        assert "Source: " in text or "." in name or formats or name in {"load_model", "save_model", "solve"}, name
