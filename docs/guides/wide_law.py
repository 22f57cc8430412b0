r"""
Recovery in wide tables: a theorem
==================================

A table has n points and many more columns, and two groups differ in a few of them. When does the relaxation with both penalties,
``lam`` and ``ridge``, find the groups, and which ``lam`` helps? Two numbers determine the answer: the cost of the true labels,
and a lower bound on the cost due to variance *within* the groups. This page proves this, analyses factors common to all columns,
and gives a rule for ``lam``.
"""

# %%
# Two numbers
# -----------
# Columns are standardised, ν = 1, :math:`S = X^\top X / n`, and
#
# .. math:: \mathrm{pen}(V) = \mathrm{ridge} \cdot \mathrm{tr} V + \lambda \sum_{jk} |V_{jk}| .
#
# At its optimal scale V has the value :math:`1 - g^2 / T` with :math:`g = \tfrac1n \sum_i \sqrt{x_i^\top V x_i}` and
# :math:`T = \mathrm{tr}\, V S + \mathrm{pen}(V)`. Write it as :math:`C / (1 + C)`, so that :math:`C = T / g^2 - 1`; the optimum
# has the smallest C. For labels y let :math:`m = X^\top y / n` and :math:`\tilde S = S - m m^\top`. For groups of equal size
# :math:`\tilde S` is the variance within them. Define
#
# .. math::
#
#    c(y) &= \min_{m^\top v = 1} v^\top \tilde S v + \mathrm{pen}(v v^\top), \\
#    \kappa(R) &= \min_{V \succeq 0} \frac{\mathrm{pen}(V)}{\mathrm{tr}\, V R}
#              = \max \{ \kappa : \mathrm{ridge}\, I + B \succeq \kappa R, \ |B_{jk}| \le \lambda, \ B_{jj} = \lambda \} .
#
# Labels y with mean 0 have the cost :math:`c(y) / (1 + c(y))` in Eq. (9): for :math:`y^\top X v = b n` the cost is
# :math:`1 - 2b + b^2 (1 + c)` at best. κ is the relaxation of sparse principal components (d'Aspremont, El Ghaoui, Jordan,
# Lanckriet, *SIAM Review* 49, 2007); its two forms agree by duality, and :math:`\mathrm{tr}\, V (\mathrm{ridge}\, I + B) \le
# \mathrm{pen}(V)` is the direction that is used below.
#
# **1. Nothing costs less than κ.** *Every V has* :math:`C \ge \kappa(S)`, *with equality only if all*
# :math:`x_i^\top V x_i` *are equal.*
#
# *Proof.* :math:`g^2 \le \mathrm{tr}\, V S` by Jensen's inequality, and :math:`T \ge (1 + \kappa)\, \mathrm{tr}\, V S`.
#
# **2. Undetectable structure.** :math:`\kappa(S) \le \mathrm{ridge} + \lambda`, *with equality if and only if*
#
# .. math:: |S_{jk}| \le \frac{\lambda}{\mathrm{ridge} + \lambda} \quad \text{for all } j \ne k .
#
# *Then no V costs less than* :math:`(\mathrm{ridge} + \lambda) / (1 + \mathrm{ridge} + \lambda)`, *which is also the smallest
# cost of a diagonal V.*
#
# *Proof.* A diagonal V has pen(V) = (ridge + λ) tr VS. If the correlations are this small, set B = (ridge + λ) S off the
# diagonal: it is in the box, and ridge I + B − (ridge + λ) S = 0. If one of the correlations is larger, take
# :math:`V = w w^\top`,
# :math:`w = e_j \pm e_k` with its sign: its quotient :math:`(\mathrm{ridge} + 2 \lambda) / (1 + |S_{jk}|)` is below ridge + λ.
#
# **3. A necessary condition for the optimum.** *Let* :math:`\kappa = \kappa(\tilde S)`. *If V has* :math:`C < \kappa`,
#
# .. math:: \frac{y^\top X V X^\top y}{n\, \mathrm{tr}\, X V X^\top} \ge 1 - \frac{C}{\kappa}, \qquad
#           \text{and the optimal V has } C \le c(y) .
#
# *If* :math:`\delta = C / \kappa < 1/2`, *the signs of the first left singular vector of* :math:`X V^{1/2}` *agree with y, or −y,
# except for at most* :math:`\delta n` *points.*
#
# *Proof.* Let :math:`a = m^\top V m` and :math:`b = \mathrm{tr}\, V \tilde S`, so that the fraction on the left is a/(a + b). By
# the definition of κ and by Jensen, :math:`a + b + \kappa b \le T = (1 + C) g^2 \le (1 + C)(a + b)`, so
# :math:`b \le (C / \kappa)(a + b)`. The direction v of c(y) has :math:`g \ge \tfrac1n y^\top X v = 1` and
# :math:`T = 1 + c(y)`. For the labels let Q be :math:`X V X^\top` over its trace, :math:`\hat y = y / \sqrt n`, e the first
# eigenvector with eigenvalue :math:`\mu \ge \hat y^\top Q \hat y \ge 1 - \delta > 1/2`, and :math:`p = (\hat y^\top e)^2`. The
# other eigenvalues are at most 1 − μ, so :math:`1 - \delta \le \mu p + (1 - \mu)(1 - p)`, which gives
# :math:`p \ge (\mu - \delta) / (2 \mu - 1) \ge 1 - \delta`: the last step is :math:`(1 - \mu)(1 - 2 \delta) \ge 0`. Then y
# differs from the multiple of e nearest to it by :math:`n (1 - p) \le n \delta` in squares, and each point with the wrong sign
# contributes at least 1 to this.
#
# No model is assumed: this holds for any table and any y. The same proof with :math:`\mathrm{ridge}\, I + B \succeq \alpha m
# m^\top + \beta \tilde S` gives the sharper :math:`b / a \le (C - \alpha) / (\beta - C)` for :math:`\alpha \le C < \beta`.

