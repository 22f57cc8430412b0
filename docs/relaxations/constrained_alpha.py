r"""
Imbalance fixed: constrained_alpha
==================================

.. math::
   \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}\ \tfrac1n \mathrm{tr}\, Y (\Pi_n - H)
   \quad\text{such that}\quad \tfrac{1}{n^2} 1^\top Y 1 = \alpha,
   \qquad H = X (X^\top X + n\,\mathrm{Diag}(a)^2)^{+} X^\top

Equation (7), section 2.2. The paper states it without the ridge a, which enters as in Eq. (16).

**Where it comes from.** Given y, without a ridge, the best direction is the least-squares solution
:math:`v = (X^\top X)^{+} X^\top y`, and the residual is :math:`\tfrac1n y^\top (\Pi_n - H) y`. This is linear in
:math:`y y^\top`, which Y replaces. The constraint on the diagonal expresses that labels are −1 or 1. The last constraint fixes
the imbalance :math:`(1^\top y / n)^2` of the clusters: 0 if they have equal sizes, 1 if there is one cluster only. Without it
:math:`Y = 1 1^\top` is optimal with value 0.

**Equivalences.** With q(α) its value and p(ν) that of :doc:`penalized_nu`, :math:`p(\nu) = \min_\alpha q(\alpha) + \nu\alpha`.
q is convex, so the penalty reaches every α at which q has a slope −ν with ν in [0, 1]; the example below checks it.

**Use it** if the imbalance is known, or to see how solutions depend on it. It supports a ridge but no l1 penalty.

**Cost.** An n × n semidefinite variable: hundreds of points. There is no fast solver for this form, but
:func:`diffrac_cvx.low_rank` solves Eq. (8) fast, and :func:`diffrac_cvx.certify_y` certifies its solution for Eq. (7).
"""

import diffrac_cvx as dc

planted = dc.datasets.make_planted(40, 4, imbalance=0.25, rng=1)
relaxation = dc.constrained_alpha(planted.X, 0.25)
print(f"planted imbalance {dc.metrics.imbalance(planted.y):.4f}")

# %%
# alpha is a parameter of the CVXPY problem, which is compiled only once. These data have no noise. Between the planted imbalance
# :math:`\alpha_*` and 1 a solution is the mixture of :math:`y y^\top` and :math:`1 1^\top` with the right imbalance
# (section 5.1.4). It has rank two, and y is its first eigenvector for α up to :math:`(1 + \alpha_*)/2`, and its second above. The
# leading eigenvector of :math:`\Pi_n Y \Pi_n`, which ``kmeans_centered`` uses, is the centred y in both cases.

errors = {}
for alpha in (0.25, 0.5, 0.8):
    F = dc.solve(relaxation.at(alpha=alpha), "SCS", tol=1e-5).F
    errors[alpha] = [
        dc.metrics.clustering_error(planted.y, rounded(F))
        for rounded in (
            dc.rounding.sign_leading,
            dc.rounding.sign_second,
            dc.rounding.kmeans_centered,
        )
    ]
    first, second, centered = errors[alpha]
    rank = dc.metrics.numerical_rank(F)
    print(
        f"alpha = {alpha:.2f}: rank {rank}; error {first:.2f} by the first eigenvector,",
        end=" ",
    )
    print(f"{second:.2f} by the second, {centered:.2f} by the centred one")
assert all(centered == 0.0 for _, _, centered in errors.values())

# %%
# Two values of alpha are special. At 0 all feasible Y have Y1 = 0, so that there is no interior point; `solve` then
# restricts Y to the complement of 1. At 1 the solution is :math:`1 1^\top`, in closed form.

for alpha in (0.0, 1.0):
    result = dc.solve(relaxation.at(alpha=alpha), "SCS", tol=1e-5)
    print(f"alpha = {alpha:.0f}: {result.bracket} by {result.solver}: {result.status}")

# %%
# Duality
# -------
# On noisy data, both sides of :math:`p(\nu) = \min_\alpha q(\alpha) + \nu \alpha` are computed: p by `low_rank`, and q at the
# imbalance of its solution by `certify_y`, each with certified bounds, which must overlap.

noisy = dc.datasets.make_planted(40, 4, imbalance=0.25, noise=0.3, rng=1)
for nu in (0.01, 0.1, 1.0):
    p = dc.low_rank(noisy.X, nu)
    alpha = dc.metrics.factor_imbalance(p.F)
    q = dc.certify_y(noisy.X, p.F, alpha=alpha)
    print(f"nu = {nu:4.2f}, alpha = {alpha:.3f}: p in {p.bracket}, q in {q}")
    assert q.lower + nu * alpha <= p.upper + 1e-9
    assert p.lower <= q.upper + nu * alpha + 1e-9
