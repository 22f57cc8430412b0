"""Problems of arrays, as the tests pose them: points in an array are centred, not copied."""

import numpy as np

from diffrac_cvx.certificates import values
from diffrac_cvx.points.linear_algebra import EPS
from diffrac_cvx.points.table import Table, array_table, centered_table
from diffrac_cvx.problem import direction_problem as problems


def centered_points(X, weights=None):
    """Return points that are centred already, an array or not; those of an array may have shares."""
    return X if isinstance(X, Table) else array_table(X, weights)


def linked_points(X, constraints=None):
    """Return points of an array that are centred already, with what is known of them."""
    return centered_table((X, np.zeros(X.shape[1])), None, constraints)


def direction_problem(X, nu, penalty, weights=None):
    """Return problem (15) of centred points, an array or not; those of an array may have shares."""
    return problems.direction_problem(centered_points(X, weights), nu, penalty)


def proved_value(X, nu, penalty, G, weights=None):
    """Return a number that the objective at a V does not exceed."""
    return values.certified_value(centered_points(X, weights), nu, penalty, G)


def drop_beside_the_largest(X, a):
    """A whitener that takes for zero what is small beside the largest column, whatever the ridge: a false one."""
    _, singular, right = np.linalg.svd(X / a, full_matrices=False)
    keep = singular > 8 * X.shape[1] * EPS * max(singular[0], 1.0)
    return (right[keep] / a).T / np.sqrt(singular[keep] ** 2 + 1.0), 0.0, 0.0
