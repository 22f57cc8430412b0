r"""
Reliability: brackets in floating point
=======================================

A bracket is proved by weak duality (:doc:`certificates`), and the proof is computed in double precision. This page explains to
which data it refers, how it accounts for rounding errors, and how it was tested.

Data covered by the proof
-------------------------
The proof refers to the numbers in the array that you pass, taken as exact and centred exactly. There is one exception, which
every result with a bound reports: a column without a penalty is *excluded* if, up to rounding (about :math:`10^{-13}` of its
size), it is a combination of the other such columns, or a constant. The attribute ``n_excluded`` of results, brackets,
certificates and estimators counts these columns; their rows of V are zero, and the bounds refer to the table without them. It is
positive for collinear columns, such as all dummy columns of one categorical variable; excluding one of these changes nothing. A
column with a ridge or an l1 weight is never excluded, however small the weight is and however far from zero the column is: its
possible rounding errors are included in the bound, which is 0 if they exceed everything else. If columns are almost collinear,
the exact problem may have another optimum: for x and x + 2⁻ᵏ y the optimum without a penalty is that of x and y, however large k
is, and no computation in double precision can detect y when k is 50.
"""

import warnings

import numpy as np

import diffrac_cvx as dc

x, y = np.random.default_rng(0).standard_normal((2, 12))
warnings.simplefilter("ignore", dc.DegenerateDataWarning)
for k in (0, 10, 20, 30, 40, 50):
    result = dc.low_rank(np.column_stack([x, x + y * 2.0**-k]), tol=1e-8, max_iter=200)
    print(f"k = {k:2}: bracket {result.bracket}, columns excluded: {result.n_excluded}")

