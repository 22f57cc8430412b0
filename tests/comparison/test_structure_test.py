"""Structure test: one mode is not rejected, gaps between groups are found, and no verdict depends on the clock."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from instances import normal

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.comparison import structure
from diffrac_cvx.comparison.structure import (
    MAX_ENTRIES,
    MAX_ROWS,
    MIN_ROWS,
    N_DRAWS,
    count_modes,
    critical_bandwidth,
    permute_columns,
    pvalue_of_one_mode,
    rotate_points,
    spread_ties,
    unimodal_density,
)
from diffrac_cvx.problem.feature_groups import FeatureGroups, read_feature_groups
from diffrac_cvx.rounding.diagnostics import weak_bound


def two_groups(n, d, share=0.5, separation=5.0, seed=0):
    """Points of unit variance in two groups along a random direction, the second group first."""
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(d)
    y = np.arange(n) < share * n
    return rng.standard_normal((n, d)) + separation * np.outer(y, v / np.linalg.norm(v))


@pytest.fixture
def one_partition(monkeypatch):
    """Split the rows into folds once, which is enough where the power of the test does not matter."""
    monkeypatch.setattr(structure, "N_PARTITIONS", 1)
    monkeypatch.setattr(structure, "N_PARTITIONS_WIDE", 1)


# Null tables


@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
def test_permuted_columns_or_groups_keep_their_values_and_rotated_points_their_covariance(shape):
    X = normal(*shape) @ np.diag(np.linspace(0.1, 3.0, shape[1]))
    X -= X.mean(axis=0)
    rng, singles = np.random.default_rng(1), FeatureGroups.singles(shape[1])
    for groups in (singles, read_feature_groups(np.arange(shape[1]) // 3, shape[1])):
        shuffled = permute_columns(X, groups)(rng)
        for part in (groups.labels == g for g in range(len(groups.names))):
            assert sorted(shuffled[:, part].tolist()) == sorted(X[:, part].tolist())
        assert sorted(shuffled.tolist()) != sorted(X.tolist())
    rotated = rotate_points(X, singles)(rng)
    np.testing.assert_allclose(rotated.T @ rotated, X.T @ X, atol=1e-10)
    np.testing.assert_allclose(rotated.mean(axis=0), 0.0, atol=1e-12)
    assert np.abs(rotated - X).max() > 0.1


def test_every_point_is_rotated_in_all_directions_alike():
    X, rng = normal(12, 2), np.random.default_rng(0)
    draw = rotate_points(X - X.mean(axis=0), FeatureGroups.singles(2))
    rotated = np.array([draw(rng) for _ in range(1000)])
    means, deviations = rotated.mean(axis=0), rotated.std(axis=0)
    assert np.abs(means / deviations).max() < 4.5 / 1000**0.5


# One mode


def test_the_critical_bandwidth_is_where_a_second_mode_appears():
    scores = np.concatenate([np.linspace(-0.1, 0.1, 50) - 1.0, np.linspace(-0.1, 0.1, 50) + 1.0])
    h, grid = critical_bandwidth(scores), np.linspace(-1.1, 1.1, 2001)
    assert count_modes(scores, 1.05 * h, grid) == 1
    assert count_modes(scores, 0.95 * h, grid) == 2
    assert h == pytest.approx(1.0, abs=0.02)  # two equal normal densities at -1 and 1 have one mode from deviation 1 on
    assert critical_bandwidth(np.ones(7)) == 0.0
    assert pvalue_of_one_mode(np.ones(7), 0.0, None, np.random.default_rng(0)) == 1.0


def test_the_nearest_unimodal_density_keeps_one_that_is_unimodal_and_levels_a_gap():
    width, share = np.ones(5), np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    np.testing.assert_allclose(unimodal_density(width, share), share)
    found = unimodal_density(width, np.array([0.3, 0.1, 0.1, 0.1, 0.4]))
    np.testing.assert_allclose(found, [0.15, 0.15, 0.15, 0.15, 0.4])
    half = np.array([2.0, 1.0, 1.0])
    assert unimodal_density(half, np.array([0.2, 0.3, 0.5])) @ half == pytest.approx(1.0)


def test_weights_count_as_repeated_scores():
    scores = np.random.default_rng(0).standard_normal(60)
    repeats = np.arange(60) % 3 + 1
    weighted = critical_bandwidth(scores, repeats / repeats.sum())
    assert weighted == pytest.approx(critical_bandwidth(np.repeat(scores, repeats)), rel=0.05)


def test_p_values_of_samples_with_one_mode_are_rarely_small():
    """Of 60 flat or skewed samples on average 3 have p at most 0.05; 9 or more have probability 0.003."""
    rng = np.random.default_rng(0)
    samples = [rng.random(80) for _ in range(30)] + [rng.exponential(size=80) for _ in range(30)]
    small = [pvalue_of_one_mode(x, critical_bandwidth(x), None, rng) <= 0.05 for x in samples]
    assert sum(small) <= 8
    two = np.concatenate([rng.standard_normal(40) - 3.0, rng.standard_normal(40) + 3.0])
    assert pvalue_of_one_mode(two, critical_bandwidth(two), None, rng) == 1.0 / (1.0 + N_DRAWS)


def test_repeated_values_are_spread_over_their_cells_and_others_kept():
    X = np.column_stack([np.arange(50) % 3, np.linspace(0.0, 1.0, 50), np.full(50, 7.0)]).astype(float)
    spread = spread_ties(X, np.random.default_rng(0))
    np.testing.assert_array_equal(spread[:, 1:], X[:, 1:])
    assert len(np.unique(spread[:, 0])) == 50
    np.testing.assert_array_equal(np.round(spread[:, 0]), X[:, 0])


# Verdicts


@pytest.mark.parametrize("shape", [(120, 6), (40, 200), (100, 1)])
def test_noise_is_no_evidence_and_two_groups_are_separated(shape):
    assert dc.structure_test(normal(*shape, seed=1)).verdict == "none"
    found = dc.structure_test(two_groups(*shape, separation=5.0 if shape[0] > shape[1] else 14.0))
    assert found.verdict == "separated"
    assert found.pvalue <= 0.05
    assert "separate groups" in str(found)


@pytest.mark.usefixtures("one_partition")
def test_unequal_groups_are_found_with_less_weight_on_balance_and_it_is_said():
    found = dc.structure_test(two_groups(400, 5, share=0.1, separation=8.0))
    assert found.verdict == "separated"
    assert not found.has_given_weights
    assert (
        f"the split in two with nu = {found.nu:g} and ridge = {found.penalty.ridge:g}, not with the weights given"
        in str(found)
    )


@pytest.mark.usefixtures("one_partition")
def test_unequal_groups_of_a_wide_table_are_found_with_a_ridge_that_grows_with_its_columns():
    X = normal(40, 300)
    X[:6, :60] += 1.6
    test = dc.structure_test(X)
    assert test.verdict in ("separated", "continuum")
    assert (test.nu, test.penalty.ridge) == (0.1, pytest.approx(1.5))
    model = dc.DiffracClustering(nu=test.nu, ridge=test.penalty.ridge).fit(X)
    assert np.mean(model.labels_ == (np.arange(40) < 6)) in (0.0, 1.0)
    assert not model.diagnostics_


def test_a_gap_of_one_column_is_named_and_one_that_needs_several_is_not():
    X, y = normal(200, 10), np.arange(200) % 2
    X[:, 3] += 6.0 * y
    found = dc.structure_test(X)
    assert (found.verdict, found.gap_column) == ("separated", 3)
    assert "; the values of column 3 (counted from 0) alone have a gap" in str(found)
    assert "; the values of height alone have a gap" in found.message(["weight"] * 3 + ["height"] + ["age"] * 6)
    along_all = dc.structure_test(two_groups(200, 10))
    assert (along_all.verdict, along_all.gap_column) == ("separated", None)
    assert "alone" not in str(along_all)
    assert dc.structure_test(X[:, 3:4]).gap_column is None  # there is no other column


@pytest.mark.usefixtures("one_partition")
def test_a_flat_factor_is_a_continuum():
    rng = np.random.default_rng(0)
    X = np.outer(3.5 * rng.random(200), rng.standard_normal(8)) + 0.5 * rng.standard_normal((200, 8))
    model = dc.DiffracClustering(test_structure=True).fit(X)
    assert model.structure_.verdict == "continuum"
    assert "two ends of a continuum" in str(model.structure_)
    assert "no structure" not in [reason.code for reason in model.diagnostics_]


def test_no_row_chooses_the_direction_that_gives_its_score(monkeypatch):
    X, seen = normal(40, 3), []
    points = structure.sample_points(X, None, None, np.random.default_rng(0))
    split = structure.Split(1.0, dc.Penalty(ridge=0.3), 2, False)
    directions = structure.Split.directions
    monkeypatch.setattr(structure.Split, "directions", lambda self, part: seen.append(part) or directions(self, part))
    monkeypatch.setattr(structure, "N_PARTITIONS", 1)
    structure.held_out_scores(split, points, X, np.random.default_rng(1))
    fold = np.random.default_rng(1).permutation(np.arange(40) % 5)
    for k, part in enumerate(seen):
        np.testing.assert_allclose(part.array(), X[fold != k] - X[fold != k].mean(axis=0), atol=1e-12)
    assert len(seen) == 5


@pytest.mark.usefixtures("one_partition")
def test_three_clusters_have_two_directions_and_linked_rows_stay_together():
    rng = np.random.default_rng(0)
    centres = 6.0 * np.eye(3, 4)
    X = rng.standard_normal((120, 4)) + centres[np.repeat(range(3), 40)]
    assert dc.structure_test(X, n_clusters=3).verdict == "separated"
    points = structure.sample_points(X, None, None, np.random.default_rng(0))
    assert structure.held_out_scores(
        structure.Split(1.0, dc.Penalty(ridge=0.3), 3, True), points, X, np.random.default_rng(0)
    ).shape == (120, 2)
    pairs = dc.Constraints(must_link=[(i, i + 1) for i in range(0, 120, 2)])
    assert dc.structure_test(X, n_clusters=3, constraints=pairs).verdict == "separated"
    doubled = np.repeat(normal(60, 4), 2, axis=0) + 1e-3 * normal(120, 4, 1)
    assert dc.structure_test(doubled, constraints=pairs).verdict == "none"


@pytest.mark.usefixtures("one_partition")
@pytest.mark.parametrize(
    "options",
    [
        {"constraints": dc.Constraints(labels=[0] * 5 + [None] * 90 + [1] * 5)},
        {"sample_weight": np.arange(100.0)},
        {"penalty": dc.Penalty(ridge=0.3, nonnegative=[0, 1])},
        {"penalty": dc.Penalty(lam=0.1, ridge=0.3, groups=[0, 0, 1, 1])},
        {"standardize": False, "nu": 0.7},
    ],
    ids=["labels", "weights", "signs", "groups", "units"],
)
def test_constraints_weights_groups_and_signs_are_taken(options):
    X = normal(100, 4)
    if "penalty" not in options:
        assert dc.structure_test(X, **options).verdict == "none"
    X[50:, :2] += 6.0
    assert dc.structure_test(X, **options).verdict == "separated"


@pytest.mark.usefixtures("one_partition")
def test_verdicts_do_not_depend_on_the_clock_and_a_limit_of_time_is_no_evidence(monkeypatch):
    tables = normal(60, 4), two_groups(60, 4, separation=7.0)
    quiet = [dc.structure_test(X) for X in tables]
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0 * clock())
    for X, before in zip(tables, quiet, strict=True):
        again = dc.structure_test(X)
        assert (again.verdict, again.pvalue) == (before.verdict, before.pvalue)
    model = dc.DiffracClustering(test_structure=True, time_limit=0.5).fit(tables[0])
    assert model.structure_.verdict == "not tested"
    assert "the time limit was reached" in str(model.structure_)
    assert "no structure" not in [reason.code for reason in model.diagnostics_]


@pytest.mark.usefixtures("one_partition")
def test_every_split_is_solved_in_the_same_steps_however_slow_the_clock(monkeypatch):
    solve, clock, steps = structure.low_rank, time.monotonic, []

    def recorded(*given, **options):
        result = solve(*given, **options)
        steps.append([(line.iteration, line.lower, line.upper) for line in result.history])
        return result

    monkeypatch.setattr(structure, "low_rank", recorded)
    X, penalty = normal(40, 12), dc.Penalty(lam=0.05, ridge=0.1)
    dc.structure_test(X, penalty=penalty)
    quiet, steps = steps, []
    monkeypatch.setattr(time, "monotonic", lambda: 1e6 * clock())
    dc.structure_test(X, penalty=penalty)
    assert max(map(len, quiet)) > 1
    assert steps == quiet


@pytest.mark.parametrize("n", [2, 3, 5, 12, 19])
def test_few_rows_are_not_tested(n):
    for seed in range(3):
        test = dc.structure_test(two_groups(n, 2, seed=seed, separation=9.0))
        assert test.verdict == "not tested"
        assert "fewer than 20 rows" in str(test)
    linked = dc.Constraints(groups=np.arange(24) % 2)
    assert "fewer than 20 rows" in str(dc.structure_test(normal(24, 2), constraints=linked))


def test_of_large_tables_a_sample_of_the_rows_is_tested():
    assert dc.structure_test(two_groups(5 * MAX_ROWS, 4)).n_points == MAX_ROWS
    assert dc.structure_test(normal(2 * MIN_ROWS, MAX_ENTRIES // MIN_ROWS), time_limit=0.1).n_points == MIN_ROWS


# Warnings


def test_a_lower_bound_far_below_the_cost_is_a_warning():
    result = dc.low_rank(normal(60, 4), ridge=0.3)
    assert weak_bound(result, 2.0 * result.lower, 0.0) is None
    assert weak_bound(result, 11.0 * result.lower, 0.0).code == "weak bound"
    assert weak_bound(result, 11.0 * result.lower, 5.0 * result.lower) is None


@pytest.mark.usefixtures("one_partition")
def test_noise_has_no_structure_in_the_estimator_and_groups_have():
    with pytest.warns(dc.DegenerateDataWarning, match="no evidence of more than one group"):
        model = dc.DiffracClustering(test_structure=True).fit(normal(60, 40))
    assert model.diagnostics_[0].code == "no structure"
    assert model.structure_.verdict == "none"
    model = dc.DiffracClustering(test_structure=True).fit(two_groups(200, 4, separation=6.0))
    assert model.diagnostics_ == ()
    assert model.structure_.verdict == "separated"


# The program


@pytest.mark.parametrize("shape", [(30, 200), pytest.param((63, 2308), marks=pytest.mark.slow)])
def test_the_program_says_of_noise_first_that_it_is_noise(tmp_path, capsys, shape):
    pd.DataFrame(normal(*shape, seed=1)).add_prefix("g").to_csv(path := f"{tmp_path}/table.csv", index=False)
    assert run_command_line(["cluster", path]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("WARNING: Structure test: no evidence of more than one group")


def test_the_program_says_first_what_supports_an_answer(tmp_path, capsys):
    points = pd.DataFrame(two_groups(200, 4, separation=6.0)).add_prefix("g")
    points.to_csv(path := f"{tmp_path}/table.csv", index=False)
    assert run_command_line(["cluster", path]) == 0
    assert capsys.readouterr().out.startswith("Structure test: the rows left out of the fit fall into separate groups")
    assert run_command_line(["cluster", path, "--no-structure"]) == 0
    assert "Structure" not in capsys.readouterr().out
    assert run_command_line(["cluster", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["structure"]["verdict"] == "separated"
