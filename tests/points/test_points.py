"""Every storage format of points gives the sums of the equivalent array."""

import numpy as np
import pytest
import scipy.sparse
from forms import Form
from rationals import centered, fractions, gram, size

from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.floating_point import RoundedFactor
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.points.rows import ColumnRows
from diffrac_cvx.points.table import array_table

N, D = 301, 6
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
TABLE[7] = 0.0
M = TABLE - TABLE.mean(axis=0)
BASIS = np.random.default_rng(1).standard_normal((D + 1, 3))
U, Y, u = RNG.standard_normal((D, 3)), RNG.standard_normal((N, 2)), RNG.uniform(0.5, 2.0, N)
READ = {  # how a table in each format is read
    "array": {},
    "array read by parts": {"are_many": lambda n, d: True},
    "memory map": {"are_many": lambda n, d: True},
    "csr": {},
    "csr by columns": {"by_columns": True},
    "coo": {},
}
FACTORS = np.linspace(0.5, 2.0, D + 1)
OFFSET = np.column_stack([M, np.ones(N)])
OTHERS = {
    "as it is": (lambda points: points, M),
    "scaled": (lambda points: points.scaled(FACTORS[:D]), M * FACTORS[:D]),
    "with an offset": (lambda points: points.with_offset(), OFFSET),
    "with an offset, scaled": (lambda points: points.with_offset().scaled(FACTORS), OFFSET * FACTORS),
    "in a basis": (lambda points: points.in_basis(U), M @ U),
    "in a basis, with an offset": (lambda points: points.with_offset().in_basis(BASIS), OFFSET @ BASIS),
    "by rows": (lambda points: points.by_rows(), M),
    "in columns": (lambda points: points.in_columns(), M),
}

each_way = pytest.mark.parametrize("way", READ)


@pytest.fixture
def points_of(way, tmp_path):
    """Function that reads an array in one of the formats, in one of the ways."""
    form = Form(way.removesuffix(" read by parts").removesuffix(" by columns"), tmp_path)
    return lambda table: read_points(form(table), **READ[way]).X


@each_way
@pytest.mark.parametrize("other", OTHERS)
def test_every_form_has_the_sums_of_the_array(points_of, other):
    change, X = OTHERS[other]
    points = change(points_of(TABLE).rows)
    W = RNG.standard_normal((X.shape[1], 3))
    XW = X @ W
    q = np.sum(XW**2, axis=1)
    pull = X.T @ (XW / np.sqrt(q)[:, None])
    gain, energy = points.root_mean_and_mean(W)[:2]
    total, found_pull = points.sqrt_sum_and_gradient(W)
    sums = points.weighted_sums(W, np.array([1e-12, 1e-2]))
    pairs = [
        (points.array(), X),
        (points @ W, XW),
        (points @ W[:, 0], XW[:, 0]),
        (points @ scipy.sparse.csc_array(W), XW),
        (points.rmatvec(Y), X.T @ Y / N),
        (points.rmatvec(u), X.T @ u / N),
        (points.quadratic_forms(W), q),
        (points.quadratic_forms(scipy.sparse.csc_array(W)), q),
        ((gain, energy), (np.sqrt(q).mean(), q.mean())),
        (total, np.sqrt(q).sum()),
        (found_pull, pull),
        (points.weighted_gram(u), X.T @ (u[:, None] * X) / N),
        (points.second_moment(), X.T @ X / N),
        (points.mean_squares(), np.mean(X**2, axis=0)),
        (points.take(np.array([3, 8, 200])), X[[3, 8, 200]]),
        (points.columns(np.array([2, 0])).array(), X[:, [2, 0]]),
        (points.columns(np.array([2, 0])).second_moment(), X[:, [2, 0]].T @ X[:, [2, 0]] / N),
        (points.columns(np.array([2, 0])).mean_squares(), np.mean(X[:, [2, 0]] ** 2, axis=0)),
        (points.gram_of_products(W), XW.T @ XW / N),
        (points.squared_products(u)(q), u * ((X @ X.T / (2 * N)) ** 2 @ (u * q))),
        (points.gram_of_products(scipy.sparse.csc_array(W)), XW.T @ XW / N),
        (sums[0][0], X.T @ (X / np.sqrt(q)[:, None])),
        (sums[2:], (np.sqrt(q).sum(), q.sum())),
    ]
    if isinstance(points, ColumnRows):
        gram = X.T @ (u[:, None] * X)
        pairs += [
            (points.weighted_row_sum(u), u @ X),
            (points.gram(u), gram),
            (points.gram(u, slice(0, 2), slice(2, 5)), gram[:2, 2:5]),
            (points.squares().array(), X**2),
            (points.mean_abs(), np.mean(np.abs(X), axis=0)),
            (points.hstack(Y).array(), np.column_stack([X, Y])),
        ]
    assert points.shape == X.shape
    assert len(points) == N
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@each_way
@pytest.mark.parametrize("units", [1.0, np.logspace(-6, 6, D)])
def test_the_errors_of_whitened_columns_are_bounded_in_every_form(points_of, units):
    """With a nearly collinear column, too."""
    table = TABLE.copy()
    table[:, 1] = table[:, 0] + 1e-4 * table[:, 1]
    points = points_of(table * units)
    scales, diagonal = points.column_scales(), np.linspace(0.0, 0.1, D)
    points = points.scaled(scales).rows
    W = np.linalg.inv(np.linalg.cholesky(points.second_moment() + np.diag(diagonal))).T
    found = points.whitening_error_bounds(W, points.in_basis(W), diagonal)
    X, exact_W = centered(table * units) * fractions(scales), fractions(W)
    residual = exact_W.T @ (gram(X, fractions(np.ones(N))) + np.diag(fractions(diagonal))) @ exact_W - np.eye(
        D, dtype=int
    )
    assert np.linalg.norm(residual.astype(float), 2) <= found.right_error < 1e-2
    assert size(fractions(points.in_basis(W).array()) - X @ exact_W) / N**0.5 <= found.data_error < 1e-4


