"""The top level of a cell: names are global, and their order matters."""

from __future__ import annotations

import ast
import contextlib

from cellwright.dataflow._policy import UNKNOWN, Known, changed_by
from cellwright.dataflow._statements import Statements
from cellwright.dataflow._tables import BUILTINS
from cellwright.dataflow.facts import Uses, Value, base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Root


class CellScope(Statements):
    """Follows which names are surely bound at which point of the cell."""

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
        self._bound_before: set[str] = (
            set()
        )  # but deleted under a condition, and perhaps bound again
        self._loads: dict[str, int] = {}
        self._uses: set[str] = set()
        self._deleted: set[str] = set()
        self._values: dict[str, list[Value]] = {}
        self._origins: dict[str, str] = {}
        self._stable: dict[str, str | None] = {}
        self._newly_bound: list[str] = []  # by this statement, and by none before it
        self._stars: list[str] = []
        self._early: set[str] = set()
        self._code: set[str] = set()
        self._is_early = True

    def cell(self, body: Sequence[ast.stmt]) -> None:
        """Walk the whole cell."""
        for node in body:
            self._newly_bound.clear()
            self.statement(node)
            if not self._is_early:
                continue
            names = [name for name in self._newly_bound if self._stable[name]]
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
        self._set_sure(name, is_sure=False)
        self._bound.pop(name, None)
        self._stable[name] = None
        self._values.setdefault(name, [])
        if not self._conditions:
            self._deleted.add(name)

    def star(self, module: str) -> None:
        self._stars.append(module)

    # --- Conditions ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def perhaps(self) -> Iterator[None]:
        start = len(self._sure_log)
        self._conditions += 1
        yield
        self._forget_sure(start)
        self._end_condition()

    def branches(self, *bodies: Sequence[ast.stmt]) -> None:
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
        """Give up what became sure since then; says which names did, and which did the opposite."""
        before: dict[str, bool] = {}
        for name, was_sure in self._sure_log[start:]:
            before.setdefault(name, was_sure)
        self.budget.spend(len(before))
        gained = {name for name, was in before.items() if not was and name in self._sure}
        lost = {name for name, was in before.items() if was and name not in self._sure}
        self._sure -= gained
        return gained, lost

    # --- The result --------------------------------------------------------------------------------

    def facts(self) -> Uses:
        """All that was found out."""
        values = {name: Value.either(every) for name, every in self._values.items()}
        own = {
            name: Known(value.effects, self._origins.get(name)) for name, value in values.items()
        }
        changed = self.changes | changed_by(
            self.calls, lambda name: own.get(name, UNKNOWN), self.budget
        )
        bound = set(values)
        return Uses(
            defines=frozenset(bound - self._deleted),
            uses=frozenset(self._uses - BUILTINS),
            builtins=frozenset(self._uses & BUILTINS),
            mutates=self._mutates(changed, values),
            deletes=frozenset(self._deleted),
            opaque=tuple(dict.fromkeys(self.opaque)),
            stars=tuple(self._stars),
            environment=self.environment,
            perhaps=frozenset(bound - self._sure - self._deleted),
            loads=self._loads,
            bound=self._bound,
            values=values,
            origins=self._origins,
            stable={name: text for name, text in self._stable.items() if text},
            early=frozenset(self._early),
            code=frozenset(self._code),
            calls=frozenset(self.calls),
            changes=frozenset(self.changes),
            stores=frozenset(self.stores),
            work=self.budget.spent,
        )

    def _mutates(self, roots: set[Root], values: dict[str, Value]) -> frozenset[str]:
        """With the names that what is changed was taken from: `for row in rows: row.x = 1`."""
        called = {call.callee for call in self.calls if not call.path}
        changed = {name for name, _ in roots if not name.endswith("()")}
        changed |= {base(name) for name, _ in roots if name.endswith("()")} - called
        waiting = list(changed)
        while waiting:
            value = values.get(waiting.pop())
            more = {base(name) for name, _ in value.same} - changed - called if value else set()
            changed |= more
            waiting += more
        return frozenset(changed - self._origins.keys())
