"""The two places where code runs: the top level of a cell, and the body of a function."""

from __future__ import annotations

import ast
import contextlib

from cellwright.dataflow._known_names import BUILTINS
from cellwright.dataflow._walker import LocalFrame, Statements, list_arguments
from cellwright.dataflow.facts import (
    ARGUMENT,
    NEW,
    RECEIVER,
    CellFacts,
    Effects,
    ValueExpression,
    freeze,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cellwright.dataflow._walker import FunctionNode
    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Root

_DEEPEST = 7  # functions in functions; each level may be walked twice as often as the one above
_SCOPE_NODES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


class NestedTooDeep(Exception):
    """Functions are nested more deeply than is worth the time."""


class Scope(Statements):
    """A piece of code and the functions that are defined in it."""

    def __init__(
        self,
        budget: WorkBudget,
        frames: list[LocalFrame] | None = None,
        outer: Scope | None = None,
    ) -> None:
        super().__init__(budget, frames)
        self.depth = outer.depth + 1 if outer else 0
        # The same function in the same surroundings has the same effects. One memory for all.
        self.outlines: dict[int, FunctionOutline] = outer.outlines if outer else {}
        self.remembered: dict[object, Effects] = outer.remembered if outer else {}

    def find_effects(self, node: FunctionNode, *, method: bool = False) -> Effects:
        """What running the body of a function does."""
        if self.depth >= _DEEPEST:
            raise NestedTooDeep
        frames = [frame for frame in self.frames if frame.kind != "class"]
        outline = self.outlines.get(id(node))
        if outline is None:
            outline = self.outlines[id(node)] = FunctionOutline(node)
            self.budget.spend(outline.size)
        around = tuple(
            (depth, name, frame.names[name])
            for depth, frame in enumerate(frames)
            for name in outline.mentions
            if name in frame.names
        )
        key = (id(node), method, self.depth, around)
        effects = None if outline.reaches_out else self.remembered.get(key)
        if effects is None:
            scope = FunctionScope(outline, frames, self, method=method)
            effects = self.remembered[key] = scope.collect_effects()
        self.include_nested(effects)
        return effects

    def include_nested(self, effects: Effects) -> None:
        """Take in the effects of a function that is defined here."""


class FunctionScope(Scope):
    """The body of a function. Global names are what they are when the function is called."""

    def __init__(
        self, outline: FunctionOutline, frames: list[LocalFrame], outer: Scope, *, method: bool
    ) -> None:
        given = outline.make_parameters(method=method)
        self._local = LocalFrame(dict.fromkeys(outline.bound, NEW) | given, "function")
        super().__init__(outer.budget, [*frames, self._local], outer)
        self._outline = outline
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._returns: set[Root] = set()

    def collect_effects(self) -> Effects:
        """Walk the body, twice: what flows into a name may do so after it was used, in a loop."""
        outline, body = self._outline, self._outline.node.body
        for _ in range(2):
            before = dict(self._local.names)
            if isinstance(body, list):
                self.walk(body)
            else:
                self.note_result(self.evaluate(body))
            if self._local.names == before and not outline.reaches_out:
                break
        kept = {  # what an object holds on to, its methods can give away
            root
            for targets, value in self.stores
            if any(name == RECEIVER for name, _ in targets)
            for root in value.reach
        }
        return Effects(
            frozenset(self._reads),
            frozenset(self._writes),
            frozenset(self.changes),
            frozenset(self.calls),
            frozenset(self.opaque),
            restless=outline.is_generator,
            returns=frozenset(
                root for root in self._returns | kept if root[0] not in {ARGUMENT, RECEIVER}
            ),
        )

    def note_load(self, name: str) -> None:
        self._reads.add(name)

    def read_name(self, name: str) -> ValueExpression:
        if name in self._outline.globals:
            return self.read_global(name)
        return super().read_name(name)

    def note_result(self, value: ValueExpression) -> None:
        self._returns.update(value.reach)

    def bind(self, name: str, value: ValueExpression) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "comprehension":
                continue
            if frame.kind == "class" or name in frame.names:
                old = frame.names.get(name)
                frame.names[name] = value if old is None else ValueExpression.join([old, value])
                self.budget.spend(len(frame.names[name].reach) // 16)
                return
            if name not in self._outline.nonlocals:
                break
        self._reads.add(name)
        self._writes.add(name)

    def include_nested(self, effects: Effects) -> None:
        """A caller of this function may call the inner one, or get it as the result."""
        self._reads |= effects.reads
        self._writes |= effects.writes
        self._returns |= effects.returns
        self.changes |= effects.changes
        self.calls |= effects.calls
        self.opaque += effects.opaque

    def note_star(self, module: str) -> None:
        self.opaque.append(f"`from {module} import *`")


class CellScope(Scope):
    """The top level of a cell: names are global, and the order of statements matters."""

    def __init__(self, lines: Sequence[str], budget: WorkBudget, *, plain: bool) -> None:
        super().__init__(budget)
        self._lines = lines
        self._plain = plain  # no line was rewritten: the text of a statement is what was written
        self._clock = 0
        self._conditions = 0
        self._sure: set[str] = set()
        # Under a condition: each name that became sure or unsure, and whether it was sure before.
        self._sure_log: list[tuple[str, bool]] = []
        self._bound: dict[str, int] = {}
        self._bound_before: set[str] = set()  # and deleted under a condition
        self._loads: dict[str, int] = {}
        self._uses: set[str] = set()
        self._deleted: set[str] = set()
        self._values: dict[str, list[ValueExpression]] = {}
        self._origins: dict[str, str] = {}
        self._stable: dict[str, str | None] = {}
        self._newly_bound: list[str] = []  # by this statement, and by none before it
        self._stars: list[str] = []
        self._early: set[str] = set()
        self._code: set[str] = set()
        self._is_early = True

    def walk_cell(self, body: Sequence[ast.stmt]) -> None:
        """Walk the whole cell."""
        for node in body:
            self._newly_bound.clear()
            self.walk_statement(node)
            if not self._is_early:
                continue
            names = [name for name in self._newly_bound if self._stable[name]]
            harmless = isinstance(node, ast.Pass | ast.Import | ast.ImportFrom) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            )
            self._is_early = harmless or bool(names)
            self._early.update(names)

    # --- Names -----------------------------------------------------------------------------------

    def note_load(self, name: str) -> None:
        self._loads.setdefault(name, self._clock)
        if name not in self._sure:
            self._uses.add(name)

    def bind(self, name: str, value: ValueExpression) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "class":
                old = frame.names.get(name)
                frame.names[name] = value if old is None else ValueExpression.join([old, value])
                return
        self._bind(name, value, None)
        self._origins.pop(name, None)
        self._code.discard(name)

    def _bind(self, name: str, value: ValueExpression, stable: str | None) -> None:
        self._clock += 1
        is_first = name not in self._values
        self._values.setdefault(name, []).append(value)
        if name not in self._stable:
            self._newly_bound.append(name)
        if self._conditions:
            stable = None
        if not is_first:
            before = self._stable.get(name)
            both_imports = bool(before and stable and before[0] == stable[0] == "i")
            stable = f"{before}\n{stable}" if both_imports else None
        self._stable[name] = stable
        self._deleted.discard(name)
        self._set_sure(name, is_sure=True)

    def _set_sure(self, name: str, *, is_sure: bool) -> None:
        if self._conditions:
            self._sure_log.append((name, name in self._sure))
            if not is_sure and name in self._bound:
                self._bound_before.add(name)
        elif is_sure:
            self._bound.setdefault(name, self._clock)
        if is_sure:
            self._sure.add(name)
        else:
            self._sure.discard(name)

    def bind_import(self, name: str, origin: str, text: str) -> None:
        if self.frames:
            self.bind(name, ValueExpression())
            return
        self._bind(name, ValueExpression(), f"i {text}")
        self._origins[name] = origin

    def bind_known(
        self, name: str, value: ValueExpression, node: ast.stmt, *, stable: bool
    ) -> None:
        if self.frames:
            self.bind(name, value)
            return
        text = None
        if stable and self._plain and node.end_lineno is not None:
            text = "d " + "\n".join(self._lines[node.lineno - 1 : node.end_lineno])
        is_first = name not in self._values
        self._bind(name, value, text)
        self._origins.pop(name, None)
        if is_first and not isinstance(node, ast.Assign):
            self._code.add(name)
        else:
            self._code.discard(name)

    def delete(self, name: str) -> None:
        if self.frames:
            self.read_name(name)
            return
        self.note_load(name)
        self._clock += 1
        self._set_sure(name, is_sure=False)
        self._bound.pop(name, None)
        self._stable[name] = None
        self._values.setdefault(name, [])
        if not self._conditions:
            self._deleted.add(name)

    def note_star(self, module: str) -> None:
        self._stars.append(module)

    # --- Conditions ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def under_condition(self) -> Iterator[None]:
        start = len(self._sure_log)
        self._conditions += 1
        yield
        self._forget_sure(start)
        self._end_condition()

    def walk_branches(self, *bodies: Sequence[ast.stmt]) -> None:
        gained: set[str] | None = None
        lost: set[str] = set()
        self._conditions += 1
        for body in bodies:
            start = len(self._sure_log)
            self.walk(body)
            more, less = self._forget_sure(start)
            gained = more if gained is None else gained & more
            lost |= less
            for name in less:  # the next branch begins where this one did
                self._set_sure(name, is_sure=True)
        for name in lost:
            self._set_sure(name, is_sure=False)
        self._end_condition()
        for name in gained or ():
            self._set_sure(name, is_sure=True)

    def _end_condition(self) -> None:
        self._conditions -= 1
        if not self._conditions:
            for name in self._bound_before & self._sure:
                self._bound.setdefault(name, self._clock)
            self._bound_before.clear()
            self._sure_log.clear()

    def _forget_sure(self, start: int) -> tuple[set[str], set[str]]:
        """Undo what became sure since `start`. Returns the names that did, and those that became unsure."""
        before: dict[str, bool] = {}
        for name, was_sure in self._sure_log[start:]:
            before.setdefault(name, was_sure)
        self.budget.spend(len(before))
        gained = {name for name, was in before.items() if not was and name in self._sure}
        lost = {name for name, was in before.items() if was and name not in self._sure}
        self._sure -= gained
        return gained, lost

    # --- The result --------------------------------------------------------------------------------

    def collect_facts(self) -> CellFacts:
        """The facts of the cell, after all of it was walked."""
        values = {name: ValueExpression.join(every) for name, every in self._values.items()}
        bound = set(values)
        return CellFacts(
            defines=freeze(bound - self._deleted),
            uses=freeze(self._uses - BUILTINS),
            builtins=freeze(self._uses & BUILTINS),
            deletes=freeze(self._deleted),
            opaque=tuple(dict.fromkeys(self.opaque)),
            stars=tuple(self._stars),
            environment=self.environment,
            perhaps=freeze(bound - self._sure - self._deleted),
            loads=self._loads,
            bound=self._bound,
            values=values,
            origins=self._origins,
            stable={name: text for name, text in self._stable.items() if text},
            early=freeze(self._early),
            code=freeze(self._code),
            calls=freeze(self.calls),
            changes=freeze(self.changes),
            stores=freeze(self.stores),
            work=self.budget.spent,
        )


class FunctionOutline:
    """What the text of a function says about its names, wherever it is walked.

    `mentions` are all names in it; `reaches_out` says that it may bind names of the functions
    around it; `size` is how many nodes it has.
    """

    def __init__(self, node: FunctionNode) -> None:
        self.node = node
        own = list(_list_own_nodes([node.body] if isinstance(node, ast.Lambda) else [*node.body]))
        self.bound, self.globals, self.nonlocals = _sort_names(own)
        self.is_generator = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own)
        every = list(ast.walk(node))
        self.size = len(every)
        self.mentions = {each.id for each in every if isinstance(each, ast.Name)}
        self.reaches_out = any(isinstance(each, ast.Nonlocal) for each in every)

    def make_parameters(self, *, method: bool) -> dict[str, ValueExpression]:
        """The parameters, as the objects that a caller may pass."""
        names = [each.arg for each in list_arguments(self.node.args)]
        found = {name: _make_parameter(ARGUMENT) for name in names}
        if method and names:
            found[names[0]] = _make_parameter(RECEIVER)
        return found


def _make_parameter(root: str) -> ValueExpression:
    return ValueExpression(frozenset({(root, False)}), frozenset({(root, True)}))


def _list_own_nodes(body: list[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a function that belong to its own scope, and the heads of the scopes in it."""
    waiting: list[ast.AST] = list(body)
    seen: set[int] = set()  # a walrus in a scope in a scope is found from both
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, _SCOPE_NODES):
            # A walrus in a comprehension binds outside of it.
            waiting += [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        else:
            waiting += ast.iter_child_nodes(node)


def _sort_names(nodes: list[ast.AST]) -> tuple[set[str], set[str], set[str]]:
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
