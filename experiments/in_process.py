"""CVXPY in the process that is timed: `dc.solve` starts another where it has a limit and a step may take long.

The seconds of that process are not the caller's, and its start, a second, is no part of a solve.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec

import diffrac_cvx as dc
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.relaxations.relaxation import Relaxation

LIMIT_OF = {"SCS": "time_limit_secs"}  # that of CLARABEL has the name of the limit of `dc.solve`
SMALL = 0.1  # seconds of other processes that libraries may start; to start a Python with ours takes more
P = ParamSpec("P")


def solve_here(relaxation: Relaxation, solver: str, seconds: float, **options: Any) -> Result:
    """Solve by SCS, which stops after so many seconds, or by CLARABEL, which does not, after CVXPY's compilation.

    The result's seconds have both; where they are over, that is why a gap is above the tolerance.
    """
    options |= {LIMIT_OF[solver]: seconds} if solver in LIMIT_OF else {}
    result = without_others(dc.solve, relaxation, solver, **options)
    late = result.seconds >= seconds and result.status is Status.INACCURATE
    return replace(result, status=Status.USER_LIMIT) if late else result


def without_others(call: Callable[P, Result], *arguments: P.args, **options: P.kwargs) -> Result:
    """Call, and raise if other processes have worked for it: their time is not in that of this one."""
    before = os.times()
    result = call(*arguments, **options)
    after = os.times()
    if after.children_user - before.children_user > SMALL:
        raise RuntimeError("another process has worked for this call, and its time is not counted")
    return result
