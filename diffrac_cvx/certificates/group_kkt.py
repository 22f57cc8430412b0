"""KKT check of the groups outside a working set: one Cholesky factorisation per group, and one for coupled groups.

Between two groups C is G/t if its spectral norm is at most w_g w_h; otherwise S there is minus the excess.  Certified
statements include rounding.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_problem import IntegerArray
from diffrac_cvx.certificates.proof import is_positive
from diffrac_cvx.certificates.screening import gram_block
from diffrac_cvx.certificates.working_set_proof import Elimination, WorkingSetProblem
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import extreme_eigenpairs, symmetric
from diffrac_cvx.problem.penalties.group import block_norms

MAX_COUPLED_SIZE = 3000  # coordinates of the coupled groups, whose matrix is factorised
NEGLIGIBLE_EXCESS = 1e-10  # relative to the diagonal of S, below which an excess is added to the error
MAX_DENSE_GROUP_EIGEN = 300  # coordinates up to which all eigenvectors are computed
MAX_GROUP_DIRECTIONS = 12  # returned if S is not positive
MIN_GROUP_WEIGHT = 1e-2  # of a group in violated directions, relative to the largest; lighter groups do not enter


class GroupCheck(NamedTuple):
    """Whether S is certified positive outside the working set; if not, entering coordinates and violated directions."""

    certified: bool
    entering: IntegerArray
    violated: Array  # (m, v)


def check_groups_kkt(working_set: WorkingSetProblem, elimination: Elimination) -> GroupCheck:
    """Check S outside the working set, after its elimination, by complete groups of coordinates."""
    schur, pair_penalty, m = (
        elimination.schur,
        working_set.problem.pair_penalty.restrict(working_set.complement),
        len(working_set.complement),
    )
    if m == 0:
        return GroupCheck(True, np.zeros(0, dtype=np.intp), np.zeros((0, 0)))
    check_deadline(2.0 * len(schur.gram_weights) * float(m) ** 2)
    G, diagonal, groups = gram_block(schur, slice(None), slice(None)), elimination.diagonal, pair_penalty.groups
    labels = np.empty(m, dtype=np.intp)
    for g, group in enumerate(groups):
        labels[group] = g
    same_group = labels[:, None] == labels
    scaled = pair_penalty.with_weights(working_set.outside.c * (schur.t * (1.0 - 16.0 * UNIT_ROUNDOFF)) ** 0.5)
    off_blocks = np.where(same_group, 0.0, G)
    excess = off_blocks - scaled.project_safe(off_blocks)
    norms = block_norms(excess, groups)
    is_violated = np.asarray(norms > NEGLIGIBLE_EXCESS * float(np.abs(diagonal).max(initial=0.0)))
    error = round_up(
        elimination.error + float(np.linalg.norm(norms[~is_violated])) + sum_error(8) * float(np.linalg.norm(norms)), m
    )
    S = np.where(same_group, -G, np.where(is_violated[np.ix_(labels, labels)], -excess, 0.0))
    S[np.diag_indices(m)] = diagonal
    coupled = np.any(is_violated, axis=0)
    parts = [group for group, some in zip(groups, coupled, strict=True) if not some]
    parts += [np.flatnonzero(coupled[labels])] if coupled.any() else []
    failing = [
        part
        for part in parts
        if len(part) > MAX_COUPLED_SIZE or not is_positive(symmetric(S[np.ix_(part, part)]), error)
    ]
    if not failing:
        return GroupCheck(True, np.zeros(0, dtype=np.intp), np.zeros((m, 0)))
    violated = np.hstack([min_eigenvectors(S, part, m) for part in failing])
    weight = pair_penalty.group_sums(np.sum(violated**2, axis=1))
    order = np.argsort(-weight, kind="stable")
    return GroupCheck(
        False, order[: int(np.sum(weight > MIN_GROUP_WEIGHT * weight.max()))], violated[:, :MAX_GROUP_DIRECTIONS]
    )


def min_eigenvectors(S: Array, part: IntegerArray, m: int) -> Array:
    """Return directions in some coordinates, 0 elsewhere, in which S is negative, or else smallest."""
    some = symmetric(S[np.ix_(part, part)])
    values, vectors = (
        np.linalg.eigh(some)
        if len(part) <= MAX_DENSE_GROUP_EIGEN
        else extreme_eigenpairs(some, MAX_GROUP_DIRECTIONS, "SA", 1e-2)
    )
    order = np.argsort(values)[: max(int(np.sum(values < 0.0)), 1)][:MAX_GROUP_DIRECTIONS]
    found = np.zeros((m, len(order)))
    found[part] = vectors[:, order]
    return found
