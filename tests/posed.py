"""Problems, values and directions of arrays, as the tests pose them: points in an array are centred, not copied."""

import numpy as np

from diffrac_cvx.certificates import values
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.points.dense import array_points, weighted_points
from diffrac_cvx.points.floating_point import residual_bounds, row_norms
from diffrac_cvx.points.linear_algebra import EPS
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem import direction_problem as problems
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.rounding import directions
from diffrac_cvx.solvers import driver


def centered_points(X, weights=None):
    """Return points that are centred already, an array or not; those of an array may have shares."""
    return X if isinstance(X, Points) else array_points(X, weights)


def linked_points(X, constraints=None):
    """Return points of an array that are centred already, with what is known of them."""
    return weighted_points((X, np.zeros(X.shape[1])), None, constraints)


def direction_problem(X, nu, penalty, weights=None):
    """Return problem (15) of centred points, an array or not; those of an array may have shares."""
    return problems.direction_problem(centered_points(X, weights), nu, penalty)


def proved_value(X, nu, penalty, G, weights=None):
    """Return a number that the objective at a V does not exceed."""
    return values.certified_value(centered_points(X, weights), nu, penalty, G)


def proved_labels_value(X, y, v, nu, a, c, weights=None):
    """Return a number that the cost of labels does not exceed."""
    return values.certified_labels_value(centered_points(X, weights), y, v, nu, PairPenalty(c, a=a))


def proved_clusters_value(X, Z, W, nu, a, c):
    """Return a number that the cost of clusters does not exceed."""
    return values.certified_clusters_value(centered_points(X), Z, W, nu, PairPenalty(c, a=a))


def with_proved_value(found, X, nu, penalty, limits):
    """Return a result with the value of its V."""
    return driver.with_certified_value(found, RoundingBound(centered_points(X), nu, penalty), limits)


def best_direction(X, target, a, c, weights=None):
    """Return the direction of labels."""
    return directions.best_direction(centered_points(X, weights), target, PairPenalty(c, a=a))


def residual_bounds_of(X, target, direction):
    """Return what the squared residuals of rows are not above."""
    return residual_bounds(X @ direction.v, row_norms(X, direction.units), target, direction)


def drop_beside_the_largest(X, a):
    """A whitener that takes for zero what is small beside the largest column, whatever the ridge: a false one."""
    _, singular, right = np.linalg.svd(X / a, full_matrices=False)
    keep = singular > 8 * X.shape[1] * EPS * max(singular[0], 1.0)
    return (right[keep] / a).T / np.sqrt(singular[keep] ** 2 + 1.0), 0.0, 0.0
