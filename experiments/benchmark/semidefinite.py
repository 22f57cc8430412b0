"""Problem (15) for solvers that support only semidefinite and linear constraints, such as SDPA."""

from dataclasses import replace

import cvxpy as cp
import numpy as np

from diffrac_cvx.relaxations.relaxation import Relaxation, Solution


def as_semidefinite(relaxation: Relaxation) -> Relaxation:
    r"""Return a relaxation in V with its square roots as 2 x 2 matrices.

    .. math::
        r_i \le \sqrt{q_i} \iff \begin{pmatrix} q_i & r_i \\ r_i & 1 \end{pmatrix} \succeq 0

    The multiplier of the entry q_i is u_i of the certificate, as for the power cone.  If q_i is an expression, CVXPY
    compiles it n times; a variable is compiled once.  One constraint on a stack of matrices would compile faster, but
    CVXPY 1.9.3 passes its entries to SDPA in a wrong order, and SDPA then reports infeasibility.
    """
    roots = next(each for each in relaxation.problem.constraints if isinstance(each, cp.PowCone3D))
    energies, _, root = roots.args
    q = cp.Variable(root.size, name="energies")
    blocks = [cp.PSD(cp.bmat([[q[i], root[i]], [root[i], 1.0]])) for i in range(root.size)]
    others = [each for each in relaxation.problem.constraints if each is not roots]

    def read() -> Solution:
        roots.dual_variables[0].save_value(np.array([block.dual_value[0, 0] for block in blocks]))
        return relaxation.read()

    problem = cp.Problem(relaxation.problem.objective, [*blocks, q == energies, *others])
    return replace(relaxation, problem=problem, read=read)
