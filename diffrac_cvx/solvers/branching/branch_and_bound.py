"""Generic branch and bound: queue of open nodes, incumbent labels, and smallest bound of the closed nodes."""

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.result import Bracket, Status

MEMORY_FRACTION = 0.5  # of the available memory, for the open nodes


class SearchTimer(NamedTuple):
    """Start of the search, time limit in seconds, and the user's callback."""

    start: float
    time_limit: float | None
    callback: Callable[[Bracket, int], bool | None] | None

    @property
    def seconds(self) -> float:
        """Seconds since the start of the search."""
        return time.perf_counter() - self.start

    @property
    def is_over(self) -> bool:
        """Whether the time limit is reached."""
        return self.time_limit is not None and self.seconds >= self.time_limit

    @property
    def deadline(self) -> float:
        """Time at which the limit is reached, on the clock of `time.perf_counter`."""
        return np.inf if self.time_limit is None else self.start + self.time_limit


def branching_scores(q: Array, q_fixed: Array | float, product: Array) -> Array:
    """Return the product of the losses in sum sqrt(r'Vr) from fixing each row with sign +1 and -1, at unchanged V.

    `q` is sqrt(r'Vr) of each row, `q_fixed` that of the fixed row a, and `product` is 2 r'Va.
    """
    squares = q**2 + q_fixed**2
    losses = [q + q_fixed - np.sqrt(np.maximum(squares + sign * product, 0.0)) for sign in (1.0, -1.0)]
    return np.asarray(losses[0] * losses[1])


class BranchAndBound(ABC):
    """State of a branch-and-bound search; subclasses define the nodes and solve them.

    A node is a tuple that starts with a certified lower bound on the objective of its labels and a unique number.

    Parameters
    ----------
    tol : float
        Gap at which the search stops.
    n_chunklets : int
        Number of chunklets (groups of linked points); each has one label.
    """

    def __init__(self, tol: float, n_chunklets: int) -> None:
        self.tol = tol
        self.best, self.signs = np.inf, np.ones(n_chunklets)
        self.open_nodes: list[Any] = []
        self.in_progress: list[Any] = []  # nodes removed from the open ones and being branched
        self.closed_bound, self.root_bound, self.n_nodes = np.inf, 0.0, 0
        self.history: list[tuple[float, float, float]] = []
        self.timer = SearchTimer(0.0, None, None)
        self.n_excluded = 0  # columns; reported with the bounds

    @property
    def lower(self) -> float:
        """Certified lower bound on the objective of all labels."""
        return float(min([self.closed_bound, *(node[0] for node in self.open_nodes[:1])]))

    @property
    def cutoff(self) -> float:
        """Lower bound from which a node is closed."""
        return self.best - 0.999 * self.tol

    @property
    @abstractmethod
    def node_bytes(self) -> float:
        """Approximate memory of an open node in bytes."""

    @abstractmethod
    def solve_root(self) -> None:
        """Set the first incumbent, solve the root relaxation, and open or close its node."""

    @abstractmethod
    def branch(self) -> None:
        """Branch on the open nodes of smallest bound: fix one more chunklet with either sign and solve the children."""

    @property
    def batch_size(self) -> int:
        """Number of chunklets per call of `flip_bounds`, chosen so that a call takes a fraction of a second."""
        return 1

    @abstractmethod
    def reference(self, labeled: int) -> int:
        """Return the reference chunklet of persistency: that of the known labels, or else the heaviest."""

    @abstractmethod
    def flip_bounds(self, reference: int, chunklets: npt.NDArray[np.intp], cutoff: float) -> Array:
        """Return, for each chunklet, a certified lower bound if its sign relative to the reference is flipped.

        Shape (len(chunklets),).  Bounds need not be tight above the cutoff.
        """

    def persistent(self, slack: float, labeled: int, status: Status) -> tuple[npt.NDArray[np.bool_], Status]:
        """Return the chunklets with the same sign relative to the reference in all labels within slack of the best.

        They are those whose flip bound exceeds the best objective plus slack.  The status is that of the search, or of
        this step if it is cut short; chunklets undecided by then are not persistent.
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
        """Return the status if the time limit or the callback stops the search now; otherwise None."""
        if self.timer.is_over:
            return Status.TIME_LIMIT
        callback, bracket = self.timer.callback, Bracket(max(self.lower, 0.0), self.best, self.n_excluded)
        return Status.STOPPED if callback is not None and callback(bracket, self.n_nodes) else None

    def search(self, timer: SearchTimer) -> Status:
        """Branch until no open node can improve on the incumbent by more than tol, or a limit is reached."""
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
            except KeyboardInterrupt:  # reopen the nodes in progress: redundant if their children are open, but valid
                self.open_nodes += self.in_progress
                heapq.heapify(self.open_nodes)
                return Status.STOPPED

    def pop_nodes(self, max_nodes: int) -> list[Any]:
        """Remove and return at most max_nodes open nodes of smallest bound below the cutoff, but at least one."""
        chosen = self.in_progress = self.open_nodes[:1]
        heapq.heappop(self.open_nodes)
        while self.open_nodes and len(chosen) < max_nodes and self.open_nodes[0][0] < self.cutoff:
            chosen.append(self.open_nodes[0])
            heapq.heappop(self.open_nodes)
        return chosen

    def update_incumbent(self, y: Array, objective: float) -> None:
        """Make labels of the chunklets the incumbent if their objective is smaller."""
        if objective < self.best:
            self.best, self.signs = objective, y
