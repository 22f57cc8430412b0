"""Certificates: bounds with their complete proof, except for the table, and the file format.

Every field of a file is converted to doubles or integers, and rejected if the conversion changes it.
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.certificates.labels import Products, Rows, Sets
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, is_sparse
from diffrac_cvx.points.linear_constraints import LinearConstraints, LinearRows, linear_rows
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.problem.feature_groups import FeatureGroups
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Bracket

FORMAT = 2  # version of the file format
MAX_RATIO, MIN_UNPACKED = 50.0, 64e6  # unpacked bytes allowed: relative to the file's size, and always
RELAXATIONS = {  # bounded quantity, fields of its point, and fields of its problem besides nu and penalty
    "labels": ("Eq. (9) at the best labels", ("labels",), ("weights", "constraints", "linear")),
    "directions": ("Eq. (8), (11) and (15)", ("F", "G"), ("weights", "constraints")),
    "imbalance": ("Eq. (7)", ("F",), ("alpha",)),
    "labels_at_alpha": (
        "Eq. (9) without its nu, at the best labels of imbalance alpha",
        (),
        ("alpha", "constraints", "linear"),
    ),
    "normalized": ("Eq. (21)", ("G",), ("constraints",)),
    "correlation": ("Eq. (23)-(24)", ("F",), ()),
    "classes": ("the relaxation for K classes", ("F",), ("n_clusters",)),
    "clusters": ("the objective of K clusters", ("labels",), ("n_clusters", "weights")),
}


class Proof(NamedTuple):
    """Multipliers that prove a lower bound, in the user's units: `Multipliers`, `LabelDual` or `LabelMultipliers`.

    With ``signs``, the bound holds for the labels in which these chunklets have these signs relative to each other.
    Without multipliers, no such labels satisfy the linear constraints.
    """

    signs: Array | None = None  # (m,), -1, +1, or 0 for a chunklet that is free
    u: Array | None = None  # (r,), weights of the rows, and t, C, free, blocks, Z and G, see `Multipliers`
    t: float | None = None
    C_places: Indices | None = None  # (k, 2), entries of C above the diagonal
    C_values: Array | None = None  # (k,)
    free: Indices | None = None
    blocks: Indices | None = None
    Z: Array | None = None
    G: Array | None = None
    diagonal: Array | None = None  # (m,), mu of `LabelProblem` with C and rows; or D of the space of labels
    rows: Rows | None = None
    products: Products | None = None  # of linear constraints
    equal: Array | None = None  # (l, m), multipliers of equations
    sets: Sets | None = None  # of K clusters, and of their floors, (m, m)
    floors: Array | None = None
    weight: float | None = None  # of 11'/n in label space: 1 - nu, with nu the multiplier of a given imbalance


@dataclass(frozen=True, eq=False)
class Certificate:
    """Certified bounds on the optimum of one problem, with their complete proof, except for the table.

    Attributes
    ----------
    relaxation : str
        Bounded problem: "labels", Eq. (9) minimised over labels; "labels_at_alpha", its terms without nu minimised over
        labels of imbalance alpha; "directions", Eq. (8), (11) and (15); "imbalance", (7); "normalized", (21);
        "correlation", (23)-(24); "classes", section 4; "clusters", K clusters.
    lower, upper : float
        Certified bounds on the optimum.
    nu, alpha, n_clusters : float, float or None, int or None
        Parameters of the problem.
    penalty : Penalty
        Its penalty.
    weights : (n,) array or None
        Sample weights, divided by their sum; None if all are equal.
    membership, sign : (n,) arrays or None
        Chunklet of each point, and its sign in it, if labels are constrained.
    linear : LinearConstraints or None
        Inequalities and equations on the labels, and in ``labeled`` the chunklet of known labels, or -1.
    excluded : (e,) array of int
        Excluded columns, see `Result`; the bounds are those of the table without them.
    labels, direction : (n,) and (d,) arrays, or None
        Labels, and a direction at which their objective is at most ``upper``; of K clusters, (n,) and (K, d).
    F, G : (n, r) and (d, r) arrays, or None
        Factor of a point of a relaxation, whose objective is at most ``upper``: Y = FF' or V = GG'.
    proofs : tuple of multipliers
        Multipliers that prove ``lower``, one record for each branch of a search, which bounds the labels of this
        branch.  Empty if ``lower`` is trivial.
    """

    relaxation: str
    lower: float
    upper: float
    nu: float
    penalty: Penalty
    shape: tuple[int, int]
    alpha: float | None = None
    n_clusters: int | None = None
    weights: Array | None = None
    membership: Indices | None = None
    sign: Array | None = None
    linear: LinearConstraints | None = None
    labeled: int = -1
    excluded: Indices | None = None
    labels: Array | None = None
    direction: Array | None = None
    F: Array | None = None
    G: Factor | None = None
    proofs: tuple[Proof, ...] = ()

    @property
    def n_excluded(self) -> int:
        """Number of excluded columns."""
        return 0 if self.excluded is None else len(self.excluded)

    @property
    def bracket(self) -> Bracket:
        """Lower and upper bound."""
        return Bracket(self.lower, self.upper, self.n_excluded)

    @property
    def gap(self) -> float:
        """Gap ``upper - lower``, rounded up."""
        return self.bracket.gap

    def __str__(self) -> str:
        n_rows = sum(len(proof.rows.right) for proof in self.proofs if proof.rows is not None)
        points = f"{self.shape[0]} points"
        if self.membership is not None:
            points += f" in {len(np.unique(self.membership))} chunklets"
        by = f", by {n_rows} inequalities" * (n_rows > 0) + f", in {len(self.proofs)} branches" * (len(self.proofs) > 1)
        parameter = f"nu = {self.nu:g}" if self.alpha is None else f"alpha = {self.alpha:g}"
        return f"{self.bracket} on {RELAXATIONS[self.relaxation][0]}, {points}, {parameter}{by}"

    # Arrays, and their file

    def arrays(self) -> dict[str, Any]:
        """Return the contents of the certificate by name."""
        d, given = self.shape[1], {"format": FORMAT, **vars(self)}
        penalty, proofs, G = given.pop("penalty"), given.pop("proofs"), given.pop("G")
        linear, labeled = given.pop("linear"), given.pop("labeled")
        if linear is not None:
            given["labeled"] = labeled
            for name, rows in linear._asdict().items():
                entries = scipy.sparse.coo_array(rows.coefficients)
                given |= {f"{name}_places": np.stack(entries.coords, axis=1), f"{name}_values": entries.data}
                given[f"{name}_right"] = rows.right
        given["a"], given["c"] = penalty.weights(d)
        given["groups"] = None if penalty.groups is None else penalty.feature_groups(d).labels
        given["nonnegative"] = weights_of(penalty, d).nonnegative if penalty.nonnegative is not None else None
        if G is not None and is_sparse(G):
            entries = scipy.sparse.coo_array(G)
            given |= {"G_places": np.stack(entries.coords, axis=1), "G_values": entries.data, "G_shape": G.shape}
        else:
            given["G"] = G
        for k, proof in enumerate(proofs):
            fields = proof._asdict()
            for part in ("rows", "products", "sets"):
                record = fields.pop(part)
                named = {} if record is None else record._asdict()
                fields |= {f"{part}_{name}": value for name, value in named.items()}
            given |= {f"{k}.{name}": value for name, value in fields.items()}
        return {name: value for name, value in given.items() if value is not None}

    def save(self, file: str | PathLike[str]) -> None:
        """Write the certificate to a file of NumPy arrays (.npz), with a checksum as its comment.

        Raises
        ------
        ParameterError
            If the penalty is of a user-defined class, which the file format cannot describe; check the certificate in
            memory.
        """
        if type(self.penalty) is not Penalty:
            raise ParameterError(f"{type(self.penalty).__name__} is a penalty of your own. Check its bounds in memory.")
        stream = io.BytesIO()
        np.savez_compressed(stream, **self.arrays())
        content = stream.getvalue()
        Path(file).write_bytes(content[:-2] + len(checksum(content)).to_bytes(2, "little") + checksum(content))

    @classmethod
    def load(cls, file: str | PathLike[str]) -> "Certificate":
        """Read a certificate from a file.

        Raises
        ------
        DataError
            If the file is not a certificate, or is damaged.
        """
        try:
            return parse(read_arrays(file))
        except DataError as error:
            raise DataError(f"{file} is not a certificate: {error}. Write one with Certificate.save.") from error


def read_arrays(file: str | PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file of NumPy arrays; raise DataError if it is damaged or unpacks to too much."""
    try:
        content = Path(file).read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            comment = members.comment
            if comment and checksum(content[: -2 - len(comment)] + bytes(2)) != comment:
                raise DataError("it is damaged")
            sizes = {info.filename: (info.file_size, info.compress_size) for info in members.infolist()}
            unpacked, packed = (sum(size[i] for size in sizes.values()) for i in (0, 1))
            if unpacked > max(MIN_UNPACKED, MAX_RATIO * packed):
                raise DataError(f"it unpacks to {unpacked / 1e6:.0f} MB")
            return {name.removesuffix(".npy"): read_array(members.read(name)) for name in sizes}
    except DataError:
        raise
    except Exception as error:  # zipfile and zlib raise many types of errors on damaged files
        raise DataError(f"it cannot be read ({type(error).__name__})") from error


