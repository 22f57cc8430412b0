"""The experiment on the theory: its exact decisions, its instances, and every answer that its rules can give."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, each_answer, verdict_of

import diffrac_cvx as dc
from experiments.theory import (
    cells,
    claims_balanced,
    claims_labels,
    claims_sparse,
    label_recovery,
    noise_columns,
    one_sparse,
    solution_support,
    sparse_direction,
    spectrum,
    unique_solution,
)

# Uniqueness, exactly


def balanced(n, d, seed=0):
    return noise_columns.balanced_points(
        lambda rng, shape: rng.standard_normal(shape), n, d, np.random.default_rng(seed)
    )


@pytest.mark.parametrize(("n", "unique"), [(12, False), (20, False), (50, True), (100, True)])
def test_uniqueness_agrees_with_the_rank_that_an_interior_point_finds(n, unique):
    B = balanced(n, 8)  # the statistical dimension is 22
    assert unique_solution.is_unique(B, 1) is unique
    B[:, 1:] -= B[:, 1:].mean(axis=0)
    ratio = dc.metrics.eigenvalue_ratio(dc.solve(dc.v_space(B), "CLARABEL").F)
    assert (ratio < 1e-2) is unique_solution.is_unique(B, 1) is unique


def test_the_quadratic_forms_are_linear_in_the_upper_triangle():
    rng = np.random.default_rng(0)
    B, Delta = rng.standard_normal((7, 4)), rng.standard_normal((4, 4))
    Delta += Delta.T
    rows, columns = np.triu_indices(4)
    entries = Delta[rows, columns] * np.where(rows == columns, 1.0, 2**0.5)
    np.testing.assert_allclose(unique_solution.quadratic_forms(B) @ entries, np.einsum("ij,jk,ik->i", B, Delta, B))


@pytest.mark.parametrize(("D", "planted"), [(6, 1), (7, 2), (8, 4)])
def test_the_threshold_is_near_the_statistical_dimension(D, planted):
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = np.where(rng.random((200, max(planted - 1, 1))) < 0.5, 1.0, -1.0)
        first = labels if planted == 1 else np.column_stack([np.ones(200), labels])
        B = np.column_stack([first, rng.standard_normal((200, D - planted))])
        found.append(unique_solution.points_for_uniqueness(B, planted))
    assert np.mean(found) == pytest.approx(unique_solution.statistical_dimension(D, planted), rel=0.12)


@pytest.mark.parametrize("seed", range(5))
def test_the_least_number_of_points_is_that_of_a_search_through_all(seed):
    B = balanced(40, 4, seed)
    first = next(n for n in range(2, 41) if unique_solution.is_unique(B[:n], 1))
    assert unique_solution.points_for_uniqueness(B, 1) == first
    assert unique_solution.points_for_uniqueness(B[: first - 1], 1) == first


def test_rademacher_columns_always_leave_another_solution():
    rng = np.random.default_rng(0)
    B = np.where(rng.random((100, 5)) < 0.5, 1.0, -1.0)
    assert unique_solution.points_for_uniqueness(B, 1) == 101


@pytest.mark.parametrize(("n", "unique"), [(16, False), (60, True)])
def test_the_least_share_is_one_where_the_solution_is_unique_and_belongs_to_a_solution_elsewhere(n, unique):
    B = balanced(n, 8)
    share, V = unique_solution.least_share(B)
    assert (share > 1 - 1e-5) is unique_solution.is_unique(B, 1) is unique
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", B, V, B), 1.0, atol=1e-5)
    assert np.linalg.eigvalsh(V)[0] > -1e-7
    assert share == pytest.approx(V[0, 0], abs=1e-6)


# The instances


@pytest.mark.parametrize("beta", [1.0, 1.8, 3.0, 9.0])
@pytest.mark.parametrize("m", [0.1, 1.0, 2.0])
def test_the_spectrum_has_the_closed_form_of_the_appendix(m, beta):
    row = spectrum.measure_spectrum(5, m, beta)
    assert row["largest_error"] < 1e-10
    assert row["mu_1"] == pytest.approx(row["mu_1_paper"], abs=1e-10)


def test_the_expected_hessian_depends_on_the_law_through_its_variance_and_kurtosis_alone():
    d, m, beta = 4, 0.7, 2.2
    other = np.array([0.0, 0.7, 1.5])  # a law on five points, of the same two moments
    square = np.linalg.solve(np.vstack([np.ones(3), other**2, other**4]), [1.0, m, beta * m**2])
    assert square.min() > 0
    values = np.concatenate([other, -other[1:]])
    weights = np.concatenate([square[:1], square[1:] / 2, square[1:] / 2])
    grid = np.array(list(product(range(5), repeat=d - 1)))
    phi = unique_solution.quadratic_forms(np.column_stack([np.ones(len(grid)), values[grid]]))
    found = np.linalg.eigvalsh(phi.T @ (weights[grid].prod(axis=1)[:, None] * phi))
    np.testing.assert_allclose(found, np.sort(spectrum.closed_spectrum(d, m, beta)), atol=1e-10)


@pytest.mark.parametrize(("law", "m"), [("three-point 1.3", 1.0), ("uniform", 0.5), ("three-point 6", 1.0)])
def test_the_hessian_off_delta_min_has_the_second_eigenvalue_in_expectation(law, m):
    d, beta = 4, noise_columns.LAWS[law][0]
    atoms, weights = spectrum.law_of_points(d, m, beta)
    phi = unique_solution.quadratic_forms(atoms)
    form = spectrum.closed_form(d, m, beta)
    found = spectrum.least_off(phi.T @ (weights[:, None] * phi), d, form.c_min)
    assert found == pytest.approx(form.mu_2, abs=1e-10)


def test_more_points_bring_the_hessian_to_its_expectation():
    row = spectrum.measure_hessian("three-point 3", 3, 1.0, 0)
    assert row["n_chernoff"] > 1000
    assert row["ratio_chernoff"] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "law", ["three-point 1", "three-point 1.3", "three-point 30", "uniform", "gaussian", "laplace"]
)
def test_a_law_of_noise_has_unit_variance_and_its_kurtosis(law):
    beta, draw = noise_columns.LAWS[law]
    z = draw(np.random.default_rng(0), (400_000, 1))
    assert np.mean(z**2) == pytest.approx(1.0, rel=0.03)
    assert np.mean(z**4) == pytest.approx(beta, rel=0.05)


@pytest.mark.parametrize("law", cells.BOUNDED)
def test_the_bound_of_a_law_is_its_largest_value(law):
    z = noise_columns.scaled_law(law, 0.4)(np.random.default_rng(0), (100_000, 1))
    assert np.abs(z).max() == pytest.approx(noise_columns.bound_of(law, 0.4), rel=1e-3)
    assert np.abs(z).max() <= noise_columns.bound_of(law, 0.4) + 1e-12


def test_the_numbers_of_points_are_those_of_the_proposition():
    paper = noise_columns.points_of_paper(10, 1.0, 1.8, 3**0.5)  # uniform noise of variance 1
    assert paper.a == pytest.approx(100 * 9 * 12.8 / 0.8)
    assert paper.b == pytest.approx(100 * 9 / 0.8)
    assert paper.small == pytest.approx(900)
    assert noise_columns.small_variance(4, 9.0) == pytest.approx(6 / 18)
    assert noise_columns.small_variance(4, 2.0) == 0.0


def test_signs_are_redrawn_and_not_shifted():
    rng = np.random.default_rng(0)
    Z = noise_columns.with_mean_zero(noise_columns.three_point(1.3)(rng, (40, 5)), rng)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    assert len(np.unique(np.abs(Z))) == 2


def test_at_the_propositions_number_of_points_the_solution_is_unique_and_below_the_one_found_it_is_not():
    row = noise_columns.measure_sample_size("three-point 3", 3, 1.0, 0)
    assert row["unique"] == row["unique_b"] == row["right_b"] == 1
    assert 3 <= row["n_measured"] <= row["n_paper"]
    small = noise_columns.measure_sample_size("three-point 9", 3, 0.0, 0)
    assert small["variance"] ** 2 < noise_columns.small_variance(3, 9.0)


@pytest.mark.parametrize("noise", [0.2, 0.6, 1.0])
def test_in_one_dimension_the_labels_are_optimal_exactly_when_the_signs_agree(noise):
    for replication in range(5):
        row = label_recovery.measure_one_dimension(10, noise, replication)
        assert row["agree"] == row["optimal"] == row["recovered"]


@pytest.mark.parametrize(("n", "unique"), [(12, 0), (60, 1)])
def test_the_constrained_relaxation_returns_the_lemmas_matrix_where_it_is_the_only_solution(n, unique):
    row = solution_support.measure_lemma(6, n, 0.6, 0)
    assert row["value"] < 1e-6
    assert row["mixture_value"] < 1e-9
    assert row["mixture_rank"] == 2
    assert row["unique"] == unique
    assert (row["distance"] < 1e-3) == bool(unique)


def test_labels_with_a_dependent_product_have_other_solutions_than_diagonal_ones():
    assert solution_support.measure_family(3, 6, 0)["diagonal"] == 0  # seven members in six dimensions
    rows = [solution_support.measure_family(2, 12, r) for r in range(20)]
    assert all(row["independent"] == row["diagonal"] for row in rows)
    assert 0 < sum(row["diagonal"] for row in rows)


def test_rounds_are_counted_until_all_labels_are_right():
    truth = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    M = np.column_stack([np.ones(5), truth]) * np.array([0.2, 0.8, 0.6])
    assert solution_support.rounds_to_recover(M, np.eye(3), truth) == 1
    assert solution_support.rounds_to_recover(np.ones((5, 3)), np.eye(3), truth) == np.inf
    assert solution_support.is_found(truth, truth[:, ::-1] * [1, -1])
    assert not solution_support.is_found(truth, truth[:, :1])


def test_without_noise_the_spectrum_is_of_rank_one_and_with_noise_it_is_not():
    clean, noisy = (label_recovery.measure_perturbed(6, noise, 0) for noise in (0.0, 0.3))
    assert clean["eigenvalue_ratio"] < 1e-2 < noisy["eigenvalue_ratio"]
    assert clean["error"] == 0.0


def test_a_weight_above_one_is_solved_and_proved():
    row = label_recovery.measure_imbalance_weight(0.25, 0.2, 0)
    assert row["gap"] < 1e-5
    assert row["imbalance_beyond"] < row["imbalance_at_one"]


# One-sparse directions


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("lam", [0.05, 0.5])
def test_noise_below_one_leaves_the_one_sparse_solution_alone_and_a_balanced_vector_of_signs_does_not(bounded, lam):
    rng = np.random.default_rng(0)
    B = noise_columns.balanced_points(noise_columns.scaled_law("uniform", 0.3), 8, 6, rng)
    if not bounded:
        B[:, 3] = rng.permutation(B[:, 0])
    X = one_sparse.centred(B)
    assert one_sparse.is_only_sparse_solution(X) is bounded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)  # n = 8 for d = 6
        V = dc.solve(dc.v_space(X, 1.0, dc.Penalty.l1(lam)), "CLARABEL").V
    star = np.zeros((6, 6))
    star[0, 0] = 1 / (1 + lam) ** 2
    assert bool(np.abs(V - star).max() < 1e-3) is bounded
    if not bounded:  # both are optimal, so is their mean, which an interior point prefers to either
        assert V[3, 3] > 0.1 * star[0, 0]


def test_a_one_sparse_instance_has_the_bound_that_is_asked_for():
    row = one_sparse.measure_one_sparse("uniform", 0.9, 4, 0)
    assert 3 * row["m"] == pytest.approx(0.81)
    assert row["n_a"] % 2 == row["n_b"] % 2 == 0
    assert row["n_b"] >= 4 * 0.81 / (row["m"] ** 2 * 0.8) > row["n_b"] - 2
    assert row["error_a"] == row["error_b"] == row["kmeans_b"] == 0.0


# The l1 norm of v alone


@pytest.mark.parametrize("lam", [0.05, 0.4, 5.0])
def test_the_lasso_is_at_the_minimum_of_its_objective(lam):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), rng.choice([-1.0, 1.0], 30)
    v = sparse_direction.lasso(X.T @ X / 30, (X.T @ y / 30)[:, None], lam, np.zeros((6, 1)))[:, 0]
    slope = 2 * X.T @ (X @ v - y) / 30
    assert np.all(np.abs(slope) <= lam + 1e-6)
    np.testing.assert_allclose(slope[v != 0], -lam * np.sign(v[v != 0]), atol=1e-6)
    assert (lam < 5) == bool(np.any(v))


def test_an_alternation_ends_where_no_single_step_lowers_its_objective():
    planted = dc.datasets.make_planted(40, 8, 2, rng=0)
    for run in sparse_direction.alternate(planted.X, 0.1, np.random.default_rng(1)):
        scores = planted.X @ run.v
        assert np.all((run.y == np.sign(scores)) | (scores == 0.0))
        assert run.objective == pytest.approx(np.mean((run.y - scores) ** 2) + 0.1 * np.abs(run.v).sum())
        flipped = sparse_direction.objective_of(planted.X, -run.y, -run.v, 0.1)
        assert flipped == pytest.approx(run.objective)


# The rules: every answer on a made table


def shares(n, **columns):
    """A table of n rows in which a share of each 0/1 column is 1, spread evenly over the rows."""
    place = (np.arange(n) * 0.6180339887) % 1.0
    return pd.DataFrame({name: (place < share).astype(int) for name, share in columns.items()})


def sizes(n=200, small=0, **columns):
    made = {"unique": 1.0, "unique_b": 1.0, "right_b": 1.0} | columns
    table = shares(n, **made).assign(d=5, beta=3.0, variance=1.0, small=small)
    return table.assign(n_paper=100.0, n_paper_b=50.0, n_measured=10)


def small_variances(n, share):
    """Rows of small variance, and others in which as many are not unique."""
    return pd.concat([sizes(n, small=1, unique=share), sizes(200, unique=1.0 - share)])


def recovery(exact=0.0, near=1.0, others=100, right=1.0, ratio=0.05, low_rank=1.0):
    rademacher = shares(200, unique=exact).assign(law="three-point 1", beta=1.0, n=300)
    nearby = shares(40, unique=near).assign(law="three-point 1.1", beta=1.1, n=300)
    several = shares(others, right_interior=right, right_low_rank=low_rank).assign(
        law="gaussian", beta=3.0, n=40, unique=0, eigenvalue_ratio=ratio
    )
    few = several.assign(n=10, right_interior=1 - several["right_interior"], eigenvalue_ratio=1.0)
    return pd.concat([rademacher, nearby, several, few]).assign(d=10)


def made_spectrum(mu_1=1.0, other=0.0, bound=0.5):
    rows = [spectrum.measure_spectrum(3, 1.0, beta) for beta in (1.8, 3.0)]
    table = pd.DataFrame(rows).assign(d=3, m=1.0, beta=[1.8, 3.0])
    return table.assign(
        mu_1=table["mu_1"] * mu_1,
        largest_error=table["largest_error"] + other,
        mu_1_bound=table["mu_1_bound"] * bound,
    )


def second_entries(above, below=None):
    """On either side of the condition, or on one."""
    table = pd.DataFrame({"d": 3, "beta": 3.0, "m": [1.0, 0.1], "c_min": [above, below or above]})
    return table.assign(c_min_bound=1.0, c_min_paper=table["c_min"])[: 1 if below is None else 2]


def hessians(n, lost, kept):
    return shares(n, ratio_chernoff=1 - lost, ratio_a=1.0, ratio_b=kept).astype(float)


def one_dimension(wrong, agree):
    """Rows in which labels are optimal where signs agree, but for a few."""
    table = shares(200, agree=agree).assign(ambiguous=0)
    table["optimal"] = table["recovered"] = np.where(np.arange(200) < wrong, 1 - table["agree"], table["agree"])
    return table


def family(wrong, agree):
    table = one_dimension(wrong, agree)
    return pd.DataFrame({"k": 1, "n": 9, "independent": table["agree"], "diagonal": table["optimal"]})


def rank_two(**made):
    row = {"alpha_step": 0.6, "unique": 1, "distance": 1e-6, "mixture_rank": 2, "mixture_value": 0.0}
    return pd.DataFrame([row | made])


def points(factor, power, last=0, by=None):
    rng = np.random.default_rng(0)
    rows = [
        {"d": d, "replication": r, "n_measured": int(factor * d**power * rng.uniform(0.9, 1.1)) + last}
        for d in (6, 8, 10, 12)
        for r in range(8)
    ]
    return pd.DataFrame(rows) if by is None else pd.DataFrame(rows).assign(**{by: 0.25})


def imbalances(n, beyond):
    table = pd.DataFrame({"error": np.full(n, 0.2), "error_beyond": beyond})
    return table.assign(imbalance_at_one=0.01, imbalance_beyond=0.0)


def rounds(n, one, right):
    return shares(n, few_random=one, few_eigenvectors=0.3, few_best=0.9, right=right).assign(k=2, rounds=3.0)


def perturbed(n, ratio, error):
    """Rows at three noises, the largest of which is told and not judged."""
    small = pd.DataFrame({"noise": np.full(n, 0.05), "eigenvalue_ratio": 0.01, "error": 0.0, "rank": 3, "d": 6})
    far = small.assign(noise=0.5, eigenvalue_ratio=0.9, error=0.9)
    return pd.concat([small, small.assign(noise=0.1, eigenvalue_ratio=ratio, error=error), far])


def one_sparse_table(n=200, unique=1.0, right=1.0):
    made = shares(n, unique_a=unique, unique_b=unique, wrong=1 - right, unique_4=1.0, unique_8=1.0)
    both = {f"{entry}_{name}": made["wrong"] for entry in ("error", "kmeans") for name in ("a", "b", 4, 8)}
    ratios = {"eigenvalue_ratio_a": 0.0, "eigenvalue_ratio_b": 0.0}
    return made.assign(**both, **ratios, d=4, R=np.arange(n) % 2 * 0.1 + 0.9, n_a=100, n_b=20)


def rivals(n=100, alone=0.2, relaxed=0.8, nonzeros=3):
    columns = {f"{method}_{k}": 0.0 for method in ("alone", "relaxed", "missed") for k in range(4)}
    table = shares(n, **columns | {"alone_2": alone, "relaxed_0": relaxed, "missed_2": 1.0}).assign(d=20, n=40)
    return table.assign(**{f"nonzeros_{k}": nonzeros for k in range(4)})


OF_SHARES = ((200, 1.0), AGREES), ((200, 0.8), PARTLY), ((200, 0.3), DIFFERS), ((20, 1.0), NOT_TESTED)
OF_EXCEPTIONS = ((0, 0.5), AGREES), ((4, 0.5), PARTLY), ((40, 0.5), DIFFERS), ((0, 1.0), NOT_TESTED)
OF_SIZES = (
    ((0.6, 2.0), AGREES),
    ((1.8, 2.0), PARTLY),  # more than twice as many
    ((0.07, 3.0), PARTLY),  # another power
    ((0.6, 2.0, 400), DIFFERS),  # not reached
)
RULES = {
    "a sufficient number of points is judged by the share of unique instances": (
        lambda n, share: claims_balanced.proposition_a(sizes(n, unique=share)), *OF_SHARES
    ),
    "another is judged by the share of right instances": (
        lambda n, share: claims_balanced.proposition_b(sizes(n, right_b=share)), *OF_SHARES
    ),
    "small variance is judged by its own rows": (
        lambda n, share: claims_balanced.small_variance(small_variances(n, share)), *OF_SHARES
    ),
    "the proposition is judged within its own assumption": (
        lambda outside: claims_balanced.proposition_a(
            pd.concat([sizes(200), sizes(200, unique=0.0).assign(**outside)])
        ),
        (({"beta": 9.0, "variance": 0.1},), AGREES),
    ),
    "the kurtosis needs both the failures and the control": (
        lambda exact, near: claims_balanced.kurtosis(recovery(exact, near)),
        ((0.0, 1.0), AGREES), ((0.3, 1.0), PARTLY), ((0.0, 0.2), PARTLY), ((0.0, 0.0), DIFFERS), ((0.9, 1.0), DIFFERS),
    ),
    "the kurtosis is not tested by a few instances": (
        lambda: claims_balanced.kurtosis(recovery().iloc[::10]), ((), NOT_TESTED)
    ),
    "spiked solutions need several solutions, the right eigenvector and the spectrum": (
        lambda unique_b=0.2, **made: claims_balanced.spiked(sizes(unique_b=unique_b), recovery(**made)),
        ({}, AGREES), ({"unique_b": 1.0}, PARTLY), ({"ratio": 0.5}, PARTLY), ({"right": 0.8}, PARTLY),
        ({"right": 0.3}, DIFFERS), ({"others": 10}, NOT_TESTED),
    ),
    "the spectrum is right in all, in part or not": (
        lambda **made: claims_balanced.eigenvalues(made_spectrum(**made)),
        ({}, AGREES), ({"bound": 9.0}, PARTLY), ({"mu_1": 1.1}, PARTLY), ({"other": 0.1}, PARTLY),
        ({"mu_1": 1.1, "other": 0.1}, DIFFERS),
    ),
    "the bound on c_min is judged on either side of its condition": (
        lambda *made: claims_balanced.second_entry(second_entries(*made)),
        ((0.5, 0.5), AGREES), ((0.5, 2.0), PARTLY), ((2.0, 2.0), DIFFERS), ((0.5,), NOT_TESTED), ((2.0,), NOT_TESTED),
    ),
    "the Hessian is judged at three numbers of points": (
        lambda n, lost, kept: claims_balanced.hessian(hessians(n, lost, kept)),
        ((200, 0.0, 1.0), AGREES), ((200, 0.0, 0.7), PARTLY), ((200, 0.2, 1.0), DIFFERS), ((20, 0.0, 1.0), NOT_TESTED),
    ),
    "an equivalence in one dimension is judged by its exceptions": (
        lambda wrong, agree: claims_balanced.one_dimension(one_dimension(wrong, agree)), *OF_EXCEPTIONS
    ),
    "an equivalence of diagonal solutions is judged by its exceptions": (
        lambda wrong, agree: claims_labels.diagonal(family(wrong, agree)), *OF_EXCEPTIONS
    ),
    "the lemma on rank two needs its value, its rank and the solver": (
        lambda **made: claims_labels.rank_two(rank_two(**made)),
        ({}, AGREES), ({"distance": 0.2}, PARTLY), ({"mixture_rank": 3}, PARTLY), ({"mixture_value": 1e-3}, DIFFERS),
        ({"unique": 0}, NOT_TESTED),
    ),
    "the solutions of rank two are compared with the balanced ones": (
        lambda *made: claims_labels.rank_two_unique(points(*made, by="imbalance"), points(0.5, 2.0)), *OF_SIZES
    ),
    "the solutions of several labels are compared with the balanced ones": (
        lambda *made: claims_labels.support(points(*made, by="k"), points(0.5, 2.0)), *OF_SIZES
    ),
    "weights above one are judged by what they gain": (
        lambda n, beyond: claims_labels.imbalance_weight(imbalances(n, beyond)),
        ((60, 0.5), AGREES), ((60, 0.175), PARTLY), ((60, 0.0), DIFFERS), ((5, 0.5), NOT_TESTED),
    ),
    "few alternations are judged from one start and run to the end": (
        lambda n, one, right: claims_labels.procrustes_few(rounds(n, one, right)),
        ((200, 1.0, 1.0), AGREES), ((200, 0.6, 1.0), PARTLY), ((200, 0.5, 0.6), DIFFERS), ((20, 1.0, 1.0), NOT_TESTED),
    ),
    "off the model the spectrum and the error are judged at each noise": (
        lambda n, ratio, error: claims_labels.perturbed(perturbed(n, ratio, error)),
        ((60, 0.02, 0.0), AGREES), ((60, 0.4, 0.0), PARTLY), ((60, 0.02, 0.3), DIFFERS), ((9, 0.02, 0.0), NOT_TESTED),
    ),
    "proposition 2 is judged by uniqueness": (
        lambda **made: claims_sparse.proposition_a(one_sparse_table(**made)),
        ({}, AGREES), ({"right": 0.5}, PARTLY), ({"unique": 0.3}, DIFFERS), ({"n": 20}, NOT_TESTED),
    ),
    "proposition 2 is judged by what the solver returns": (
        lambda **made: claims_sparse.proposition_b(one_sparse_table(**made)),
        ({}, AGREES), ({"unique": 0.3}, PARTLY), ({"right": 0.3}, DIFFERS), ({"n": 20}, NOT_TESTED),
    ),
    "the rival is held to the relaxation, each at its best weight": (
        lambda **made: claims_sparse.direction_alone(rivals(**made)),
        ({}, AGREES), ({"alone": 0.78}, PARTLY), ({"nonzeros": 18}, PARTLY), ({"alone": 0.9}, DIFFERS),
        ({"relaxed": 0.0, "alone": 0.0}, NOT_TESTED), ({"n": 40}, NOT_TESTED),
    ),
}  # fmt: skip


@each_answer(RULES)
def test_a_rule_gives_each_of_its_answers(rule, given, verdict):
    assert verdict_of(rule, given) is verdict
