"""The shape of the package: who imports whom, and what is public."""

import ast
import importlib
import inspect
import io
import re
import subprocess
import sys
import tokenize
from graphlib import TopologicalSorter
from pathlib import Path
from types import FunctionType

import pytest

import diffrac_cvx as dc

ROOT = Path(dc.__file__).parent
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(ROOT.rglob("*.py"))}
MODULES = {name: path for name, path in MODULES.items() if path.name != "__init__.py"}
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
    ["baselines.*"],
    ["registry"],
    ["comparison.*", "paths", "estimators.*", "typing"],
    ["plotting.*"],
    ["app.*"],
]
NUMPY_ONLY = [f"solvers.smoothed_dual.{name}" for name in ("solver", "accelerated", "published", "dual")]
PROOFS = [
    f"certificates.{name}"
    for name in (
        "proof",
        "block_proof",
        "core_proof",
        "label_proof",
        "screening",
        "values",
        "separation",
        "groups_outside",
    )
] + [f"problem.penalties.{name}" for name in ("absolute", "groups", "signs", "between")]
FAST = [name for name in MODULES if name.startswith("solvers.") and name != "solvers.reference"]
MAY_IMPORT = {
    "cvxpy": {name for name in MODULES if name.startswith("relaxations.")} | {"solvers.reference"},
    "dask": {"points.chunks"},
    "distributed": {"points.chunks"},
    "marimo": {"app.page.cards", "app.page.controls", "app.page.notebook"},
    "joblib": {"estimators.clustering_cv"},
    "matplotlib": {"plotting.canvas"},
    "openpyxl": {"datasets.tables"},
    "pandas": {f"datasets.{name}" for name in ("alike", "columns", "orientation", "tables", "text_tables")},
    "pooch": {"datasets.files"},
    "jinja2": {"app.report"},
    "rich": {"comparison.table", "app.cli.compare", "app.cli.console"},
    "sklearn": {"baselines.standardised", "app.cli.cluster"}
    | {f"estimators.{name}" for name in ("affine", "classifier", "clustering", "clustering_cv", "multi_label")},
}

each_module = pytest.mark.parametrize("name", MODULES)


def layer(name):
    package = name.split(".")[0] + ".*"
    return next((i for i, names in enumerate(LAYERS) if name in names or package in names), None)


def imported(name):
    """All dotted names that a module imports, wherever in it; from a import b counts as a.b."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def siblings(name):
    """The modules of this package that a module imports; a subpackage's __init__ stands for all that it holds."""
    for full in imported(name):
        parts = full.split(".")
        if parts[0] != "diffrac_cvx":
            continue
        candidates = {".".join(parts[1:k]) for k in (2, 3, 4, 5)} & set(MODULES)
        yield max(candidates, key=len) if candidates else ".".join(parts[1:2]) or "__init__"


def public_functions():
    """The functions users reach: those in dc and in its public modules, by dotted name."""
    for place in ("", "baselines", "datasets", "metrics", "paths", "rounding"):
        space = getattr(dc, place) if place else dc
        for name in dir(space):
            found = getattr(space, name)
            if isinstance(found, FunctionType) and name[0] != "_" and found.__module__.startswith(space.__name__):
                yield f"{place}.{name}".lstrip("."), found


PUBLIC = dict(public_functions())


# Imports


@each_module
def test_a_module_imports_from_its_own_layer_or_those_before_it(name):
    assert layer(name) is not None, f"{name} has no place in LAYERS"
    for other in siblings(name):
        assert layer(other) is not None, f"{name} imports {other}, which has no place in LAYERS"
        assert layer(other) <= layer(name), f"{name} imports {other}"


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: {other for other in siblings(name) if other in MODULES} for name in MODULES}
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(MODULES)


FORMS = ("DensePoints", "StreamedRows", "SparseColumns", "Chunks")


@each_module
def test_how_points_are_stored_is_known_in_their_folder_alone(name):
    if not name.startswith("points."):
        named = {node.id for node in ast.walk(TREES[name]) if isinstance(node, ast.Name)}
        imported_names = {full.rpartition(".")[2] for full in imported(name)}
        assert (named | imported_names).isdisjoint(FORMS)


@pytest.mark.parametrize("library", MAY_IMPORT)
def test_an_outside_library_is_imported_only_where_it_belongs(library):
    users = {name for name in MODULES if library in {full.split(".")[0] for full in imported(name)}}
    assert users <= MAY_IMPORT[library]