# %%
# Independent columns
# -------------------
# k columns have the mean shift ±m after standardising (:math:`m^2` is the fraction of their variance between the groups), and all
# columns are independent within the groups. The direction that is flat on the k columns has :math:`|v|_1 = 1/m`,
# :math:`|v|^2 = 1/(k m^2)`:
#
# .. math:: c \le c_k = \frac{\lambda}{m^2} + \frac{1 - m^2 + \mathrm{ridge}}{k m^2} .
#
# **4. Infinitely many points.** *If* :math:`c_k < \mathrm{ridge} + \lambda`, *every optimal V has*
#
# .. math:: \frac{b}{a} \le \frac{1 - m^2}{k m^2} \cdot \frac{1 + \mathrm{ridge} + \lambda}{\mathrm{ridge} + \lambda - c_k},
#
# *however many columns there are; the flat direction has* :math:`b / a = (1 - m^2) / (k m^2)`.
#
# *Proof.* Use B = λ between the informative columns (with the signs of their shifts), λ on the diagonal, 0 elsewhere, β = ridge +
# λ and :math:`\alpha = \lambda / m^2 + (\mathrm{ridge} - \beta (1 - m^2)) / (k m^2)`. On the other columns ridge I + B − β
# :math:`\tilde S` is 0; along the flat direction it is 0 by the choice of α; and on the orthogonal complement within the k
# columns it is ridge − β(1 − :math:`m^2`), which is nonnegative because :math:`m^2 > \lambda / (\mathrm{ridge} + \lambda)`, which
# follows from
# :math:`\lambda / m^2 < c_k`. Then :math:`c_k - \alpha = (1 - m^2)(1 + \beta) / (k m^2)`.
#
# **5. The threshold.** *With infinitely many points and infinitely many columns of noise the optimum is below that of a diagonal V
# if and only if* :math:`m^2 > \lambda / (\mathrm{ridge} + \lambda)`, that is λ < ridge times :math:`m^2 / (1 - m^2)`, *for any
# k ≥ 2.*
#
# *Proof.* The diagonal V that is flat on the noise has :math:`x^\top V x \to s` by the law of large numbers, and its optimal
# scale is
# :math:`s^{-1/2} = 1 + \mathrm{ridge} + \lambda`. Adding ε W changes the objective by
# :math:`\varepsilon (\mathrm{pen}(W) - (\mathrm{ridge} + \lambda)\, \mathrm{tr}\, W \Sigma)`, which is negative for some W if and
# only if κ is below ridge + λ; now use 2.
#
# **6. Noise columns exactly 0.** *With infinitely many points let V be optimal among the matrices on the k columns, and
# q = x'Vx. It is optimal among all if and only if* :math:`\mathbb{E}\, q^{-1/2} \le 1 + \mathrm{ridge} + \lambda`.
#
# *Proof.* A noise column j is independent of q and of the others and has mean 0, so :math:`M_{jl} - A_{jl} = 0` for l ≠ j: by the
# sufficient condition of :doc:`/auto/guides/components` only
# :math:`S_{jj} = 1 + \mathrm{ridge} + \lambda - \mathbb{E}\, q^{-1/2}` matters, and if it is negative a larger :math:`V_{jj}` is
# better. Since :math:`\mathbb{E}\, q^{-1/2} \ge 1 / \mathbb{E} q^{1/2} = 1 + C`, C ≤ ridge + λ is necessary, and it is sufficient
# if V separates the groups without noise.
#
# **7. n points.** *Let the groups be of equal size, and the columns independent and normally distributed within them. With
# probability at least 1 − η,*
#
# .. math::
#
#    \kappa(\tilde S) &\ge \mathrm{ridge} + \lambda \quad \text{if} \quad \frac{\lambda}{\mathrm{ridge} + \lambda} \ge t
#        = \Big(\frac{4 \log d + 2 \log (1/\eta)}{n - 2}\Big)^{1/2}, \\
#    c(y) &\le \frac{1}{\bar m^2} \Big(\lambda + t + \frac{1 + \mathrm{ridge}}{k}\Big),
#
# :math:`\bar m` *being the mean of* :math:`|m_j|` *over the k columns. So the fraction along y is at least*
# :math:`1 - c / (\mathrm{ridge} + \lambda)`.
#
# *Proof.* Within the groups a column is a uniformly distributed direction in n − 2 dimensions, and the absolute correlation of a
# pair exceeds t with probability at most :math:`2 e^{-(n-2) t^2 / 2}`; there are fewer than :math:`d^2 / 2` pairs. The entries of
# :math:`\tilde S` off the diagonal are at most these correlations, on the diagonal at most 1. With
# :math:`B = (\mathrm{ridge} + \lambda) \tilde S` off the diagonal, ridge I + B − (ridge + λ) :math:`\tilde S` is diagonal and
# nonnegative. For c(y) take the flat direction with the signs of m: :math:`v^\top \tilde S v \le (1 + (k-1) t) / (k \bar m^2)`.
#
# **Random labels.** With fewer points than columns any labels can be separated without error. Their cost is determined by the l1
# norm: :math:`1 = y^\top X v / n \le r |v|_1` with :math:`r = \max_j |y^\top x_j| / n`, so :math:`c(y) \ge \lambda / r^2` for any
# y. For random labels (fair coins) r is about :math:`\sqrt{2 \log d / n}`: their cost is :math:`\lambda n / (2 \log d)`, whereas
# that of the true labels is :math:`\lambda / m^2`.

