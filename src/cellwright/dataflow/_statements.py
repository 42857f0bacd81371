"""Statements: what they bind, change and delete, in a function or in a cell."""

from __future__ import annotations

import ast
import contextlib

from cellwright.dataflow import _functions as functions
from cellwright.dataflow import _tables as tables
from cellwright.dataflow._expressions import Expressions, Frame
from cellwright.dataflow.facts import NEW, Call, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Effects

_DEEPEST = 7  # functions in functions; each level may be walked twice as often as the one above


class TooDeep(Exception):
    """Functions are nested more deeply than is worth the time."""


class Statements(Expressions):
    """Walks statements; a subclass says what binding and reading a name means."""

    def __init__(
        self,
        budget: WorkBudget,
        frames: list[Frame] | None = None,
        outer: Statements | None = None,
    ) -> None:
        super().__init__(budget, frames)
        self.depth: int = outer.depth + 1 if outer else 0
        # The same function in the same surroundings has the same effects. One memory for all.
        self.outlines: dict[int, functions.Outline] = outer.outlines if outer else {}
        self.remembered: dict[object, Effects] = outer.remembered if outer else {}

    # --- Hooks ---------------------------------------------------------------------------------

    def bind_import(self, name: str, origin: str, text: str) -> None:
        """A module, or something out of one, gets a name."""
        del origin, text
        self.bind(name, NEW)

    def bind_known(self, name: str, value: Value, node: ast.stmt, *, stable: bool) -> None:
        """A function, class or literal gets a name; stable if its text is all that it depends on."""
        del node, stable
        self.bind(name, value)

    def delete(self, name: str) -> None:
        """A name goes away."""
        self.name(name)

    def star(self, module: str) -> None:
        """All names of a module come in."""

    @contextlib.contextmanager
    def perhaps(self) -> Iterator[None]:
        """What happens in here may not happen."""
        yield

    def branches(self, *bodies: Sequence[ast.stmt]) -> None:
        """One of these happens."""
        for body in bodies:
            self.walk(body)

    # --- Statements ----------------------------------------------------------------------------

    def walk(self, body: Sequence[ast.stmt]) -> None:
        """Walk statements in order."""
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Walk one statement."""
        self.budget.spend()
        match node:
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(ast.Call() as call)):
                self.call(call, statement=True)
            case ast.Assign(targets=[ast.Name(id=name)], value=source) if _is_literal(source):
                self.bind_known(name, NEW, node, stable=True)
            case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Tuple(elts=right)) if len(
                left
            ) == len(right) and not any(isinstance(each, ast.Starred) for each in (*left, *right)):
                for target, value in zip(left, self.values(right), strict=True):
                    self.assign(target, value)
            case ast.Assign(targets=targets, value=source):
                value = self.value(source)
                for target in targets:
                    self.assign(target, value)
                    if len(targets) > 1:  # all of them get the same object
                        self.budget.spend(len(value.reach) // 16)
                        value = Value.either([value, *map(self.value, _loaded(target)[:1])])
            case ast.AugAssign():
                self.augment(node)
            case ast.AnnAssign(target=target, annotation=annotation, value=source):
                self.value(annotation)
                if source is not None:
                    self.assign(target, self.value(source))
            case ast.Delete(targets=targets):
                for target in targets:
                    self.remove(target)
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.partition(".")[0]
                    origin = alias.name if alias.asname else name
                    self.bind_import(name, origin, f"import {alias.name}")
            case ast.ImportFrom():
                self.import_from(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node)
            case ast.ClassDef():
                self.class_(node)
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.Match():
                self.fork(node)
            case ast.Try() | ast.TryStar():
                self.attempt(node)
            case ast.With() | ast.AsyncWith():
                self.with_(node)
            case ast.Global() | ast.Nonlocal() | ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Return(value=result):
                self.give_back(self.value(result))
            case _ if type(node).__name__ == "TypeAlias":
                self.assign(node.name, self.value(node.value))  # type: ignore[attr-defined]
            case _:
                self.values(ast.iter_child_nodes(node))

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target, whatever its form."""
        match target:
            case ast.Name(id=name):
                self.bind(name, value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                part = value.part()
                for element in elements:
                    self.assign(element, part)
                    if len(part.same) <= len(
                        value.reach
                    ):  # the parts may have to do with each other
                        part = Value.either([part, *map(self.value, _loaded(element)[:1])]).part()
            case ast.Starred(value=inner):
                self.assign(inner, Value.holding([value]))
            case ast.Attribute(value=base):
                self.store(self.value(base), value)
            case ast.Subscript(value=base, slice=index):
                self.value(index)
                self.store(self.value(base), value)
            case _:
                self.value(target)

    def augment(self, node: ast.AugAssign) -> None:
        """`x += y` changes the object or makes a new one; nobody knows which."""
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            old = self.name(node.target.id)
            self.store(old, value)
            self.bind(node.target.id, Value(old.same, old.reach | value.reach, old.effects))
        else:
            self.assign(node.target, value)

    def remove(self, target: ast.expr) -> None:
        """`del` of a name, an attribute or an item."""
        match target:
            case ast.Name(id=name):
                self.delete(name)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self.remove(element)
            case _:
                self.assign(target, NEW)

    def import_from(self, node: ast.ImportFrom) -> None:
        """`from x import y`."""
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.star(module)
            elif module != "__future__":
                text = f"from {module} import {alias.name}"
                self.bind_import(alias.asname or alias.name, f"{module}.{alias.name}", text)

    def fork(self, node: ast.If | ast.For | ast.AsyncFor | ast.While | ast.Match) -> None:
        """Statements of which some may not run."""
        match node:
            case ast.If(test=test, body=body, orelse=other):
                self.value(test)
                self.branches(body, other)
            case ast.While(test=test, body=body, orelse=other):
                self.value(test)
                with self.perhaps():
                    self.walk(body)
                with self.perhaps():
                    self.walk(other)
            case ast.For() | ast.AsyncFor():
                items = self.value(node.iter).part()
                with self.perhaps():
                    self.assign(node.target, items)
                    self.walk(node.body)
                with self.perhaps():
                    self.walk(node.orelse)
            case ast.Match(subject=subject, cases=cases):
                value = self.value(subject).part()
                for case in cases:
                    with self.perhaps():
                        self.pattern(case.pattern, value)
                        self.value(case.guard)
                        self.walk(case.body)

    def pattern(self, pattern: ast.pattern, value: Value) -> None:
        """Names that a pattern reads and binds."""
        for node in ast.walk(pattern):
            match node:
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    self.bind(name, value)
                case ast.MatchMapping(rest=rest, keys=keys):
                    self.values(keys)
                    if rest is not None:
                        self.bind(rest, value)
                case ast.MatchClass(cls=inner) | ast.MatchValue(value=inner):
                    self.value(inner)
                case _:
                    pass

    def attempt(self, node: ast.Try | ast.TryStar) -> None:
        """`try`: either the body or a handler gets to its end."""
        with self.perhaps():
            for handler in node.handlers:
                self.value(handler.type)
        self.branches([*node.body, *node.orelse], *(handler.body for handler in node.handlers))
        for handler in node.handlers:
            if handler.name:
                with self.perhaps():  # bound and gone again when the handler ends
                    self.bind(handler.name, NEW)
        self.walk(node.finalbody)

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        """`with`: surely runs, unless it is there to swallow errors."""
        swallows = False
        for item in node.items:
            value = self.value(item.context_expr)
            swallows |= any(
                (isinstance(each, ast.Name) and each.id in tables.SWALLOWS)
                or (isinstance(each, ast.Attribute) and each.attr in tables.SWALLOWS)
                for each in ast.walk(item.context_expr)
            )
            if isinstance(item.context_expr, ast.Name | ast.Attribute):
                self.change(value)  # entering and leaving does something to it
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value.part())
        if swallows:
            with self.perhaps():
                self.walk(node.body)
        else:
            self.walk(node.body)

    # --- Functions and classes -------------------------------------------------------------------

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Effects:
        """`def`: the head runs now, the body when called."""
        before = self.unusual_loads
        head = self.values(
            [
                *node.decorator_list,
                *node.args.defaults,
                *node.args.kw_defaults,
                *(each.annotation for each in functions.list_arguments(node.args)),
                node.returns,
            ]
        )
        defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each]
        effects = self.effects_of(node)
        for each in node.decorator_list:
            if isinstance(each, ast.Name):  # called with the function, which it may keep
                self.calls.add(Call(each.id, effects=frozenset({effects})))
        own = Value(effects=frozenset({effects}))
        value = Value.either([own, *head]) if node.decorator_list else Value.holding([own, *head])
        stable = (
            not node.decorator_list
            and self.unusual_loads == before
            and all(isinstance(each, ast.Constant) for each in defaults)
        )
        self.bind_known(node.name, value, node, stable=stable)
        return effects

    def class_(self, node: ast.ClassDef) -> None:
        """`class`: the body runs now, in a scope that its methods do not see."""
        before, changes = self.unusual_loads, len(self.changes) + len(self.calls)
        head = self.values(
            [*node.decorator_list, *node.bases, *(each.value for each in node.keywords)]
        )
        frame = Frame({}, "class")
        self.frames.append(frame)
        self.depth += 1
        for each in node.body:
            self.statement(each)
        self.depth -= 1
        self.frames.pop()
        methods: dict[str, Effects] = {}
        decorated: set[str] = set()
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                methods[each.name] = self.effects_of(each, method=True)
                if each.decorator_list:
                    decorated.add(each.name)
        own = Value(effects=frozenset({functions.of_class(methods, decorated, self.budget)}))
        value = Value.holding([own, *head, *frame.names.values()])
        stable = (
            not node.decorator_list
            and self.unusual_loads == before
            and len(self.changes) + len(self.calls) == changes
        )
        self.bind_known(node.name, value, node, stable=stable)

    def effects_of(self, node: functions.Function, *, method: bool = False) -> Effects:
        """What running the body of a function does."""
        from cellwright.dataflow._function_scope import FunctionScope

        if self.depth >= _DEEPEST:
            raise TooDeep
        frames = [frame for frame in self.frames if frame.kind != "class"]
        outline = self.outlines.get(id(node))
        if outline is None:
            outline = self.outlines[id(node)] = functions.Outline(node)
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
            effects = self.remembered[key] = scope.effects()
        self.nested(effects)
        return effects

    def nested(self, effects: Effects) -> None:
        """A function is made in here."""


def _loaded(target: ast.expr) -> list[ast.expr]:
    """The names that a target binds, as expressions that read them."""
    return [
        ast.Name(node.id, ast.Load())
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_literal(operand)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(map(_is_literal, parts))
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_literal(key) for key in keys) and all(
                map(_is_literal, values)
            )
        case _:
            return False
