"""Invalid inputs with the error and the words of its message: one table for the library, one for the program.

Inputs that are invalid for every function are in test_bad_input, penalty weights in test_penalty.
"""

import io
import os
import sys
import time
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from packed import forged_npy, npy, npz, parquet

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_and_exit, run_command_line
from diffrac_cvx.app.page.data import planted_data, uploaded_data
from diffrac_cvx.app.page.ports import require_port
from diffrac_cvx.app.page.views import Setting
from diffrac_cvx.datasets import make_planted, read_table
from diffrac_cvx.rounding.directions import leading_direction

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

X = np.random.default_rng(0).integers(-4, 5, (8, 3)).astype(float)
Y = np.where(np.arange(8) < 5, 1.0, -1.0)
F = dc.low_rank(X).F
NAN = np.array([[np.nan, 1.0], [0.0, 1.0]])
RESULT = dc.low_rank(X, tol=1e-3)
DATA, PARAMETER, RESOURCE = dc.DataError, dc.ParameterError, dc.ResourceError
TEXT = "name,age,income\n" + "".join(f"p{i},{20 + 30 * (i % 2) + i / 7:.2f},{i * 37 % 11}\n" for i in range(12))


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def table(name, content, **how):
    content = content.encode() if isinstance(content, str) else content
    return lambda: read_table(content, name=name, **how)


def estimator(**parameters):
    return lambda: dc.DiffracClustering(**parameters).fit(X)


def many(**parameters):
    return lambda: dc.MultiLabelDiffrac(**parameters).fit(X)


