"""Groups outside a core, of which S is looked at: a Cholesky factorisation a group, and one of those that are coupled.

Between two groups C is G/t where its spectral norm is at most w_g w_h; elsewhere S there is minus what is beyond.  What
is said to be proved is so with rounding counted.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_problem import Indices
from diffrac_cvx.certificates.core_proof import Core, Eliminated
from diffrac_cvx.certificates.proof import is_positive
from diffrac_cvx.certificates.screening import block_of
from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT, round_up, sum_error
from diffrac_cvx.points.linear_algebra import extreme_eigenpairs, symmetric
from diffrac_cvx.problem.penalties.groups import block_norms

MOST_COUPLED = 3000  # coordinates of groups that are coupled, whose matrix is factorised
FAINT = 1e-10  # of the diagonal of S, below which what is beyond counts as rounding does
DENSE = 300  # coordinates up to which all eigenvectors are computed
VIOLATED = 12  # directions that are named where S is not positive
LIGHT = 1e-2  # weight of a group in violated directions, to the largest, below which it is not named


class Outside(NamedTuple):
    """Whether S is proved positive outside the core; else coordinates to join it, and directions in which it is not."""

    proved: bool
    needed: Indices
    violated: Array  # (m, v)


def look_at_groups(core: Core, found: Eliminated) -> Outside:
    """Look at S outside the core after the core is eliminated: whole groups of coordinates."""
    at, structure, m = found.at, core.problem.structure.restrict(core.rest), len(core.rest)
    if m == 0:
        return Outside(True, np.zeros(0, dtype=np.intp), np.zeros((0, 0)))
    poll(2.0 * len(at.gram_weights) * float(m) ** 2)
    G, diagonal, groups = block_of(at, slice(None), slice(None)), found.diagonal, structure.groups(m)
    labels = np.empty(m, dtype=np.intp)
    for g, group in enumerate(groups):
        labels[group] = g
    same = labels[:, None] == labels
    sides = structure.coupling(core.outside.c * (at.t * (1.0 - 16.0 * UNIT)) ** 0.5)
    apart = np.where(same, 0.0, G)
    excess = apart - sides.project(apart)
    norms = block_norms(excess, groups)
    counts = np.asarray(norms > FAINT * float(np.abs(diagonal).max(initial=0.0)))
    off = round_up(found.slack + float(np.linalg.norm(norms[~counts])) + sum_error(8) * float(np.linalg.norm(norms)), m)
    S = np.where(same, -G, np.where(counts[np.ix_(labels, labels)], -excess, 0.0))
    S[np.diag_indices(m)] = diagonal
    linked = np.any(counts, axis=0)
    parts = [group for group, some in zip(groups, linked, strict=True) if not some]
    parts += [np.flatnonzero(linked[labels])] if linked.any() else []
    failing = [
        part for part in parts if len(part) > MOST_COUPLED or not is_positive(symmetric(S[np.ix_(part, part)]), off)
    ]
    if not failing:
        return Outside(True, np.zeros(0, dtype=np.intp), np.zeros((m, 0)))
    violated = np.hstack([least_directions(S, part, m) for part in failing])
    weight = structure.sums(np.sum(violated**2, axis=1))
    order = np.argsort(-weight, kind="stable")
    return Outside(False, order[: int(np.sum(weight > LIGHT * weight.max()))], violated[:, :VIOLATED])


def least_directions(S: Array, part: Indices, m: int) -> Array:
    """Return directions of some coordinates in which S is negative, or is least, with zeros elsewhere."""
    some = symmetric(S[np.ix_(part, part)])
    values, vectors = np.linalg.eigh(some) if len(part) <= DENSE else extreme_eigenpairs(some, VIOLATED, "SA", 1e-2)
    order = np.argsort(values)[: max(int(np.sum(values < 0.0)), 1)][:VIOLATED]
    found = np.zeros((m, len(order)))
    found[part] = vectors[:, order]
    return found
