"""Tables and small tools that several tests use."""

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.checks import as_data

COARSE = 2.0**-30  # a unit of rounding with which each error term is large


def normal(n=20, d=4, seed=0):
    """Independent normal entries, not centred."""
    return np.random.default_rng(seed).standard_normal((n, d))


def centered_normal(n=20, d=4, seed=0):
    """Centred normal data."""
    return as_data(normal(n, d, seed))


def planted(n=60, d=30, noise=0.3, seed=0, **options):
    """Two clusters along a direction of few columns."""
    return dc.datasets.make_planted(n, d, noise=noise, rng=seed, **options).X


def coarsen(patch, *modules):
    """Let floating-point numbers have a coarse unit, in which the errors of the bounds are computed."""
    for module in (floating_point, *modules):
        patch.setattr(module, "UNIT_ROUNDOFF", COARSE)


def assert_overlap(one, other, slack=1e-12):
    """Check that two brackets may hold one optimum."""
    assert one.lower <= other.upper + slack, f"{one} is above {other}"
    assert other.lower <= one.upper + slack, f"{one} is below {other}"


def assert_same_bracket(found, expected, tol=1e-8):
    """Check that two brackets have the same ends."""
    assert abs(found.lower - expected.lower) <= tol
    assert abs(found.upper - expected.upper) <= tol