# %%
# An instance
# -----------
# Here is statement 3, which is Theorem 4 of the companion note (:doc:`/note`), on one table, with κ from an interior-point
# method.

import cvxpy as cp
import numpy as np

import diffrac_cvx as dc

rng = np.random.default_rng(0)
n, d, k, lam, ridge = 60, 40, 6, 0.1, 0.3
y = np.where(np.arange(n) < n // 2, 1.0, -1.0)
X = rng.standard_normal((n, d))
X[:, :k] += 2.0 * y[:, None]
X = (X - X.mean(axis=0)) / X.std(axis=0)
m = X.T @ y / n
within = X.T @ X / n - np.outer(m, m)

V = cp.Variable((d, d), PSD=True)
penalty = ridge * cp.trace(V) + lam * cp.sum(cp.abs(V))
kappa = cp.Problem(cp.Minimize(penalty), [cp.trace(within @ V) == 1]).solve(solver="CLARABEL")

result = dc.low_rank(X, lam=lam, ridge=ridge, tol=1e-4)
C = result.upper / (1 - result.upper)
fraction = m @ result.V @ m / np.trace(X @ result.V @ X.T) * n
least = 1 - C / kappa
print(
    f"C {C:.3f}, kappa {kappa:.3f}: fraction along y at least {least:.2f}, found {fraction:.2f}"
)
assert fraction >= 1 - C / kappa - 1e-6

coin = rng.permutation(y)
for name, labels in (("true", y), ("a coin's", coin)):
    r = np.abs(X.T @ labels).max() / n
    print(f"{name} labels cost c of at least {lam / r**2:.2f}")

# %%
# How large κ is for noise
# ------------------------
# Condition 7 is stronger than necessary. Let B be :math:`\kappa S` clipped to the box. The remainder is a sparse symmetric
# matrix, whose largest eigenvalue is about twice the root of d times the variance of an entry. For independent columns with
# entries of size :math:`n^{-1/2}` this gives the equation
#
# .. math:: \kappa - \lambda + 2 \kappa \sqrt{d/n}\; \sigma\big(\lambda \sqrt n / \kappa\big) = \mathrm{ridge}, \qquad
#           \sigma(\tau)^2 = \mathbb{E} (|z| - \tau)_+^2, \quad z \sim N(0, 1) .
#
# It is an approximation, not a theorem; ``make wide-law`` compares it with the bound that clipping certifies on tables of noise.
#
# **Which lambda.** With :math:`r = \lambda / \kappa` and :math:`N(r) = 2 \sqrt{d/n}\, \sigma(r \sqrt n)` the equation becomes
# :math:`\kappa = \mathrm{ridge} / (1 - r + N(r))`, so that
#
# .. math:: \frac{c_k}{\kappa} = \frac{r}{m^2} + \frac{1 - m^2 + \mathrm{ridge}}{\mathrm{ridge}} \cdot \frac{1 - r + N(r)}{k m^2} .
#
# The first term favours a small r; the second grows if r is so small that noise exceeds the threshold. If the groups are barely
# found, the best r is close to :math:`\sqrt{\log d / n}` for k of 10 to 20 and lower for more columns, and κ is then close to the
# ridge. So
#
# .. math:: \lambda \approx \mathrm{ridge} \cdot \sqrt{\log d / n}
#
# is a rule of thumb for d above n: 0.08 for 100 points and 1000 columns at the ridge 0.3, 0.11 for 60 and 5000.
#
# **Which ridge.** If λ is proportional to the ridge, :math:`c_k / \kappa` depends on it only through
# :math:`(1 - m^2 + \mathrm{ridge}) / \mathrm{ridge}`: a larger ridge helps against noise, but above 1 there is little to gain.
# Against few factors a small ridge helps: there the misfit of scores that are not two-valued must be decisive, and a large ridge
# would outweigh it.

for n_points, n_columns in ((100, 1000), (60, 5000), (200, 2000), (50, 20_000)):
    rule = 0.3 * (np.log(n_columns) / n_points) ** 0.5
    print(f"{n_points} points, {n_columns} columns: lambda = {rule:.3f}")

# %%
# Factors
# -------
# Often a few factors, such as batch or age, affect all columns. Let f factors contribute a fraction ρ of the variance of each
# column, with random loadings.
#
# **Why variance follows the factors.** The variance along a factor is about :math:`\rho d / f`, and that between the groups is
# :math:`k m^2`. The first principal component, and k-means, which depends on variance, follow the larger of the two, and d is
# large.
#
# **Why the relaxation does not follow them.** Its penalty depends on pairs, not on sums. For a V with equal weights on all
# factors, :math:`\lambda |V|_1 / \mathrm{tr}\, V S` is about :math:`\lambda \sqrt{2 f / \pi} / \rho`: up to a constant, this is λ
# divided by the size of the correlation of two columns, :math:`\rho / \sqrt f`. The groups cost :math:`\lambda / m^2`, λ divided
# by the correlation of two informative columns. Neither depends on d or k. Moreover, scores on factors are not two-valued: *if x
# is normally distributed and V has rank f,*
# :math:`C \ge J_f (1 + \kappa) - 1` *with* :math:`J_f = f / (\mathbb{E} \chi_f)^2`, which is π/2 for one factor, 1.27 for two, 1.05
# for ten. *Proof.* :math:`x^\top V x = \sum_i w_i z_i^2` with independent normal z; the mean of its root is concave and symmetric
# in w, so for a given sum of the w it is largest if they are equal. A single factor is expensive however it is correlated; many
# factors are not, and then the l1 norm must be decisive.
#
# **The cost of avoiding them.** Let a be the k × f matrix of loadings on the informative columns, with the signs of the shifts, and
# P the projection onto its columns. The direction :math:`v \propto (I - P) 1` is orthogonal to the factors, and
#
# .. math:: c \le \frac{\lambda k + \sigma^2 + \mathrm{ridge}}{m^2\, |(I - P) 1|^2}, \qquad
#           \mathbb{E} |(I - P) 1|^2 = k - f ,
#
# where :math:`\sigma^2` is the idiosyncratic variance of a column; this uses :math:`|v|_1^2 \le k |v|^2` and symmetric
# distributions of the loadings. So f factors cost at most as much as the loss of f informative columns, and the l1 term grows at
# most by k / (k − f). It need not grow at all: a direction v ≥ 0 with :math:`a^\top v = 0` has :math:`|v|_1 = 1/m`, like the flat
# direction, and exists if 0 is in the convex hull of the rows of a. For symmetrically distributed loadings the probability of
# this is that of at least f heads in k − 1 tosses of a fair coin (Wendel, *Math. Scand.* 11, 1962), which is more than one half
# if k > 2f.
#
# A limitation: statement 3 uses Jensen's inequality within the groups too, so it depends on the factors only through their κ, and
# is not tight if there are few factors.