FAULTS = {
    # builders
    "a class alone": (lambda: dc.multiclass(X, 1), PARAMETER, "k = 1 must be at least 2"),
    "half a class": (lambda: dc.multiclass(X, 2.5), PARAMETER, "k = 2.5 must be a positive integer"),
    "no direction": (lambda: dc.v_space_normalized(np.ones((5, 2))), PARAMETER, "constant.*nu < 1"),
    "a parameter that is none": (lambda: dc.v_space(X).at(mu=1.0), PARAMETER, "'mu'.*nu, penalty_scale"),
    "a parameter just out of range": (lambda: dc.low_rank(X, 1.0 + 2.0**-52), PARAMETER, "nu = 1.0000000000000002 is"),
    "a bound just out of range": (
        lambda: dc.baselines.sparse_kmeans(X, bound=1.0 - 2.0**-53, rng=0),
        PARAMETER,
        "bound = 0.9999999999999999 must",
    ),
    "a weight just out of range": (
        lambda: dc.Penalty(lam=np.nextafter(1e100, 2e100)),
        PARAMETER,
        r"1.0000000000000002e\+100 ",
    ),
    "a parameter out of range": (lambda: dc.v_space(X).at(nu=2.0), PARAMETER, "nu = 2 "),
    "a scale below 0": (lambda: dc.v_space(X).at(penalty_scale=-1.0), PARAMETER, "penalty_scale = -1"),
    "labels too many to pair": (lambda: dc.penalized_nu(np.ones((10**6, 1))), RESOURCE, "penalized_nu.*low_rank"),
    "directions too many to pair": (
        lambda: dc.v_space(np.broadcast_to(np.arange(2.0)[:, None], (2, 10**6))),
        RESOURCE,
        "v_space.*low_rank",
    ),
    # solvers
    "an unknown variant": (lambda: dc.fista(X, variant="faster"), PARAMETER, "variant = 'faster'.*published"),
    "no smoothing": (lambda: dc.fista(X, variant="published", epsilon=0.0), PARAMETER, "epsilon = 0 "),
    "smoothing for the wrong variant": (lambda: dc.fista(X, epsilon=0.1), PARAMETER, "variant='published'"),
    "no tolerance": (lambda: dc.low_rank(X, tol=0.0), PARAMETER, "tol = 0 must be greater"),
    "NumPy's NaN": (lambda: dc.low_rank(X, tol=np.float64(np.nan)), PARAMETER, "tol = nan must be a finite"),
    "a start that is not finite": (lambda: dc.fista(X, start=np.full((3, 3), np.nan)), DATA, "start is nan at row 0"),
    "a start from labels alone": (
        lambda: dc.certify_v(X, replace(RESULT, G=None)),
        DATA,
        "the result has no V",
    ),
    "an absent solver": (lambda: dc.solve(dc.v_space(X), "CPLEXX"), PARAMETER, "'CPLEXX'.*CLARABEL"),
    "a solver that is a number": (lambda: dc.solve(dc.v_space(X), 3), PARAMETER, "solver = 3"),
    "an option of another solver": (lambda: dc.solve(dc.v_space(X), "SCS", gap=1.0), PARAMETER, "SCS.*'gap'"),
    "data for a relaxation": (lambda: dc.solve(X), PARAMETER, r"ndarray.*v_space\(X\)"),
    "too little memory": (
        lambda: dc.solve(dc.v_space(X), "SCS", memory_limit=1e-6),
        RESOURCE,
        "needs about.*low_rank and fista",
    ),
    "features too many for fista": (
        lambda: dc.fista(np.random.default_rng(0).standard_normal((2, 300_000)), penalty=dc.Penalty(c=0.1)),
        RESOURCE,
        "fista with 300000 features.*low_rank",
    ),
    # certificates
    "V of one dimension": (lambda: dc.certify_v(X, np.ones(3)), DATA, r"shape \(3,\)"),
    "V with a NaN": (lambda: dc.certify_v(X, np.diag([1.0, np.nan, 0.0])), DATA, "V is nan at row 1, column 1"),
    "sparse V of another shape": (
        lambda: dc.certify_v(X, scipy.sparse.eye_array(4), 1.0, dc.Penalty(c=0.1)),
        DATA,
        r"\(4, 4\)",
    ),
    "a cluster of a huge number": (
        lambda: dc.certify_clusters(X, [0] * 7 + [10**15], 0.0),
        PARAMETER,
        "n_clusters = 1000000000000001 .*points, 8",
    ),
    "clusters more than points": (lambda: dc.certify_clusters(X, Y > 0, 0.0, 2**63), PARAMETER, "clusters.*points, 8"),
    "a factor of fewer points": (lambda: dc.certify_y(X, F[:5]), DATA, "5 rows for 8 points"),
    "a factor with a NaN": (lambda: dc.certify_y(X, F * np.nan), DATA, "Y_or_F is nan"),
    "a bound that is text": (lambda: dc.certify_labels(X, Y, "zero"), PARAMETER, "lower = 'zero'"),
    "a bound that is NaN": (lambda: dc.certify_labels(X, Y, np.nan), PARAMETER, "lower = nan"),
    # roundings
    "a factor of one dimension": (lambda: dc.rounding.sign_leading(Y), DATA, r"F has shape \(8,\)"),
    "an infinite factor": (lambda: dc.rounding.kmeans_centered(F * np.inf), DATA, "F is (nan|-?inf)"),
    "no hyperplane": (lambda: dc.rounding.goemans_williamson(F, 0, n_samples=0), PARAMETER, "n_samples = 0"),
    "half a seed": (lambda: dc.rounding.goemans_williamson(F, 0.5), PARAMETER, "rng = 0.5"),
    "labels more than points": (
        lambda: dc.rounding.procrustes(F, 10**15),
        PARAMETER,
        "k = 1000000000000000 .* 8 points",
    ),
    "no labels to find": (lambda: dc.rounding.procrustes(F, 0), PARAMETER, "k = 0"),
    "no restarts": (lambda: dc.rounding.procrustes(F, 1, n_init=0), PARAMETER, "n_init = 0"),
    "a table of values": (lambda: dc.rounding.kmeans_1d(X), DATA, r"values has shape \(8, 3\)"),
    "no rounds": (lambda: dc.rounding.refine(X, Y, max_iter=0), PARAMETER, "max_iter = 0"),
    # metrics
    "labels of other points": (lambda: dc.metrics.clustering_error(Y, Y[:5]), DATA, "y_pred has 5 labels for 8"),
    "text for labels": (lambda: dc.metrics.clustering_error(["a", "b"], [1, -1]), DATA, r"only -1 and \+1"),
    "no labels": (lambda: dc.metrics.imbalance([]), DATA, r"y has shape \(0,\)"),
    "a threshold above 1": (lambda: dc.metrics.numerical_rank(F, 2.0), PARAMETER, "rtol = 2"),
    "labels of another table": (lambda: dc.metrics.label_correlations(X, X[:3]), DATA, "Y_pred has 3 rows.*8"),
    "a direction of another table": (lambda: leading_direction(X, np.eye(7)), DATA, r"V has shape \(7, 7\)"),
    # estimators
    "an estimator's solver": (estimator(solver="magic"), PARAMETER, "solver = 'magic'.*low_rank"),
    "an estimator's rounding": (estimator(rounding="up"), PARAMETER, "rounding = 'up'"),
    "an estimator's flag": (estimator(prove="yes"), PARAMETER, "prove = 'yes' must be True or False"),
    "an estimator's scaling": (estimator(standardize=2), PARAMETER, "standardize = 2"),
    "an estimator's limit": (estimator(time_limit=0), PARAMETER, "time_limit = 0"),
    "an estimator's seed": (estimator(rounding="goemans_williamson", random_state="x"), ValueError, "'x'"),
    "half an estimator's label": (many(n_labels=1.5), PARAMETER, "n_labels = 1.5"),
    "no restarts of an estimator": (many(n_init=0), PARAMETER, "n_init = 0"),
    "one point for an estimator": (lambda: dc.DiffracClustering().fit(X[:1]), ValueError, "minimum of 2"),
    "an estimator's NaN": (lambda: dc.DiffracClustering().fit(NAN), ValueError, "NaN"),
    "an estimator not fitted": (lambda: dc.DiffracClustering().predict(X), ValueError, "not fitted"),
    "other features": (lambda: dc.DiffracClustering().fit(X).predict(X[:, :2]), ValueError, "2 features.*3 features"),
    # baselines, comparisons, paths
    "no run": (lambda: dc.baselines.alternating_optimization(X, rng=0, n_init=0), PARAMETER, "n_init = 0"),
    "a run without time": (lambda: dc.baselines.kmeans_whitened(X, rng=0, time_limit=0), PARAMETER, "time_limit = 0"),
    "an unknown method": (lambda: dc.compare(X, methods=["magic"]), PARAMETER, "unknown name 'magic'; choose from low"),
    "a method by letters": (lambda: dc.compare(X, methods="fista"), PARAMETER, "must be a non-empty list of names"),
    "other points' truth": (lambda: dc.compare(X, Y[:3]), DATA, "one true class per point"),
    "an empty grid": (lambda: dc.paths.nu_path(X, []), PARAMETER, r"nus has shape \(0,\)"),
    "a grid with a NaN": (lambda: dc.paths.lambda_path(X, [0.1, np.nan]), PARAMETER, "lams = nan"),
    "a grid out of range": (lambda: dc.paths.nu_path(X, [0.5, 1.5]), PARAMETER, "nus = 1.5"),
    # data sets
    "no points": (lambda: make_planted(1, 2), PARAMETER, "n = 1"),
    "points that fit in no memory": (
        lambda: make_planted(10**15, 2),
        RESOURCE,
        "1000000000000000 points and 2 columns",
    ),
    "columns that fit in no memory": (lambda: make_planted(9, 2**63), RESOURCE, "9 points and 9223372036854775808"),
    "more nonzeros than features": (lambda: make_planted(9, 2, 3), PARAMETER, "sparsity = 3"),
    "one cluster": (lambda: make_planted(9, 2, imbalance=1.0), PARAMETER, "imbalance = 1"),
    "a law unheard of": (lambda: make_planted(9, 2, law="cauchy"), PARAMETER, "law = 'cauchy'.*gaussian"),
    "a set unheard of": (lambda: dc.datasets.load("iris"), PARAMETER, "name = 'iris'.*heart"),
    "a scaling unheard of": (lambda: dc.datasets.load("heart", scaling="log"), PARAMETER, "scaling = 'log'"),
    "a shipped set is not fetched": (lambda: dc.datasets.fetch("heart"), PARAMETER, "shipped with the package"),
    # files
    "an empty file": (table("t.csv", b""), DATA, "t.csv cannot be read: it is empty"),
    "blanks": (table("t.csv", b" \n\n "), DATA, "t.csv cannot be read: it is empty"),
    "a header alone": (table("t.csv", "a,b\n"), DATA, "no row below the header"),
    "one row": (table("t.csv", "a,b\n1,2\n"), DATA, "one row is left"),
    "text in a column": (table("t.csv", TEXT), DATA, "column 'name' contains text: 'p0' in row 0"),
    "a value missing": (table("t.csv", TEXT.replace("20.00", ""), drop=["name"]), DATA, "column 'age' .1.*row 0"),
    "an infinite value": (
        table("t.csv", TEXT.replace("20.00", "inf"), drop=["name"]),
        DATA,
        "column 'age' contains text: 'inf'",
    ),
    "an enormous number": (
        table("t.csv", TEXT.replace("20.00", "9" * 400), drop=["name"]),
        DATA,
        "'age' contains text: '99",
    ),
    "a decimal comma": (table("t.csv", "a;b\n" + "1,5;2\n" * 3, decimal="."), DATA, "column 'a' contains text: '1,5'"),
    "rows that grow": (table("t.csv", "a,b\n1,2\n3,4,5,6\n7,8\n"), DATA, "line 3 has 4 values instead of 2"),
    "rows longer than the header": (table("t.csv", "a,b\n" + "1,2,3\n" * 3), DATA, "line 2 has 3 values instead of 2"),
    "an open quotation": (table("t.csv", 'a,b\n1,2\n"3,4\n'), DATA, "is not closed"),
    "UTF-16": (table("t.csv", TEXT.encode("utf-16")), DATA, "column 'name' contains text"),
    "a binary file": (table("t.csv", bytes(range(256))), DATA, "zero bytes"),
    "a column that is absent": (table("t.csv", TEXT, label="town"), DATA, "no column 'town'; the columns are name"),
    "nothing left": (table("t.csv", TEXT, drop=["name", "age", "income"]), DATA, "no column is left"),
    "a policy unheard of": (table("t.csv", TEXT, missing="guess"), PARAMETER, "missing = 'guess'"),
    "a spreadsheet": (table("t.xlsx", b"PK"), DATA, r"cannot be read"),
    "a file without an ending": (table("table", TEXT), DATA, "unsupported extension ''"),
    "not an archive": (table("t.npz", b"PK\x03\x04 and no more"), DATA, "cannot be read as a .npz file"),
    "half an archive": (table("t.npz", npz(X=X)[:150]), DATA, "cannot be read as a .npz file"),
    "an archive of other things": (table("t.npz", zipped(X=b"no array")), DATA, "two-dimensional array X"),
    "an archive without X": (table("t.npz", npz(Z=X)), DATA, "it contains Z"),
    "an array of one dimension": (table("t.npy", npy(Y)), DATA, "two-dimensional array X"),
    "an empty array file": (table("t.npy", b""), DATA, "cannot be read as a .npy file"),
    "a forged size": (table("t.npy", forged_npy((10**11, 3))), RESOURCE, "does not fit in memory"),
    "a forged sign": (table("t.npy", forged_npy((-5, 3))), DATA, "negative dimensions"),
    "half an array": (table("t.npy", npy(X)[:150]), DATA, "cannot be read as a .npy file"),
    "complex numbers": (table("t.npy", npy(X * 1j)), DATA, r"'x1' \('3j'"),
    "names of other features": (table("t.npz", npz(X=X, feature_names=["a"])), DATA, "cannot be read as a .npz file"),
    "labels of fewer points": (table("t.npz", npz(X=X, y=Y[:3])), DATA, r"y has shape \(3,\), but X has 8 rows"),
    "not Parquet": (table("t.parquet", b"PAR1"), DATA, "cannot be read as a .parquet file"),
    "dates": (
        table("t.parquet", parquet(day=pd.date_range("2017", periods=4))),
        DATA,
        "column 'day' contains text: '2017-01-01",
    ),
    "lists in a column": (table("t.parquet", parquet(a=[[1, 2]] * 3)), DATA, "column 'a' contains text"),
    # functions of the page
    "text on the page": (lambda: uploaded_data(TEXT.encode(), "t.csv", None), DATA, "column 'name' contains text"),
    "planted data of no size": (lambda: planted_data(0, 1, 1, 0.0, 0.0, 0), PARAMETER, "n = 0"),
    "a lambda below 0 on the page": (lambda: Setting(lam=-1.0).penalty, PARAMETER, "lam = -1"),
    "a port out of range": (lambda: require_port(70_000), PARAMETER, "port = 70000 is not a valid port"),
}


