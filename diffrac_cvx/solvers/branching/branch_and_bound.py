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

MEMORY_FRACTION = 0.5  # that the open nodes may take


class SearchTimer(NamedTuple):
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


def branching_scores(q: Array, q_fixed: Array | float, product: Array) -> Array:
    """Return what fixing each row with either sign costs where V stays as it is, the product of the two.

    From sqrt(r'Vr) of the rows, that of the fixed one, and twice the products of the rows with it.
    """
    squares = q**2 + q_fixed**2
    losses = [q + q_fixed - np.sqrt(np.maximum(squares + sign * product, 0.0)) for sign in (1.0, -1.0)]
    return np.asarray(losses[0] * losses[1])


class BranchAndBound(ABC):
    """Hold what a search has found; what its nodes are, and how they are solved, is said by its kinds.

    A node is a tuple, a proved lower bound on the labels in it first, then a number that no other has.

    Parameters
    ----------
    tol : float
        By how much the best labels may be beaten.
    n_chunklets : int
        How many groups of points get a label.
    executor : concurrent.futures.Executor, optional
        What solves nodes, in parts; without one they are solved here.
    """

    def __init__(self, tol: float, n_chunklets: int, executor: Executor | None = None) -> None:
        self.tol, self.executor = tol, executor
        self.best, self.signs = np.inf, np.ones(n_chunklets)
        self.open_nodes: list[Any] = []
        self.in_progress: list[Any] = []  # from the open ones, to be branched
        self.closed_bound, self.root_bound, self.n_nodes = np.inf, 0.0, 0
        self.history: list[tuple[float, float, float]] = []
        self.timer = SearchTimer(0.0, None, None)
        self.n_excluded = 0  # columns, for whoever is told of the bounds

    @property
    def lower(self) -> float:
        """What no labels cost less than."""
        return float(min([self.closed_bound, *(node[0] for node in self.open_nodes[:1])]))

    @property
    def cutoff(self) -> float:
        """The lower bound at which a node is closed."""
        return self.best - 0.999 * self.tol

    @property
    @abstractmethod
    def node_bytes(self) -> float:
        """About what an open node takes."""

    @abstractmethod
    def solve_root(self) -> None:
        """Keep some labels, solve the relaxation of all and open its node, or close it."""

    @abstractmethod
    def branch(self) -> None:
        """Take open nodes of the least bounds, fix one group more with either sign, and solve the children."""

    @property
    def batch_size(self) -> int:
        """How many groups `flip_bounds` is asked for at a time, which takes a fraction of a second."""
        return 1

    @abstractmethod
    def reference(self, labeled: int) -> int:
        """Return the group beside which others are certain: that of the known labels, or else the heaviest."""

    @abstractmethod
    def flip_bounds(self, reference: int, chunklets: npt.NDArray[np.intp], cutoff: float) -> Array:
        """Return what no labels cost less than in which a group has not the sign it has now beside the reference.

        Shape (len(groups),).  How sharp a bound is above the goal is of no use.
        """

    def persistent(self, slack: float, labeled: int, status: Status) -> tuple[npt.NDArray[np.bool_], Status]:
        """Return the groups that have the sign they have beside another in all labels that cost little more.

        The other is the reference: with the opposite sign beside it no labels cost less than the best ones and so much.
        The status is that with which the search ended, or what ended this: a group not decided by then is not certain.
        """
        persistent, cutoff = np.zeros(len(self.signs), dtype=bool), self.best + slack
        reference = self.reference(labeled)
        persistent[reference] = True
        others = np.flatnonzero(~persistent)
        try:
            for at in range(0, len(others) if status is not Status.STOPPED else 0, self.batch_size):
                stop_status = self.stop_status()
                if stop_status is not None:
                    return persistent, stop_status
                chunklets = others[at : at + self.batch_size]
                persistent[chunklets] = self.flip_bounds(reference, chunklets, cutoff) > cutoff
        except KeyboardInterrupt:
            return persistent, Status.STOPPED
        return persistent, status

    def stop_status(self) -> Status | None:
        """Return what ends the search now, the limit or the callback; None if it goes on."""
        if self.timer.is_over:
            return Status.TIME_LIMIT
        callback, bracket = self.timer.callback, Bracket(max(self.lower, 0.0), self.best, self.n_excluded)
        return Status.STOPPED if callback is not None and callback(bracket, self.n_nodes) else None

    def search(self, timer: SearchTimer) -> Status:
        """Branch until no open node may have labels that cost less than the best ones by more than tol."""
        self.timer = timer
        try:
            self.solve_root()
        except KeyboardInterrupt:
            self.closed_bound = 0.0
            return Status.STOPPED
        max_nodes = max(1000.0, MEMORY_FRACTION * available_memory() / self.node_bytes)
        while True:
            self.history.append((timer.seconds, self.lower, self.best))
            if not self.open_nodes or self.open_nodes[0][0] >= self.cutoff:
                return Status.OPTIMAL
            if len(self.open_nodes) > max_nodes:
                return Status.OUT_OF_MEMORY
            stop_status = self.stop_status()
            if stop_status is not None:
                return stop_status
            try:
                self.branch()
            except KeyboardInterrupt:  # wherever it came, what was taken is open: its children may be open too
                self.open_nodes += self.in_progress
                heapq.heapify(self.open_nodes)
                return Status.STOPPED

    def pop_nodes(self, max_nodes: int) -> list[Any]:
        """Return up to so many of the open nodes of the least bounds, which are no longer among the open ones."""
        chosen = self.in_progress = self.open_nodes[:1]
        heapq.heappop(self.open_nodes)
        while self.open_nodes and len(chosen) < max_nodes and self.open_nodes[0][0] < self.cutoff:
            chosen.append(self.open_nodes[0])
            heapq.heappop(self.open_nodes)
        return chosen

    def update_incumbent(self, y: Array, objective: float) -> None:
        """Keep labels of the groups if they cost less than the best ones so far."""
        if objective < self.best:
            self.best, self.signs = objective, y