def checksum(content: bytes) -> bytes:
    """Return a checksum that detects damage; tampering is harmless, because the checker trusts nothing in a file."""
    return hashlib.sha256(content).hexdigest().encode()


def read_array(member: bytes) -> npt.NDArray[Any]:
    """Return the array of a member of a file; its header must state its size."""
    stream = io.BytesIO(member)
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, fortran, dtype = read_header(stream)
    if dtype.hasobject or np.prod(shape, dtype=object) * dtype.itemsize != len(member) - stream.tell():
        raise DataError("an array does not have the size that it states")
    values = np.frombuffer(member, dtype, offset=stream.tell())
    return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)


class Fields:
    """Values by name, each converted to doubles or integers and rejected if the conversion changes it."""

    def __init__(self, given: Mapping[str, Any], prefix: str = "", unread: set[str] | None = None) -> None:
        self.given, self.prefix, self.unread = given, prefix, set(given) if unread is None else unread

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.given

    def part(self, prefix: str) -> "Fields":
        """Return the values whose names have this prefix."""
        return Fields(self.given, prefix, self.unread)

    def value(self, name: str) -> npt.NDArray[Any]:
        """Return a value as an array of any type; raise DataError if it is missing or not an array."""
        what = self.prefix + name
        if what not in self.given:
            raise DataError(f"{what} is missing")
        self.unread.discard(what)
        try:
            return np.asarray(self.given[what])
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{what} is not an array") from error

    def numbers(self, name: str, shape: Sequence[int | None], low: float = -np.inf, high: float = np.inf) -> Array:
        """Return finite numbers from low to high, in an array of this shape; None stands for any length."""
        return np.asarray(self.converted(name, shape, np.dtype(np.float64), low, high), dtype=np.float64)

    def integers(self, name: str, shape: Sequence[int | None], low: int, high: int) -> Indices:
        """Return integers from low to high."""
        return np.asarray(self.converted(name, shape, np.dtype(np.int64), low, high), dtype=np.int64)

    def number(self, name: str, low: float = -np.inf, high: float = np.inf) -> float:
        """Return a finite number."""
        return float(self.numbers(name, (), low, high))

    def converted(self, name: str, shape: Sequence[int | None], dtype: Any, low: float, high: float) -> Any:
        what, value = self.prefix + name, self.value(name)
        with np.errstate(invalid="ignore", over="ignore"):
            found = value.astype(dtype) if value.dtype.kind in "biuf" else None
        if found is None or not np.array_equal(found, value):
            raise DataError(f"{what} is not an array of {'numbers' if dtype.kind == 'f' else 'integers'}")
        if found.ndim != len(shape) or any(k not in (None, size) for k, size in zip(shape, found.shape, strict=True)):
            raise DataError(f"{what} has shape {found.shape}")
        if not np.all(np.isfinite(found)) or np.any(found < low) or np.any(found > high):
            raise DataError(f"{what} has an entry that is not from {low:g} to {high:g}")
        return np.array(found, order="C")


