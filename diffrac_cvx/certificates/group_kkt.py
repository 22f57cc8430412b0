"""KKT check of the groups outside a working set: one Cholesky factorisation per group, and one for coupled groups.

Between two groups C is (G + ZZ')/t if its spectral norm is at most w_g w_h; otherwise S there is ZZ' minus the excess.
Z corrects the multiplier, see `working_set`.  Certified statements include rounding.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_problem import IntegerArray
from diffrac_cvx.certificates.proof import is_positive
from diffrac_cvx.certificates.screening import gram_block
from diffrac_cvx.certificates.working_set_proof import LIFT, MIN_PROGRESS, OVERSHOOT, Elimination, WorkingSetProblem
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import extreme_eigenpairs, symmetric, times
from diffrac_cvx.problem.penalties.groups import block_norms

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
    schur, structure, m = (
        elimination.schur,
        working_set.problem.structure.restrict(working_set.complement),
        len(working_set.complement),
    )
    if m == 0:
        return GroupCheck(True, np.zeros(0, dtype=np.intp), np.zeros((0, 0)))
    check_deadline(2.0 * len(schur.gram_weights) * float(m) ** 2)
    G, groups = gram_block(schur, slice(None), slice(None)), structure.groups(m)
    labels = np.empty(m, dtype=np.intp)
    for g, group in enumerate(groups):
        labels[group] = g
    same_group = labels[:, None] == labels
    pair_penalty = structure.pair_penalty(working_set.outside.c * (schur.t * (1.0 - 16.0 * UNIT_ROUNDOFF)) ** 0.5)
    units = np.sqrt(schur.t * (working_set.outside.a**2 + working_set.outside.c**2))
    Z, least = np.zeros((m, 0)), -np.inf
    while True:
        corrected, added = elimination.corrected(Z), times(Z, Z.T)
        off_blocks = np.where(same_group, 0.0, G + added)
        excess = off_blocks - pair_penalty.project_safe(off_blocks)
        norms = block_norms(excess, groups)
        is_violated = np.asarray(norms > NEGLIGIBLE_EXCESS * float(np.abs(elimination.diagonal).max(initial=0.0)))
        error = round_up(
            corrected.error
            + float(np.linalg.norm(norms[~is_violated]))
            + sum_error(8) * float(np.linalg.norm(norms) + np.sum(Z**2)),
            m,
        )
        S = np.where(same_group, -G, np.where(is_violated[np.ix_(labels, labels)], added - excess, added))
        S[np.diag_indices(m)] = elimination.diagonal
        is_coupled = structure.complete_groups(np.any(is_violated, axis=0)[labels] | Z.any(axis=1))
        parts = [group for group in groups if not is_coupled[group[0]]]
        parts += [np.flatnonzero(is_coupled)] if is_coupled.any() else []
        failing = [
            part
            for part in parts
            if len(part) > MAX_COUPLED_SIZE or not is_positive(symmetric(S[np.ix_(part, part)]), error)
        ]
        if not failing:
            return GroupCheck(True, np.zeros(0, dtype=np.intp), np.zeros((m, 0)))
        found = [min_eigenvectors(S / np.outer(units, units), part, m) for part in failing]
        values = np.concatenate([part_values for part_values, _ in found])
        vectors = np.hstack([part_vectors for _, part_vectors in found])
        previous, least = least, float(values.min())
        if least >= 0.0 or least < MIN_PROGRESS * previous or max(map(len, failing)) > MAX_COUPLED_SIZE:
            break
        Z = np.hstack([Z, units[:, None] * vectors * np.sqrt(OVERSHOOT * np.maximum(LIFT - values, 0.0))])
    violated = vectors / units[:, None]
    weight = structure.group_sums(np.sum(violated**2, axis=1))
    order = np.argsort(-weight, kind="stable")
    return GroupCheck(
        False, order[: int(np.sum(weight > MIN_GROUP_WEIGHT * weight.max()))], violated[:, :MAX_GROUP_DIRECTIONS]
    )


def min_eigenvectors(S: Array, part: IntegerArray, m: int) -> tuple[Array, Array]:
    """Return eigenvalues, and directions in some coordinates, 0 elsewhere, in which S is negative, or else smallest."""
    some = symmetric(S[np.ix_(part, part)])
    values, vectors = (
        np.linalg.eigh(some)
        if len(part) <= MAX_DENSE_GROUP_EIGEN
        else extreme_eigenpairs(some, MAX_GROUP_DIRECTIONS, "SA", 1e-2)
    )
    order = np.argsort(values)[: max(int(np.sum(values < 0.0)), 1)][:MAX_GROUP_DIRECTIONS]
    found = np.zeros((m, len(order)))
    found[part] = vectors[:, order]
    return values[order], found
