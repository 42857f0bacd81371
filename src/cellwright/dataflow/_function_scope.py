"""The body of a function: not run where it stands, but whenever somebody calls it."""

from __future__ import annotations

import ast

from cellwright.dataflow import _functions as functions
from cellwright.dataflow._expressions import Frame
from cellwright.dataflow._statements import Statements
from cellwright.dataflow.facts import ARGUMENT, NEW, RECEIVER, Effects, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.dataflow.facts import Root


class FunctionScope(Statements):
    """Local names stand for what flows into them; global ones for whatever they are by then."""

    def __init__(
        self, node: functions.Function, frames: list[Frame], outer: Statements, *, method: bool
    ) -> None:
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        nodes = list(functions.own_nodes(body))
        bound, self._globals, self._nonlocals = functions.bound_names(nodes)
        given = functions.parameters(node, method=method)
        local = Frame(dict.fromkeys(bound, NEW) | given, "function")
        super().__init__([*frames, local], outer)
        self._body = node.body
        self._generator = functions.is_generator(nodes)
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._returns: set[Root] = set()

    def effects(self) -> Effects:
        """Walk the body, twice: what flows into a name may do so after it was used, in a loop."""
        for _ in range(2):
            if isinstance(self._body, list):
                self.walk(self._body)
            else:
                self.give_back(self.value(self._body))
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
            restless=self._generator,
            returns=frozenset(
                root for root in self._returns | kept if root[0] not in {ARGUMENT, RECEIVER}
            ),
        )

    def load(self, name: str) -> None:
        self._reads.add(name)

    def name(self, name: str) -> Value:
        if name in self._globals:
            return self.global_name(name)
        return super().name(name)

    def give_back(self, value: Value) -> None:
        self._returns.update(value.reach)

    def value(self, node: ast.AST | None) -> Value:
        value = super().value(node)
        if isinstance(node, ast.Yield):
            self.give_back(self.value(node.value))
        elif isinstance(node, ast.YieldFrom):
            self.give_back(value)
        return value

    def bind(self, name: str, value: Value) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "comprehension":
                continue
            if frame.kind == "class" or name in frame.names:
                old = frame.names.get(name)
                frame.names[name] = value if old is None else Value.either([old, value])
                return
            if name not in self._nonlocals:
                break
        self._reads.add(name)
        self._writes.add(name)

    def nested(self, effects: Effects) -> None:
        """Whoever calls this function may call what it makes, or get it."""
        self._reads |= effects.reads
        self._writes |= effects.writes
        self._returns |= effects.returns
        self.changes |= effects.changes
        self.calls |= effects.calls
        self.opaque += effects.opaque

    def star(self, module: str) -> None:
        self.opaque.append(f"`from {module} import *`")
