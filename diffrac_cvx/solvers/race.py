"""Race of the strategies of a solver: each gets slices of work in turn, the largest for the smallest gap.

Work is counted, never timed, so that a call has the same result on every machine unless a limit stops it.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import EarlyExitError
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart

FIRST_SLICE = 8e9  # operations, a fraction of a second
NEARLY_DONE = 0.01  # relative gap that ends the first round
IN_VAIN = 0.9  # ratio of the gaps after and before a whole slice, above which it counts as no progress
PATIENCE = 2  # whole slices without progress, after which other strategies come first


class Pause(NamedTuple):
    """Point between iterates at which a strategy may be paused."""

    operations: float = 0.0  # of a long next step, which starts only if the slices allow it


Steps = Generator[Iterate | Pause, Iterate | None, None]  # `send` passes the last iterate of a strategy that has ended


@dataclass(frozen=True)
class Strategy:
    """Solution strategy for (15).

    Attributes
    ----------
    iterates : callable
        Generator of iterates with certified bounds, and of pauses, the first of them before any work.  `send` passes
        the last iterate of a strategy that has ended, if any, from which it may start.
    applies : callable
        Whether the strategy can solve a problem from a warm start.
    """

    iterates: Callable[[DirectionProblem, WarmStart, Stopping], Steps]
    applies: Callable[[DirectionProblem, WarmStart], bool] = lambda _problem, _start: True


class Runner:
    """A strategy in a race: its iterates, the operations allowed and used, and its certified bounds."""

    def __init__(self, points: Steps) -> None:
        self.points = points
        self.last: Iterate | None = None
        self.allowed, self.used, self.pause = 0.0, 0.0, Pause()
        self.n_iter, self.in_vain = 0, 0  # in_vain: successive whole slices that hardly reduced the gap
        self.bounds = Bracket(0.0, 1.0)

    @property
    def may_continue(self) -> bool:
        """Whether the slices of the strategy suffice for its next step."""
        return self.used + max(self.pause.operations, 1.0) <= self.allowed

    @property
    def is_nearly_done(self) -> bool:
        """Whether the certified relative gap is at most 1 %, so that others are unlikely to overtake it."""
        return self.bounds.gap <= NEARLY_DONE * self.bounds.upper

    def advance(self, predecessor: Iterate | None = None) -> Iterate | None:
        """Return the next iterate, or None at a pause, and count the operations so far."""
        before = work_done()
        try:
            found = self.points.send(predecessor)
        finally:
            self.used += work_done() - before
        self.pause = found if isinstance(found, Pause) else Pause()
        if isinstance(found, Pause):
            return None
        self.last, self.n_iter = found, found.n_iter
        if found.bound is not None and found.point is not None:
            ends = max(self.bounds.lower, found.bound.lower), min(self.bounds.upper, found.point.value)
            self.bounds = Bracket(*ends)
        return found


def later_round(racing: Sequence[Runner]) -> list[tuple[Runner, float]]:
    """Return the strategies of a round after the first, in their order, each with its fraction of a slice."""
    first, *others = sorted(racing, key=lambda one: (one.in_vain // PATIENCE, one.bounds.gap, one.used))
    limit = 3.0 * min(one.bounds.gap for one in racing)
    return [(first, 1.0), *((one, 1 / 8) for one in others if one.bounds.gap <= limit)]


def race(
    strategies: Sequence[Strategy], problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping
) -> Iterator[Iterate]:
    """Yield the iterates of all strategies that apply, in slices of work that double from round to round.

    1. Before any strategy has a lower bound, each gets a whole slice, in the given order; a relative gap of 1 % ends
       this round.
    2. Then the strategy with the smallest gap comes first, with a whole slice.  The others get an eighth if their gap
       is at most three times the smallest, and otherwise wait.
    3.  For every two successive whole slices that reduced its gap by less than a tenth each, a strategy moves behind
      those with fewer of them.  None is excluded, because a waiting strategy may be the only one that still progresses.

    The last strategy left runs without a limit.  Iterations of all strategies are counted together, and a bound from
    one strategy holds for all.
    """
    applicable = [one for one in strategies if one.applies(problem, warm_start)]
    if not applicable:
        raise ParameterError("No strategy applies to this problem. Add one that does, or change the penalty.")
    runners = [Runner(one.iterates(problem, warm_start, stopping)) for one in applicable]
    for one in runners:
        one.advance()
    racing, size = list(runners), FIRST_SLICE
    failure: Exception | None = None
    predecessor: Iterate | None = None
    while racing:
        is_first_round = not any(one.bounds.lower > 0.0 for one in racing)
        for one, fraction in [(one, 1.0) for one in racing] if is_first_round else later_round(racing):
            if is_first_round and any(other.is_nearly_done for other in racing):
                break
            used, gap = one.used, one.bounds.gap
            one.allowed += fraction * size
            while one.may_continue or racing == [one]:
                try:
                    found = one.advance(predecessor)
                except StopIteration:
                    predecessor = one.last
                    racing.remove(one)
                    break
                except (ArithmeticError, ValueError, EarlyExitError) as error:
                    stops_race = stopping.status is not None  # the limit of time, or the callback
                    if stops_race or not (isinstance(error, EarlyExitError) or is_out_of_range(error)):
                        raise
                    # Otherwise only this strategy ends: its numbers leave the range of doubles, its matrices do not fit
                    # in memory, or its next step would take longer than the time left.
                    failure = failure or error
                    racing.remove(one)
                    break
                if found is not None:
                    yield found._replace(n_iter=min(sum(other.n_iter for other in runners), stopping.max_iter))
            if fraction == 1.0 and one.used > used:
                one.in_vain = one.in_vain + 1 if one.bounds.gap > IN_VAIN * gap else 0
        size *= 2.0
    if failure is not None:
        raise failure
