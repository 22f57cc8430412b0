"""Matrices of fractions: what sums, products and means are without rounding."""

from fractions import Fraction

import numpy as np


def fractions(M):
    """The entries as fractions, exactly."""
    M = np.asarray(M, dtype=float)
    return np.array([Fraction(float(entry)) for entry in M.ravel()], dtype=object).reshape(M.shape)


def centered(X):
    """The columns less their means."""
    X = fractions(X)
    return X - X.sum(axis=0) / len(X)


def gram(X, u, Y=None):
    """X' Diag(u) Y / n of fractions; Y = X by default."""
    return X.T @ (u[:, None] * (X if Y is None else Y)) / len(X)


def size(M):
    """The square root of the sum of squares of fractions, nearly."""
    return float(sum(entry**2 for entry in np.ravel(M))) ** 0.5


def is_semidefinite(S):
    """Whether a matrix of fractions is positive semidefinite, by elimination without rounding."""
    S = [list(row) for row in S]
    for j in range(len(S)):
        if S[j][j] < 0 or (S[j][j] == 0 and any(S[j][j:])):
            return False
        if S[j][j] == 0:
            continue
        for i in range(j + 1, len(S)):
            factor = S[i][j] / S[j][j]
            S[i] = [entry - factor * above for entry, above in zip(S[i], S[j], strict=True)]
    return True


def lossy_columns(n, d=2):
    """Columns of mean 0 whose squares are summed badly: after 1 + 1 each of the others is less than half a unit."""
    X = np.empty((n, d))
    X[:2] = np.array([1.0, -1.0])[:, None]
    X[2:] = 0.99 * 2.0**-26 * np.where(np.arange(n - 2) % 2, -1.0, 1.0)[:, None]
    X[:, 1::2] *= -1.0
    return X


def badly_centered_column(n):
    """A column of mean 0 to the computer, though not to a mathematician: small entries are lost between large ones."""
    x = np.zeros(n)
    large = n // 3
    x[:large], x[n - large :] = 1.0, -1.0
    x[large : n - large] = 0.99 * np.spacing(float(large)) / 2
    return x


def opposite_columns(n):
    """Two columns of opposite signs whose centring loses as much as it may."""
    x = badly_centered_column(n)
    return np.column_stack([x, -x])
