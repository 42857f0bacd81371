"""Expressions: which names they read, and where the objects that they give may come from."""

from __future__ import annotations

import ast
from typing import NamedTuple

from cellwright.dataflow import _tables as tables
from cellwright.dataflow.facts import NEW, Call, Value, called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Effects, Root

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_quiet_magics = tables.QUIET_LINES


class Frame(NamedTuple):
    """Names that are local to a function, a class body or a comprehension."""

    names: dict[str, Value]
    kind: str


class Expressions:
    """Walks expressions. What it finds out about global names collects in its attributes."""

    def __init__(self, budget: WorkBudget, frames: list[Frame] | None = None) -> None:
        self.budget = budget
        self.frames = frames or []
        self.calls: set[Call] = set()
        self.changes: set[Root] = set()
        self.stores: set[tuple[frozenset[Root], Value]] = set()
        self.opaque: list[str] = []
        self.environment = False
        self.unusual_loads = 0  # of names that are no builtins

    # Statements fill these in.

    def load(self, name: str) -> None:
        """A global name is read."""
        raise NotImplementedError

    def bind(self, name: str, value: Value) -> None:
        """A name gets a value, wherever names are bound here."""
        raise NotImplementedError

    def effects_of(self, node: _Function, *, method: bool = False) -> Effects:
        """What running a function does."""
        raise NotImplementedError

    def give_back(self, value: Value) -> None:
        """A function returns or yields this."""

    # --- Names ---------------------------------------------------------------------------------

    def name(self, name: str) -> Value:
        """The value of a name, which is thereby read."""
        for frame in reversed(self.frames):
            if name in frame.names:
                if frame.kind == "class":
                    self.global_name(name)  # perhaps not bound yet: then it is the global one
                return frame.names[name]
        return self.global_name(name)

    def global_name(self, name: str) -> Value:
        """The value of a name that is surely global."""
        self.load(name)
        if name not in tables.BUILTINS:
            self.unusual_loads += 1
        return Value(frozenset({(name, False)}), frozenset({(name, True)}))

    def change(self, value: Value) -> None:
        """The object itself is changed."""
        self.changes.update(value.same)

    def store(self, target: Value, value: Value) -> None:
        """Something is put into an object."""
        self.change(target)
        if (value.reach or value.effects) and target.same:
            self.stores.add((target.same, value))

    # --- Expressions ---------------------------------------------------------------------------

    def value(self, node: ast.AST | None) -> Value:
        """Walk an expression and say what its value may be."""
        self.budget.spend()
        match node:
            case None | ast.Constant():
                return NEW
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=base):
                return self.value(base).part()
            case ast.Subscript(value=base, slice=index):
                self.value(index)
                return self.value(base).part()
            case ast.Call():
                return self.call(node)
            case ast.BoolOp(values=nodes):
                return Value.either(map(self.value, nodes))
            case ast.IfExp(test=test, body=body, orelse=other):
                self.value(test)
                return Value.either([self.value(body), self.value(other)])
            case ast.Compare(left=left, comparators=others):
                self.values([left, *others])
                return NEW
            case ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
                self.values(ast.iter_child_nodes(node))
                return NEW
            case ast.Lambda():
                self.values([*node.args.defaults, *node.args.kw_defaults])
                return Value(effects=frozenset({self.effects_of(node)}))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node)
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                value = self.value(inner)
                self.bind(name, value)
                return value
            case ast.Await(value=inner) | ast.Starred(value=inner):
                return self.value(inner).part()
            case ast.YieldFrom(value=inner):
                value = self.value(inner).part()
                self.give_back(value)
                return value
            case ast.Yield(value=sent):
                self.give_back(self.value(sent))
                return NEW
            case ast.expr_context() | ast.operator() | ast.unaryop():
                return NEW
            case _:
                return Value.holding(self.values(ast.iter_child_nodes(node)))

    def values(self, nodes: Iterable[ast.AST | None]) -> list[Value]:
        """Walk several expressions."""
        return [self.value(node) for node in nodes]

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Value:
        """A scope of its own, except for what a walrus in it binds."""
        frame = Frame({}, "comprehension")
        self.frames.append(frame)
        sources: list[Value] = []
        for generator in node.generators:
            source = self.value(generator.iter)
            sources.append(source)
            for name in _target_names(generator.target):
                frame.names[name] = source.part()
            self.values(generator.ifs)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        result = Value.holding(self.values(parts))
        self.frames.pop()
        if isinstance(node, ast.GeneratorExp):
            result = Value.holding([result, *sources])
            return Value(result.same, result.reach, result.effects, restless=True)
        return result

    # --- Calls ---------------------------------------------------------------------------------

    def call(self, node: ast.Call, *, statement: bool = False) -> Value:
        """A call: remembered, since what it changes depends on what the other cells define."""
        callee, path = _dotted(node.func)
        is_global = bool(callee) and not any(callee in frame.names for frame in self.frames)
        base = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        receiver = self.value(base)
        given = self.values(node.args)
        in_place = False
        out: list[Value] = []
        for keyword in node.keywords:
            value = self.value(keyword.value)
            given.append(value)
            if keyword.arg == "inplace" and not _is_false(keyword.value):
                in_place = True
            elif keyword.arg == "out":
                out.append(value)
        for value in out:
            self.change(value.part())
        arguments = Value.holding(given)
        self.budget.spend((len(arguments.reach) + len(receiver.reach)) // 16)
        if is_global and not path:
            self._special(callee, node)
        elif path == ("run_line_magic",) or "get_ipython" in _inner_name(node.func):
            self._shell(path, node)
        method = path[-1] if path else ""
        call = Call(
            callee if is_global else "",
            path if is_global else ((method,) if method else ()),
            receiver.same,
            arguments.reach,
            statement=statement,
            in_place=in_place,
            effects=arguments.effects,
        )
        self.calls.add(call)
        if (arguments.reach or arguments.effects) and method and receiver.same:
            self.stores.add((receiver.same, arguments))
        return _result(callee if is_global else "", method, receiver, arguments)

    def _special(self, name: str, node: ast.Call) -> None:
        bare = not node.args and not node.keywords
        if name in tables.OPAQUE_CALLS or (name in {"locals", "vars"} and bare):
            self.opaque.append(f"`{name}`")

    def _shell(self, path: tuple[str, ...], node: ast.Call) -> None:
        match node.args:
            case [ast.Constant(value=str(magic)), *_] if (
                path[-1:] == ("run_line_magic",) and magic in _quiet_magics
            ):
                self.environment |= magic in tables.ENVIRONMENT_LINES
            case _:
                self.opaque.append("`get_ipython()`")


def _result(callee: str, method: str, receiver: Value, arguments: Value) -> Value:
    inside = Value.holding([receiver, arguments])
    if callee and not method and callee in tables.FRESH_RESULTS:
        return NEW
    restless = (method or callee) in tables.ONE_SHOT
    new = method in tables.PURE_METHODS or (not method and callee in tables.HOLDING_RESULTS)
    reach = called(inside.reach)
    return Value(frozenset() if new else reach, reach, inside.effects, restless)


def _dotted(node: ast.expr) -> tuple[str, tuple[str, ...]]:
    """The name that an attribute chain starts from, or empty, and the attributes."""
    path: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            break
    return (node.id if isinstance(node, ast.Name) else ""), tuple(reversed(path))


def _inner_name(node: ast.expr) -> str:
    """The function whose result a method is called on: `f` in `f().method()`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return ""


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _target_names(node: ast.expr) -> list[str]:
    return [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
