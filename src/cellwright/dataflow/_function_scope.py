"""The body of a function: not run where it stands, but whenever somebody calls it."""

from __future__ import annotations

from cellwright.dataflow._expressions import Frame
from cellwright.dataflow._statements import Statements
from cellwright.dataflow.facts import ARGUMENT, NEW, RECEIVER, Effects, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.dataflow._functions import Outline
    from cellwright.dataflow.facts import Root


class FunctionScope(Statements):
    """Local names stand for what flows into them; global ones for whatever they are by then."""

    def __init__(
        self, outline: Outline, frames: list[Frame], outer: Statements, *, method: bool
    ) -> None:
        given = outline.parameters(method=method)
        self._local = Frame(dict.fromkeys(outline.bound, NEW) | given, "function")
        super().__init__(outer.budget, [*frames, self._local], outer)
        self._outline = outline
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._returns: set[Root] = set()

    def effects(self) -> Effects:
        """Walk the body, twice: what flows into a name may do so after it was used, in a loop."""
        outline, body = self._outline, self._outline.node.body
        for _ in range(2):
            before = dict(self._local.names)
            if isinstance(body, list):
                self.walk(body)
            else:
                self.give_back(self.value(body))
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

    def load(self, name: str) -> None:
        self._reads.add(name)

    def name(self, name: str) -> Value:
        if name in self._outline.globals:
            return self.global_name(name)
        return super().name(name)

    def give_back(self, value: Value) -> None:
        self._returns.update(value.reach)

    def bind(self, name: str, value: Value) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "comprehension":
                continue
            if frame.kind == "class" or name in frame.names:
                old = frame.names.get(name)
                frame.names[name] = value if old is None else Value.either([old, value])
                self.budget.spend(len(frame.names[name].reach) // 16)
                return
            if name not in self._outline.nonlocals:
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
