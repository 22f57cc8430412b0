"""The parameters of the page, and the solves that they and the choice of relaxations and solvers ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diffrac_cvx import relaxations
from diffrac_cvx import solvers as package
from diffrac_cvx.app.page.data_choice import Data
from diffrac_cvx.app.page.messages import Call
from diffrac_cvx.inputs import Array
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Result
from diffrac_cvx.solvers import solve

MOST_POINTS = 150  # of the n x n relaxations: seconds, of the correlation's minutes
MOST_SIDE = 60  # of CLARABEL's cone: its cost grows with the sixth power
MOST_DIRECTIONS = 150  # of SCS's cone in V


@dataclass(frozen=True)
class Setting:
    """What is solved: the weight of the imbalance, the l1 part, the ridge, the fixed imbalance; and the proved gap."""

    nu: float = 1.0
    lam: float = 0.0
    ridge: float = 0.0
    alpha: float = 0.0
    tol: float = 1e-4

    @property
    def penalty(self) -> Penalty:
        """The penalty on the direction."""
        return Penalty.l1(self.lam, self.ridge)

    def __str__(self) -> str:
        return f"nu = {self.nu:g}, lambda = {self.lam:g}, a = {self.ridge:g}, alpha = {self.alpha:g}"

    def code(self) -> list[str]:
        """Return the lines that define nu, alpha, penalty and tol."""
        return [
            f"nu, alpha, tol = {self.nu!r}, {self.alpha!r}, {self.tol!r}",
            f"penalty = dc.Penalty.l1({self.lam!r}, a={self.ridge!r})",
        ]


@dataclass(frozen=True)
class Form:
    """A relaxation as the page offers it.

    Attributes
    ----------
    equation, says : str
        Its number in the paper, and what it is.
    builder : str
        The function of the package.
    takes : tuple of str
        What that function takes of nu, penalty and alpha.
    points : bool
        Whether its variable has a row for each point.
    """

    equation: str
    says: str
    builder: str
    takes: tuple[str, ...]
    points: bool


FORMS = {
    form.equation: form
    for form in (
        Form("(15)", "direction alone, d x d", "v_space", ("nu", "penalty"), False),
        Form("(21)", "direction, normalised, d x d", "v_space_normalized", ("nu", "penalty"), False),
        Form("(8)", "imbalance penalised, n x n", "penalized_nu", ("nu", "penalty"), True),
        Form("(7)", "imbalance fixed, without penalty, n x n", "constrained_alpha", ("alpha",), True),
        Form("(11)", "labels and direction, (n + d) x (n + d)", "lifted", ("nu", "penalty"), True),
        Form("(23)", "correlation, trivial whatever the data, n x n", "correlation", (), True),
    )
}

FAST: dict[str, tuple[str, dict[str, str]]] = {  # what solves (15) without CVXPY, and the options it is called with
    "low_rank": ("low_rank", {}),
    "fista": ("fista", {}),
    "fista published": ("fista", {"variant": "published"}),
}
ORACLES = ("CLARABEL", "SCS")
SOLVERS = (*FAST, *ORACLES)


@dataclass(frozen=True, eq=False)
class Solve:
    """One solve: its name on the page and in `compare`, the call and the same as Python, or why it is refused."""

    name: str
    method: str
    call: Call | None
    code: str
    refusal: str = ""


def planned(data: Data, setting: Setting, forms: Sequence[str], solvers: Sequence[str]) -> list[Solve]:
    """Return the solves of the chosen relaxations by the chosen solvers, the fast ones first.

    Parameters
    ----------
    data : Data
    setting : Setting
    forms : sequence of str
        Keys of FORMS.
    solvers : sequence of str
        Of SOLVERS.
    """
    chosen = [FORMS[equation] for equation in FORMS if equation in forms]
    solves = [fast(data, setting, solver) for solver in FAST if solver in solvers and "(15)" in forms]
    oracles = [solver for solver in ORACLES if solver in solvers]
    solves += [reference(data, setting, form, solver) for form in chosen for solver in oracles]
    if not oracles:
        solves += [
            Solve(form.equation, "", None, "", f"{form.equation} is solved by CLARABEL or SCS; choose one of them")
            for form in chosen
            if form.equation != "(15)"
        ]
    return solves


def fast(data: Data, setting: Setting, solver: str) -> Solve:
    """Return a solve of (15) without CVXPY."""
    function, options = FAST[solver]
    given = {"nu": setting.nu, "penalty": setting.penalty, **options, "tol": setting.tol}
    text = ", ".join(
        [keywords(("nu", "penalty")), *(f"{name}={value!r}" for name, value in options.items()), "tol=tol"]
    )
    call = Call(getattr(package, function), (data.X,), given, reports=True)
    return Solve(f"(15) {solver}", solver, call, f"dc.{function}(X, {text})")


def reference(data: Data, setting: Setting, form: Form, solver: str) -> Solve:
    """Return a solve through CVXPY, or the reason why it is not offered."""
    given = {name: getattr(setting, name) for name in form.takes}
    text = ", ".join(["X", keywords(form.takes)]) if form.takes else "X"
    refusal = refused(data, setting, form, solver)
    call = None if refusal else Call(through_cvxpy, (form.builder, data.X, given, solver, setting.tol))
    code = f'dc.solve(dc.{form.builder}({text}), "{solver}", tol=tol)'
    return Solve(f"{form.equation} {solver}", f"{form.builder}/{solver}", call, code, refusal)


def refused(data: Data, setting: Setting, form: Form, solver: str) -> str:
    """Return why a relaxation is not solved on the page, or nothing."""
    if form.points and data.n > MOST_POINTS:
        return f"{form.equation} has a row for each point and takes at most {MOST_POINTS} points here, not {data.n}"
    if form.builder == "penalized_nu" and setting.lam > 0.0:
        return "(8) has no l1 part: set lambda to 0, or take (11) or (15)"
    side = data.n + (data.d if form.builder == "lifted" else 0) if form.points else data.d + 1
    most = MOST_SIDE if solver == "CLARABEL" else MOST_POINTS + data.d if form.points else MOST_DIRECTIONS
    if side > most:
        return f"{solver} takes a matrix of at most {most} rows here, and {form.equation} has one of {side}"
    return ""


def keywords(names: Sequence[str]) -> str:
    """Return nu=nu, penalty=penalty, and so on."""
    return ", ".join(f"{name}={name}" for name in names)


def through_cvxpy(builder: str, X: Array, given: dict[str, Any], solver: str, tol: float) -> Result:
    """Build a relaxation and solve it: CVXPY's problems stay in the process that built them."""
    return solve(getattr(relaxations, builder)(X, **given), solver, tol=tol)
