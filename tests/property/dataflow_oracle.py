"""Small notebooks that really run: what is there now, and what a new start would give."""

from __future__ import annotations

import builtins
import random
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import reject
from hypothesis import strategies as st

from cellwright.dataflow.records import DataflowCell, DataflowRun, source_hash

NAMES = ["a", "b", "c", "f", "g"]
names = st.sampled_from(NAMES)
numbers = st.integers(0, 3).map(str)
operands = st.one_of(names, numbers)

# Whatever is walked through is a copy: a list that grows while it is walked through has no end.
# Statements with `{x}`, `{y}`, `{z}` for names and `{n}` for a name or a number.
PLAIN = [
    "{x} = {n}",
    "{x} = [{n}]",
    "{x} = {y}",
    "{x} = {y} + {n}",
    "{x} = [{y}, {z}]",
    "{x} += {n}",
    "{x} += [{n}]",
    "{x}.append({n})",
    "{x}.append({y})",
    "del {x}",
    "print({x})",
    "print({x}, {y})",
    "def {x}(): return {y}",
    "def {x}(): return [{y}, {z}]",
    "{x} = {y}()",
    "print({x}())",
]
RICH = [
    "def {x}(p): p.append({n})",
    "def {x}(p): return p",
    "def {x}(p): {y}.append(p)",
    "def {x}():\n    global {y}\n    {y} = {n}",
    "def {x}():\n    {y}.append({n})",
    "def {x}():\n    return {y}()",
    "def {x}(p):\n    {y}(p)",
    "def {x}(p=[]):\n    p.append({n})\n    return p",
    "def {x}():\n    def inner(): return {y}\n    return inner",
    "def {x}():\n    yield {n}\n    yield {y}",
    "{x} = lambda: {y}",
    "{x}({y})",
    "{x}()",
    "{x} = {y}({z})",
    "if {x}: {y} = {n}",
    "if {x}:\n    {y} = {n}\nelse:\n    {z} = {n}",
    "if {x}:\n    {y} = {n}\nelse:\n    {y} = 7",
    "for {x} in {y}: {z} = {x}",
    "for i in list({y}): i.append({n})",
    "[i.append({n}) for i in list({y})]",
    "while {x} != {y}:\n    {x} = {y}",
    "try:\n    {x} = {y}\nexcept Exception:\n    {x} = {n}",
    "try:\n    {x}.append({n})\nexcept Exception as e:\n    {y} = {n}\nfinally:\n    {z} = {n}",
    "{x} = {y}[0]",
    "{x}[0] = {n}",
    "{x}[0].append({n})",
    "{x} = list({y})",
    "{x} = {y}.copy()",
    "{x} = {y}[:]",
    "{x} = {y} * 2",
    "{x} = iter(list({y}))",
    "{x} = next({y}, 0)",
    "print(list({x}))",
    "print(next({x}))",
    "{x} = [i for i in {y}]",
    "{x} = (i for i in list({y}))",
    "print([{x} := {n}, {x}])",
    "print([({x} := i) for i in {y}])",
    "{x}, {y} = {y}, {x}",
    "{x}, *{y} = {z}",
    "{x} = {y} if {z} else {n}",
    "{x} = {y} or {z}",
    "{x} = {{'k': {y}}}",
    "{x} = {y}.pop()",
    "{x} = len({y})",
    "{x}.clear()",
    "{x}.extend({y})",
    "match {x}:\n    case [{y}, *_]:\n        {z} = {y}\n    case _:\n        {z} = {n}",
    "class {x}:\n    def __init__(self): self.k = {y}\n    def append(self, v): self.k = v\n    def __call__(self): return self.k",
    "class {x}:\n    k = {y}\n    def pop(self): return {z}.pop()",
    "class {x}:\n    n = 0\n    def __call__(self):\n        self.n += 1\n        return self.n\n    def __len__(self):\n        self.n += 1\n        return self.n",
    "import math as {x}",
    "from math import *",
    "exec('{x} = {n}')",
    "globals()['{x}'] = {n}",
    "print(eval('{x}'))",
    "del {x}[0]",
    "assert {x} == {x}",
    "raise ValueError({x})",
    "with __import__('contextlib').suppress(Exception):\n    {x} = {y}[0]",
    "def {x}(p):\n    q = p\n    q.append({n})",
    "def {x}():\n    q = {y}\n    q.append({n})\n    return q",
    "@{x}\ndef {y}(): return {z}",
    "sum = {x}",
    "print(sum({x}))",
    "{x} = sorted({y})",
    "%%time\n{x} = {y}",
    "setattr({x}, 'q', {n})",
    "{x}.q = {y}",
    "print(getattr({x}, 'q', None))",
    "{x} = type('T', (), {{'k': {y}}})",
    "{x} = [lambda: {y}]",
    "{x} = {y}[0]()",
    "{x} = map({y}, list({z}))",
    "print(list(map({x}, list({y}))))",
    "{x} = lambda p: p.append({y})",
    "{x}.q = lambda: {y}",
    "{x} = {y}.q",
    "print({x}.q())",
    "class {x}: pass",
    "{x} = {{'k': [{n}], 'w': lambda: {y}}}",
    "{x} = {y}.setdefault('k', [])",
    "{x}['k'] = {y}",
    "print({x}['k'])",
    "print({x}['w']())",
    "print({x}[-1]())",
    "{x} = {y}[-1]",
    "{x} = [iter(list({y}))]",
    "print(list({x}[0]))",
]

