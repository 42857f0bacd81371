"""Functions and classes: what calling them does to global names and to what they are given."""

from __future__ import annotations

import ast

from cellwright.dataflow._policy import changes_receiver
from cellwright.dataflow.facts import ARGUMENT, RECEIVER, Effects, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright.dataflow.budget import WorkBudget

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_scopes = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
# A class that defines these does not change by being looked at.
_EXPECTED = {"__init__", "__new__", "__post_init__", "__setattr__", "__setitem__", "__delitem__"}
_EXPECTED |= {"__delattr__", "__del__", "__init_subclass__", "__set_name__", "__iadd__"}


class Outline:
    """What the text of a function says about its names, wherever it is walked.

    `mentions` are all names in it; `reaches_out` says that it may bind names of the functions
    around it; `size` is how many nodes it has.
    """

    def __init__(self, node: Function) -> None:
        self.node = node
        own = list(_own_nodes([node.body] if isinstance(node, ast.Lambda) else [*node.body]))
        self.bound, self.globals, self.nonlocals = _bound_names(own)
        self.is_generator = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own)
        every = list(ast.walk(node))
        self.size = len(every)
        self.mentions = {each.id for each in every if isinstance(each, ast.Name)}
        self.reaches_out = any(isinstance(each, ast.Nonlocal) for each in every)

    def parameters(self, *, method: bool) -> dict[str, Value]:
        """The parameters, each standing for whatever a caller passes."""
        names = [each.arg for each in list_arguments(self.node.args)]
        found = {name: _passed(ARGUMENT) for name in names}
        if method and names:
            found[names[0]] = _passed(RECEIVER)
        return found


def list_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [each for each in (arguments.vararg, arguments.kwarg) if each]


def _passed(root: str) -> Value:
    return Value(frozenset({(root, False)}), frozenset({(root, True)}))


def _own_nodes(body: list[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a function that belong to its own scope, and the heads of the scopes in it."""
    waiting: list[ast.AST] = list(body)
    seen: set[int] = set()  # a walrus in a scope in a scope is found from both
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, _scopes):
            # A walrus in a comprehension binds outside of it.
            waiting += [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        else:
            waiting += ast.iter_child_nodes(node)


def _bound_names(nodes: list[ast.AST]) -> tuple[set[str], set[str], set[str]]:
    """The names that a function binds itself, and those declared `global` and `nonlocal`."""
    bound: set[str] = set()
    global_: set[str] = set()
    nonlocal_: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.NamedExpr(target=ast.Name(id=name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
            case ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound |= {(a.asname or a.name).partition(".")[0] for a in aliases}
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.Global(names=names):
                global_.update(names)
            case ast.Nonlocal(names=names):
                nonlocal_.update(names)
            case _:
                pass
    return bound - global_ - nonlocal_, global_, nonlocal_


def of_class(methods: dict[str, Effects], decorated: set[str], budget: WorkBudget) -> Effects:
    """What the methods of a class do, together."""
    callers: dict[str, set[str]] = {}
    for name, effects in methods.items():
        for call in effects.calls:
            if call.path and _on_self(call.receiver):
                callers.setdefault(call.path[-1], set()).add(name)
    changing = {name for name, effects in methods.items() if changes_receiver(effects, budget)}
    waiting = list(changing)
    while waiting:  # a method that calls one that changes the object changes it too
        more = callers.get(waiting.pop(), set()) - changing
        changing |= more
        waiting += more
    every = list(methods.values())
    none: frozenset[str] = frozenset()
    dunders = {name for name in changing if name.startswith("__")} - _EXPECTED
    return Effects(
        none.union(*(each.reads for each in every)),
        none.union(*(each.writes for each in every)),
        frozenset(root for each in every for root in each.changes if root[0] != RECEIVER),
        frozenset(call for each in every for call in each.calls),
        none.union(*(each.opaque for each in every)),
        restless=bool(dunders | (decorated & changing)),
        returns=frozenset(root for each in every for root in each.returns),
        methods=frozenset(methods),
        changing=frozenset(changing),
    )


def _on_self(roots: frozenset[tuple[str, bool]]) -> bool:
    return any(name == RECEIVER for name, _ in roots)