# %%
# The brackets widen as k grows, since less of y is left in the sum. They contain the optimum until y can no longer be detected.
#
# The argument
# ------------
# Let :math:`\gamma_k = k / (2^{53} - k)` for :math:`k < 2^{53}`; the unit roundoff is :math:`2^{-53}`. If nothing overflows or
# underflows, which is assumed throughout, a sum of k products is computed up to :math:`\gamma_k` times the sum of their absolute
# values, in any order of summation (Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, section 3.1).
#
# **Units and centring.** Columns are scaled to comparable size by powers of two, which is exact. The mean of a column is
# subtracted three times. A subtraction of two doubles is correctly rounded, so the error of an entry is at most a few units in
# its own last place, and that of the column is its remaining mean, at most :math:`\gamma_n` times the mean of its absolute
# values, however far from zero it was before.
#
# **The lower bound** is :math:`1 - t\, \mathrm{mean}(1/u)`. The weights u > 0, the number t and a part of C, projected onto the
# dual set, are floating-point numbers, and any choice is valid if :math:`S = t (A + C + \mathrm{Diag}(c)^2) - M \succeq 0` for
# some C with this part, :math:`M = \tfrac1n X^\top \mathrm{Diag}(u) X`. A set E of coordinates is eliminated: all of them, those
# without an l1 weight, or a working set. N are the others.
#
# *Theorem.* Let every index of γ below be less than :math:`2^{53}`, :math:`h_j^2 = t (A + \mathrm{Diag}(c)^2)_{jj} + M_{jj}`, k the number of terms of a sum over the rows, and
#
# .. math::
#
#    \kappa = \gamma_{k+16} \sqrt{1 + \max(u)/t}, \quad \varepsilon = \gamma_{k+32} + (2 + \kappa) \kappa, \quad
#    \varepsilon_E = \varepsilon \sum_{j \in E} h_j^2 + \gamma_4\, t\, |C_{EE}|_F.
#
# Let P be S on E as computed, of r rows, and let the Cholesky factorisation of :math:`P - \ell I` succeed with factor L, where
# :math:`\mu = \ell - \varepsilon_E - \gamma_{2r+8}\, \mathrm{tr}\, P > 0`. With K = :math:`L^{-1} S_{EN}` as computed, let
# :math:`r_j` bound the norm of column j of :math:`S_{EN} - L K`, its error included, and let
# :math:`F_j = (\sqrt\varepsilon\, h_j,\ r_j / \sqrt\mu,\ \sqrt{\gamma_{r+8}}\, |K_j|)`. Then :math:`S \succeq 0` for some C, if
# every matrix whose entries differ by at most :math:`F_j^\top F_k` from those of :math:`S_{NN} - K^\top K` is positive
# semidefinite, where an entry is 0 exactly if :math:`|G_{jk}| + F_j^\top F_k \le t c_j c_k`, :math:`G = M - t A + K^\top K`.
#
# *Proof.* The absolute values of the terms of :math:`S_{jk}` add up to at most :math:`h_j h_k` by Cauchy and Schwarz, and the
# error of a centred column is at most :math:`\gamma_{k+16} \sqrt{A_{jj}}` in the Euclidean norm divided by :math:`\sqrt n`, hence
# at most :math:`\kappa h_j` with the weights of the rows. So the error of an entry is at most :math:`\varepsilon h_j h_k`, and
# that of S on E at most :math:`\varepsilon_E`. A factorisation that does not break down shows that its matrix is positive
# definite once
# :math:`\gamma_{2r+8}` times its trace is added to its diagonal (Rump, *Verification of positive definiteness*, BIT 46, 2006).
# Hence S is at least :math:`(L; K^\top)(L; K^\top)^\top` plus a matrix with :math:`\mu I` on E, columns of norm at most
# :math:`r_j` between E and N, and :math:`S_{NN} - K^\top K` on N; eliminating E from the second leaves
# :math:`S_{NN} - K^\top K - R^\top R / \mu`. The error of an entry jk is thus at most :math:`F_j^\top F_k`. If G is inside the
# box by at least this margin, C can be chosen so that the exact entry is 0. ∎
#
# On each component of N the errors have a spectral norm of at most :math:`\sum_j F_j^\top F_j`. The component is certified by the
# diagonal dominance of its rows, or by a Cholesky factorisation. If E is so nearly collinear that the factorisation fails, it is
# repeated in whitened coordinates W, taking into account the errors of the whitened data and of
# :math:`W^\top (A + \mathrm{Diag}(c)^2) W`.
#
# In the code, where every number is also rounded up:
#
# - ``relative_error``: ``sum_error(k + 16) * (1.0 + problem.problem.sums.largest_weight(u) / t) ** 0.5`` and
#   ``sum_error(k + 32) + (2.0 + moved) * moved``
# - ``eliminated_matrix``: ``sum_error(4) * t * float(np.linalg.norm(C))``
# - ``lifted_cholesky``: ``radius + sum_error(2 * len(S) + 8) * float(np.abs(np.diag(S)).sum())``
# - ``eliminate``: ``sum_error(r + 4) * np.linalg.norm(L) * sizes``
# - ``gram_error_roots``: ``sum_error(len(K) + 8) ** 0.5 * round_up(1.0, 16) * np.linalg.norm(K, axis=0)``
#
# t is raised by the possible rounding error before the factorisation is tried, and further if it fails; after repeated failures
# the bound is 0.
#
# **More columns than rows, with a ridge on each.** W has as many columns as there are rows. Let :math:`T = X \mathrm{Diag}(a)^{-1}`,
# and E the part of T outside the span of W, whose norm is computed. Outside the span the right side of
# :math:`M \preceq t (A + \mathrm{Diag}(c)^2)` is at least t in the metric of the ridge and M is at most
# :math:`\max(u) |E|^2 / n`; between the span and the rest both sides are of the order of :math:`|E| / \sqrt n`. So E is treated
# like an error of the whitened data, and t must be at least δ. Columns with a ridge below :math:`10^{-4}` of their size would
# make E large for the other columns, so they are not compressed.
#
# **By components** E has the columns without an l1 weight, and C is given inside the blocks of N.
#
# **The upper bound** is the objective at the returned V, in your units. The error of a product of a row with a column of G is at
# most :math:`\gamma` times their norms (in comparable units), and all sums have nonnegative terms. If V has large entries that
# cancel, as for nearly collinear columns, the upper bound is larger accordingly.
#
# **In the space of labels** the error of the projection onto the columns is that of the whitening. Eigenvalues are counted by
# Sylvester's law, and an eigenvalue that may be positive only by rounding counts as negative.
#
# The additional cost is one Gram pass per problem and one Cholesky factorisation per certificate. As a consequence, the smallest
# gap that can be proved is about :math:`n\, d \cdot 10^{-16}` for well-conditioned data, times the condition number for others.
#
# Independent consistency check
# -----------------------------
# A lower bound on the relaxation is a lower bound on the cost of all labels and of all V. So every solver rounds its solution to
# labels, fits a direction to them by least squares in your units, without the coordinates of the proof, and computes their cost,
# rounded up. It also computes the value of V in this way. If either is below the lower bound, the proof is wrong: the bound is
# discarded, the status is ``INVALID_BOUND`` and ``Result.invalid_bound`` contains both numbers. `certify_v`, `certify_y`,
# `certify_labels` and `certify_clusters` raise `InvalidBoundError`, also with both numbers. Streamed tables are checked against
# the value of V only, because streamed solvers exclude no columns.
#
# Tests
# -----
# ``make stress`` generates 6 250 small instances in thirty-five families: entries of :math:`10^{9}` and :math:`10^{-9}` in one
# table, ties, duplicates, nearly collinear columns, condition numbers up to :math:`10^{14}`, units from :math:`10^{-8}` to
# :math:`10^{8}`, means of :math:`10^{12}`, outliers of :math:`10^{6}`; all nu; ridge and l1 weights of 0 and from :math:`10^{-8}`
# to :math:`10^{3}`, equal or different by column; tables with more columns than rows and a ridge from :math:`10^{-20}` to
# :math:`10^{16}` of a column, a few columns up to
# :math:`10^{18}` times as large as the others, sample weights, sparse matrices and streamed tables; feature groups and sign
# constraints. The objective at every returned V is computed with sixty digits, from the numbers in the array. If there are at
# most eight points (five with an l1 penalty), the smallest value of Eq. (9) over all labellings is computed in the same way. No
# lower bound may exceed any of these values, and no upper bound may be below the objective at its V.
#
# Ten of the families test which directions are excluded: columns without a penalty that differ from copies of others by
# :math:`10^{-16}` to :math:`10^{-12}`, with every kind of penalty on the other columns; steps of a few units in the last place,
# with an offset of up to :math:`2^{52}`; one temperature in degrees Celsius, Fahrenheit and Kelvin; units of :math:`2^{-300}` to
# :math:`2^{300}`. Each lower bound is compared with the exact value for the complete data; if its result reports excluded
# directions, it is compared with the value for the data without them. `check_certificate` must reproduce the bound of each result
# to the last bit. Tables in one family change while they are read: the solver must raise `DataError`, or its bounds must be valid
# for the table both before and after the change.
#
# .. include:: ../stress.inc
#
# ``tests/project/test_security.py`` tries an exploit of each promise in SECURITY.md: text or files that try to execute code,
# exhaust the memory, redirect to another host or escape a folder.
#
# **Interrupted sweeps.** An experiment adds a row to a log as soon as it is measured, and the same command resumes from there.
# Tables and figures are written under another name and renamed, and a table is not replaced by one with fewer cells unless
# ``--replace`` is given. ``tests/experiments/test_interrupted_sweeps.py`` kills a run at fifty random moments (``make test-all``),
# damages its log and fills its disk: the table equals that of an undisturbed run, or an error message
# explains the failure and the old table is unchanged.
#
# **Metamorphic tests.** Every relaxation and solver of ``dc.registry`` is run on data transformed in fifteen ways that leave the
# problem unchanged: rows in another order or twice, columns in another order, with other signs, in other units with the weights
# scaled along, in another basis or origin, with a constant column, a column twice, split in two or merged from others; with six
# penalties and two values of nu; in single precision, integers, Fortran order, a memory map, a data frame or lists. The brackets
# must overlap, and the labels must be the same (``tests/problem/test_metamorphic.py``, ``tests/points/test_forms.py``).
#
# **Errors.** Failures raise `DataError`, `ParameterError` or `ResourceError`, whose message names the value and the remedy:
# ``tests/messages.txt`` and ``tests/project/test_error_messages.py`` list them with their texts.
#
# **Time limits.** A ``time_limit`` holds within about a second: for `low_rank` and `fista` at any size that memory allows; for
# `solve` including CVXPY's compilation; for `compare` and the paths it is the limit of all solves together. After the limit, the
# estimators still round the solution and compute the direction of the labels, which takes seconds if n and d are both in the
# thousands. Builders and certificates have no limit: ``certify_v`` checks all pairs of features.
#
# Mutation tests
# --------------
# ``make mutation`` runs `mutmut <https://mutmut.readthedocs.io>`_, which changes one place of the library at a time: an operator,
# a comparison or its boundary, a constant, a condition, an argument. For each change, the fast tests that execute the function
# are run until one fails. The numbers below come from an earlier tool of this project, on a fixed random sample of such changes
# from each file; the intervals are Wilson intervals for the proportion among all changes. A change that no test can detect is
# explained in ``experiments/mutation/explained.csv``: it costs time without changing results, or it moves a margin that is
# conservative on either side, or a scale that cancels.
#
# .. include:: ../mutation.inc
#
# ``make coverage`` counts the branches of the library that the fast tests run, file by file; it fails below 95 %.
#
# Convergence
# -----------
# ``make convergence`` runs every solver with target gaps of :math:`10^{-4}` and :math:`10^{-8}`, on a scale on which V = 0 has
# the value 1, over families of easy and hard data with sizes from 5 × 1 to 3000 × 300. A solve is limited to 2 to 10 seconds of
# processor time, depending on size, and to eight times as much wall-clock time, which may be reached first on a busy machine. The
# command fails if a status reports a met gap wrongly, or if two brackets of an instance do not overlap. Solved to
# :math:`10^{-4}`:
#
# .. include:: ../convergence_loose.inc
#
# and to :math:`10^{-8}`:
#
# .. include:: ../convergence_tight.inc
#
# Unsolved instances, and the reasons:
#
# * `low_rank` to :math:`10^{-4}`, on correlated columns, heavy tails and outliers with many features (from 100, or more than
#   points): gaps of :math:`10^{-4}` to :math:`6 \cdot 10^{-2}` remained. The upper bound soon has a few correct digits, the
#   multiplier C converges slowly, and steps cost
#   :math:`d^3`. A larger ridge or lambda helps, and so does a longer time limit.
# * `low_rank` to :math:`10^{-8}`, outlying rows: a condition number of :math:`10^{12}` and more leaves proved gaps of
#   :math:`10^{-8}` to :math:`4 \cdot 10^{-5}` in double precision; the status is then ``STALLED``. With a tiny lambda the optimum
#   itself is as small as the gap.
# * `fista` with fewer points than features and an l1 penalty: the curvature of its dual in C is that of
#   :math:`(A + \mathrm{Diag}(c)^2)^{-1}` squared, so that the steps are small. It also fails to reach :math:`10^{-8}` in general,
#   because the smoothing must be of that size. The published variant, with one step size and fixed smoothing, is even slower. Use
#   `low_rank`.
# * CLARABEL and SCS on outlying rows: their tolerances are relative to data that differ by :math:`10^{12}`.
