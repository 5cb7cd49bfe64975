"""Checks the source of kernels: finds kernels that rebind a view, or return or drop a result, and write nothing.

``b = b * 2`` makes a new array with the name ``b``; the array of the task keeps its contents. The check refuses a
kernel only if no statement can write to the view: every use of the name before it is rebound is an operand, an index
that is read, an attribute such as ``b.shape``, or an argument of a function that is known not to write. Any other use
may write, so the kernel is accepted. Three kinds of kernels are always accepted: kernels without source; empty kernels,
for programs that are only explained; and kernels that do not return a result and may have another effect.
"""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from unisono._core import InputError

_Function = ast.FunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
#: Attributes of an array that give no access to its elements.
_FACTS = {"shape", "dtype", "ndim", "size", "offset", "nbytes", "itemsize"}
_HARMLESS = {abs, len, range, float, int}
#: Functions by which a kernel reaches a view without its name.
_BY_TEXT = {"eval", "exec", "locals", "vars"}
#: Statements and expressions with an effect outside of the kernel, or on its control flow.
_EFFECTS = (
    *(*_SCOPES, ast.Raise, ast.Assert, ast.Delete, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal),
    *(ast.AugAssign, ast.With, ast.Try, ast.Yield, ast.YieldFrom, ast.Await),
)


class _Source(NamedTuple):
    """The tree of a kernel, its positional parameters, and the values of global names."""

    function: _Function
    names: list[str]
    known: dict[str, Any]


#: The finding on a parameter (None: nothing found) by the kernel's code, module and position; cached because loops
#: create equal lambdas.
_found: dict[tuple[CodeType, int, int], str | None] = {}
_KEPT = 1024


def check_writes(task: str, kernel: Callable[..., Any], arrays: Sequence[str], reads: int) -> None:
    """Refuses a kernel that cannot write to a view that its task changes; the first ``reads`` are only read.

    Raises:
        InputError: the kernel rebinds the name of the view, or returns or drops a result, and writes nothing.

    """
    function = _plain(kernel)
    if function is None:
        return
    source: _Source | None = None
    for position, array in enumerate(arrays[reads:], start=reads + isinstance(kernel, MethodType)):
        key = (function.__code__, id(function.__globals__), position)
        if key not in _found:
            source = source or _source(function)
            if len(_found) >= _KEPT:
                _found.clear()
            known = source is not None and position < len(source.names)
            _found[key] = _useless(source, position) if source is not None and known else None
        how = _found[key]
        if how is not None:
            name = function.__code__.co_varnames[position]
            raise InputError(
                f"task '{task}': its kernel {how}, and never writes to '{array}', which the task changes; accepted are "
                f"writes to the view, such as {name}[...] = value or {name} += value"
            )


def _plain(kernel: Callable[..., Any]) -> FunctionType | None:
    """Returns the function of a kernel, which may be compiled or bound; None if it wraps another function."""
    plain = getattr(kernel, "py_func", kernel)
    function = plain.__func__ if isinstance(plain, MethodType) else plain
    return function if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__") else None


def _source(function: FunctionType) -> _Source | None:
    code = function.__code__
    names = list(code.co_varnames[: code.co_argcount])
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    kind = ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    same = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kind) and [a.arg for a in (*node.args.posonlyargs, *node.args.args)] == names
    ]
    # Two lambdas on the same line cannot be distinguished.
    if len(same) != 1 or (isinstance(same[0], ast.FunctionDef) and same[0].name != function.__name__):
        return None
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    known = {**vars(builtins), **function.__globals__}
    return _Source(same[0], names, {name: value for name, value in known.items() if name not in local})


def _useless(source: _Source, position: int) -> str | None:
    """Returns a clause on a kernel without effect on a view: a new binding of its name, or a dropped result.

    The result is None for other functions, which may write to the view or have another effect.
    """
    function, names, known = source
    name = names[position]
    if any(_uses(function, other) for other in _BY_TEXT):
        return None
    if isinstance(function, ast.Lambda):
        body = function.body
        if _may_write(body, name, known, kept=False) or not (_uses(body, name) or _is_useless([body], known)):
            return None
        return "returns a result, which is dropped"
    for statement in function.body:
        if _rebinds(statement, name):
            value = getattr(statement, "value", None)
            if value is not None and not _may_write(value, name, known, kept=True):
                return f"assigns to the name {name}, which makes a new array"
            return None
        if _may_write(statement, name, known, kept=False):
            return None
    returned = [
        node.value
        for node in _own(function.body)
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant)
    ]
    if returned and not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(function.body)):
        return "returns a result, which is dropped"
    if _is_useless(function.body, known):
        return "drops its results"
    return None


def _is_useless(body: Sequence[ast.AST], known: dict[str, Any]) -> bool:
    """Returns whether code computes something, and has no effect."""
    nodes = list(_own(body))
    return any(isinstance(node, ast.Name) for node in nodes) and not any(
        isinstance(node, _EFFECTS)
        or (isinstance(node, ast.Call) and not _only_reads(node.func, node, known))
        or (isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load))
        for node in nodes
    )


def _own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields all nodes except those in inner functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _own(ast.iter_child_nodes(node))


def _uses(tree: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _rebinds(statement: ast.stmt, name: str) -> bool:
    """Returns whether a statement always assigns to a name."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _may_write(tree: ast.AST, name: str, known: dict[str, Any], *, kept: bool) -> bool:
    """Returns whether some use of a name in a tree may write to its array, or rebinds the name.

    ``kept`` is true if the value of the tree is bound to a name, because the array could be written through this name.
    """
    # An inner function may return the view to code that writes to it.
    if any(isinstance(node, _SCOPES) and _uses(node, name) for node in ast.walk(tree)):
        return True
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def harmless(node: ast.AST) -> bool:
        parent = parents.get(node)
        match parent:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return True
            case ast.Return():
                return True
            case None:
                return not kept
            case ast.Attribute(attr=attr):
                return attr in _FACTS
            case ast.Subscript(value=value, ctx=ast.Load()) if value is node:
                return harmless(parent)
            case ast.Subscript(slice=index) if index is node:
                return True
            case ast.Call(func=function, args=arguments) if node in arguments:
                return _only_reads(function, parent, known)
            case _:
                return False

    return any(
        isinstance(node, ast.Name) and node.id == name and not (isinstance(node.ctx, ast.Load) and harmless(node))
        for node in ast.walk(tree)
    )


def _only_reads(function: ast.expr, call: ast.Call, known: dict[str, Any]) -> bool:
    """Returns whether a called function is known not to write to its arguments."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg in (None, "out") for keyword in call.keywords
    ):
        return False
    match function:
        case ast.Name(id=name):
            called = known.get(name)
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            called = getattr(known.get(name), attr, None)
        case _:
            return False
    if isinstance(called, np.ufunc):
        return len(call.args) <= called.nin
    try:
        return called in _HARMLESS
    except TypeError:
        return False