@each_way
def test_every_form_knows_its_zeros(points_of):
    """Those of entries that equal the mean, too, which is a whole number."""
    whole = np.random.default_rng(4).integers(-5, 4, (60, 4))
    points = points_of(np.concatenate([whole, -whole, np.zeros((2, 4))]) * [1, 1, 0, 1] + [2.0, 0.0, 3.0, 0.0])
    np.testing.assert_array_equal(points.used_columns(), [True, True, False, True])
    np.testing.assert_array_equal(
        points.rows.zero_rows(), [*np.tile(~(whole * [1, 1, 0, 1]).any(axis=1), 2), True, True]
    )
    np.testing.assert_array_equal(points.with_offset().rows.zero_rows(), False)


@each_way
def test_every_form_is_centered_as_accurately_as_its_columns_vary(points_of):
    """Columns of 1e7 +- 1, of 2000 +- 10, of 0 and 2000 in equal parts, with a single zero, and a constant one."""
    table = TABLE + np.where(np.arange(D) == 2, 1e7, 0.0)
    table[:, 0], table[:, 1] = 2000.0 + 10.0 * TABLE[:, 0], 2000.0 * (TABLE[:, 1] > 0.0)
    table[:, 4], table[:, 5] = np.arange(N) != 7, 0.1
    points, deviation = points_of(table), np.append(table.std(axis=0)[:-1], 1.0)
    assert size((fractions(points.array()) - centered(table)) / fractions(deviation)) <= 1e-12
    assert not points.array()[:, 5].any()
    assert points.means[:5] == pytest.approx(table.mean(axis=0)[:5], rel=1e-14)


@each_way
@pytest.mark.parametrize("sparse", [False, True])
def test_the_sums_of_every_form_are_between_what_is_proved(points_of, sparse):
    points, G = points_of(TABLE), np.diag(RNG.uniform(0.5, 1.0, D))[:, :4]
    offset = RNG.standard_normal(4)
    units = points.column_scales()
    norm = float(np.linalg.norm(G / units[:, None]) + np.linalg.norm(offset))
    factor = RoundedFactor(scipy.sparse.csc_array(G) if sparse else G, offset, units, norm, N)
    gain, energy = points.sum_bounds(factor)
    rows = centered(TABLE) @ fractions(G) + fractions(offset)
    q = (rows**2).sum(axis=1)
    assert gain <= float(np.sum(np.sqrt(q.astype(float)))) * (1.0 + 1e-14) < gain * (1.0 + 1e-9)
    assert float(sum(q)) * (1.0 - 1e-14) <= energy <= float(sum(q)) * (1.0 + 1e-9)
    y, v = np.where(RNG.random(N) < 0.5, 1.0, -1.0), RNG.standard_normal(D)
    misfit = points.residual_bound(y, v)
    exact = float(sum((fractions(y) - centered(TABLE) @ fractions(v)) ** 2)) / N
    assert exact * (1.0 - 1e-14) <= misfit <= exact * (1.0 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_the_rows_of_a_problem_know_the_points_that_they_sum(weighted, linked):
    weights = u / u.sum() if weighted else None
    constraints = Constraints(must_link=[(0, 5), (5, 9)], cannot_link=[(1, 2)]) if linked else None
    points = array_table(M, weights, chunklets_of(constraints, N))
    (rows, sums), counts = points.problem_rows(), points.times_counts(np.ones(N))
    per_row = RNG.uniform(0.5, 2.0, len(rows))
    of_points = sums.chunklets.repeat(per_row * sums.counts)
    # The weight of a row, for the error of a point in it: at least that of each of its points.
    assert sums.largest_weight(per_row) >= of_points.max() * (1.0 - 1e-15)
    assert sums.max_size == (3 if linked else 0)
    np.testing.assert_allclose(points.normalized_weights * N, counts)
    np.testing.assert_allclose(points.times_root_counts(M), np.sqrt(counts)[:, None] * M)
    np.testing.assert_allclose(points.mean_of(Y), counts @ Y / N)
    np.testing.assert_allclose(points.mean_squares(), counts @ M**2 / N)
    squares = M.T @ (counts[:, None] * M) / N
    np.testing.assert_allclose(points.weighted_rows().second_moment(), squares, atol=1e-14)
    assert (points.weighted_rows() is points.rows) == (rows is points.rows) == (not weighted and not linked)
    if not linked:
        np.testing.assert_allclose(rows.root_mean_and_mean(U)[0], counts @ np.linalg.norm(M @ U, axis=1) / N)
    F = np.asarray(sums.expand(rows.labels_factor(U)))
    assert F.shape == (N, 3)
    if linked:
        np.testing.assert_array_equal(F[[0, 5, 1]], [F[5], F[9], -F[2]])
