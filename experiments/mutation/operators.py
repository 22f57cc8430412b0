"""Mutants of a source file: one small change each, by the usual operators, found and made in the syntax tree."""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
NAMES = {
    "min": "max",
    "minimum": "maximum",
    "argmin": "argmax",
    "any": "all",
    "sum": "mean",
    "vstack": "hstack",
    "cumsum": "cumprod",
    "ones": "zeros",
    "floor": "ceil",
}
NAMES |= {other: name for name, other in NAMES.items()}
NUMBERS = ("float", "int", "Array", "Factor", "Sparse", "Indices", "Labels")  # return types that can be doubled
LONGEST = 90  # characters of a change that are shown


class Mutant(NamedTuple):
    """A change of one place of a file.

    Attributes
    ----------
    file : str
        Path of the file, from the root of the project.
    function : str
        Dotted name of the outermost function or method that it is in; empty for constants of the module.
    line : int
        Where it is, from 1.
    operator : str
        Its kind.
    code : str
        The line as it is.
    change : str
        What becomes of what.
    number : int
        Its place among all mutants of the file.
    """

    file: str
    function: str
    line: int
    operator: str
    code: str
    change: str
    number: int


class Change(NamedTuple):
    """A node, and what takes its place: the kind of the change, the field of the parent, and its place in a list."""

    operator: str
    parent: ast.AST
    field: str
    place: int | None
    old: ast.expr | ast.stmt
    new: ast.AST

    def make(self) -> None:
        """Put the new node in the place of the old one."""
        self.put(self.new)

    def undo(self) -> None:
        """Put the old node back."""
        self.put(self.old)

    def put(self, node: ast.AST) -> None:
        """Put a node in the place."""
        if self.place is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.place] = node


def mutants(source: str, file: str) -> list[Mutant]:
    """Return all mutants of a source, in the order of its text."""
    lines, tree = source.splitlines(), ast.parse(source)
    return [
        Mutant(file, function, old.lineno, operator, lines[old.lineno - 1].strip(), words(old, new), number)
        for number, (function, (operator, _, _, _, old, new)) in enumerate(changes(tree))
    ]


def mutate(source: str, number: int) -> ast.Module:
    """Return the syntax tree with one of the changes made."""
    tree = ast.parse(source)
    for i, (_, change) in enumerate(changes(tree)):
        if i == number:
            change.make()
            return ast.fix_missing_locations(tree)
    raise IndexError(f"there are fewer than {number + 1} mutants")


def words(old: ast.AST, new: ast.AST) -> str:
    """Return a change as text."""
    before, after = (" ".join(ast.unparse(node).split())[:LONGEST] for node in (old, new))
    return f"{before} -> {after}"


def changes(tree: ast.Module) -> Iterator[tuple[str, Change]]:
    """Yield the changes of functions, methods, and constants of the module, with the name of the function."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from ((node.name, change) for change in changes_of_function(node))
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield from ((f"{node.name}.{member.name}", change) for change in changes_of_function(member))
        elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
            yield from (("", change) for change in changes_below(node, None))


def changes_of_function(function: ast.FunctionDef) -> Iterator[Change]:
    """Yield the changes of the defaults and of the body; names of types are left alone."""
    arguments = function.args
    for field in ("defaults", "kw_defaults"):
        for i, default in enumerate(getattr(arguments, field)):
            if default is not None:
                yield from changes_at(default, arguments, field, i, None)
                yield from changes_below(default, None)
    returned = ast.unparse(function.returns) if function.returns is not None else ""
    for i, statement in enumerate(function.body):
        yield from changes_at(statement, function, "body", i, returned)
        yield from changes_below(statement, returned)


def changes_below(node: ast.AST, returned: str | None) -> Iterator[Change]:
    """Yield the changes of all nodes below one, in the order of the text."""
    if isinstance(node, ast.Assert):
        return
    if isinstance(node, ast.FunctionDef):  # inside another
        returned = ast.unparse(node.returns) if node.returns is not None else ""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield from changes_at(child, node, field, i, returned)
                yield from changes_below(child, returned)


def changes_at(node: ast.AST, parent: ast.AST, field: str, index: int | None, returned: str | None) -> Iterator[Change]:
    """Yield the changes of one node."""
    if is_docstring(node) or not isinstance(node, ast.expr | ast.stmt):
        return
    for operator, new in replacements(node, parent, field, returned):
        yield Change(operator, parent, field, index, node, ast.copy_location(new, node))


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a text alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def replacements(node: ast.AST, parent: ast.AST, field: str, returned: str | None) -> Iterator[tuple[str, ast.AST]]:
    """Yield the kinds of changes of a node, and what takes its place."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield "arithmetic", altered(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "sign or negation left out", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        kind = type(node.ops[0])
        if kind in BOUNDARY:
            yield "boundary", altered(node, ops=[BOUNDARY[kind]()])
        yield "comparison", altered(node, ops=[OPPOSITE[kind]()])
    elif isinstance(node, ast.BoolOp):
        yield "and, or", altered(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.Constant):
        yield from constants(node, parent, field)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from renamed(node)
    elif isinstance(node, ast.Return):
        yield from other_values(node, returned)
    plain = isinstance(node, ast.Compare | ast.Constant | ast.UnaryOp)  # negated above, or by leaving "not" out
    if isinstance(node, ast.expr) and field in ("test", "ifs") and not plain:
        yield "condition negated", ast.UnaryOp(ast.Not(), node)
    if isinstance(node, ast.AugAssign | ast.Raise) or is_removable(node):
        yield "statement left out", ast.Pass()
    if isinstance(node, ast.Break | ast.Continue):
        yield "break, continue", ast.Continue() if isinstance(node, ast.Break) else ast.Break()


def is_removable(node: ast.AST) -> bool:
    """Whether a statement is a call for its effect, or sets an entry or an attribute."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def constants(node: ast.Constant, parent: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the changes of a constant: True and False, a number plus one, axis 0 and 1; texts are left alone."""
    if isinstance(node.value, bool):
        yield "True, False", ast.Constant(not node.value)
    elif isinstance(node.value, int | float) and isinstance(parent, ast.keyword) and parent.arg == "axis":
        yield "axis", ast.Constant(1 - int(node.value))
    elif isinstance(node.value, int | float) and node.value + 1 != node.value:
        yield "constant", ast.Constant(node.value + 1)


def renamed(node: ast.Name | ast.Attribute) -> Iterator[tuple[str, ast.AST]]:
    """Yield the node with the name of the opposite function."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    if name in NAMES and isinstance(node.ctx, ast.Load):
        field = "id" if isinstance(node, ast.Name) else "attr"
        if field == "id" and name not in ("min", "max", "any", "all", "sum"):
            return
        if field == "id" and name == "sum":  # there is no mean among the built-in functions
            return
        yield "name", altered(node, **{field: NAMES[name]})


def other_values(node: ast.Return, returned: str | None) -> Iterator[tuple[str, ast.AST]]:
    """Yield another value to be returned, of the same type: twice a number, the opposite, or None where it may be."""
    if node.value is None or isinstance(node.value, ast.Constant):
        return
    if returned == "bool":
        yield "returned value", ast.Return(ast.UnaryOp(ast.Not(), node.value))
    elif returned in NUMBERS:
        yield "returned value", ast.Return(ast.BinOp(ast.Constant(2), ast.Mult(), node.value))
    elif returned is not None and returned.endswith("| None"):
        yield "returned value", ast.Return(ast.Constant(None))


def altered(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new
