"""The top level of a cell: names are global, and their order matters."""

from __future__ import annotations

import ast
import contextlib

from cellwright.dataflow._policy import Known, changed_by
from cellwright.dataflow._statements import Statements
from cellwright.dataflow._tables import BUILTINS
from cellwright.dataflow.facts import Uses, Value, base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cellwright.dataflow.facts import Root


class CellScope(Statements):
    """Follows which names are surely bound at which point of the cell."""

    def __init__(self, lines: Sequence[str], *, plain: bool) -> None:
        super().__init__()
        self._lines = lines
        self._plain = plain  # no line was rewritten: the text of a statement is what was written
        self._clock = 0
        self._conditions = 0
        self._sure: set[str] = set()
        self._bound: dict[str, int] = {}
        self._loads: dict[str, int] = {}
        self._uses: set[str] = set()
        self._deleted: set[str] = set()
        self._values: dict[str, Value] = {}
        self._origins: dict[str, str] = {}
        self._stable: dict[str, str | None] = {}
        self._stars: list[str] = []
        self._early: set[str] = set()
        self._code: set[str] = set()
        self._is_early = True

    def cell(self, body: Sequence[ast.stmt]) -> None:
        """Walk the whole cell."""
        for node in body:
            known = len(self._stable)
            self.statement(node)
            if not self._is_early:
                continue
            names = [name for name in list(self._stable)[known:] if self._stable[name]]
            harmless = isinstance(node, ast.Pass | ast.Import | ast.ImportFrom) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            )
            self._is_early = harmless or bool(names)
            self._early.update(names)

    # --- Names -----------------------------------------------------------------------------------

    def load(self, name: str) -> None:
        self._loads.setdefault(name, self._clock)
        if name not in self._sure:
            self._uses.add(name)

    def bind(self, name: str, value: Value) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "class":
                old = frame.names.get(name)
                frame.names[name] = value if old is None else Value.either([old, value])
                return
        self._bind(name, value, None)
        self._origins.pop(name, None)
        self._code.discard(name)

    def _bind(self, name: str, value: Value, stable: str | None) -> None:
        self._clock += 1
        old = self._values.get(name)
        self._values[name] = value if old is None else Value.either([old, value])
        if self._conditions:
            stable = None
        if old is not None:
            before = self._stable.get(name)
            both_imports = bool(before and stable and before[0] == stable[0] == "i")
            stable = f"{before}\n{stable}" if both_imports else None
        self._stable[name] = stable
        self._deleted.discard(name)
        self._make_sure({name})

    def _make_sure(self, names: set[str]) -> None:
        self._sure |= names
        if not self._conditions:
            for name in names:
                self._bound.setdefault(name, self._clock)

    def bind_import(self, name: str, origin: str, text: str) -> None:
        if self.frames:
            self.bind(name, Value())
            return
        self._bind(name, Value(), f"i {text}")
        self._origins[name] = origin

    def bind_known(self, name: str, value: Value, node: ast.stmt, *, stable: bool) -> None:
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
            self.name(name)
            return
        self.load(name)
        self._clock += 1
        self._sure.discard(name)
        self._bound.pop(name, None)
        self._stable[name] = None
        self._values.setdefault(name, Value())
        if not self._conditions:
            self._deleted.add(name)

    def star(self, module: str) -> None:
        self._stars.append(module)

    # --- Conditions ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def perhaps(self) -> Iterator[None]:
        before = set(self._sure)
        self._conditions += 1
        yield
        self._conditions -= 1
        self._sure &= before

    def branches(self, *bodies: Sequence[ast.stmt]) -> None:
        before = set(self._sure)
        ends: list[set[str]] = []
        self._conditions += 1
        for body in bodies:
            self._sure = set(before)
            self.walk(body)
            ends.append(self._sure)
        self._conditions -= 1
        after = set.intersection(*ends)
        self._sure = before & after
        self._make_sure(after)

    # --- The result --------------------------------------------------------------------------------

    def facts(self) -> Uses:
        """All that was found out."""
        own = {
            name: Known(value.effects, self._origins.get(name))
            for name, value in self._values.items()
        }
        unknown = Known()
        changed = set(self.changes)
        for call in self.calls:
            changed |= changed_by(call, lambda name: own.get(name, unknown))
        bound = set(self._values)
        return Uses(
            defines=frozenset(bound - self._deleted),
            uses=frozenset(self._uses - BUILTINS),
            builtins=frozenset(self._uses & BUILTINS),
            mutates=self._mutates(changed),
            deletes=frozenset(self._deleted),
            opaque=tuple(dict.fromkeys(self.opaque)),
            stars=tuple(self._stars),
            environment=self.environment,
            perhaps=frozenset(bound - self._sure - self._deleted),
            loads=self._loads,
            bound=self._bound,
            values=self._values,
            origins=self._origins,
            stable={name: text for name, text in self._stable.items() if text},
            early=frozenset(self._early),
            code=frozenset(self._code),
            calls=frozenset(self.calls),
            changes=frozenset(self.changes),
            stores=frozenset(self.stores),
        )

    def _mutates(self, roots: set[Root]) -> frozenset[str]:
        """With the names that what is changed was taken from: `for row in rows: row.x = 1`."""
        called = {call.callee for call in self.calls if not call.path}
        changed = {name for name, _ in roots if not name.endswith("()")}
        changed |= {base(name) for name, _ in roots if name.endswith("()")} - called
        waiting = list(changed)
        while waiting:
            value = self._values.get(waiting.pop())
            more = {base(name) for name, _ in value.same} - changed - called if value else set()
            changed |= more
            waiting += more
        return frozenset(changed - self._origins.keys())
