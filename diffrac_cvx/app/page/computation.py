"""What is computed for one state of the page's controls: solves and paths, one after the other, until stopped."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from diffrac_cvx.app.page.data_choice import Data, Source
from diffrac_cvx.app.page.messages import Answer, Call
from diffrac_cvx.app.page.processes import StoppedError, Worker
from diffrac_cvx.app.page.solve_choice import Setting, Solve
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.result import Progress, Result

READABLE = (DataError, ParameterError, ResourceError)  # errors whose message is meant for the user
EVERY = 0.25  # seconds between two lines of progress


@dataclass(frozen=True, eq=False)
class Run:
    """One solve and what became of it: a result, or a sentence that says why there is none."""

    solve: Solve
    result: Result | None = None
    says: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name on the page."""
        return self.solve.name


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that was computed so far for one state of the controls.

    Attributes
    ----------
    source, data, setting
        What was asked.
    runs : tuple of Run
        The solves, in order.
    tables : dict
        What else was computed, by its name: paths, duality, comparison; a sentence in its place where that failed.
    """

    source: Source
    data: Data
    setting: Setting
    runs: tuple[Run, ...] = ()
    extras: tuple[tuple[str, Any], ...] = ()

    @property
    def solved(self) -> dict[str, Run]:
        """The runs that have a result, by name."""
        return {run.name: run for run in self.runs if run.result is not None}

    def extra(self, name: str) -> Any:
        """Return what was computed under a name, a sentence on what went wrong, or None."""
        return dict(self.extras).get(name)


@dataclass(frozen=True)
class Line:
    """A line of progress: what is computed, how many are done, and the bracket so far where the solver tells it.

    The state is "idle", "running", "done" or "stopped".
    """

    doing: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    progress: Progress | None = None
    state: str = "idle"

    def __str__(self) -> str:
        if self.state == "idle":
            return self.doing
        if self.state != "running":
            return f"{self.state} after {self.seconds:.1f} s, {self.done} of {self.total} computed"
        text = f"{self.doing} ({self.done + 1} of {self.total}), {self.seconds:.1f} s"
        if self.progress is None:
            return text
        gap = self.progress.upper - self.progress.lower
        return f"{text}: iteration {self.progress.iteration}, proved gap {gap:.1e}"


@dataclass(frozen=True, eq=False)
class Job:
    """The solves and other calls that are asked for, in order, and where their outcome goes.

    Attributes
    ----------
    outcome : Outcome
        What was asked, without any runs.
    solves : sequence of Solve
    calls : sequence of (str, Call)
        Other calls by their names.
    """

    outcome: Outcome
    solves: Sequence[Solve]
    calls: Sequence[tuple[str, Call]] = ()

    def compute(
        self,
        worker: Worker,
        stopped: Callable[[], bool],
        show: Callable[[Outcome], object],
        tell: Callable[[Line], object],
    ) -> Outcome:
        """Compute one after the other until stopped; `show` the outcome after each, and `tell` the progress."""
        runs: list[Run] = []
        extras: list[tuple[str, Any]] = []
        outcome, teller = self.outcome, Teller(tell, len(self.solves) + len(self.calls), stopped)
        try:
            for solve in self.solves:
                runs.append(run(solve, worker, teller))
                outcome = Outcome(outcome.source, outcome.data, outcome.setting, tuple(runs), tuple(extras))
                show(outcome)
            for name, call in self.calls:
                extras.append((name, computed(name, call, worker, teller)))
                outcome = Outcome(outcome.source, outcome.data, outcome.setting, tuple(runs), tuple(extras))
                show(outcome)
        except StoppedError:
            teller.end("stopped")
        else:
            teller.end("stopped" if stopped() else "done")
        return outcome


class Teller:
    """Pass on lines of progress, not too many of them."""

    def __init__(self, tell: Callable[[Line], object], total: int, stopped: Callable[[], bool]) -> None:
        self.tell, self.total, self.asked = tell, total, stopped
        self.started, self.last = time.perf_counter(), 0.0
        self.doing, self.done = "", 0
        self.progress: Progress | None = None

    def begin(self, doing: str) -> None:
        """Say what is computed next."""
        self.doing, self.progress = doing, None

    def note(self, progress: Progress) -> None:
        """Take a solver's progress."""
        self.progress = progress

    def stopped(self) -> bool:
        """Whether to stop; asked many times a second, so this is where the lines come from."""
        seconds = time.perf_counter() - self.started
        if seconds - self.last >= EVERY:
            self.last = seconds
            self.tell(Line(self.doing, self.done, self.total, seconds, self.progress, "running"))
        return self.asked()

    def end(self, how: str) -> None:
        """Say that it is over."""
        self.tell(Line("", self.done, self.total, time.perf_counter() - self.started, None, how))


def run(solve: Solve, worker: Worker, teller: Teller) -> Run:
    """Do a solve; what is wrong with it becomes a sentence."""
    if solve.call is None:
        teller.done += 1
        return Run(solve, says=solve.refusal)
    answer = asked(solve.name, solve.call, worker, teller)
    if answer.error is None:
        return Run(solve, answer.value, warnings=answer.warnings)
    return Run(solve, says=sentence(answer.error), warnings=answer.warnings)


def computed(name: str, call: Call, worker: Worker, teller: Teller) -> Any:
    """Return what a call returns, or a sentence on what went wrong."""
    answer = asked(name, call, worker, teller)
    return answer.value if answer.error is None else sentence(answer.error)


def asked(name: str, call: Call, worker: Worker, teller: Teller) -> Answer:
    """Do a call in the other process; that it died is an answer too."""
    teller.begin(name)
    try:
        answer = worker.call(call, stopped=teller.stopped, tell=teller.note)
    except RuntimeError as error:
        answer = Answer(error=error)
    teller.done += 1
    return answer


def sentence(error: Exception) -> str:
    """Return an error as a sentence."""
    return str(error) if isinstance(error, READABLE) else f"{type(error).__name__}: {error}"
