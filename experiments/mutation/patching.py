"""Put a mutant into the modules that are loaded: no file is written, nothing is imported again."""

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from experiments.mutation.operators import Mutant, mutate

PACKAGE = "diffrac_cvx"


class CannotPatchError(Exception):
    """Raised where a mutant's function is not found in its module."""


def put(mutant: Mutant) -> None:
    """Make the change of a mutant in this process.

    A function keeps its identity and gets other code and defaults, so that all modules that imported it see the change;
    a constant is replaced wherever it was imported.

    Raises
    ------
    CannotPatchError
        If the function is not found in its module.
    """
    path = Path(mutant.file)
    module = importlib.import_module(".".join(path.with_suffix("").parts))
    tree = mutate(path.read_text(), mutant.number)
    if mutant.function:
        replace_function(module, tree, mutant)
    else:
        replace_constants(module, tree, mutant.line)


def replace_function(module: ModuleType, tree: ast.Module, mutant: Mutant) -> None:
    """Give the functions of this name the code and the defaults that they have in a tree."""
    names = mutant.function.split(".")
    codes = [code for code in codes_below(compile(tree, mutant.file, "exec")) if code.co_qualname == mutant.function]
    owner: Any = module if len(names) == 1 else getattr(module, names[0])
    found = functions_of(vars(owner).get(names[-1]))
    if not codes or not found:
        raise CannotPatchError(f"{mutant.function} is not found in {mutant.file}")
    definition = definition_of(tree, names)
    for function in found:
        function.__code__ = codes[0]
        function.__defaults__ = tuple(evaluated(default, module) for default in definition.args.defaults) or None
        names_only = zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True)
        given = {name.arg: evaluated(default, module) for name, default in names_only if default is not None}
        function.__kwdefaults__ = given or None


def codes_below(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects in a code object, classes' functions included."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_below(constant)


def functions_of(found: object) -> list[FunctionType]:
    """Return the plain functions behind a function, a method, a property, or what a decorator made of one."""
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    while isinstance(found, Callable) and hasattr(found, "__wrapped__"):  # type: ignore[arg-type]
        found = found.__wrapped__
    return [found] if isinstance(found, FunctionType) else []


def definition_of(tree: ast.Module, names: list[str]) -> ast.FunctionDef:
    """Return the definition of a function by its dotted name."""
    body: list[ast.stmt] = tree.body
    for name in names:
        found = next(node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name)
        body = found.body
    assert isinstance(found, ast.FunctionDef)
    return found


def evaluated(expression: ast.expr, module: ModuleType) -> Any:
    """Return the value of a default, in the names of its module."""
    return eval(compile(ast.Expression(expression), module.__name__, "eval"), vars(module))  # our own source


def replace_constants(module: ModuleType, tree: ast.Module, line: int) -> None:
    """Compute the constants of an assignment again, and set them in all modules of the package that have them."""
    (statement,) = (node for node in tree.body if node.lineno <= line <= (node.end_lineno or node.lineno))
    assert isinstance(statement, ast.Assign)
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    new = dict(vars(module))
    exec(compile(ast.Module([statement], []), module.__name__, "exec"), new)
    modules = [other for name, other in list(sys.modules.items()) if name.split(".")[0] == PACKAGE]
    for name in names:
        old = vars(module)[name]
        for other in modules:
            if vars(other).get(name) is old:
                setattr(other, name, new[name])
