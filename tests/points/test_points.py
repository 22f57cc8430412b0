"""What every form of points has to give: the sums of the array that it stands for."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from rationals import centred, fractions

from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.proved_sums import RoundedDirection, RoundedFactor
from diffrac_cvx.points.reading import as_points

N, D = 301, 6
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
TABLE[7] = 0.0
M = TABLE - TABLE.mean(axis=0)
U, Y, u = RNG.standard_normal((D, 3)), RNG.standard_normal((N, 2)), RNG.uniform(0.5, 2.0, N)
FORMS = {
    "array": lambda: as_points(TABLE),
    "read by parts": lambda: as_points(TABLE, by_rows=True),
    "sparse by rows": lambda: as_points(scipy.sparse.csr_array(TABLE)),
    "sparse by columns": lambda: as_points(scipy.sparse.csr_array(TABLE), by_columns=True),
    "chunks": lambda: as_points(da.from_array(TABLE, chunks=(100, -1))),
}
OFFSET, SCALED = np.column_stack([M, np.ones(N)]), M * np.linspace(0.5, 2.0, D)
OTHERS = {
    "as it is": (lambda points: points, M),
    "scaled": (lambda points: points.scaled(np.linspace(0.5, 2.0, D)), SCALED),
    "with an offset": (lambda points: points.with_offset(), OFFSET),
    "in a basis": (lambda points: points.in_basis(U), M @ U),
    "by rows": (lambda points: points.by_rows(), M),
    "in columns": (lambda points: points.in_columns(), M),
}

each_form = pytest.mark.parametrize("form", FORMS)


@each_form
@pytest.mark.parametrize("other", OTHERS)
def test_every_form_has_the_sums_of_the_array(form, other):
    change, X = OTHERS[other]
    points = change(FORMS[form]())
    W = RNG.standard_normal((X.shape[1], 3))
    XW = X @ W
    q = np.sum(XW**2, axis=1)
    pull = X.T @ (XW / np.sqrt(q)[:, None])
    gain, energy = points.gain_and_energy(W)
    total, found_pull = points.roots_and_pull(W)
    sums = points.sums_at(W, np.array([1e-12, 1e-2]))
    pairs = [
        (points.array(), X),
        (points @ W, XW),
        (points @ W[:, 0], XW[:, 0]),
        (points @ scipy.sparse.csc_array(W), XW),
        (points.products_with(Y), X.T @ Y / N),
        (points.products_with(u), X.T @ u / N),
        (points.energies(W), q),
        (points.energies(scipy.sparse.csc_array(W)), q),
        ((gain, energy), (np.sqrt(q).mean(), q.mean())),
        (total, np.sqrt(q).sum()),
        (found_pull, pull),
        (points.moment(u), X.T @ (u[:, None] * X) / N),
        (points.second_moment(), X.T @ X / N),
        (points.mean_squares(), np.mean(X**2, axis=0)),
        (points.take(np.array([3, 8, 200])), X[[3, 8, 200]]),
        (sums.moments[0], X.T @ (X / np.sqrt(q)[:, None])),
        ((sums.roots, sums.squares), (np.sqrt(q).sum(), q.sum())),
    ]
    assert points.shape == X.shape
    assert len(points) == N
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@each_form
def test_every_form_knows_its_zeros(form):
    table = np.where(np.arange(D) == 2, 0.0, TABLE)
    points = {"array": lambda: as_points(table, warn=False)}.get(form, FORMS[form])()
    np.testing.assert_array_equal(points.used_columns(), [True, True, form != "array", True, True, True])
    assert points.any()
    np.testing.assert_array_equal(points.with_offset().zero_rows(), False)


@each_form
@pytest.mark.parametrize("sparse", [False, True])
def test_the_sums_of_every_form_are_between_what_is_proved(form, sparse):
    points, G = FORMS[form](), np.diag(RNG.uniform(0.5, 1.0, D))[:, :4]
    offset = RNG.standard_normal(4)
    units = points.equal_units()
    norm = float(np.linalg.norm(G / units[:, None]) + np.linalg.norm(offset))
    factor = RoundedFactor(scipy.sparse.csc_array(G) if sparse else G, offset, units, norm, N)
    gain, energy = points.energy_sums(factor)
    rows = centred(TABLE) @ fractions(G) + fractions(offset)
    q = (rows**2).sum(axis=1)
    assert gain <= float(np.sum(np.sqrt(q.astype(float)))) * (1.0 + 1e-14) < gain * (1.0 + 1e-9)
    assert float(sum(q)) * (1.0 - 1e-14) <= energy <= float(sum(q)) * (1.0 + 1e-9)
    y, v = np.where(RNG.random(N) < 0.5, 1.0, -1.0), RNG.standard_normal(D)
    misfit = points.misfit(y, RoundedDirection(v, units, float(np.linalg.norm(v / units)), N))
    exact = float(sum((fractions(y) - centred(TABLE) @ fractions(v)) ** 2)) / N
    assert exact * (1.0 - 1e-14) <= misfit <= exact * (1.0 + 1e-9)


def test_weighted_points_are_rows_of_other_lengths():
    shares = u / u.sum()
    points = DensePoints(TABLE - shares @ TABLE, shares)
    X = points.array()
    np.testing.assert_allclose(points.mean_of(Y), shares @ Y)
    np.testing.assert_allclose(points.mean_squares(), shares @ X**2)
    np.testing.assert_allclose(points.weighed().second_moment(), X.T @ (shares[:, None] * X), atol=1e-14)
    np.testing.assert_allclose(points.counted().gain_and_energy(U)[0], shares @ np.linalg.norm(X @ U, axis=1))
    equal = DensePoints(M)
    assert equal.weighed() is equal
    assert equal.counted() is equal
