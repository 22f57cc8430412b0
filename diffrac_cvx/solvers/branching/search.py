"""Branch and bound: open nodes by their bounds, the best labels, and the least bound of the nodes that are closed."""

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.result import Bracket, Status

SHARE_OF_MEMORY = 0.5  # that the open nodes may take


class Watch(NamedTuple):
    """When the search began, its limit in seconds, and what the user is told by."""

    start: float
    time_limit: float | None
    callback: Callable[[Bracket, int], bool | None] | None

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.start

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.time_limit is not None and self.seconds >= self.time_limit

    @property
    def deadline(self) -> float:
        """When the limit is reached, in seconds of `time.time`, which other processes know too."""
        return np.inf if self.time_limit is None else time.time() + self.time_limit - self.seconds


def cost_of_signs(q: Array, q_fixed: Array | float, product: Array) -> Array:
    """Return what fixing each row with either sign costs where V stays as it is, the product of the two.

    From sqrt(r'Vr) of the rows, that of the fixed one, and twice the products of the rows with it.
    """
    squares = q**2 + q_fixed**2
    lost = [q + q_fixed - np.sqrt(np.maximum(squares + sign * product, 0.0)) for sign in (1.0, -1.0)]
    return np.asarray(lost[0] * lost[1])


class Search(ABC):
    """Hold what a search has found; what its nodes are, and how they are solved, is said by its kinds.

    A node is a tuple, a proved lower bound on the labels in it first, then a number that no other has.

    Parameters
    ----------
    tol : float
        By how much the best labels may be beaten.
    count : int
        How many groups of points get a label.
    executor : concurrent.futures.Executor, optional
        What solves nodes, in parts; without one they are solved here.
    """

    def __init__(self, tol: float, count: int, executor: Executor | None = None) -> None:
        self.tol, self.executor = tol, executor
        self.best, self.signs = np.inf, np.ones(count)
        self.open: list[Any] = []
        self.taken: list[Any] = []  # from the open ones, to be branched
        self.closed, self.root, self.nodes = np.inf, 0.0, 0
        self.history: list[tuple[float, float, float]] = []
        self.watch = Watch(0.0, None, None)
        self.n_excluded = 0  # columns, for whoever is told of the bounds

    @property
    def lower(self) -> float:
        """What no labels cost less than."""
        return float(min([self.closed, *(node[0] for node in self.open[:1])]))

    @property
    def goal(self) -> float:
        """The lower bound at which a node is closed."""
        return self.best - 0.999 * self.tol

    @property
    @abstractmethod
    def bytes_of_node(self) -> float:
        """About what an open node takes."""

    @abstractmethod
    def begin(self) -> None:
        """Keep some labels, solve the relaxation of all and open its node, or close it."""

    @abstractmethod
    def branch(self) -> None:
        """Take open nodes of the least bounds, fix one group more with either sign, and solve the children."""

    @property
    def at_once(self) -> int:
        """How many groups `bounds_beside` is asked for at a time, which takes a fraction of a second."""
        return 1

    @abstractmethod
    def reference(self, known: int) -> int:
        """Return the group beside which others are certain: that of the known labels, or else the heaviest."""

    @abstractmethod
    def bounds_beside(self, reference: int, groups: npt.NDArray[np.intp], goal: float) -> Array:
        """Return what no labels cost less than in which a group has not the sign it has now beside the reference.

        Shape (len(groups),).  How sharp a bound is above the goal is of no use.
        """

    def certain(self, within: float, known: int, status: Status) -> tuple[npt.NDArray[np.bool_], Status]:
        """Return the groups that have the sign they have beside another in all labels that cost little more.

        The other is the reference: with the opposite sign beside it no labels cost less than the best ones and so much.
        The status is that with which the search ended, or what ended this: a group not decided by then is not certain.
        """
        certain, goal = np.zeros(len(self.signs), dtype=bool), self.best + within
        reference = self.reference(known)
        certain[reference] = True
        others = np.flatnonzero(~certain)
        try:
            for at in range(0, len(others) if status is not Status.STOPPED else 0, self.at_once):
                ended = self.ended()
                if ended is not None:
                    return certain, ended
                groups = others[at : at + self.at_once]
                certain[groups] = self.bounds_beside(reference, groups, goal) > goal
        except KeyboardInterrupt:
            return certain, Status.STOPPED
        return certain, status

    def ended(self) -> Status | None:
        """Return what ends the search now, the limit or the callback; None if it goes on."""
        if self.watch.is_over:
            return Status.TIME_LIMIT
        tell, bracket = self.watch.callback, Bracket(max(self.lower, 0.0), self.best, self.n_excluded)
        return Status.STOPPED if tell is not None and tell(bracket, self.nodes) else None

    def search(self, watch: Watch) -> Status:
        """Branch until no open node may have labels that cost less than the best ones by more than tol."""
        self.watch = watch
        try:
            self.begin()
        except KeyboardInterrupt:
            self.closed = 0.0
            return Status.STOPPED
        most = max(1000.0, SHARE_OF_MEMORY * available_memory() / self.bytes_of_node)
        while True:
            self.history.append((watch.seconds, self.lower, self.best))
            if not self.open or self.open[0][0] >= self.goal:
                return Status.OPTIMAL
            if len(self.open) > most:
                return Status.MEMORY
            ended = self.ended()
            if ended is not None:
                return ended
            try:
                self.branch()
            except KeyboardInterrupt:  # wherever it came, what was taken is open: its children may be open too
                self.open += self.taken
                heapq.heapify(self.open)
                return Status.STOPPED

    def take(self, most: int) -> list[Any]:
        """Return up to so many of the open nodes of the least bounds, which are no longer among the open ones."""
        chosen = self.taken = self.open[:1]
        heapq.heappop(self.open)
        while self.open and len(chosen) < most and self.open[0][0] < self.goal:
            chosen.append(self.open[0])
            heapq.heappop(self.open)
        return chosen

    def keep(self, y: Array, cost: float) -> None:
        """Keep labels of the groups if they cost less than the best ones so far."""
        if cost < self.best:
            self.best, self.signs = cost, y
