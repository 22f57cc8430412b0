"""Run CVXPY in the timed process: with a time limit, `dc.solve` may start another process.

Processor time of another process is not the caller's, and its start-up, about a second, is not part of a solve.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec

import diffrac_cvx as dc
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.relaxations.relaxation import Relaxation

LIMIT_OF = {"SCS": "time_limit_secs"}  # CLARABEL's option is called `time_limit`, as in `dc.solve`
SMALL = 0.1  # seconds that processes started by libraries may use; starting Python with this package takes more
P = ParamSpec("P")


def solve_here(relaxation: Relaxation, solver: str, seconds: float, **options: Any) -> Result:
    """Compile with CVXPY and solve by SCS, which respects the time limit, or by CLARABEL, which does not.

    The result's time includes both steps; if it exceeds the limit, the gap may be above the tolerance.
    """
    options |= {LIMIT_OF[solver]: seconds} if solver in LIMIT_OF else {}
    result = without_others(dc.solve, relaxation, solver, **options)
    late = result.seconds >= seconds and result.status is Status.INACCURATE
    return replace(result, status=Status.USER_LIMIT) if late else result


def without_others(call: Callable[P, Result], *arguments: P.args, **options: P.kwargs) -> Result:
    """Call the function, and raise if other processes worked for it: their time would not be counted."""
    before = os.times()
    result = call(*arguments, **options)
    after = os.times()
    if after.children_user - before.children_user > SMALL:
        raise RuntimeError("another process worked for this call, so its time is not counted")
    return result
