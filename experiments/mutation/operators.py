"""Mutants of a source file: one small change each, by the usual operators, applied to the syntax tree."""

import ast
import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple


def both_ways(*pairs: tuple[Any, Any]) -> dict[Any, Any]:
    """Return a mapping from each of a pair to the other."""
    return {**dict(pairs), **{other: one for one, other in pairs}}


ARITHMETIC = both_ways((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr))
ARITHMETIC |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult}
BOUNDARY = both_ways((ast.Lt, ast.LtE), (ast.Gt, ast.GtE))
OPPOSITE = both_ways(
    (ast.Lt, ast.GtE), (ast.LtE, ast.Gt), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)
)
BUILT_IN = both_ways(("min", "max"), ("any", "all"))
METHODS = BUILT_IN | both_ways(
    ("minimum", "maximum"), ("argmin", "argmax"), ("sum", "mean"), ("vstack", "hstack"), ("cumsum", "cumprod"),
    ("ones", "zeros"), ("floor", "ceil"),
)  # fmt: skip
NUMBERS = ("float", "int", "Array", "Factor", "Sparse", "Indices", "Labels")  # return types that can be doubled
LEFT_ALONE = ("annotation", "returns", "decorator_list", "args")  # but the arguments of a call are mutated
LONGEST = 90  # characters shown of a change


class Mutant(NamedTuple):
    """A change at one place of a file.

    Attributes
    ----------
    function : str
        Dotted name of the outermost function or method that contains it; empty for constants of the module.
    line : int
        Line number, from 1.
    operator : str
        Kind of change.
    code : str
        Original line.
    change : str
        Description of the change: before and after.
    number : int
        Position among all mutants of the file.
    """

    function: str
    line: int
    operator: str
    code: str
    change: str
    number: int


class Change(NamedTuple):
    """A node, its replacement, and the kind of the change."""

    operator: str
    old: ast.AST
    new: ast.AST


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a source, in the order of its text."""
    lines, found = source.splitlines(), list[Mutant]()
    for function, (operator, old, new) in changes(ast.parse(source)):
        before, after = (" ".join(ast.unparse(node).split())[:LONGEST] for node in (old, new))
        line: int = getattr(old, "lineno", 0)
        found.append(Mutant(function, line, operator, lines[line - 1].strip(), f"{before} -> {after}", len(found)))
    return found


def mutate(source: str, number: int) -> ast.Module:
    """Return the syntax tree with one of the changes applied."""
    tree = ast.parse(source)
    _, change = next(islice(changes(tree), number, None))

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.copy_location(change.new, node) if node is change.old else self.generic_visit(node)

    changed: ast.Module = Replace().visit(tree)
    return ast.fix_missing_locations(changed)


def changes(tree: ast.Module) -> Iterator[tuple[str, Change]]:
    """Yield the changes of functions, methods and module constants, with the name of the function."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from ((node.name, change) for change in changes_of_function(node))
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield from ((f"{node.name}.{member.name}", change) for change in changes_of_function(member))
        elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
            yield from (("", change) for change in changes_from(node, tree, "body", None))


def changes_of_function(function: ast.FunctionDef) -> Iterator[Change]:
    """Yield the changes of the defaults and of the body; type names are not changed."""
    for default in [*function.args.defaults, *function.args.kw_defaults]:
        if default is not None:
            yield from changes_from(default, function.args, "defaults", None)
    for statement in function.body:
        yield from changes_from(statement, function, "body", type_of(function))


def type_of(function: ast.FunctionDef) -> str:
    """Return the annotated return type of a function."""
    return "" if function.returns is None else ast.unparse(function.returns)


def changes_from(node: ast.AST, parent: ast.AST, field: str, returned: str | None) -> Iterator[Change]:
    """Yield the changes of a node and of all its descendants, in the order of the text."""
    yield from (Change(operator, node, new) for operator, new in replacements(node, parent, field, returned))
    if isinstance(node, ast.Assert):
        return
    if isinstance(node, ast.FunctionDef):  # nested function
        returned = type_of(node)
    for name, value in ast.iter_fields(node):
        if name not in LEFT_ALONE or isinstance(node, ast.Call):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from changes_from(child, node, name, returned)


def replacements(node: ast.AST, parent: ast.AST, field: str, returned: str | None) -> Iterator[tuple[str, ast.AST]]:
    """Yield the possible changes of a node: kind and replacement."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield "arithmetic", altered(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "sign or negation left out", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operator, others in (("boundary", BOUNDARY), ("comparison", OPPOSITE)):
            if type(node.ops[0]) in others:
                yield operator, altered(node, ops=[others[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield "and, or", altered(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.Constant):
        yield from constants(node, parent)
    elif isinstance(node, ast.Name) and node.id in BUILT_IN:
        yield "name", altered(node, id=BUILT_IN[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.ctx, ast.Load):
        yield "name", altered(node, attr=METHODS[node.attr])
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield from other_values(node.value, returned or "")
    plain = isinstance(node, ast.Compare | ast.Constant | ast.UnaryOp)  # negated above, or by removing "not"
    if isinstance(node, ast.expr) and field in ("test", "ifs") and not plain:
        yield "condition negated", ast.UnaryOp(ast.Not(), node)
    if isinstance(node, ast.AugAssign | ast.Raise) or is_removable(node):
        yield "statement left out", ast.Pass()
    if isinstance(node, ast.Break | ast.Continue):
        yield "break, continue", ast.Continue() if isinstance(node, ast.Break) else ast.Break()


def is_removable(node: ast.AST) -> bool:
    """Return whether a statement is a call for its effect, or sets an entry or an attribute."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def constants(node: ast.Constant, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the changes of a constant: True and False, a number plus one, axis 0 and 1; strings are not changed."""
    if isinstance(node.value, bool):
        yield "True, False", ast.Constant(not node.value)
    elif isinstance(node.value, int | float) and isinstance(parent, ast.keyword) and parent.arg == "axis":
        yield "axis", ast.Constant(1 - int(node.value))
    elif isinstance(node.value, int | float) and node.value + 1 != node.value:
        yield "constant", ast.Constant(node.value + 1)


def other_values(value: ast.expr, returned: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield other return values of the same type: twice a number, the negation, or None if allowed."""
    if returned == "bool":
        yield "returned value", ast.Return(ast.UnaryOp(ast.Not(), value))
    elif returned in NUMBERS:
        yield "returned value", ast.Return(ast.BinOp(ast.Constant(2), ast.Mult(), value))
    elif returned.endswith("| None"):
        yield "returned value", ast.Return(ast.Constant(None))


def altered(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with changed fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new
