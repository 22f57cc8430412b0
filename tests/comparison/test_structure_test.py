"""Structure test: one mode is not rejected, gaps between groups are found, and no verdict depends on the clock."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from instances import normal
from scipy.special import ndtri

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.comparison import held_out, splits, structure, valley
from diffrac_cvx.comparison.held_out import Folds, HeldOutScores, held_out_scores, partitions, spread_ties
from diffrac_cvx.comparison.null_tables import (
    cut_gaussian_cloud,
    permute_columns,
    root_of_correlations,
    rotate_points,
    tetrachoric_correlations,
)
from diffrac_cvx.comparison.splits import N_OPTIMA, ShareSplits, Split, top_share
from diffrac_cvx.comparison.structure import MAX_ENTRIES, MAX_ROWS, MIN_ROWS
from diffrac_cvx.comparison.units import copied_units, linked_units, merged
from diffrac_cvx.comparison.valley import (
    N_DRAWS,
    deepest_valley,
    pvalue_of_one_mode,
    unimodal_density,
)
from diffrac_cvx.points.table import array_table
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
    monkeypatch.setattr(held_out, "N_PARTITIONS", 1)
    monkeypatch.setattr(held_out, "N_PARTITIONS_WIDE", 1)


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


@pytest.mark.parametrize(("correlation", "thresholds"), [(0.6, (0.0, 0.0)), (-0.5, (0.3, 1.0)), (0.8, (1.0, 1.2))])
def test_tetrachoric_correlations_are_those_of_the_columns_before_they_were_cut(correlation, thresholds):
    root = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    is_high = normal(20_000, 2) @ root.T > thresholds
    found = tetrachoric_correlations(is_high, equal(20_000))
    np.testing.assert_allclose(found, [[1.0, correlation], [correlation, 1.0]], atol=0.03)


def test_a_constant_column_has_no_tetrachoric_correlation_and_equal_columns_have_nearly_one():
    is_high = np.column_stack([np.arange(100) < 30, np.arange(100) < 30, np.zeros(100)]) > 0.0
    found = tetrachoric_correlations(is_high, equal(100))
    np.testing.assert_allclose(found[2], [0.0, 0.0, 1.0], atol=0.1)
    assert 0.98 < found[0, 1] < 1.0


def test_correlations_of_few_rows_keep_their_size_when_they_are_made_positive_semidefinite():
    is_high = normal(40, 1) + normal(40, 100, seed=1) > 0.0  # correlations of 1/2
    R = tetrachoric_correlations(is_high, equal(40))
    root = root_of_correlations(R)
    np.testing.assert_allclose(np.diag(root @ root.T), 1.0)
    assert np.linalg.eigvalsh(R)[0] < -0.5
    assert np.mean(root @ root.T) == pytest.approx(np.mean(R), rel=0.1)
    kept = root_of_correlations(np.full((3, 3), 0.5) + np.eye(3) / 2.0)
    np.testing.assert_allclose(kept @ kept.T, np.full((3, 3), 0.5) + np.eye(3) / 2.0)


def test_a_gaussian_cloud_is_cut_at_the_shares_of_the_columns_and_in_their_values():
    rng, factor = np.random.default_rng(0), normal(400, 1)
    X = np.column_stack([factor + normal(400, 3, seed=2) > [0.0, 1.0, -0.5], 5.0 + 2.0 * factor]) * 1.0
    X[:, 2] = 4.0 + 6.0 * X[:, 2]
    drawn = np.vstack([cut_gaussian_cloud(X, equal(400))(rng) for _ in range(20)])
    assert np.ptp(drawn[:, 0]) == pytest.approx(2.0, abs=0.01)  # 0 and 1, spread over cells of width 1
    assert np.ptp(drawn[:, 2]) == pytest.approx(12.0, abs=0.06)
    middle = np.array([0.5, 0.5, 7.0])
    np.testing.assert_allclose(np.mean(drawn[:, :3] > middle, axis=0), np.mean(X[:, :3] > middle, axis=0), atol=0.02)
    np.testing.assert_allclose(drawn[:, 3].std(), X[:, 3].std(), rtol=0.03)
    correlations = [np.corrcoef(table[:, :3] > middle, rowvar=False) for table in (drawn, X)]
    np.testing.assert_allclose(correlations[0], correlations[1], atol=0.06)


# One mode


def equal(n):
    return np.full(n, 1.0 / n)


def test_the_deepest_valley_lies_between_two_peaks_and_one_mode_has_none():
    scores = np.concatenate([np.linspace(-0.2, 0.2, 60) - 2.0, np.linspace(-0.2, 0.2, 30) + 1.0])
    valley = deepest_valley(scores, equal(90))
    assert valley.at == pytest.approx(0.1, abs=0.6)  # the gap is flat between the kernels of the two groups
    assert deepest_valley(ndtri(np.linspace(0.01, 0.99, 50)), equal(50)) is None
    assert deepest_valley(np.ones(7), equal(7)) is None
    assert pvalue_of_one_mode(np.ones(7), equal(7), np.random.default_rng(0)) == 1.0


def test_the_nearest_unimodal_density_keeps_one_that_is_unimodal_and_levels_a_gap():
    width, share = np.ones(5), np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    np.testing.assert_allclose(unimodal_density(width, share), share)
    found = unimodal_density(width, np.array([0.3, 0.1, 0.1, 0.1, 0.4]))
    np.testing.assert_allclose(found, [0.15, 0.15, 0.15, 0.15, 0.4])
    half = np.array([2.0, 1.0, 1.0])
    assert unimodal_density(half, np.array([0.2, 0.3, 0.5])) @ half == pytest.approx(1.0)


def test_weights_count_as_repeated_scores():
    scores = np.random.default_rng(0).standard_normal(60) + 4.0 * (np.arange(60) % 2)
    repeats = np.arange(60) % 3 + 1
    weighted, repeated = deepest_valley(scores, repeats / repeats.sum()), np.repeat(scores, repeats)
    found = deepest_valley(repeated, equal(len(repeated)))
    assert weighted.at == pytest.approx(found.at, abs=0.3)
    size = repeats.sum() ** 2 / np.sum(repeats**2)  # Kish's, which is smaller than the sum
    assert weighted.depth == pytest.approx(found.depth * (size / repeats.sum()) ** 0.5, rel=0.1)


def test_p_values_of_samples_with_one_mode_are_rarely_small():
    """Of 60 flat or skewed samples on average 3 have p at most 0.05; 9 or more have probability 0.003."""
    rng = np.random.default_rng(0)
    samples = [rng.random(80) for _ in range(30)] + [rng.exponential(size=80) for _ in range(30)]
    small = [pvalue_of_one_mode(x, equal(80), rng) <= 0.05 for x in samples]
    assert sum(small) <= 8
    two = np.concatenate([rng.standard_normal(40) - 3.0, rng.standard_normal(40) + 3.0])
    assert pvalue_of_one_mode(two, equal(80), rng) == 1.0 / (1.0 + N_DRAWS)


def test_three_groups_in_line_are_seen_with_a_narrow_kernel_and_a_small_group_with_a_wide_one(monkeypatch):
    rng = np.random.default_rng(3)
    line, small = 5.0 * (np.arange(200) % 3), 5.2 * (np.arange(200) < 20)
    samples = {"line": line + rng.standard_normal(200), "small": small + rng.standard_normal(200)}

    def pvalues():
        return {name: pvalue_of_one_mode(x, equal(200), np.random.default_rng(0)) for name, x in samples.items()}

    both = pvalues()
    monkeypatch.setattr(valley, "FACTORS", valley.FACTORS[1:])
    wide = pvalues()
    assert both["line"] <= 0.01 < 0.05 < wide["line"]
    assert max(both["small"], wide["small"]) <= 0.02


# Units


def test_equal_rows_are_one_unit_and_coarse_answers_are_not():
    rng = np.random.default_rng(0)
    units, kind = copied_units(np.repeat(rng.standard_normal((30, 4)), 3, axis=0))
    np.testing.assert_array_equal(units, np.repeat(range(30), 3))
    assert kind == "equal"
    for coarse in (rng.integers(1, 6, (200, 3)), np.round(3.0 * rng.standard_normal((90, 1)))):
        assert len(np.unique(copied_units(coarse.astype(float))[0])) == len(coarse)


def test_replicates_with_little_noise_are_one_unit_and_noise_is_not():
    rows, rng = normal(40, 6), np.random.default_rng(1)
    units, kind = copied_units(np.repeat(rows, 4, axis=0) + 0.02 * rng.standard_normal((160, 6)))
    np.testing.assert_array_equal(units, np.repeat(range(40), 4))
    assert kind == "nearly equal"
    assert len(np.unique(copied_units(normal(160, 6))[0])) == 160


def test_units_have_the_mean_of_their_points_and_the_sum_of_their_weights():
    points = array_table(normal(6, 2), np.arange(1.0, 7.0) / 21.0)
    units = merged(points, np.array([0, 1, 0, 2, 2, 2]))
    np.testing.assert_allclose(units.weights, np.array([4.0, 2.0, 15.0]) / 21.0)
    np.testing.assert_allclose(units.mean_of(units.array()), points.mean_of(points.array()))
    binary = array_table((normal(7, 3)[np.arange(30) % 7] > 0.0) - 0.3)
    assert set(merged(binary, np.arange(30) % 7).array().ravel()) == {-0.3, 0.7}  # without rounding


def test_points_linked_to_equal_labels_are_one_unit_and_to_different_ones_are_not():
    constraints = dc.Constraints(must_link=[(0, 2)], cannot_link=[(2, 4)], labels=[None] * 5 + [1, 1])
    np.testing.assert_array_equal(linked_units(constraints.chunklets_of(7), 7), [0, 1, 0, 2, 3, 4, 5])


@pytest.mark.usefixtures("one_partition")
def test_copies_are_no_evidence_and_it_is_said():
    rows = normal(40, 5, seed=3)
    repeated = dc.structure_test(np.repeat(rows, 5, axis=0))
    assert (repeated.n_points, repeated.n_units, repeated.copies) == (200, 40, "equal")
    assert "Equal rows count once: 40 of 200 rows." in str(repeated)
    assert (repeated.verdict, repeated.pvalue) == ("not separated", dc.structure_test(rows).pvalue)
    near = np.repeat(rows, 5, axis=0) + 1e-3 * normal(200, 5)
    linked = dc.structure_test(near + normal(200, 5), constraints=dc.Constraints(groups=np.arange(200) // 5))
    assert "Linked rows count once: 40 of 200 rows." in str(linked)


# Splits by a share of the rows


@pytest.mark.parametrize("weights", [None, "weights"])
def test_the_largest_scores_that_hold_a_share_are_labelled(weights):
    scores, p = normal(50, 3), np.arange(1.0, 51.0) / 1275.0
    top = top_share(scores, 0.2, None if weights is None else p)
    for column, chosen in zip(scores.T, top.T, strict=True):
        assert column[chosen == 1.0].min() > column[chosen == 0.0].max()
        held = chosen.sum() / 50.0 if weights is None else p @ chosen
        assert held == pytest.approx(0.2, abs=0.03)


def test_a_split_by_shares_finds_a_small_group():
    X = normal(200, 6)
    X[:20, 2] += 8.0
    points = array_table(X - X.mean(axis=0))
    W = ShareSplits((0.1, 0.5), 0.3).directions(points)
    assert W.shape == (6, 2 * N_OPTIMA)
    scores = X @ W[:, 0] * np.sign(W[2, 0])
    assert set(np.argsort(-scores)[:20]) == set(range(20))
    present = W[:, W.any(axis=0)]
    np.testing.assert_allclose(np.mean((points.array() @ present) ** 2, axis=0), 1.0)


def test_splits_by_a_third_of_the_rows_find_each_of_three_groups():
    group = np.arange(150) % 3
    X = normal(150, 5) + 8.0 * np.eye(3, 5)[group]
    scores = X @ ShareSplits((0.35,), 0.3).directions(array_table(X - X.mean(axis=0)))
    correlations = np.abs(np.corrcoef(scores.T, np.eye(3)[group].T)[:3, 3:])
    assert sorted(correlations.argmax(axis=0)) == [0, 1, 2]
    assert correlations.max(axis=0).min() > 0.9


def test_repeated_values_are_spread_over_their_cells_and_others_kept():
    X = np.column_stack([np.arange(50) % 3, np.linspace(0.0, 1.0, 50), np.full(50, 7.0)]).astype(float)
    spread = spread_ties(X, np.random.default_rng(0))
    np.testing.assert_array_equal(spread[:, 1:], X[:, 1:])
    assert len(np.unique(spread[:, 0])) == 50
    np.testing.assert_array_equal(np.round(spread[:, 0]), X[:, 0])


# Verdicts


@pytest.mark.parametrize("shape", [(120, 6), (40, 200), (100, 1)])
def test_noise_is_no_evidence_and_two_groups_are_separated(shape):
    assert dc.structure_test(normal(*shape, seed=1)).verdict == "not separated"
    found = dc.structure_test(two_groups(*shape, separation=5.0 if shape[0] > shape[1] else 14.0))
    assert found.verdict == "separated"
    assert found.pvalue <= 0.05
    assert "separate groups" in str(found)


def test_unequal_groups_are_found_by_another_split_and_it_is_said():
    X = two_groups(400, 5, share=0.15, separation=6.0) + 50.0
    found = dc.structure_test(X)
    assert found.verdict == "separated"
    assert not found.has_given_weights
    assert found.is_unequal
    assert "not with the weights given" in str(found)
    assert np.mean(found.labels == (np.arange(400) < 60)) in (
        pytest.approx(0.0, abs=0.02),
        pytest.approx(1.0, abs=0.02),
    )
    np.testing.assert_array_equal(found.labels, X @ found.coef > found.valley)


@pytest.mark.usefixtures("one_partition")
def test_unequal_groups_of_a_wide_table_are_found_with_a_ridge_that_grows_with_its_columns():
    X = normal(80, 300)
    X[:20, :60] += 1.8
    test = dc.structure_test(X)
    assert test.verdict == "separated"
    assert test.penalty.ridge in (0.3, pytest.approx(1.5))
    assert np.mean(test.labels == (np.arange(80) < 20)) in (0.0, 1.0)


def test_three_groups_that_are_equally_far_apart_are_found_since_all_folds_separate_the_same(monkeypatch):
    X = np.random.default_rng(4).standard_normal((150, 8)) + 4.0 * np.eye(3, 8)[np.arange(150) % 3]
    found = dc.structure_test(X)
    assert (found.verdict, found.has_given_weights) == ("separated", False)
    assert sorted(np.bincount(found.labels)) == [pytest.approx(50, abs=4), pytest.approx(100, abs=4)]
    pick = structure.pick
    monkeypatch.setattr(structure, "pick", lambda *given: pick(*given[:4]))
    assert dc.structure_test(X).verdict == "not separated"  # the folds separate different groups


def test_a_yes_or_no_answer_to_one_question_has_two_modes_without_groups_and_two_classes_are_found(monkeypatch):
    rng = np.random.default_rng(2)
    answers = (np.outer(rng.standard_normal(200), np.full(10, 1.5)) + rng.standard_normal((200, 10)) > 0.0) * 1.0
    found = dc.structure_test(answers)
    assert (found.verdict, found.are_answers) == ("not separated", True)
    groups = (np.arange(120) % 2)[:, None]
    classes = dc.structure_test((rng.random((120, 8)) < 0.1 + 0.8 * groups) * 1.0)
    assert (classes.verdict, classes.are_answers) == ("separated", True)
    monkeypatch.setattr(structure, "MAX_CUT_COLUMNS", 6)
    whole, sizes = structure.cut_gaussian_cloud, []
    monkeypatch.setattr(structure, "cut_gaussian_cloud", lambda X, p: sizes.append(X.shape[1]) or whole(X, p))
    assert dc.structure_test(answers).verdict == "not separated"
    assert set(sizes) == {6}  # matrices of all columns may not fit in memory
    monkeypatch.setattr(structure, "are_answers", lambda table: False)
    assert dc.structure_test(answers).verdict == "separated"  # without the comparison with a cloud cut in two


def test_held_out_scores_on_some_columns_are_the_parts_of_the_scores_on_these():
    rng = np.random.default_rng(0)
    masks, table = [np.arange(6) < 3, np.arange(6) >= 3], rng.standard_normal((6, 4))
    coef, mean = rng.standard_normal((2, 4, 2)), rng.standard_normal((2, 4))
    score = HeldOutScores(masks, list(coef), list(mean))
    columns = score.strongest_columns(3)
    (rest,) = set(range(4)) - set(columns)
    assert np.sum(coef[:, rest] ** 2) == np.sum(coef**2, axis=(0, 2)).min()
    others = np.array([rest])
    parts = score.on(columns)(table[:, columns]) + score.on(others)(table[:, others])
    np.testing.assert_allclose(parts, score(table), atol=1e-14)
    np.testing.assert_allclose(score(table)[0], (table[0] - mean[0]) @ coef[0], atol=1e-14)


@pytest.mark.parametrize(
    ("shape", "share", "is_given"), [((300, 6), 0.5, True), ((300, 6), 0.15, False), ((60, 200), 0.5, True)]
)
def test_p_is_that_of_the_splits_picked_or_with_more_columns_than_rows_of_the_split_given(shape, share, is_given):
    found = dc.structure_test(two_groups(*shape, share, separation=7.0 if shape[0] > shape[1] else 14.0))
    assert found.has_given_weights == is_given
    assert found.pvalue == (found.picked_pvalue if shape[0] > shape[1] else found.given_pvalue)
    assert found.pvalue == found.smallest_pvalue == 1.0 / 400.0
    assert is_given == (found.given_pvalue <= 0.05)


def test_the_message_says_where_the_gap_is_and_how_many_rows_are_beside_it():
    X = two_groups(1000, 4, share=0.3, separation=6.0)
    found = dc.structure_test(X)
    model = dc.DiffracClustering().fit(X)
    at, threshold = found.deviations
    assert found.has_given_weights
    assert abs(at) > abs(threshold)
    differ = int(np.sum(found.labels != model.labels_))
    assert found.n_between == pytest.approx(min(differ, 1000 - differ), abs=5)
    assert f"threshold of the split {threshold:+.2f}; {found.n_between} of 1000 rows lie between them" in str(found)


def test_the_smallest_possible_p_value_is_named():
    found = dc.structure_test(two_groups(100, 3, separation=8.0))
    assert f"(p = {found.pvalue:.2g}, the smallest value that 399 samples can give)" in str(found)


def test_a_gap_of_one_column_is_named_and_one_that_needs_several_is_not():
    X, y = normal(200, 10), np.arange(200) % 2
    X[:, 3] += 6.0 * y
    found = dc.structure_test(X)
    assert (found.verdict, found.gap_column) == ("separated", 3)
    assert "The values of column 3 (counted from 0) alone have a gap." in str(found)
    assert "The values of height alone have a gap." in found.message(["weight"] * 3 + ["height"] + ["age"] * 6)
    along_all = dc.structure_test(two_groups(200, 10))
    assert (along_all.verdict, along_all.gap_column) == ("separated", None)
    assert "alone" not in str(along_all)
    assert dc.structure_test(X[:, 3:4]).gap_column is None  # there is no other column


@pytest.mark.usefixtures("one_partition")
def test_a_flat_factor_splits_better_than_a_gaussian_cloud_which_is_no_evidence():
    rng = np.random.default_rng(0)
    X = np.outer(3.5 * rng.random(200), rng.standard_normal(8)) + 0.5 * rng.standard_normal((200, 8))
    with pytest.warns(dc.DegenerateDataWarning, match="this is not evidence of groups"):
        model = dc.DiffracClustering(test_structure=True).fit(X)
    assert (model.structure_.verdict, model.structure_.splits_better) == ("not separated", True)
    assert [reason.code for reason in model.diagnostics_] == ["not separated"]


def test_no_row_chooses_the_direction_that_gives_its_score(monkeypatch):
    X, seen = normal(40, 3), []
    split, directions = Split(1.0, dc.Penalty(ridge=0.3)), Split.directions
    monkeypatch.setattr(Split, "directions", lambda self, part: seen.append(part) or directions(self, part))
    monkeypatch.setattr(held_out, "N_PARTITIONS", 1)
    numbers = partitions(np.arange(40), 3, np.random.default_rng(1))
    folds = Folds(array_table(X), X, False, numbers)
    W = [split.directions(fold.X) for fold in folds]
    scores = held_out_scores(folds, W)(X)
    for k, part in enumerate(seen):
        kept = X[numbers[0] != k]
        np.testing.assert_allclose(part.array(), kept - kept.mean(axis=0), atol=1e-12)
        left_out = (X[numbers[0] == k] - kept.mean(axis=0)) @ W[k]
        np.testing.assert_allclose(np.abs(scores[numbers[0] == k]), np.abs(left_out))
    assert len(seen) == 5


@pytest.mark.usefixtures("one_partition")
def test_three_clusters_have_two_directions_and_linked_rows_stay_together():
    rng = np.random.default_rng(0)
    centres = 6.0 * np.eye(3, 4)
    X = rng.standard_normal((120, 4)) + centres[np.repeat(range(3), 40)]
    assert dc.structure_test(X, n_clusters=3).verdict == "separated"
    points = array_table(X - X.mean(axis=0))
    assert Split(1.0, dc.Penalty(ridge=0.3), 3).directions(points).shape == (4, 2)
    three = dc.structure_test(X, n_clusters=3)
    assert three.n_between is None
    assert str(three).split(". ")[1].endswith("from the mean of the score")
    pairs = dc.Constraints(must_link=[(i, i + 1) for i in range(0, 120, 2)])
    assert dc.structure_test(X, n_clusters=3, constraints=pairs).verdict == "separated"
    doubled = np.repeat(normal(60, 4), 2, axis=0) + 1e-3 * normal(120, 4, 1)
    assert dc.structure_test(doubled, constraints=pairs).verdict == "not separated"


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
        assert dc.structure_test(X, **options).verdict == "not separated"
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
    assert "not separated" not in [reason.code for reason in model.diagnostics_]


@pytest.mark.usefixtures("one_partition")
def test_every_split_is_solved_in_the_same_steps_however_slow_the_clock(monkeypatch):
    solve, clock, steps = splits.low_rank, time.monotonic, []

    def recorded(*given, **options):
        result = solve(*given, **options)
        steps.append([(line.iteration, line.lower, line.upper) for line in result.history])
        return result

    monkeypatch.setattr(splits, "low_rank", recorded)
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
def test_noise_is_not_separated_in_the_estimator_and_groups_are():
    with pytest.warns(dc.DegenerateDataWarning, match="no gap between groups was found"):
        model = dc.DiffracClustering(test_structure=True).fit(normal(60, 40))
    assert model.diagnostics_[0].code == "not separated"
    assert model.structure_.verdict == "not separated"
    model = dc.DiffracClustering(test_structure=True).fit(two_groups(200, 4, separation=6.0))
    assert model.diagnostics_ == ()
    assert model.structure_.verdict == "separated"


def test_unequal_groups_that_the_weights_do_not_show_are_returned_unless_it_is_switched_off():
    X = two_groups(400, 5, share=0.15, separation=6.0)
    y = np.arange(400) < 60
    model = dc.DiffracClustering(test_structure=True).fit(X)
    assert model.is_cut_at_gap_
    np.testing.assert_array_equal(
        model.labels_,
        model.structure_.labels if model.coef_ @ model.structure_.coef > 0 else 1 - model.structure_.labels,
    )
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.mean(model.labels_ == y) in (pytest.approx(0.0, abs=0.02), pytest.approx(1.0, abs=0.02))
    given = dc.DiffracClustering(test_structure=True, unequal=False).fit(X)
    assert not given.is_cut_at_gap_
    np.testing.assert_array_equal(given.labels_, dc.DiffracClustering().fit(X).labels_)
    assert given.lower_bound_ == model.lower_bound_
    assert given.label_gap_ < model.label_gap_
    for options in ({"lam": 0.1}, {"n_clusters": 3}, {"nonnegative": True}):
        assert not dc.DiffracClustering(test_structure=True, **options).fit(X).is_cut_at_gap_


# The program


@pytest.mark.parametrize("shape", [(30, 200), pytest.param((63, 2308), marks=pytest.mark.slow)])
def test_the_program_says_of_noise_first_that_it_is_noise(tmp_path, capsys, shape):
    pd.DataFrame(normal(*shape, seed=1)).add_prefix("g").to_csv(path := f"{tmp_path}/table.csv", index=False)
    assert run_command_line(["cluster", path]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("WARNING: Structure test: not separated, no gap between groups was found")


def test_the_program_says_that_its_clusters_are_the_sides_of_a_gap(tmp_path, capsys):
    points = pd.DataFrame(two_groups(400, 5, share=0.15, separation=6.0)).add_prefix("g")
    points.to_csv(path := f"{tmp_path}/table.csv", index=False)
    said = "These clusters are the two sides of the gap"
    for options, expected in (([], True), (["--no-unequal"], False)):
        run_command_line(["cluster", path, *options])
        assert (said in " ".join(capsys.readouterr().out.split())) == expected


def test_the_program_says_first_what_supports_an_answer(tmp_path, capsys):
    points = pd.DataFrame(two_groups(200, 4, separation=6.0)).add_prefix("g")
    points.to_csv(path := f"{tmp_path}/table.csv", index=False)
    assert run_command_line(["cluster", path]) == 0
    assert capsys.readouterr().out.startswith(
        "Structure test: separated, the rows left out of the fit fall into separate groups"
    )
    assert run_command_line(["cluster", path, "--no-structure"]) == 0
    assert "Structure" not in capsys.readouterr().out
    assert run_command_line(["cluster", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["structure"]["verdict"] == "separated"
