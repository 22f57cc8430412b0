r"""
The derivative of the value
===========================

How does the optimal value change if the penalty changes, or if a point moves? A line of NumPy computes this from the
solution, without solving again. At the optimal V of problem (15), the derivative of the optimal value is that of the
objective with V held fixed (the envelope theorem), and the objective depends on everything except V in a simple way:

.. math:: 1 - 2 \sum_i p_i \sqrt{x_i^\top V x_i} + \sum_i p_i\, x_i^\top V x_i + \sum_j \rho_j V_{jj}
   + \sum_{jk} \sqrt{\lambda_j \lambda_k}\, |V_{jk}| ,

with :math:`p_i` = 1/n or the weight of point i, and at ν < 1 with the offset of Eq. (14) in :math:`x_i`.

================================ ==================================================================================================
in                               the derivative
================================ ==================================================================================================
λ, one for all columns           :math:`\sum_{jk} |V_{jk}|`
the ridge ρ, one for all columns :math:`\mathrm{tr}\, V`
ν                                the imbalance of the relaxed labels, :math:`1^\top Y 1 / n^2`
point :math:`x_i`                :math:`2 p_i V^{1/2} (V^{1/2} x_i - F_i)`, minus :math:`p_i` times the sum of these over all points
================================ ==================================================================================================

:math:`F_i`, the unit vector that represents the label of point i, is :math:`V^{1/2} x_i` scaled to length one. So the derivative
in a point is zero if :math:`V^{1/2} x_i` has length one, and grows with the difference from this length.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc

X, _ = dc.datasets.load("heart", scaling="standardize")
result = dc.low_rank(X, lam=0.02, ridge=0.1, tol=1e-7)
imbalance = np.sum(result.F.mean(axis=0) ** 2)
print(
    f"in lam {np.abs(result.V).sum():.4f}, in the ridge {np.trace(result.V):.4f}, in nu {imbalance:.4f}"
)

# %%
# This is the derivative if the optimal V is unique. Otherwise the value has only one-sided derivatives, and the result refers to
# one optimal V. It is as accurate as V: its error is at most of the order of the square root of the certified gap. The derivative
# does not exist at points with :math:`x_i^\top V x_i = 0`, where the square root has a kink, and in constant columns without a
# penalty.
#
# The whole path from a few solutions
# -----------------------------------
# The value is concave in λ, in the ridge and in ν. This has two consequences. The line through the upper bound of *any* V,
# optimal or not, with the slope of this V is nowhere below the path; and a chord between two lower bounds is nowhere above it. So
# a few solutions bracket the path everywhere, and the next λ is best placed where the bracket is widest.

grid, found = np.linspace(0.002, 0.5, 500), {}


def bracket_path():
    """Return an upper and a lower bound of the path on the grid."""
    known = sorted(found)
    lines = [found[at].upper + np.abs(found[at].V).sum() * (grid - at) for at in known]
    return np.min(lines, axis=0), np.interp(grid, known, [found[at].lower for at in known])


for lam in (grid[0], grid[-1]):
    found[lam] = dc.low_rank(X, lam=lam, ridge=0.1, tol=1e-6)
while len(found) < 5:
    above, below = bracket_path()
    lam = grid[np.argmax(above - below)]
    found[lam] = dc.low_rank(X, lam=lam, ridge=0.1, tol=1e-6)
    widest = dc.format_upper((above - below).max())
    print(f"from {len(found) - 1} solutions the path is bracketed to {widest}")

# %%
# `paths.lambda_path` solves at every point of its grid. It lies between the lines and the chords of the five solutions.

path = dc.paths.lambda_path(X, grid[::25], dc.Penalty(lam=1.0, ridge=0.1), tol=1e-6)
above, below = bracket_path()
print(
    f"from {len(found)} solutions the path is bracketed to {dc.format_upper((above - below).max())}"
)
assert np.all(path.lower <= above[::25] + 1e-9)
assert np.all(path.upper >= below[::25] - 1e-9)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for lam, at in found.items():
    near = grid[np.abs(grid - lam) < 0.1]
    ax.plot(near, at.value + np.abs(at.V).sum() * (near - lam), color="#b2182b", linewidth=1)
ax.plot([], [], color="#b2182b", linewidth=1, label="slope, from one solution each")
ax.fill_between(grid, below, above, color="#b0b0b0", label="between the lines and the chords")
ax.plot(
    path.parameter, path.value, "o", color="#2166ac", markersize=4, label="paths.lambda_path"
)
ax.set(xlabel="λ", ylabel="value", ylim=(0.05, 0.4))
ax.legend()

# %%
# Which points matter
# -------------------
# The norm of row i of the derivative in X is the largest rate at which the value changes if point i moves. Here are two groups in
# the plane, and three unusual points: one far out along the direction of the split, one between the groups, and one even farther
# out, perpendicular to the direction.

rng = np.random.default_rng(0)
groups = rng.standard_normal((80, 2)) * [0.15, 0.6] + np.outer(
    np.repeat([-1.0, 1.0], 40), [1.0, 0.0]
)
odd = {"far along": (3.0, 0.3), "between": (0.0, -0.4), "far across": (1.0, 4.0)}
points = np.vstack([groups, *odd.values()])
plane = dc.low_rank(points, ridge=0.02, tol=1e-9)
products = (points - points.mean(axis=0)) @ plane.G  # V^(1/2) x_i, since V = GG'
lengths = np.linalg.norm(products, axis=1)
slope = 2.0 / len(points) * (products - products / lengths[:, None]) @ plane.G.T
slope -= slope.mean(axis=0)
norms = np.linalg.norm(slope, axis=1)
for name, norm, length in zip(odd, norms[80:], lengths[80:], strict=True):
    times = norm / np.median(norms[:80])
    print(f"{name:11} {times:2.0f} times the median of the others, length {length:.2f}")

# %%
# The point far along has a vector :math:`V^{1/2} x_i` that is much too long: it changes the scale of the direction, as an outlier
# does in least squares; the points on the inner and outer sides of both groups do so to a smaller extent. The point "far across"
# is the farthest from the mean, and an outlier by any distance; but V has little weight in its direction, and the split hardly
# depends on it. The point between the groups has a short vector, along the second direction of V, which has little weight too. So
# a large row means that the *value* depends on the point, not that the point is far from the others.
#
# To check this, we move each unusual point by 0.01 in the direction opposite to its row, and solve the problem again: the value
# decreases by the length of the step times the norm of the row. For a long step this remains approximately true for the outlier
# only: a point with a small row is already close to its position of lowest cost.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.scatter(*points.T, s=6 + 12000 * norms, color="#2166ac", alpha=0.6)
ax.quiver(*points[80:].T, *-slope[80:].T, color="#b2182b", angles="xy", scale=0.1, width=0.006)
ax.set(title="area: norm of the row; arrows: where to move", xlim=(-2, 4), ylim=(-2, 5))
for i, (name, at) in enumerate(odd.items(), start=80):
    ax.annotate(name, at, (0, 12), textcoords="offset points", ha="center")
    moved = points.copy()
    moved[i] -= 0.01 * slope[i] / norms[i]
    drop = (plane.value - dc.low_rank(moved, ridge=0.02, tol=1e-9).value) / 0.01
    print(
        f"{name:11} norm of the row {norms[i]:.4f}, fall of the value over the step {drop:.4f}"
    )
    assert abs(drop - norms[i]) < 1e-3

plt.show()
