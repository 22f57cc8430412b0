"""The experiment on wide tables: its simulated and real tables, its cells, and rules that can fail."""

import numpy as np
import pandas as pd
import pytest
import rdata

import diffrac_cvx as dc
from diffrac_cvx.datasets.real import checksum
from diffrac_cvx.points.linear_algebra import standardize_columns
from experiments.harness.findings import Verdict
from experiments.problems import NOISES, WideTable, draw_noise, make_wide
from experiments.wide import cells as wide_cells
from experiments.wide import methods, sources
from experiments.wide.findings import COLUMNS, RULES, SUGGESTED, findings
from experiments.wide.methods import METHODS, RELAXATIONS, Found, Method

# Simulated tables


@pytest.mark.parametrize("noise", NOISES)
def test_a_made_table_is_standardized_has_the_groups_asked_for_and_noise_of_variance_one(noise):
    table = make_wide(60, 300, 7, noise, 0.3, 1.0, rng=np.random.default_rng(0))
    np.testing.assert_allclose(table.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.mean(table.X**2, axis=0), 1.0, atol=1e-12)
    assert table.y.sum() == 18
    assert 0 < len(table.informative) <= 7
    if noise != "words":
        assert np.mean(draw_noise(20_000, 60, noise, np.random.default_rng(2)) ** 2) == pytest.approx(1.0, abs=0.2)


def test_tables_of_another_shift_have_the_same_groups_informative_columns_and_noise():
    weak, strong = (wide_cells.table_of(3, **{**wide_cells.USUAL, "d": 200, "shift": s}) for s in (0.4, 4.0))
    np.testing.assert_array_equal(weak.y, strong.y)
    apart = np.abs(strong.X[strong.y == 1].mean(axis=0) - strong.X[strong.y == 0].mean(axis=0))
    assert sorted(np.argsort(-apart)[:20]) == list(strong.informative) == list(weak.informative)
    same = np.setdiff1d(np.arange(200), weak.informative)
    np.testing.assert_array_equal(weak.X[:, same], strong.X[:, same])
    other = wide_cells.table_of(4, **{**wide_cells.USUAL, "d": 200})
    assert np.any(other.y != weak.y)


# Rivals that estimate the common factors


def test_the_number_of_factors_is_counted_and_clusters_are_found_once_they_are_removed():
    rng = np.random.default_rng(0)
    scores, loadings = rng.standard_normal((40, 3)), rng.standard_normal((3, 100))
    assert methods.count_factors(standardize_columns(scores @ loadings + rng.standard_normal((40, 100))), rng) == 3
    table = make_wide(80, 400, 10, "factors", 0.5, 1.2, rng=np.random.default_rng(1))
    found = methods.without_factors(table.X, rng=np.random.default_rng(0))
    assert dc.metrics.adjusted_rand_score(table.y, found.labels) > 0.8
    assert set(found.features[:10]) <= set(table.informative)


def test_the_best_component_is_the_one_with_two_values():
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X = 3.0 * np.outer(rng.standard_normal(60), np.ones(5)) + 0.1 * rng.standard_normal((60, 5))
    X = np.hstack([X, np.outer(2.0 * y - 1.0, [1.0, 1.0]) + 0.1 * rng.standard_normal((60, 2))])
    labels = methods.best_component(X, rng=rng)
    assert dc.metrics.adjusted_rand_score(y, labels) == 1.0


def test_a_solve_is_limited_by_operations_and_not_by_the_clock(monkeypatch):
    X = make_wide(30, 60, 5, "factors", 0.5, 1.0, rng=np.random.default_rng(0)).X
    free = methods.relax(X, np.random.default_rng(0), lam=0.05)
    monkeypatch.setattr(methods, "OPERATIONS", 1e7)
    few = [methods.relax(X, np.random.default_rng(0), lam=0.05).gap for _ in range(2)]
    assert few[0] == few[1] > free.gap


# Real tables


def test_the_pairs_held_out_are_of_tables_that_were_not_looked_at_and_every_pair_is_of_one_half():
    assert len(sources.HELD_OUT) == len(sources.DESIGN) == sources.HELD_OUT_PAIRS
    assert set(sources.HELD_OUT) | set(sources.DESIGN) == set(sources.PAIRS)
    assert not any(name.startswith(sources.SEEN) for name in sources.HELD_OUT)


@pytest.fixture
def packed(monkeypatch):
    """Return a function that makes files those of a package, and known."""

    def pack(files):
        monkeypatch.setattr(sources, "read_packed", lambda _, inside: files[inside])
        for name, content in files.items():
            monkeypatch.setitem(sources.KNOWN, name, checksum(content))

    return pack


def test_both_parts_of_khans_table_are_one_and_a_file_that_is_not_the_known_one_is_refused(packed, monkeypatch):
    x = {"xtrain": b"a,b\n1,2\n3,4\n", "xtest": b"a,b\n5,6\n", "ytrain": b"x\n1\n4\n", "ytest": b"x\n2\n"}
    packed({f"ISLP/data/Khan_{part}.csv": text for part, text in x.items()})
    found = sources.read_khan.__wrapped__()
    np.testing.assert_array_equal(found[0], [[1, 2], [3, 4], [5, 6]])
    assert list(found[1]) == ["BL", "RMS", "EWS"]
    monkeypatch.setitem(sources.KNOWN, "ISLP/data/Khan_ytest.csv", "0")
    with pytest.raises(dc.errors.DataError, match=r"Khan_ytest.csv is not the known file: islp 0\.6\.0 is needed"):
        sources.read_khan.__wrapped__()