PRELUDES = [
    ["a = [1]\nb = [a, 2]\nc = 3\ndef f(): return a\ng = f"],
    ["a = [[1], [2]]", "b = a[0]", "c = 1", "def f(p): return p", "def g(): return c"],
    ["a = b = [0]\nc = [b]", "def f(p): p.append(c)\ndef g(p): f(p)"],
]


@st.composite
def sources(draw: st.DrawFn, templates: list[str]) -> str:
    """The text of a cell."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        template = draw(st.sampled_from(templates))
        if template.startswith("%%") and lines:
            template = template.partition("\n")[2]
        x, y, z, n = draw(names), draw(names), draw(names), draw(operands)
        lines.append(template.format(x=x, y=y, z=z, n=n))
        if template.startswith("%%"):
            break
    return "\n".join(lines)


class Seen(NamedTuple):
    """What a run showed: how it ended, what it printed, and all names that it mentions after it."""

    ended: str
    printed: tuple[object, ...]
    left: tuple[object, ...]


class Kernel:
    """Runs cells in one namespace, in process."""

    def __init__(self) -> None:
        self.printed: list[object] = []
        self.names: dict[str, Any] = {}
        self.names["__builtins__"] = vars(builtins) | {"print": self._print}

    def _print(self, *values: object) -> None:
        self.printed.append(shape(values))

    def run(self, source: str) -> Seen:
        """Run a cell."""
        if any(isinstance(each, list) and len(each) > 5000 for each in self.names.values()):
            reject()  # doubled again and again: this leads nowhere
        self.printed = []
        text = source.removeprefix("%%time\n")
        ended = "ok"
        try:
            exec(compile(text, "cell", "exec"), self.names)  # noqa: S102
        except Exception as error:  # noqa: BLE001
            ended = f"error {type(error).__name__}"
        left = tuple(
            (name, shape(self.names.get(name, "absent")))
            for name in NAMES
            if name in _top_level(text)
        )
        return Seen(ended, tuple(self.printed), left)


def _top_level(text: str) -> set[str]:
    """Names that a cell mentions outside of functions."""
    lines = (line for line in text.split("\n") if not line.startswith((" ", "def ", "class ")))
    return {name for line in lines for name in NAMES if name in _words(line)}


def _words(line: str) -> set[str]:
    if "lambda" in line:
        line = line.partition("lambda")[0]
    return set("".join(c if c.isalnum() else " " for c in line).split())


def shape(
    value: object, above: tuple[int, ...] = (), memo: dict[int, object] | None = None
) -> object:
    """A value as something to compare: in time linear in the number of objects, cycles and all."""
    memo = {} if memo is None else memo
    if id(value) in above:
        return ("cycle", len(above) - above.index(id(value)))
    if id(value) in memo:
        return memo[id(value)]
    inside = (*above, id(value))
    found: object
    if isinstance(value, list | tuple):
        found = hash((type(value).__name__, *(shape(each, inside, memo) for each in value)))
    elif isinstance(value, dict):
        items = ((key, shape(each, inside, memo)) for key, each in value.items())
        found = hash(("dict", *items))
    elif isinstance(value, int | str | float | type(None)):
        found = (type(value).__name__, value)
    elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type(st)):
        found = hash((type(value).__name__, shape(vars(value), inside, memo)))
    else:
        found = type(value).__name__
    memo[id(value)] = found
    return found


class Story:
    """A notebook with a past: cells run, edited, moved, deleted and inserted in any order."""

    def __init__(self, sources: list[str]) -> None:
        self._count = 0
        self.cells: list[DataflowCell] = [self._cell(source) for source in sources]
        self.runs: list[DataflowRun] = []
        self.kernel = Kernel()
        self.seen: dict[str, Seen] = {}

    def _cell(self, source: str) -> DataflowCell:
        self._count += 1
        return DataflowCell(f"c{self._count}", source)

    def do(self, action: str, index: int, source: str) -> None:
        """One thing that somebody does."""
        k = index % len(self.cells)
        cell = self.cells[k]
        match action:
            case "run":
                seen = self.kernel.run(cell.source)
                self.seen[cell.id] = seen
                status = "ok" if seen.ended == "ok" else "error"
                self.runs.append(
                    DataflowRun(cell.id, len(self.runs) + 1, status, source=cell.source)
                )
            case "edit":
                self.cells[k] = DataflowCell(cell.id, source)
            case "insert":
                self.cells.insert(k, self._cell(source))
            case "delete" if len(self.cells) > 1:
                del self.cells[k]
            case "move":
                self.cells.append(self.cells.pop(k))
            case _:
                pass

    def from_scratch(self) -> dict[str, Seen]:
        """What the cells show in a new kernel, from top to bottom."""
        kernel = Kernel()
        return {cell.id: kernel.run(cell.source) for cell in self.cells}

    def __repr__(self) -> str:
        cells = "\n".join(f"  {cell.id}: {cell.source!r}" for cell in self.cells)
        runs = "\n".join(f"  {run.cell} {run.status}: {run.source!r}" for run in self.runs)
        return f"\ncells\n{cells}\nruns\n{runs}\n"


@st.composite
def stories(draw: st.DrawFn, templates: list[str]) -> Story:
    """Any such past, of a run from top to bottom and what came after it.

    Drawn from one seed: hypothesis by itself repeats the simplest statements, and most mistakes
    need several different ones.
    """
    chance = random.Random(draw(st.integers(0, 2**48)))
    cells = [_source(chance, templates) for _ in range(chance.randint(2, 6))]
    story = Story([*chance.choice(PRELUDES), *cells])
    for k in range(len(story.cells)):
        story.do("run", k, "")
    for _ in range(chance.randint(0, 9)):
        action = chance.choice(["run"] * 5 + ["edit", "insert", "delete", "move"])
        story.do(action, chance.randint(0, 9), _source(chance, templates))
    return story


class Past:
    """A notebook that changes as its record does, without a kernel: any status, any life of one."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names = (f"c{number}" for number in range(1000))
        prelude = chance.choice(PRELUDES)
        texts = [*prelude, *(_source(chance, PLAIN + RICH) for _ in range(chance.randint(2, 8)))]
        self.cells = [DataflowCell(next(self._names), text) for text in texts]
        self._old = list(texts)
        self._kernel = 1
        self.runs: list[DataflowRun] = []
        for cell in self.cells:
            self._run(cell)

    def _run(self, cell: DataflowCell) -> None:
        status = self._chance.choice(["ok"] * 6 + ["error", "running", "died", "pending"])
        source = cell.source if self._chance.random() < 0.9 else None
        self.runs.append(
            DataflowRun(
                cell.id,
                len(self.runs) + 1,
                status,
                f"k{self._kernel}",
                source,
                source_hash(cell.source if self._chance.random() < 0.8 else "gone"),
            )
        )

    def change(self) -> None:
        """One thing that somebody does; sometimes to a text or an order that was there before."""
        chance, k = self._chance, self._chance.randrange(len(self.cells))
        cell = self.cells[k]
        text = chance.choice(self._old) if chance.random() < 0.3 else _source(chance, PLAIN + RICH)
        self._old.append(text)
        match chance.choice(["run"] * 6 + ["edit"] * 4 + ["insert", "delete", "move", "type", "end", "restart", "forget"]):  # fmt: skip
            case "run":
                self._run(cell)
            case "edit":
                self.cells[k] = DataflowCell(cell.id, text)
            case "insert":
                self.cells.insert(k, DataflowCell(next(self._names), text))
            case "delete" if len(self.cells) > 1:
                del self.cells[k]
            case "move":
                self.cells.insert(chance.randrange(len(self.cells)), self.cells.pop(k))
            case "type":
                self.cells[k] = DataflowCell(cell.id, cell.source, chance.choice(["code", "raw"]))
            case "end":
                place = chance.randrange(len(self.runs))
                self.runs[place] = replace(self.runs[place], status="ok")
            case "restart":
                self._kernel += 1
            case "forget":
                del self.runs[: chance.randrange(len(self.runs))]
            case _:
                pass


def _source(chance: random.Random, templates: list[str]) -> str:
    lines = []
    for _ in range(chance.randint(1, 3)):
        x, y, z, name = chance.choices(NAMES, k=4)
        n = chance.choice([name, str(chance.randint(0, 3))])
        line = chance.choice(templates).removeprefix("%%time\n")
        lines.append(line.format(x=x, y=y, z=z, n=n))
    return "\n".join(lines)
