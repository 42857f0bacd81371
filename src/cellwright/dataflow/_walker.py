"""Walks Python code: which names it reads, binds and changes, and where objects may come from."""

from __future__ import annotations

import ast
import contextlib
from typing import NamedTuple

from cellwright.dataflow import _known_names as known_names
from cellwright.dataflow._policy import changes_receiver
from cellwright.dataflow.facts import (
    NEW,
    RECEIVER,
    CallSite,
    Effects,
    ValueExpression,
    list_call_results,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Root

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# A class that defines these does not change by being looked at.
_EXPECTED = {"__init__", "__new__", "__post_init__", "__setattr__", "__setitem__", "__delitem__"}
_EXPECTED |= {"__delattr__", "__del__", "__init_subclass__", "__set_name__", "__iadd__"}


class LocalFrame(NamedTuple):
    """Names that are local to a function, a class body or a comprehension."""

    names: dict[str, ValueExpression]
    kind: str


class Expressions:
    """Walks expressions. What it finds out about global names collects in its attributes."""

    def __init__(self, budget: WorkBudget, frames: list[LocalFrame] | None = None) -> None:
        self.budget = budget
        self.frames = frames or []
        self.calls: set[CallSite] = set()
        self.changes: set[Root] = set()
        self.stores: set[tuple[frozenset[Root], ValueExpression]] = set()
        self.opaque: list[str] = []
        self.environment = False
        self.unusual_loads = 0  # of names that are not builtins

    # Statements fill these in.

    def note_load(self, name: str) -> None:
        """A global name is read."""
        raise NotImplementedError

    def bind(self, name: str, value: ValueExpression) -> None:
        """A name gets a value, wherever names are bound here."""
        raise NotImplementedError

    def find_effects(self, node: FunctionNode, *, method: bool = False) -> Effects:
        """What running a function does."""
        raise NotImplementedError

    def note_result(self, value: ValueExpression) -> None:
        """A function returns or yields this."""

    # --- Names ---------------------------------------------------------------------------------

    def read_name(self, name: str) -> ValueExpression:
        """The value of a name, which is thereby read."""
        for frame in reversed(self.frames):
            if name in frame.names:
                if frame.kind == "class":
                    self.read_global(name)  # perhaps not bound yet: then it is the global one
                return frame.names[name]
        return self.read_global(name)

    def read_global(self, name: str) -> ValueExpression:
        """The value of a name that is surely global."""
        self.note_load(name)
        if name not in known_names.BUILTINS:
            self.unusual_loads += 1
        return ValueExpression(frozenset({(name, False)}), frozenset({(name, True)}))

    def note_change(self, value: ValueExpression) -> None:
        """The object itself is changed."""
        self.changes.update(value.same)

    def note_store(self, target: ValueExpression, value: ValueExpression) -> None:
        """Something is put into an object."""
        self.note_change(target)
        if (value.reach or value.effects) and target.same:
            self.stores.add((target.same, value))

    # --- Expressions ---------------------------------------------------------------------------

    def evaluate(self, node: ast.AST | None) -> ValueExpression:
        """Walk an expression and say what its value may be."""
        self.budget.spend()
        match node:
            case None | ast.Constant():
                return NEW
            case ast.Name(id=name):
                return self.read_name(name)
            case ast.Attribute(value=base):
                return self.evaluate(base).take_part()
            case ast.Subscript(value=base, slice=index):
                self.evaluate(index)
                return self.evaluate(base).take_part()
            case ast.Call():
                return self.walk_call(node)
            case ast.BoolOp(values=nodes):
                return ValueExpression.join(map(self.evaluate, nodes))
            case ast.IfExp(test=test, body=body, orelse=other):
                self.evaluate(test)
                return ValueExpression.join([self.evaluate(body), self.evaluate(other)])
            case ast.Compare(left=left, comparators=others):
                self.evaluate_all([left, *others])
                return NEW
            case ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
                self.evaluate_all(ast.iter_child_nodes(node))
                return NEW
            case ast.Lambda():
                self.evaluate_all([*node.args.defaults, *node.args.kw_defaults])
                return ValueExpression(effects=frozenset({self.find_effects(node)}))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.walk_comprehension(node)
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                value = self.evaluate(inner)
                self.bind(name, value)
                return value
            case ast.Await(value=inner) | ast.Starred(value=inner):
                return self.evaluate(inner).take_part()
            case ast.YieldFrom(value=inner):
                value = self.evaluate(inner).take_part()
                self.note_result(value)
                return value
            case ast.Yield(value=sent):
                self.note_result(self.evaluate(sent))
                return NEW
            case ast.expr_context() | ast.operator() | ast.unaryop():
                return NEW
            case _:
                return ValueExpression.hold(self.evaluate_all(ast.iter_child_nodes(node)))

    def evaluate_all(self, nodes: Iterable[ast.AST | None]) -> list[ValueExpression]:
        """Walk several expressions."""
        return [self.evaluate(node) for node in nodes]

    def walk_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> ValueExpression:
        """Walk a comprehension: a scope of its own, except for what a walrus in it binds."""
        frame = LocalFrame({}, "comprehension")
        self.frames.append(frame)
        sources: list[ValueExpression] = []
        for generator in node.generators:
            source = self.evaluate(generator.iter)
            sources.append(source)
            for name in _list_target_names(generator.target):
                frame.names[name] = source.take_part()
            self.evaluate_all(generator.ifs)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        result = ValueExpression.hold(self.evaluate_all(parts))
        self.frames.pop()
        if isinstance(node, ast.GeneratorExp):
            result = ValueExpression.hold([result, *sources])
            return ValueExpression(result.same, result.reach, result.effects, restless=True)
        return result

    # --- Calls ---------------------------------------------------------------------------------

    def walk_call(self, node: ast.Call, *, statement: bool = False) -> ValueExpression:
        """Keep a call: what it changes depends on what other cells define."""
        callee, path = _split_dotted(node.func)
        is_global = bool(callee) and not any(callee in frame.names for frame in self.frames)
        base = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        receiver = self.evaluate(base)
        given = self.evaluate_all(node.args)
        in_place = False
        out: list[ValueExpression] = []
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            given.append(value)
            if keyword.arg == "inplace" and not _is_false(keyword.value):
                in_place = True
            elif keyword.arg == "out":
                out.append(value)
        for value in out:
            self.note_change(value.take_part())
        arguments = ValueExpression.hold(given)
        self.budget.spend((len(arguments.reach) + len(receiver.reach)) // 16)
        if is_global and not path:
            self._check_opaque_call(callee, node)
        elif path == ("run_line_magic",) or "get_ipython" in _find_inner_name(node.func):
            self._check_shell_call(path, node)
        method = path[-1] if path else ""
        call = CallSite(
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
        return _find_result(callee if is_global else "", method, receiver, arguments)

    def _check_opaque_call(self, name: str, node: ast.Call) -> None:
        bare = not node.args and not node.keywords
        if name in known_names.OPAQUE_CALLS or (name in {"locals", "vars"} and bare):
            self.opaque.append(f"`{name}`")

    def _check_shell_call(self, path: tuple[str, ...], node: ast.Call) -> None:
        match node.args:
            case [ast.Constant(value=str(magic)), *_] if (
                path[-1:] == ("run_line_magic",) and magic in known_names.QUIET_LINES
            ):
                self.environment |= magic in known_names.ENVIRONMENT_LINES
            case _:
                self.opaque.append("`get_ipython()`")


def _find_result(
    callee: str, method: str, receiver: ValueExpression, arguments: ValueExpression
) -> ValueExpression:
    inside = ValueExpression.hold([receiver, arguments])
    if callee and not method and callee in known_names.FRESH_RESULTS:
        return NEW
    restless = (method or callee) in known_names.ONE_SHOT
    new = method in known_names.PURE_METHODS or (
        not method and callee in known_names.HOLDING_RESULTS
    )
    reach = list_call_results(inside.reach)
    return ValueExpression(frozenset() if new else reach, reach, inside.effects, restless)


def _split_dotted(node: ast.expr) -> tuple[str, tuple[str, ...]]:
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


def _find_inner_name(node: ast.expr) -> str:
    """The function whose result a method is called on: `f` in `f().method()`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return ""


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _list_target_names(node: ast.expr) -> list[str]:
    return [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]


class Statements(Expressions):
    """Walks statements; a subclass says what binding and reading a name means."""

    depth = 0  # how many functions and classes are around this

    # --- Hooks ---------------------------------------------------------------------------------

    def bind_import(self, name: str, origin: str, text: str) -> None:
        """A module, or something out of one, gets a name."""
        del origin, text
        self.bind(name, NEW)

    def bind_known(
        self, name: str, value: ValueExpression, node: ast.stmt, *, stable: bool
    ) -> None:
        """A function, class or literal gets a name; stable if its text is all that it depends on."""
        del node, stable
        self.bind(name, value)

    def delete(self, name: str) -> None:
        """A name goes away."""
        self.read_name(name)

    def note_star(self, module: str) -> None:
        """All names of a module come in."""

    @contextlib.contextmanager
    def under_condition(self) -> Iterator[None]:
        """What happens in here may not happen."""
        yield

    def walk_branches(self, *bodies: Sequence[ast.stmt]) -> None:
        """One of these happens."""
        for body in bodies:
            self.walk(body)

    # --- Statements ----------------------------------------------------------------------------

    def walk(self, body: Sequence[ast.stmt]) -> None:
        """Walk statements in order."""
        for node in body:
            self.walk_statement(node)

    def walk_statement(self, node: ast.stmt) -> None:
        """Walk one statement."""
        self.budget.spend()
        match node:
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(ast.Call() as call)):
                self.walk_call(call, statement=True)
            case ast.Assign(targets=[ast.Name(id=name)], value=source) if _is_literal(source):
                self.bind_known(name, NEW, node, stable=True)
            case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Tuple(elts=right)) if len(
                left
            ) == len(right) and not any(isinstance(each, ast.Starred) for each in (*left, *right)):
                for target, value in zip(left, self.evaluate_all(right), strict=True):
                    self.assign(target, value)
            case ast.Assign(targets=targets, value=source):
                value = self.evaluate(source)
                for target in targets:
                    self.assign(target, value)
                    if len(targets) > 1:  # all of them get the same object
                        self.budget.spend(len(value.reach) // 16)
                        value = ValueExpression.join(
                            [value, *map(self.evaluate, _read_targets(target)[:1])]
                        )
            case ast.AugAssign():
                self.augment(node)
            case ast.AnnAssign(target=target, annotation=annotation, value=source):
                self.evaluate(annotation)
                if source is not None:
                    self.assign(target, self.evaluate(source))
            case ast.Delete(targets=targets):
                for target in targets:
                    self.remove(target)
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.partition(".")[0]
                    origin = alias.name if alias.asname else name
                    self.bind_import(name, origin, f"import {alias.name}")
            case ast.ImportFrom():
                self.walk_import_from(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.walk_function(node)
            case ast.ClassDef():
                self.walk_class(node)
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.Match():
                self.walk_fork(node)
            case ast.Try() | ast.TryStar():
                self.walk_try(node)
            case ast.With() | ast.AsyncWith():
                self.walk_with(node)
            case ast.Global() | ast.Nonlocal() | ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Return(value=result):
                self.note_result(self.evaluate(result))
            case _ if type(node).__name__ == "TypeAlias":
                self.assign(node.name, self.evaluate(node.value))  # type: ignore[attr-defined]
            case _:
                self.evaluate_all(ast.iter_child_nodes(node))

    def assign(self, target: ast.expr, value: ValueExpression) -> None:
        """Bind a target of any form."""
        match target:
            case ast.Name(id=name):
                self.bind(name, value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                part = value.take_part()
                for element in elements:
                    self.assign(element, part)
                    if len(part.same) <= len(
                        value.reach
                    ):  # the parts may have to do with each other
                        part = ValueExpression.join(
                            [part, *map(self.evaluate, _read_targets(element)[:1])]
                        ).take_part()
            case ast.Starred(value=inner):
                self.assign(inner, ValueExpression.hold([value]))
            case ast.Attribute(value=base):
                self.note_store(self.evaluate(base), value)
            case ast.Subscript(value=base, slice=index):
                self.evaluate(index)
                self.note_store(self.evaluate(base), value)
            case _:
                self.evaluate(target)

    def augment(self, node: ast.AugAssign) -> None:
        """`x += y` changes the object or makes a new one; both may be true."""
        value = self.evaluate(node.value)
        if isinstance(node.target, ast.Name):
            old = self.read_name(node.target.id)
            self.note_store(old, value)
            self.bind(
                node.target.id, ValueExpression(old.same, old.reach | value.reach, old.effects)
            )
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

    def walk_import_from(self, node: ast.ImportFrom) -> None:
        """`from x import y`."""
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.note_star(module)
            elif module != "__future__":
                text = f"from {module} import {alias.name}"
                self.bind_import(alias.asname or alias.name, f"{module}.{alias.name}", text)

    def walk_fork(self, node: ast.If | ast.For | ast.AsyncFor | ast.While | ast.Match) -> None:
        """Statements of which some may not run."""
        match node:
            case ast.If(test=test, body=body, orelse=other):
                self.evaluate(test)
                self.walk_branches(body, other)
            case ast.While(test=test, body=body, orelse=other):
                self.evaluate(test)
                with self.under_condition():
                    self.walk(body)
                with self.under_condition():
                    self.walk(other)
            case ast.For() | ast.AsyncFor():
                items = self.evaluate(node.iter).take_part()
                with self.under_condition():
                    self.assign(node.target, items)
                    self.walk(node.body)
                with self.under_condition():
                    self.walk(node.orelse)
            case ast.Match(subject=subject, cases=cases):
                value = self.evaluate(subject).take_part()
                for case in cases:
                    with self.under_condition():
                        self.walk_pattern(case.pattern, value)
                        self.evaluate(case.guard)
                        self.walk(case.body)

    def walk_pattern(self, pattern: ast.pattern, value: ValueExpression) -> None:
        """Names that a pattern reads and binds."""
        for node in ast.walk(pattern):
            match node:
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    self.bind(name, value)
                case ast.MatchMapping(rest=rest, keys=keys):
                    self.evaluate_all(keys)
                    if rest is not None:
                        self.bind(rest, value)
                case ast.MatchClass(cls=inner) | ast.MatchValue(value=inner):
                    self.evaluate(inner)
                case _:
                    pass

    def walk_try(self, node: ast.Try | ast.TryStar) -> None:
        """`try`: either the body or a handler gets to its end."""
        with self.under_condition():
            for handler in node.handlers:
                self.evaluate(handler.type)
        self.walk_branches([*node.body, *node.orelse], *(handler.body for handler in node.handlers))
        for handler in node.handlers:
            if handler.name:
                with self.under_condition():  # bound and gone again when the handler ends
                    self.bind(handler.name, NEW)
        self.walk(node.finalbody)

    def walk_with(self, node: ast.With | ast.AsyncWith) -> None:
        """`with`: surely runs, unless it is there to swallow errors."""
        swallows = False
        for item in node.items:
            value = self.evaluate(item.context_expr)
            swallows |= any(
                (isinstance(each, ast.Name) and each.id in known_names.SWALLOWS)
                or (isinstance(each, ast.Attribute) and each.attr in known_names.SWALLOWS)
                for each in ast.walk(item.context_expr)
            )
            if isinstance(item.context_expr, ast.Name | ast.Attribute):
                self.note_change(value)  # entering and leaving does something to it
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value.take_part())
        if swallows:
            with self.under_condition():
                self.walk(node.body)
        else:
            self.walk(node.body)

    # --- Functions and classes -------------------------------------------------------------------

    def walk_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Effects:
        """`def`: the head runs now, the body when called."""
        before = self.unusual_loads
        head = self.evaluate_all(
            [
                *node.decorator_list,
                *node.args.defaults,
                *node.args.kw_defaults,
                *(each.annotation for each in list_arguments(node.args)),
                node.returns,
            ]
        )
        defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each]
        effects = self.find_effects(node)
        for each in node.decorator_list:
            if isinstance(each, ast.Name):  # called with the function, which it may keep
                self.calls.add(CallSite(each.id, effects=frozenset({effects})))
        own = ValueExpression(effects=frozenset({effects}))
        value = (
            ValueExpression.join([own, *head])
            if node.decorator_list
            else ValueExpression.hold([own, *head])
        )
        stable = (
            not node.decorator_list
            and self.unusual_loads == before
            and all(isinstance(each, ast.Constant) for each in defaults)
        )
        self.bind_known(node.name, value, node, stable=stable)
        return effects

    def walk_class(self, node: ast.ClassDef) -> None:
        """`class`: the body runs now, in a scope that its methods do not see."""
        before, changes = self.unusual_loads, len(self.changes) + len(self.calls)
        head = self.evaluate_all(
            [*node.decorator_list, *node.bases, *(each.value for each in node.keywords)]
        )
        frame = LocalFrame({}, "class")
        self.frames.append(frame)
        self.depth += 1
        for each in node.body:
            self.walk_statement(each)
        self.depth -= 1
        self.frames.pop()
        methods: dict[str, Effects] = {}
        decorated: set[str] = set()
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                methods[each.name] = self.find_effects(each, method=True)
                if each.decorator_list:
                    decorated.add(each.name)
        own = ValueExpression(effects=frozenset({combine_methods(methods, decorated, self.budget)}))
        value = ValueExpression.hold([own, *head, *frame.names.values()])
        stable = (
            not node.decorator_list
            and self.unusual_loads == before
            and len(self.changes) + len(self.calls) == changes
        )
        self.bind_known(node.name, value, node, stable=stable)


def combine_methods(
    methods: dict[str, Effects], decorated: set[str], budget: WorkBudget
) -> Effects:
    """What the methods of a class do, together."""
    callers: dict[str, set[str]] = {}
    for name, effects in methods.items():
        for call in effects.calls:
            if call.path and _is_on_self(call.receiver):
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


def _is_on_self(roots: frozenset[tuple[str, bool]]) -> bool:
    return any(name == RECEIVER for name, _ in roots)


def list_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [each for each in (arguments.vararg, arguments.kwarg) if each]


def _read_targets(target: ast.expr) -> list[ast.expr]:
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