@pytest.mark.parametrize("name", FAST)
def test_a_fast_solver_does_not_build_on_the_relaxations(name):
    reached, waiting = set(), {name}
    while waiting:
        module = waiting.pop()
        reached.add(module)
        waiting |= set(siblings(module)) - reached if module in MODULES else set()
    assert not any(module.startswith("relaxations") for module in reached)
    outside = {full.split(".")[0] for module in reached & set(MODULES) for full in imported(module)}
    assert "cvxpy" not in outside


@pytest.mark.parametrize("name", PROOFS)
def test_what_a_bracket_rests_on_imports_nothing_that_searches(name):
    inside = {full.removeprefix("diffrac_cvx.") for full in imported(name) if "certificates." in full}
    modules = {".".join(full.split(".")[:2]) for full in inside}
    assert modules <= {*PROOFS, "certificates.block_problem"}


NOT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def lines_of_code(name):
    """How many lines of a module hold code that is neither an import nor a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(MODULES[name].read_text()).readline)
    lines = {line for token in tokens if token.type not in NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(TREES[name]):
        is_text = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def test_what_can_make_a_bracket_false_is_at_most_eleven_hundred_lines():
    names = [*PROOFS, "points.proved_sums", "points.floating_point"]
    assert sum(lines_of_code(name) for name in names) <= 1100


@pytest.mark.parametrize("name", NUMPY_ONLY)
def test_fista_needs_numpy_alone(name):
    outside = {full.split(".")[0] for full in imported(name)} - {"diffrac_cvx", *sys.stdlib_module_names}
    assert outside == {"numpy"}


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


def test_importing_the_package_and_solving_a_small_table_leave_large_libraries_alone():
    code = "import sys, diffrac_cvx as dc; print(*sys.modules); " + (
        "dc.low_rank(dc.datasets.make_planted(30, 3, rng=0).X, lam=0.01); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    imported, solved = (set(line.split()) for line in run.stdout.splitlines())
    assert {"numpy", "scipy"}.isdisjoint(imported)
    assert {"clarabel", "cvxpy", "marimo", "matplotlib", "pandas", "scs", "sklearn"}.isdisjoint(solved)
    assert "diffrac_cvx" in imported


# What users reach


@pytest.mark.parametrize(
    "names",
    {
        "": "Bracket Penalty Relaxation Result Status baselines certify_labels certify_v certify_y constrained_alpha "
        "correlation datasets fista lifted low_rank metrics penalized_nu rounding solve v_space v_space_normalized",
        "Penalty": "l1",
        "Relaxation": "name equation problem",
        "Result": "value lower upper gap F V status n_iter seconds",
        "baselines": "alternating_optimisation alternating_runs cure first_component ifpca kmeans_by_column "
        "kmeans_whitened lattice sparse_component sparse_kmeans spectral spectral_kurtosis two_valued_component",
        "datasets": "load make_planted names",
        "metrics": "clustering_error squared_correlation",
        "paths": "alpha_path duality lambda_path leading_direction nu_path",
        "plotting": "BracketDisplay DirectionDisplay DualityDisplay PathDisplay PhaseMapDisplay ProjectionDisplay "
        "SpectrumDisplay",
        "rounding": "goemans_williamson kmeans_centered refine sign_centered sign_leading sign_second",
    }.items(),
    ids=lambda names: names[0] or "diffrac_cvx",
)
def test_the_names_of_the_contract_exist(names):
    place, wanted = names
    space = getattr(dc, place) if place else dc
    missing = set(wanted.split()) - set(dir(space)) - set(getattr(space, "__dataclass_fields__", ()))
    assert not missing


def test_everything_announced_is_there():
    assert sorted(dc.__all__) == dc.__all__
    assert all(hasattr(dc, name) for name in dc.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_documents_its_parameters_and_errors(name):
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert text.partition("\n")[0].endswith("."), "the first line is a sentence"
    elsewhere = re.search("Parameters.* and errors are those of", text)
    if len(text.splitlines()) > 1 and inspect.signature(PUBLIC[name]).parameters and not elsewhere:
        assert "\nParameters\n----------\n" in text
        assert "\nRaises\n------\n" in text or "\nSource: " in text


ELSEWHERE = {"load_score", "save_score", "solve"}


@pytest.mark.parametrize("name", [name for name in PUBLIC if "." not in name and name not in ELSEWHERE])
def test_a_relaxation_a_solver_and_a_certificate_say_where_they_come_from(name):
    assert "Source: " in inspect.getdoc(PUBLIC[name])