def parse(given: Mapping[str, Any]) -> Certificate:
    """Return the certificate of these arrays; raise DataError if one is missing, of the wrong type, or out of range."""
    fields = Fields(given)
    fields.integers("format", (), FORMAT, FORMAT)
    relaxation = str(fields.value("relaxation"))
    if relaxation not in RELAXATIONS:
        raise DataError(f"relaxation is {relaxation[:40]!r}")
    _, points, others = RELAXATIONS[relaxation]
    n, d = map(int, fields.integers("shape", (2,), 1, 2**62))
    made: dict[str, Any] = {"relaxation": relaxation, "shape": (n, d), "nu": fields.number("nu", 0.0, 1.0)}
    made["lower"] = fields.number("lower")
    made["upper"] = np.inf if fields.value("upper").shape == () and given["upper"] == np.inf else fields.number("upper")
    if not made["lower"] <= made["upper"]:
        raise DataError("lower exceeds upper")
    made["penalty"] = parse_penalty(fields, d)
    if "alpha" in others:
        made["alpha"] = fields.number("alpha", 0.0, 1.0)
    if "n_clusters" in others:
        made["n_clusters"] = int(fields.integers("n_clusters", (), 2, 2**62))
    if "weights" in fields and "weights" in others:
        made["weights"] = fields.numbers("weights", (n,), 0.0)
    if ("membership" in fields or "sign" in fields) and "constraints" in others:
        made["membership"], made["sign"] = fields.integers("membership", (n,), 0, n - 1), fields.numbers("sign", (n,))
        if not np.all(np.abs(made["sign"]) == 1.0):
            raise DataError("sign has an entry that is not -1 or 1")
        if not np.array_equal(np.unique(made["membership"]), np.arange(made["membership"].max() + 1)):
            raise DataError("membership has a chunklet without points")
    if "labeled" in fields and "linear" in others:
        made["labeled"] = int(fields.integers("labeled", (), -1, n - 1))
        made["linear"] = LinearConstraints(*(parse_linear(fields, name, n) for name in LinearConstraints._fields))
    if "excluded" in fields:
        made["excluded"] = fields.integers("excluded", (None,), 0, d - 1)
    if "labels" in fields and "labels" in points:
        made["labels"] = fields.numbers("labels", (n,), -1.0, n)
        shape = (made["n_clusters"], d) if relaxation == "clusters" else (d,)
        made["direction"] = fields.numbers("direction", shape)
    if "F" in fields and "F" in points:
        made["F"] = fields.numbers("F", (n, None))
    elif "G" in fields and "G" in points:
        made["G"] = fields.numbers("G", (None, None))
    elif "G_places" in fields and "G" in points:
        D, r = map(int, fields.integers("G_shape", (2,), 1, 2**31))
        places = fields.integers("G_places", (None, 2), 0, 2**31)
        values = fields.numbers("G_values", (len(places),))
        if np.any(places >= [D, r]):
            raise DataError("G_places has an entry outside G_shape")
        made["G"] = scipy.sparse.csc_array((values, (places[:, 0], places[:, 1])), shape=(D, r))
    parts = {name.partition(".")[0] for name in given if "." in name}
    if parts != set(map(str, range(len(parts)))):
        raise DataError("the proofs are not numbered from 0")
    made["proofs"] = tuple(parse_proof(fields.part(f"{k}."), d) for k in range(len(parts)))
    if fields.unread:
        raise DataError(f"{min(fields.unread)} does not belong to a certificate on {relaxation!r}")
    return Certificate(**made)