def test_words_of_two_texts_are_columns_and_those_of_one_are_not(packed, tmp_path):
    written = {}
    for topic, texts in (("acq", ["The bank buys a bank.", "A bank sells"]), ("crude", ["Oil it sells!"])):
        content = {str(i): {"content": np.array([text])} for i, text in enumerate(texts)}
        rdata.write_rda(tmp_path / "made.rda", {topic: {"content": content, "meta": {}}})
        written[f"{sources.R_LIBRARY}/tm/data/{topic}.rda"] = (tmp_path / "made.rda").read_bytes()
    packed(written)
    found = sources.read_reuters.__wrapped__()
    np.testing.assert_array_equal(found[0], [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # bank, sells
    assert list(found[1]) == ["acq", "acq", "crude"]


def test_a_pair_has_its_rows_alone_and_the_columns_of_largest_variance_among_them(monkeypatch):
    X = np.random.default_rng(5).standard_normal((30, 6)) * np.array([1, 5, 1, 4, 3, 0])
    X[20:] *= 100.0
    classes = np.repeat(["one", "two", "three"], 10)
    monkeypatch.setitem(sources.SOURCES, "made", sources.Source(lambda: (X, classes), ("one", "two")))
    monkeypatch.setattr(sources, "MOST_COLUMNS", 3)
    table = sources.read_pair("made", "one", "two")
    expected = X[:20, [1, 3, 4]]
    np.testing.assert_allclose(table.X, (expected - expected.mean(axis=0)) / expected.std(axis=0))
    assert list(table.y) == [0] * 10 + [1] * 10
    with pytest.raises(dc.errors.DataError, match="has \\[10, 0\\] rows of one and four; 8 of each are needed"):
        sources.read_pair("made", "one", "four")


@pytest.mark.slow
@pytest.mark.parametrize("name", sources.SOURCES)
def test_the_classes_of_a_downloaded_table_are_all_those_of_eight_rows(name):
    try:
        _, classes = sources.SOURCES[name].read()
    except dc.errors.DataError as error:
        pytest.skip(str(error))
    names, sizes = np.unique(classes, return_counts=True)
    assert tuple(names[sizes >= sources.LEAST_OF_A_CLASS]) == sources.SOURCES[name].classes


# Cells


def test_columns_are_judged_by_those_that_carry_the_groups_and_the_best_by_the_labels_is_that_of_all_settings():
    table = WideTable(np.zeros((4, 6)), np.array([0, 0, 1, 1]), np.array([1, 4]))
    judged = wide_cells.judge_columns(Found(table.y, np.array([4, 0, 1, 2])), table)
    assert judged == {"chosen": 4, "precision": 0.5, "recall": 1.0, "top": 0.5}
    assert wide_cells.judge_columns(Found(table.y), table) == {}
    unknown = table._replace(informative=np.array([]))
    assert wide_cells.judge_columns(Found(table.y, np.array([3])), unknown) == {"chosen": 1}
    assert wide_cells.judge_columns(Found(table.y, np.array([], dtype=int)), table)["precision"] == 0.0
    bad, good = Found(np.array([0, 1, 0, 1])), Found(np.array([1, 1, 0, 0]))
    row = wide_cells.judge_method(Method(lambda *_: bad, lambda *_: [bad, good]), table)
    assert row["index"] < 0.0
    assert row["best"] == 1.0
    assert wide_cells.judge_method(Method(lambda *_: good, lambda *_: [bad]), table)["best"] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_groups_that_are_far_apart(method, monkeypatch):
    monkeypatch.setattr(methods, "KEPT", (20,))
    monkeypatch.setattr(methods, "COMPONENTS", (5,))
    setting = {**wide_cells.USUAL, "n": 200, "d": 40, "k": 20, "noise": "independent", "shift": 4.0}
    row = wide_cells.measure("made", method, replication=0, **setting)
    if method == "without factors":  # groups that are so far apart are a factor
        assert row["best"] < 0.1
        return
    assert row["index"] == row["best"] == 1.0
    if method in RELAXATIONS:
        assert 0.0 <= row["gap"] <= wide_cells.GOAL
        assert row["recall"] >= 0.5


# Rules


@pytest.mark.parametrize(("ours", "theirs", "verdict"), [(0.9, 0.0, Verdict.AGREES), (0.1, 0.9, Verdict.DIFFERS)])
def test_findings_follow_from_what_the_relaxation_and_the_rivals_find(ours, theirs, verdict, few_draws):
    pairs = [{"kind": kind, "name": name} for kind, names in wide_cells.KINDS.items() for name in names[:3]]
    settings = [made for made in wide_cells.MADE if made["k"] == wide_cells.K]
    cells = wide_cells.made_cells(settings, 2) + [{**pair, "method": method} for pair in pairs for method in METHODS]
    table = pd.DataFrame(cells)
    table["index"] = np.where(table["method"].isin(list(RELAXATIONS)), ours, theirs)
    table["best"] = table["index"]
    selected = table["index"].where(table["method"].isin(list(RELAXATIONS)))  # no rival has columns
    table = table.assign(gap=0.0, chosen=20.0, precision=selected, recall=selected, top=selected)
    verdicts = {name: said for one in findings(table) for name, said in one.verdicts.items()}
    assert set(verdicts) == {rule.statement for rule in RULES}
    others = {SUGGESTED.statement, COLUMNS.statement} if verdict is Verdict.DIFFERS else set()
    assert {name for name, said in verdicts.items() if said is verdict} == set(verdicts) - others
