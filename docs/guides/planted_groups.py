r"""
Recovery of planted feature groups
==================================

Columns may come in groups: the levels of one category, the pixels of a region, the genes of a pathway. A penalty on groups
selects or excludes them as a whole (:doc:`groups_and_signs`). This page derives which weights are too large to detect any
direction, and describes when the penalty finds the informative groups and when the l1 penalty is better.
"""

# %%
# Weights that preserve a direction
# ---------------------------------
# A weight can be so large that the relaxation loses a direction that splits the points exactly. Let the data be isotropic,
# :math:`X^\top X = n I`, and :math:`X v = y` with :math:`|v| = 1`, :math:`t_g = |v_g|`; the directions other than v are normal,
# and there are many points. All groups have the weight w, and the ridge is :math:`a^2`. If V is zero between groups, the penalty
# is :math:`(a^2 + w^2)\, \mathrm{tr}\, V`, and at its best scale, without a ridge,
#
# .. math:: V = \tau I \ \text{ costs about }\ \frac{w^2 + 1/(2d)}{1 + w^2}, \qquad
#           V = v v^\top \ \text{ costs }\ \frac{w^2 s'}{1 + w^2 s'}, \qquad s' = \Big(\sum_g t_g\Big)^2 \le s,
#
# s the number of groups in v: :math:`|x|^2` has mean d and variance 2(d − 1), so that :math:`(\mathbb{E} |x|)^2 \approx d - 1/2`.
# So τI has the lower objective if :math:`w^2 (s' - 1)\, d` exceeds about 1/2. Mixtures of both have an even lower objective, and
# the weight above which V is zero between groups is larger. By the theorem of :doc:`components` it is the weight at which the
# matrix M of the best V with blocks has :math:`\|M_{gh}\|_2 = w^2`:
#
# .. math:: \frac{w^2}{1 + a^2 + w^2} = \frac1d \cdot \frac{\max_{g \ne h} t_g t_h}{\sum_{g \ne h} t_g^2 t_h^2}
#           \quad \text{to first order in } 1/d; \qquad
#           \text{for s equal parts } \ w^2 (s - 1)\, d = 1 + a^2 + w^2 .
#
# *Derivation.* Let :math:`z_g = v_g^\top x / t_g`, so that :math:`\sum_g t_g z_g = y`. They differ from normal variables only
# because :math:`y^2 = 1`: their fourth cumulants are :math:`-2\, t_g t_h t_k t_l`. By symmetry
# :math:`V = \tau\, (I + \sum_g e_g\, v_g v_g^\top / t_g^2)`, and with :math:`q^{-1/2}` expanded about the mean of q, for g ≠ h
#
# .. math:: \frac{\|M_{gh}\|_2}{1 + a^2 + w^2} = -\frac{1}{2d} \sum_k (1 + e_k)\, \mathbb{E}\, z_g z_h z_k^2
#           = \frac{t_g t_h}{d}\, T, \qquad T = \sum_k (1 + e_k)\, t_k^2 .
#
# M is a multiple of I in the blocks where V has full rank: :math:`e_g = t_g^2\, T` by the same expansion for g = h, so that
# :math:`T = 1 + T \sum_k t_k^4 = 1 / \sum_{g \ne h} t_g^2 t_h^2`.
#
# **Consequences.** Groups of one column give the l1 penalty: nothing of a flat direction of s columns remains if
# :math:`\lambda (s - 1)\, d > 1` (up to a factor 1 + λ). For l1, a direction that is flat on s groups of p columns is a direction
# of sp columns. So the weights on groups may be (sp − 1) / (s − 1) times as large, which is more than p. Parts of unequal size
# stay joined up to larger weights, because the two largest are the last to separate: :math:`w^2 (s' - 1)\, d` alone is not
# decisive then.
#
# **Limitations.** *If all* :math:`|x_i|` *are equal, as when all columns have the values −1 and 1, V = τI is optimal at every
# weight:* then M is a multiple of I, zero between groups, and the sufficient condition holds. With orthogonal two-valued columns
# the direction is lost at every weight, for l1 as for groups. With few points the blocks of M have noise of norm about
# :math:`(2 p / (d n))^{1/2}`, compared with :math:`1 / ((s - 1)\, d)`, so that :math:`n \gg 2 p d\, (s - 1)^2` is needed.

# %%
# With a ridge
# ------------
# On isotropic data a ridge allows weights that are only :math:`1 + a^2` times as large. This changes if the groups of points
# affect the *correlations*, as when their means differ. Without a penalty the problem does not depend on the coordinates in which
# the points are given, so that correlations carry no information; with a ridge, directions of large variance have a low penalty.
# Let m be the mean shift in columns of variance 1 that are independent within the groups, v along m, and
#
# .. math:: \delta = v^\top \Sigma v - 1 = |m|^2 - \sum_j m_j^4 / |m|^2 .
#
# *With infinitely many points and infinitely many columns of noise the optimum is below that of every diagonal V if*
#
# .. math:: w^2\, (s' - 1 - \delta) < a^2\, \delta ,
#
# by statement 5 of :doc:`wide_law`, whose proof holds for any penalty that is tr V times :math:`a^2 + w^2` on diagonal matrices:
# adding :math:`\varepsilon v v^\top` changes the objective by :math:`\varepsilon\, (a^2 + w^2 s' - (a^2 + w^2)(1 + \delta))`. The
# condition does not depend on the number of columns. For l1, s' is that of the columns, again about p times as large.
#
# Results
# -------
# With few points or a weak shift, the penalty on groups finds the groups when l1 does not, but its labels are hardly better. The
# best weight for the labels is smaller than the weight that excludes the other groups, so no single solution is best for both. V
# itself spreads over more groups than the direction of its labels. If one column of *every* group is informative, no group can be
# excluded, and l1 is better. The measurements of ``make groups`` are in :doc:`/beyond`.