def parse_penalty(fields: Fields, d: int) -> Penalty:
    """Return the penalty from the arrays of a certificate."""
    a, c = (fields.numbers(name, (d,), 0.0, 1e100) for name in ("a", "c"))
    nonnegative = fields.integers("nonnegative", (d,), 0, 1).astype(bool) if "nonnegative" in fields else None
    if "groups" not in fields:
        return Penalty(a, c, nonnegative=nonnegative)
    labels = fields.integers("groups", (d,), 0, d - 1)
    numbers, first = np.unique(labels, return_index=True)
    if not np.array_equal(numbers, np.arange(len(numbers))) or np.any(c != c[first][labels]) or nonnegative is not None:
        raise DataError("groups has a group without columns, with several weights, or with signs")
    return Penalty(a, c[first], groups=FeatureGroups(labels, tuple(map(str, numbers))))


def parse_linear(fields: Fields, name: str, n: int) -> LinearRows:
    """Return the inequalities or the equations on n labels from the arrays of a certificate."""
    right = fields.numbers(f"{name}_right", (None,), -1e100, 1e100)
    places = fields.integers(f"{name}_places", (None, 2), 0, 2**62)
    values = fields.numbers(f"{name}_values", (len(places),), -1e100, 1e100)
    if np.any(places >= [len(right), n]):
        raise DataError(f"{name}_places has an entry outside its {len(right)} rows and {n} points")
    A = scipy.sparse.coo_array((values, tuple(places.T)), shape=(len(right), n))
    return linear_rows(A, right, [f"{name}[{k}]" for k in range(len(right))])