@pytest.mark.parametrize(("call", "error", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n\n\n" not in str(caught.value)


# The program: exit status 2, nothing on standard output, one line on standard error, and never a traceback

PROGRAM = {
    "an empty file": (["cluster", "empty.csv"], "is empty"),
    "one row": (["cluster", "one.csv"], "at least two"),
    "text": (["cluster", "good.csv"], "contains text"),
    "a folder": (["cluster", "folder.csv"], "is not a file"),
    "a broken link": (["cluster", "link.csv"], "is not a file"),
    "an absent file": (["cluster", "nowhere.csv"], "is not a file"),
    "an absent name": (["cluster", "nowhere"], "nor one of the data sets"),
    "nothing": (["cluster", ""], "is not a file"),
    "a name too long": (["cluster", "x" * 5000 + ".csv"], ""),
    "a damaged archive": (["cluster", "bad.npz"], "cannot be read as a .npz file"),
    "an empty archive": (["cluster", "empty.npz"], "cannot be read as a .npz file"),
    "a binary file": (["cluster", "binary.csv"], "zero bytes"),
    "values missing": (["cluster", "missing.csv"], "values are missing"),
    "nu": (["cluster", "heart", "--nu", "7"], "nu = 7 is outside"),
    "nu NaN": (["cluster", "heart", "--nu", "nan"], "nu = nan"),
    "nu in words": (["cluster", "heart", "--nu", "half"], "--nu"),
    "a ridge": (["cluster", "heart", "--ridge", "-1"], "ridge = -1"),
    "a lambda": (["cluster", "heart", "--lambda", "nan"], "lam = nan"),
    "a tolerance": (["cluster", "heart", "--tol", "0"], "tol = 0"),
    "a time limit": (["cluster", "heart", "--time-limit", "-3"], "time-limit = -3"),
    "a seed": (["cluster", "heart", "--seed", "-1"], "seed = -1"),
    "a solver": (["cluster", "heart", "--solver", "magic"], "solver = 'magic'"),
    "labels": (["cluster", "heart", "--n-labels", "2"], "unrecognized arguments"),
    "a label": (["cluster", "good.csv", "--reference-column", "town"], "no column 'town'"),
    "a label without a name": (["cluster", "good.csv", "--reference-column"], "expected one argument"),
    "an option": (["cluster", "heart", "--quickly"], "--quickly"),
    "no file": (["cluster"], "arguments are required: FILE"),
    "a command": (["dance"], "dance"),
    "a folder to write to": (["cluster", "heart", "--out", "."], "--out . is a folder"),
    "a folder for a report": (["cluster", "heart", "--report", "folder.csv"], "--report folder.csv is a folder"),
    "the table to write to": (["compare", "good.csv", "--out", "./good.csv"], "is an input"),
    "a full disk": (["cluster", "heart", "--out", "/dev/full"], "No space left"),
    "a folder that is absent": (["cluster", "heart", "--report", "no/r.html"], "r.html cannot be opened"),
    "a file for a folder": (["cluster", "heart", "--out", "one.csv/x.csv"], "Not a directory"),
    "a method": (["compare", "heart", "-m", "magic"], "unknown name 'magic'"),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Use a folder with files of all kinds as the current one, without progress."""
    monkeypatch.setattr("diffrac_cvx.app.cli.console.FIRST_LINE_SECONDS", 1e6)
    for name, content in {
        "empty.csv": b"", "one.csv": b"a,b\n1,2\n", "good.csv": TEXT.encode(), "bad.npz": b"PK\x03\x04 no",
        "empty.npz": b"", "binary.csv": bytes(range(256)), "missing.csv": b"a,b\n1,2\n3,\n5,7\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("arguments", "words"), PROGRAM.values(), ids=PROGRAM)
def test_the_program_says_in_one_line_what_is_wrong(arguments, words, files, capsys):
    if "/dev/full" in arguments and not os.path.exists("/dev/full"):
        pytest.skip("there is no device that is full")
    before = sorted(files.rglob("*"))
    status = run_command_line(arguments)
    error = capsys.readouterr().err
    assert status == 2
    assert error.startswith("error: ")
    assert all(line.startswith("try: ") for line in error.splitlines()[1:])
    assert words in error.splitlines()[0]
    assert "Traceback" not in error
    assert sorted(files.rglob("*")) == before


def test_a_table_that_cannot_be_read_by_this_user_is_one_line(files, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert run_command_line(["cluster", "good.csv"]) == 2
    error = capsys.readouterr().err
    assert "Permission denied" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [(MemoryError, "out of memory:"), (ZeroDivisionError, "internal error, please report it: ZeroDivisionError:")],
)
def test_an_error_that_should_not_happen_is_one_line(error, words, files, capsys, monkeypatch):
    def fail(*_, **__):
        raise error("this\nand that")

    monkeypatch.setattr("diffrac_cvx.app.cli.cluster.fit", fail)
    assert run_command_line(["cluster", "heart"]) == 2
    assert capsys.readouterr().err == f"error: {words} this and that\n"


GOOD_TABLES = {
    "a byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "semicolons": TEXT.replace(",", ";").encode(),
    "tabs": TEXT.replace(",", "\t").encode(),
    "Windows' line ends": TEXT.replace("\n", "\r\n").encode(),
    "old line ends": TEXT.replace("\n", "\r").encode(),
    "no last line end": TEXT.rstrip().encode(),
    "spaces after commas": TEXT.replace(",", ", ").encode(),
}


@pytest.mark.parametrize("content", GOOD_TABLES.values(), ids=GOOD_TABLES)
def test_a_table_is_read_however_it_was_saved(content):
    found, expected = (read_table(text, drop=["name"], name="t.csv") for text in (content, TEXT.encode()))
    np.testing.assert_array_equal(found.X, expected.X)
    assert found.names == expected.names


def test_two_columns_of_one_name_in_a_text_stay_apart():
    found = read_table(TEXT.replace("age,income", "age,age").encode(), drop=["name"], name="t.csv")
    assert found.names == ("age", "age (2)")


def test_names_that_a_terminal_cannot_show_end_no_command(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(TEXT.replace("age", "âge \N{SNOWMAN}"), encoding="utf-8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", terminal := io.TextIOWrapper(shown, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["diffrac-cvx", "cluster", str(tmp_path / "t.csv"), "--drop", "name"])
    with pytest.raises(SystemExit) as end:
        run_and_exit()
    terminal.flush()
    assert end.value.code == 0
    assert rb"\u2603" in shown.getvalue()


# Limits hold


BUSY = 2.0  # seconds that a busy machine may add


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n", "d"), [(60, 2000), (3000, 300), (20, 100_000)])
def test_a_limit_on_a_comparison_is_one_on_each_method(n, d):
    data = np.random.default_rng(0).standard_normal((n, d))
    found = dc.compare(data, penalty=dc.Penalty.l1(0.01), tol=1e-12, solver_time_limit=1.0)
    assert max(row["seconds"] for row in found.rows) < 2.0 + BUSY


def test_the_time_for_compiling_counts_and_ends_a_process_of_its_own():
    relaxation = dc.v_space(np.random.default_rng(0).standard_normal((60, 200)), penalty=dc.Penalty.l1(0.01))
    started = time.perf_counter()
    result = dc.solve(relaxation, "SCS", tol=1e-9, time_limit=0.5)
    assert time.perf_counter() - started < 0.5 + 1.0 + BUSY  # compiling takes more than two seconds
    assert result.status is dc.Status.USER_LIMIT
    assert (result.lower, result.upper) == (0.0, 1.0)


def test_a_problem_solved_in_a_process_of_its_own_gives_what_it_gives_here(monkeypatch):
    relaxation = dc.lifted(np.random.default_rng(0).standard_normal((20, 4)), 0.5, dc.Penalty(0.1, 0.2))
    here = dc.solve(relaxation, "SCS", time_limit=60.0)
    monkeypatch.setattr("diffrac_cvx.solvers.reference.QUICK_ROWS", 0)
    there = dc.solve(relaxation, "SCS", time_limit=60.0)
    assert (there.lower, there.upper, there.n_iter) == (here.lower, here.upper, here.n_iter)
    assert there.status is here.status
    np.testing.assert_array_equal(there.V, here.V)
