"""Structure test: null models preserve what they should, p-values are valid without groups, groups are detected."""

import json

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.comparison.structure import MAX_ENTRIES, NULL_MODELS, find_not_rejected, select_informative
from diffrac_cvx.problem.feature_groups import FeatureGroups
from diffrac_cvx.rounding.diagnostics import unstable, weak_bound


def noise(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def hidden(n, d, strength, seed=0):
    """Points in two groups along a direction that is not visible in any column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] = strength * rng.choice([-1.0, 1.0], n) + (1.0 - strength**2) ** 0.5 * X[:, 0]
    return X @ np.linalg.qr(rng.standard_normal((d, d)))[0]


# The nulls


@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
def test_permuted_columns_keep_their_values_and_rotated_points_their_covariance(shape):
    X = noise(*shape) @ np.diag(np.linspace(0.1, 3.0, shape[1]))
    X -= X.mean(axis=0)
    rng = np.random.default_rng(1)
    shuffled = NULL_MODELS["columns"].make_sampler(X, FeatureGroups.singles(X.shape[1]))(rng)
    np.testing.assert_array_equal(np.sort(shuffled, axis=0), np.sort(X, axis=0))
    assert not np.array_equal(shuffled, X)
    rotated = NULL_MODELS["covariance"].make_sampler(X, FeatureGroups.singles(X.shape[1]))(rng)
    np.testing.assert_allclose(rotated.T @ rotated, X.T @ X, atol=1e-10)
    np.testing.assert_allclose(rotated.mean(axis=0), 0.0, atol=1e-12)
    assert np.abs(rotated - X).max() > 0.1


@pytest.mark.parametrize("null", NULL_MODELS)
def test_without_groups_p_values_are_spread_evenly(null):
    """On average 4 of 40 noise tables have p at most 0.1; 11 or more have probability 0.001."""
    p = [dc.structure_test(noise(12, 2, seed), null=null, n_resamples=9, rng=seed).pvalue for seed in range(40)]
    assert sum(value <= 0.1 for value in p) <= 10
    assert 0.4 <= np.mean(p) <= 0.7


@pytest.mark.parametrize("null", NULL_MODELS)
def test_a_direction_that_no_column_shows_is_found(null):
    found = dc.structure_test(hidden(400, 5, 0.99), null=null, n_resamples=19)
    assert found.n_as_extreme == 0
    assert found.pvalue == found.resolution == 0.05
    assert found.rejected
    assert not found.not_rejected
    assert "0 of 19 null tables reach this cost (p = 0.05, the smallest attainable)" in str(found)


def test_correlated_columns_are_a_connection_and_one_cloud():
    X = noise(200, 6, 0) @ noise(6, 6, 100)
    assert dc.structure_test(X, null="columns", n_resamples=19).rejected
    assert not dc.structure_test(X, null="covariance", n_resamples=19).rejected


def test_of_large_tables_rows_are_tested_and_a_limit_of_time_is_kept():
    X = hidden(4 * MAX_ENTRIES // 5, 5, 0.99)
    found = dc.structure_test(X, n_resamples=19)
    assert found.n_points == MAX_ENTRIES // 5
    assert found.rejected
    late = dc.structure_test(X, time_limit=1e-6)
    assert late.null_distribution == ()
    assert late.pvalue == 1.0
    assert not late.not_rejected
    assert "not tested" in str(late)


def test_values_that_cannot_be_used_are_refused():
    for wrong in ({"null": "rows"}, {"n_resamples": 0}, {"nu": 2.0}, {"rng": -1}):
        with pytest.raises(dc.ParameterError):
            dc.structure_test(noise(20, 2), **wrong)
    with pytest.raises(dc.DataError):
        dc.structure_test(np.zeros(5))
    with pytest.raises(dc.ParameterError, match="sample_weight"):
        dc.DiffracClustering(test_structure=True).fit(noise(20, 2), sample_weight=np.arange(1.0, 21.0))


# Warnings


def test_labels_that_are_hardly_proved_or_change_are_said_to_be():
    result = dc.DiffracClustering().fit(noise(60, 4)).result_
    assert weak_bound(result, 2.0 * result.lower) is None
    assert weak_bound(result, 11.0 * result.lower).code == "hardly proved"
    assert unstable("other starts", 0.95) is None
    assert "adjusted Rand index 0.37" in unstable("other starts", 0.37).message


@pytest.mark.filterwarnings("ignore:The clusters are unstable")
def test_noise_has_no_structure_in_the_estimator_and_groups_have():
    with pytest.warns(dc.DegenerateDataWarning, match="independent columns"):
        model = dc.DiffracClustering(test_structure=True).fit(noise(60, 40))
    assert model.diagnostics_[0].code == "no structure"
    columns, cloud = model.structure_
    assert (columns.null, cloud.null) == ("columns", "covariance")
    model = dc.DiffracClustering(test_structure=True).fit(hidden(300, 4, 0.99))
    assert model.diagnostics_ == ()
    assert all(test.rejected for test in model.structure_)


# The program


@pytest.fixture
def written(tmp_path):
    def write(X):
        path = tmp_path / "table.csv"
        names = ",".join(f"g{j}" for j in range(X.shape[1]))
        np.savetxt(path, X, delimiter=",", header=names, comments="")
        return str(path)

    return write


@pytest.mark.parametrize("shape", [(30, 200), pytest.param((63, 2308), marks=pytest.mark.slow)])
def test_the_program_says_of_noise_first_that_it_is_noise_or_once_that_there_was_no_time(written, capsys, shape):
    path = written(noise(*shape))
    assert run_command_line(["cluster", path]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("WARNING: Structure test, independent columns: ")
    run_command_line(["cluster", path, "--time-limit", "0.01"])
    assert capsys.readouterr().out.count("Structure test: not tested") <= 1


def test_the_program_says_first_what_supports_an_answer(written, capsys):
    path = written(hidden(300, 4, 0.99))
    assert run_command_line(["cluster", path]) == 0
    assert capsys.readouterr().out.startswith("Structure test, independent columns: 0 of 19")
    assert run_command_line(["cluster", path, "--no-structure"]) == 0
    assert "Structure" not in capsys.readouterr().out
    assert run_command_line(["cluster", path, "--json"]) == 0
    tests = json.loads(capsys.readouterr().out)["structure"]
    assert [(test["null"], test["n_as_extreme"], test["n_resamples"]) for test in tests] == [
        ("columns", 0, 19),
        ("covariance", 0, 19),
    ]


@pytest.mark.parametrize("name", ["heart", "sonar"])
def test_the_program_and_the_estimator_have_the_same_defaults(name, capsys):
    run_command_line(["cluster", name, "--json", "--no-structure"])
    found = json.loads(capsys.readouterr().out)
    model = dc.DiffracClustering().fit(dc.datasets.load(name)[0])
    assert found["labels"] == model.labels_.tolist()
    assert found["lower_bound"] == pytest.approx(model.lower_bound_, abs=1e-12)
    assert found["parameters"] == {"nu": 1.0, "lambda": 0.0, "ridge": 0.3, "tol": model.tol}


@pytest.mark.parametrize(
    ("costs", "none", "words"),
    [
        (
            (0.1,) * 4 + (0.5,) * 15,
            True,
            "4 of 19 null tables reach this cost (p = 0.25): this cost is no evidence of groups.",
        ),
        (
            (0.1, 0.5, 0.5),
            False,
            "1 of 3 null tables reach this cost (p = 0.5; inconclusive: more null tables, and more time, are needed).",
        ),
        ((0.5,) * 3, False, "0 of 3 null tables reach this cost (p = 0.25, the smallest attainable; inconclusive"),
    ],
)
def test_few_resamples_say_little_and_are_not_held_against_a_split(costs, none, words):
    found = dc.StructureTest("columns", 0.2, costs, 50, 0.1)
    assert found.not_rejected is none
    assert words in str(found)


def made(null, as_good, draws=19):
    return dc.StructureTest(null, 0.2, (0.1,) * as_good + (0.5,) * (draws - as_good), 50, 0.1)


@pytest.mark.parametrize(
    ("as_good", "against", "told"),
    [
        ((0, 0), None, ["columns", "covariance"]),
        ((0, 9), None, ["columns", "covariance"]),  # a dependence explained by a single cloud
        ((9, 0), None, ["covariance"]),  # a two-valued column is unaffected by a permutation
        ((9, 9), "columns", ["columns", "covariance"]),
    ],
)
def test_a_clear_answer_to_the_harder_question_is_enough(as_good, against, told):
    tests = [made(null, count) for null, count in zip(NULL_MODELS, as_good, strict=True)]
    assert getattr(find_not_rejected(tests), "null", None) == against
    assert [test.null for test in select_informative(tests)] == told


def test_one_column_has_no_connection_to_lose_and_may_have_two_groups():
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.normal(-3.0, 1.0, 60), rng.normal(3.0, 1.0, 60)])[:, None]
    model = dc.DiffracClustering(test_structure=True).fit(two)
    assert [test.null for test in model.structure_] == ["covariance"]
    assert model.diagnostics_ == ()
    with pytest.warns(dc.DegenerateDataWarning, match="single Gaussian cloud"):
        dc.DiffracClustering(test_structure=True).fit(noise(100, 1))
