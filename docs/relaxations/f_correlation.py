r"""
Correlation: correlation
========================

Equation (2) maximises the squared correlation of Xw and y. Its direct relaxation, Eq. (23) and (24), is trivial
whatever the data: its infimum is -n, often not attained. It is here because the paper discusses it. **Use it** for
nothing but to see that.
"""

import diffrac_cvx as dc

X = dc.datasets.make_planted(20, 2, rng=0).X
result = dc.solve(dc.correlation(X), "SCS", tol=1e-2, max_iter=20_000)
print(f"value {result.value:.2f}, proved at least {result.lower:.0f}, n = {len(X)}")