def parse_proof(fields: Fields, d: int) -> Proof:
    """Return a proof from the arrays of a certificate; the checker verifies whether it fits the table."""
    made: dict[str, Any] = {}
    if "signs" in fields:
        made["signs"] = fields.integers("signs", (None,), -1, 1).astype(np.float64)
    if "C_places" in fields:
        places = fields.integers("C_places", (None, 2), 0, d)
        if np.any(places[:, 0] >= places[:, 1]) or len(np.unique(places[:, 0] * (d + 1) + places[:, 1])) < len(places):
            raise DataError(f"{fields.prefix}C_places is not above the diagonal, or has a place twice")
        made |= {"C_places": places, "C_values": fields.numbers("C_values", (len(places),))}
    if "diagonal" in fields:
        made["diagonal"] = fields.numbers("diagonal", (None,))
        if "weight" in fields:
            weight = fields.value("weight")
            is_balanced = weight.shape == () and bool(weight == -np.inf)
            made["weight"] = -np.inf if is_balanced else fields.number("weight")
        if "rows_ends" in fields:
            made["rows"] = parse_rows(fields, len(made["diagonal"]))
        if "products_rows" in fields:
            made["products"] = parse_products(fields, len(made["diagonal"]))
        if "sets_centers" in fields:
            made["sets"] = parse_sets(fields, len(made["diagonal"]))
        if "floors" in fields:
            made["floors"] = fields.numbers("floors", made["diagonal"].shape * 2, 0.0)
        if "equal" in fields:
            made["equal"] = fields.numbers("equal", (None, len(made["diagonal"])))
        return Proof(**made)
    if "signs" in fields and "t" not in fields:
        return Proof(**made)
    made["t"] = fields.number("t", 0.0)
    made["u"] = fields.numbers("u", (None,), 0.0)
    for name in ("free", "blocks"):
        if name in fields:
            made[name] = fields.integers(name, (None,), 0, d)
    for name in ("Z", "G"):
        if name in fields:
            made[name] = fields.numbers(name, (None, None))
    return Proof(**made)


def parse_rows(fields: Fields, m: int) -> Rows:
    """Return the rows of inequalities on m chunklets; raise DataError if one does not hold for all signs."""
    ends = fields.integers("rows_ends", (None,), 1, 2**62)
    k = len(ends)
    lengths = np.diff(ends, prepend=0)
    if np.any(lengths < 1):
        raise DataError(f"{fields.prefix}rows_ends does not increase")
    entries = int(ends[-1]) if k else 0
    first, second = (fields.integers(f"rows_{name}", (entries,), 0, m - 1) for name in ("first", "second"))
    coefficients, right = fields.numbers("rows_coefficients", (entries,)), fields.numbers("rows_right", (k,))
    multipliers = fields.numbers("rows_multipliers", (k,), 0.0)
    rows = Rows(fields.integers("rows_kinds", (k,), 0, 8), ends, first, second, coefficients, right, multipliers)
    reason = rows.invalid() if k else ""
    if reason:
        raise DataError(f"{fields.prefix}rows: {reason}")
    return rows


def parse_products(fields: Fields, m: int) -> Products:
    """Return products of inequalities on the signs of m chunklets; the checker compares them with the constraints."""
    rows = fields.integers("products_rows", (None,), 0, 2**62)
    chunklets = fields.integers("products_chunklets", (len(rows),), 0, m - 1)
    signs = fields.integers("products_signs", (len(rows),), -1, 1)
    if np.any(signs == 0):
        raise DataError(f"{fields.prefix}products_signs has an entry that is not -1 or 1")
    return Products(rows, chunklets, signs.astype(np.int8), fields.numbers("products_multipliers", (len(rows),), 0.0))


def parse_sets(fields: Fields, m: int) -> Sets:
    """Return inequalities on partitions of m points; the checker verifies whether they hold for K clusters."""
    centers = fields.integers("sets_centers", (None,), -1, m - 1)
    members = fields.integers("sets_members", (len(centers), None), -1, m - 1)
    return Sets(centers, members, fields.numbers("sets_multipliers", (len(centers),), 0.0))
