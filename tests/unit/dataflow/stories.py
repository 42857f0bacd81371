"""Small notebooks with a past, and what is to be said of each cell.

A step is a list of cells that run (`"A B C"`), or one of `edit A: text`, `delete A`, `move A` (to the
end), `insert A before B: text`, `type A: markdown`, `new kernel`, and `error A`, `timed_out A`,
`cancelled A`, `died A`, `running A`, `pending A` for runs that did not end well, or not yet.

An expectation is `cell kind [names] [other cell]`: the first reason's. `never` and `text` stand for
cells that never ran and that are no code. Cells that are not mentioned are to be fresh.
"""

from __future__ import annotations

from typing import NamedTuple

from cellwright.dataflow.records import DataflowCell, DataflowRun


class Story(NamedTuple):
    title: str
    cells: dict[str, str]
    steps: list[str]
    expected: list[str]
    language: str = "python"


def play(story: Story) -> tuple[list[DataflowCell], list[DataflowRun]]:
    """The notebook as it is at the end, and what ran."""
    cells = [DataflowCell(name, source) for name, source in story.cells.items()]
    runs: list[DataflowRun] = []
    life = 1
    for step in story.steps:
        words = step.split()
        head, _, text = step.partition(": ")
        match words:
            case ["new", "kernel"]:
                life += 1
            case [("edit" | "type") as what, name, *_]:
                k = _find(cells, name.rstrip(":"))
                old = cells[k]
                cells[k] = (
                    DataflowCell(old.id, text)
                    if what == "edit"
                    else DataflowCell(old.id, old.source, text)
                )
            case ["delete", name]:
                del cells[_find(cells, name)]
            case ["move", name]:
                cells.append(cells.pop(_find(cells, name)))
            case ["insert", name, "before", _, *_]:
                cells.insert(_find(cells, head.split()[-1]), DataflowCell(name, text))
            case [
                ("error" | "timed_out" | "cancelled" | "died" | "running" | "pending") as how,
                name,
            ]:
                source = cells[_find(cells, name)].source
                runs.append(DataflowRun(name, len(runs) + 1, how, str(life), source))
            case _:
                for name in words:
                    source = cells[_find(cells, name)].source
                    runs.append(DataflowRun(name, len(runs) + 1, "ok", str(life), source))
    return cells, runs


def kernel_of(story: Story) -> str:
    """The kernel that lives at the end."""
    return str(1 + story.steps.count("new kernel"))


def _find(cells: list[DataflowCell], name: str) -> int:
    return next(k for k, cell in enumerate(cells) if cell.id == name)


ABC = {"A": "x = 1 + 1", "B": "y = x + 1", "C": "print(y)"}
PART = {"A": "xs = [[1]]", "B": "x = xs[0]", "C": "x.clear()", "D": "print(xs)"}
LIST = {"A": "xs = []", "B": "xs.append(1)", "C": "print(xs)"}

STORIES = [
    # --- The cell itself -------------------------------------------------------------------------
    Story("nothing has run", ABC, [], ["A never", "B never", "C never"]),
    Story("everything ran in order", ABC, ["A B C"], []),
    Story("everything ran twice in order", ABC, ["A B C", "A B C"], []),
    Story("text is no code", ABC, ["A C", "type B: markdown"], ["B text", "C unknown_name y"]),
    Story("only the first ran", ABC, ["A"], ["B never", "C never"]),
    Story("edited and edited back", ABC, ["A B C", "edit A: x = 5", "edit A: x = 1 + 1"], []),
    Story("a run that waits is none", ABC, ["A B", "pending C"], ["C never"]),
    Story("a blank cell", {"A": "", "B": "x = 1"}, ["B"], ["A never"]),
    # --- Edits -----------------------------------------------------------------------------------
    Story(
        "an edit and what uses it, one after the other",
        ABC,
        ["A B C", "edit A: x = 2 + 2"],
        ["A edited", "B upstream_edited x A", "C upstream_stale y B"],
    ),
    Story("an edit at the end", ABC, ["A B C", "edit C: print(y, y)"], ["C edited"]),
    Story("edited and run again", ABC, ["A B C", "edit C: print(y, y)", "C"], []),
    Story(
        "an unrelated edit",
        {"A": "x = 1 + 1", "B": "other = 3 + 3", "C": "print(x)"},
        ["A B C", "edit B: other = 4 + 4"],
        ["B edited"],
    ),
    Story(
        "an edit that takes the name away",
        {"A": "x = 1 + 1", "B": "print(x)"},
        ["A B", "edit A: z = 1 + 1"],
        ["A edited", "B upstream_edited x A"],
    ),
    Story(
        "an edit that takes the name away, run",
        {"A": "x = 1 + 1", "B": "print(x)"},
        ["A B", "edit A: z = 1 + 1", "A"],
        ["B other_source x A"],
    ),
    Story(
        "an edit that adds a definition in between",
        {"A": "x = 1 + 1", "B": "pass", "C": "print(x)"},
        ["A B C", "edit B: x = 3 + 3"],
        ["B edited", "C upstream_edited x B"],
    ),
    Story(
        "a comment counts as an edit of the cell alone",
        ABC,
        ["A B C", "edit B: y = x + 1  # why"],
        ["B edited", "C upstream_edited y B"],
    ),
    # --- Runs in another order -------------------------------------------------------------------
    Story(
        "the source ran again",
        ABC,
        ["A B C", "A"],
        ["B upstream_rerun x A", "C upstream_stale y B"],
    ),
    Story("the source and the next ran again", ABC, ["A B C", "A B"], ["C upstream_rerun y B"]),
    Story("a viewer ran again", ABC, ["A B C", "C C"], []),
    Story(
        "unrelated cells in any order",
        {"A": "x = 1 + 1", "B": "y = 2 + 2", "C": "print(3)"},
        ["C B A"],
        [],
    ),
    Story(
        "run before the cell above it that it needs",
        ABC,
        ["A", "error B", "B", "A", "C"],
        ["B upstream_rerun x A", "C upstream_stale y B"],
    ),
    Story(
        "used what stands below",
        {"A": "print(x)", "B": "x = 1 + 1"},
        ["B A"],
        ["A out_of_order x B"],
    ),
    Story(
        "redefined below, then run again",
        {"A": "x = 1 + 1", "B": "print(x)", "C": "x = 2 + 2"},
        ["A B C", "B"],
        ["B out_of_order x C"],
    ),
    Story(
        "redefined below, in order, is nobody's fault",
        {"A": "x = 1 + 1", "B": "print(x)", "C": "x = 2 + 2", "D": "print(x)"},
        ["A B C D"],
        [],
    ),
    Story(
        "moved below its user",
        {"A": "x = 1 + 1", "B": "print(x)"},
        ["A B", "move A"],
        ["B out_of_order x A"],
    ),
    Story(
        "two definitions, the second skipped",
        {"A": "x = 1 + 1", "B": "x = 2 + 2", "C": "print(x)"},
        ["A C B"],
        ["C upstream_rerun x B"],
    ),
    Story(
        "two definitions, the first run last",
        {"A": "x = 1 + 1", "B": "x = 2 + 2", "C": "print(x)"},
        ["A B A C"],
        ["C other_source x B"],
    ),
    # --- Deleted and inserted ----------------------------------------------------------------------
    Story(
        "the source is deleted",
        {"A": "x = 1 + 1", "B": "print(x)"},
        ["A B", "delete A"],
        ["B upstream_deleted x A"],
    ),
    Story(
        "a deleted cell changed the list",
        LIST,
        ["A B C", "delete B"],
        ["C upstream_deleted xs B"],
    ),
    Story("an unrelated cell is deleted", ABC | {"D": "q = 1"}, ["A B C D", "delete D"], []),
    Story(
        "a deleted cell with the same import",
        {"A": "import os", "B": "import os", "C": "print(os)"},
        ["A B C", "delete A"],
        [],
    ),
    Story(
        "a new cell in between that defines the name",
        {"A": "x = 1 + 1", "B": "print(x)"},
        ["A B", "insert N before B: x = 5 + 5"],
        ["N never", "B upstream_never x N"],
    ),
    Story(
        "a new cell in between that has to do with nothing",
        {"A": "x = 1 + 1", "B": "print(x)"},
        ["A B", "insert N before B: z = 5 + 5"],
        ["N never"],
    ),
    # --- Ends ----------------------------------------------------------------------------------------
    Story(
        "a failure and what used it",
        ABC,
        ["A", "error B", "C"],
        ["B failed", "C upstream_failed y B"],
    ),
    Story("a timeout", ABC, ["A B", "timed_out C"], ["C failed"]),
    Story("cancelled", ABC, ["A B", "cancelled C"], ["C failed"]),
    Story("a death", ABC, ["A B", "died C"], ["C failed"]),
    Story("still running", ABC, ["A B", "running C"], ["C running"]),
    Story("failed, then fine", ABC, ["A", "error B", "B C"], []),
    Story(
        "a failure may have changed the list",
        LIST,
        ["A", "error B", "B C"],
        ["B own_run xs B", "C upstream_stale xs B"],
    ),
    Story("failed and edited", ABC, ["A B", "error C", "edit C: print(x)"], ["C edited"]),
    # --- Kernels -------------------------------------------------------------------------------------
    Story("a new kernel", ABC, ["A B C", "new kernel"], ["A kernel", "B kernel", "C kernel"]),
    Story(
        "a new kernel, the first cell run",
        ABC,
        ["A B C", "new kernel", "A"],
        ["B kernel", "C kernel"],
    ),
    Story("a new kernel, all run", ABC, ["A B C", "new kernel", "A B C"], []),
    Story("a cell that never ran in any kernel", ABC, ["A B", "new kernel", "A B"], ["C never"]),
    Story(
        "the middle run again in a new kernel with a name from elsewhere",
        ABC,
        ["A B C", "new kernel", "B"],
        ["A kernel", "B upstream_never x A", "C kernel"],
    ),
    # --- Changes of objects ----------------------------------------------------------------------------
    Story("appended in order", LIST, ["A B C"], []),
    Story("appended twice", LIST, ["A B C", "B"], ["B own_run xs B", "C upstream_stale xs B"]),
    Story("started over", LIST, ["A B C", "A B C"], []),
    Story("made anew without appending", LIST, ["A B C", "A"], []),
    Story("made anew and shown", LIST, ["A B C", "A C"], ["C other_source xs B"]),
    Story("shown before the append above it", LIST, ["A C B"], ["C upstream_rerun xs B"]),
    Story(
        "looking changes nothing",
        {"A": "df = [1] + []", "B": "df.head()", "C": "print(df)"},
        ["A B C", "B", "edit B: df.head(3)"],
        ["B edited"],
    ),
    Story(
        "an item assignment",
        {"A": "d = dict()", "B": "d['k'] = 1", "C": "print(d)"},
        ["A B C", "edit B: d['k'] = 2"],
        ["B edited", "C upstream_edited d B"],
    ),
    Story(
        "an attribute assignment",
        {"A": "import types\no = types.SimpleNamespace()", "B": "o.k = 1", "C": "print(o)"},
        ["A B C", "edit B: o.k = 2"],
        ["B edited", "C upstream_edited o B"],
    ),
    Story(
        "a counter run twice",
        {"A": "n = 0", "B": "n += 1", "C": "print(n)"},
        ["A B B C"],
        ["B own_run n B", "C upstream_stale n B"],
    ),
    Story(
        "another name for the same list",
        {"A": "a = []", "B": "b = a", "C": "b.append(1)", "D": "print(a)"},
        ["A B C D", "edit C: b.append(2)"],
        ["C edited", "D upstream_edited a C"],
    ),
    Story(
        "a list in a list",
        {"A": "a = []\nb = [a]", "B": "b[0].append(1)", "C": "print(a)"},
        ["A B C", "B"],
        ["B own_run b B", "C upstream_stale a B"],
    ),
    Story(
        "a copy is another object",
        {"A": "a = [1] + []", "B": "b = a.copy()", "C": "b.append(1)", "D": "print(a)"},
        ["A B C D", "edit C: b.append(2)"],
        ["C edited"],
    ),
    Story(
        "a sum is another object",
        {"A": "a = 1 + 1", "B": "total = a + 1\ntotal += 5", "C": "print(a)"},
        ["A B C", "edit B: total = a + 2\ntotal += 5"],
        ["B edited"],
    ),
    Story(
        "inplace",
        {"A": "df = open('f')", "B": "other = df.dropna(inplace=True)", "C": "print(df)"},
        ["A B C", "edit B: other = 0"],
        ["B edited", "C upstream_edited df B"],
    ),
    Story(
        "a plot leaves the data alone",
        {"A": "import matplotlib.pyplot as plt\nx = [1] + []", "B": "plt.plot(x)", "C": "print(x)"},
        ["A B C", "edit B: plt.plot(x, 'r')"],
        ["B edited"],
    ),
    Story(
        "a library called for its effect",
        {"A": "import scanpy as sc\nd = sc.read('f')", "B": "sc.pp.log1p(d)", "C": "print(d)"},
        ["A B C", "edit B: sc.pp.scale(d)"],
        ["B edited", "C upstream_edited d B"],
    ),
    Story(
        "fitting changes the model and not the data",
        {
            "A": "import m\nmodel = m.M()\nX = m.load()",
            "B": "model.fit(X)",
            "C": "print(X)",
            "D": "model.predict(X)",
        },
        ["A B C D", "edit B: model.fit(X, 2)"],
        ["B edited", "D upstream_edited model B"],
    ),
    Story(
        "an iterator is used up",
        {"A": "it = iter([1, 2])", "B": "print(list(it))", "C": "print(list(it))"},
        ["A C B"],
        ["B out_of_order it C", "C upstream_stale it B"],
    ),
    Story(
        "a module's attribute",
        {"A": "import os", "B": "os.environ['K'] = 'v'", "C": "print(os.environ['K'])"},
        ["A B C", "edit B: os.environ['K'] = 'w'"],
        ["B edited", "C upstream_edited os B"],
    ),
    # --- Functions -------------------------------------------------------------------------------------
    Story(
        "a function reads a global when called",
        {"A": "def f(): return k", "B": "k = 1 + 1", "C": "print(f())"},
        ["A B C", "edit B: k = 2 + 2", "B"],
        ["C upstream_rerun k B"],
    ),
    Story(
        "a function through another",
        {"A": "k = 1 + 1", "B": "def f(): return k", "C": "def g(): return f()", "D": "print(g())"},
        ["A B C D", "edit A: k = 2 + 2"],
        ["A edited", "D upstream_edited k A"],
    ),
    Story(
        "an edited function, and those who call it",
        {"A": "def f(): return 1", "B": "print(f())", "C": "print(2)"},
        ["A B C", "edit A: def f(): return 2"],
        ["A edited", "B upstream_edited f A"],
    ),
    Story(
        "the same function run again", {"A": "def f(): return 1", "B": "print(f())"}, ["A B A"], []
    ),
    Story(
        "a function that changes its argument",
        {"A": "def f(p): p['k'] = 1", "B": "d = dict()", "C": "f(d)", "D": "print(d)"},
        ["A B C D", "C"],
        ["C own_run d C", "D upstream_stale d C"],
    ),
    Story(
        "a function that copies its argument",
        {
            "A": "def f(p):\n    q = p.copy()\n    q['k'] = 1\n    return q",
            "B": "d = dict()",
            "C": "e = f(d)",
            "D": "print(d)",
        },
        ["A B C D", "C", "edit C: e = f(d) or 1"],
        ["C edited"],
    ),
    Story(
        "a function that sets a global",
        {"A": "def f():\n    global n\n    n = 1", "B": "n = 0 + 0", "C": "f()", "D": "print(n)"},
        ["A B C D", "edit C: pass"],
        ["C edited", "D upstream_edited n C"],
    ),
    Story(
        "a function under another name",
        {"A": "k = 1 + 1\ndef f(): return k", "B": "g = f", "C": "print(g())"},
        ["A B C", "edit A: k = 2 + 2\ndef f(): return k", "A"],
        ["B upstream_rerun k A", "C upstream_stale g B"],
    ),
    Story(
        "a lambda",
        {"A": "k = 1 + 1", "B": "f = lambda: k", "C": "print(f())"},
        ["A B C", "edit A: k = 2 + 2"],
        ["A edited", "C upstream_edited k A"],
    ),
    Story(
        "a decorator",
        {"A": "def deco(f): return f", "B": "@deco\ndef f(): return 1", "C": "print(f())"},
        ["A B C", "edit A: def deco(f): return print"],
        ["A edited", "B upstream_edited deco A", "C upstream_stale f B"],
    ),
    Story(
        "a default argument is taken at once",
        {"A": "k = 1 + 1", "B": "def f(p=k): return p", "C": "print(f())"},
        ["A B C", "edit A: k = 2 + 2"],
        ["A edited", "B upstream_edited k A", "C upstream_stale f B"],
    ),
    Story(
        "a method that reads a global",
        {
            "A": "k = 1 + 1",
            "B": "class T:\n    def m(self): return k",
            "C": "t = T()",
            "D": "print(t.m())",
        },
        ["A B C D", "edit A: k = 2 + 2"],
        ["A edited", "C upstream_edited k A", "D upstream_edited k A"],
    ),
    Story(
        "a method that changes its object",
        {
            "A": "class T:\n    n = 0\n    def up(self): self.n += 1\n    def get(self): return self.n",
            "B": "t = T()",
            "C": "r = t.up()",
            "D": "print(t.get())",
        },
        ["A B C D", "C"],
        ["C own_run t C", "D upstream_stale t C"],
    ),
    Story(
        "a method that only looks",
        {
            "A": "class T:\n    n = 0\n    def get(self): return self.n",
            "B": "t = T()",
            "C": "t.get()",
            "D": "print(t.get())",
        },
        ["A B C D", "C"],
        [],
    ),
    Story(
        "a closure",
        {
            "A": "k = 1 + 1\ndef make():\n    def inner(): return k\n    return inner",
            "B": "f = make()",
            "C": "k = 5 + 5",
            "D": "print(f())",
        },
        ["A B C D", "C"],
        ["D upstream_rerun k C"],
    ),
    Story(
        "a parameter is no global",
        {"A": "x = 1 + 1", "B": "def f(x): return x", "C": "print(f(3))"},
        ["A B C", "edit A: x = 2 + 2"],
        ["A edited"],
    ),
    # --- Names -----------------------------------------------------------------------------------------
    Story(
        "imports stay what they are",
        {"A": "import os", "B": "print(os)"},
        ["A B A", "edit A: import os\nimport sys"],
        ["A edited"],
    ),
    Story(
        "another import under the same name",
        {"A": "import json as j", "B": "print(j)"},
        ["A B", "edit A: import pickle as j"],
        ["A edited", "B upstream_edited j A"],
    ),
    Story("a literal stays what it is", {"A": "n = 10", "B": "print(n)"}, ["A B A"], []),
    Story("a list and its part, in order", PART, ["A B C D", "A B C D"], []),
    Story("a list stays what it is", PART, ["A B", "A"], ["C never", "D never"]),
    Story(
        "a part of a list that was made anew since is no part of the new one",
        PART,
        ["A B", "A", "C D"],
        ["C upstream_rerun x A", "D upstream_stale xs C"],
    ),
    Story(
        "a literal among others",
        {"A": "n = 10\nm = 5", "B": "print(n)", "C": "print(m)"},
        ["A B C", "edit A: n = 10\nm = 6"],
        ["A edited", "C upstream_edited m A"],
    ),
    Story(
        "loop variables do not tie cells together",
        {"A": "for i in range(2): print(i)", "B": "for i in range(3): print(i)"},
        ["A B", "edit A: for i in range(5): print(i)"],
        ["A edited"],
    ),
    Story(
        "a comprehension has its own names",
        {"A": "x = 1 + 1", "B": "print([x for x in range(3)])"},
        ["A B", "edit A: x = 2"],
        ["A edited"],
    ),
    Story(
        "a walrus leaves a name",
        {"A": "print([y := 1 + 1])", "B": "print(y)"},
        ["A B", "edit A: print(1)"],
        ["A edited", "B upstream_edited y A"],
    ),
    Story(
        "defined under a condition, in between",
        {"A": "x = 1 + 1", "B": "if x > 5: x = 0", "C": "print(x)"},
        ["A B C", "A", "C"],
        ["B upstream_rerun x A", "C upstream_stale x B"],
    ),
    Story(
        "defined under an unrelated condition",
        {"A": "x = 1 + 1", "F": "flag = 1 + 0", "B": "if flag: x = 0", "C": "print(x)"},
        ["A F B C", "A C"],
        ["C other_source x B"],
    ),
    Story(
        "both branches define",
        {"A": "x = 1 + 1", "B": "if input():\n    x = 1\nelse:\n    x = 2", "C": "print(x)"},
        ["A B C", "edit A: x = 5"],
        ["A edited"],
    ),
    Story("a name deleted", {"A": "x = 1 + 1", "B": "print(x)", "C": "del x"}, ["A B C"], []),
    Story(
        "a name deleted above its user",
        {"A": "x = 1 + 1", "B": "del x", "C": "print(x)"},
        ["A C B"],
        ["C upstream_rerun x B"],
    ),
    Story("a name from nowhere", {"A": "print(mystery)"}, ["A"], ["A unknown_name mystery"]),
    Story(
        "a name from nowhere passed on",
        {"A": "x = mystery", "B": "print(x)"},
        ["A B"],
        ["A unknown_name mystery", "B upstream_stale x A"],
    ),
    Story(
        "a name handled when missing",
        {"A": "try:\n    x\nexcept NameError:\n    x = 1", "B": "print(x)"},
        ["A B"],
        [],
    ),
    Story("an earlier output", {"A": "1 + 1", "B": "print(_)"}, ["A B"], ["B history _"]),
    Story("an underscore of one's own", {"A": "_, x = 1, 2", "B": "print(_, x)"}, ["A B"], []),
    Story("what kernels bring along", {"A": "display(__name__, exit)"}, ["A"], []),
    Story(
        "a builtin taken over",
        {"A": "sum = max", "B": "print(sum([1]))"},
        ["A B", "edit A: sum = min"],
        ["A edited", "B upstream_edited sum A"],
    ),
    Story(
        "a string with names in it",
        {"A": "x = 1 + 1", "B": "print('x')"},
        ["A B", "edit A: x = 3"],
        ["A edited"],
    ),
    Story(
        "an f-string reads",
        {"A": "x = 1 + 1", "B": "print(f'{x!r:>{5}}')"},
        ["A B", "edit A: x = 3"],
        ["A edited", "B upstream_edited x A"],
    ),
    # --- Opaque ----------------------------------------------------------------------------------------
    Story(
        "exec, in order", {"A": "x = 1 + 1", "B": "exec('x = 5')", "C": "print(x)"}, ["A B C"], []
    ),
    Story(
        "exec run again",
        {"A": "x = 1 + 1", "B": "exec('x = 5')", "C": "print(x)"},
        ["A B C", "B"],
        ["B own_run x B", "C upstream_stale x B"],
    ),
    Story(
        "exec edited",
        {"A": "x = 1 + 1", "B": "exec('x = 5')", "C": "print(x)", "D": "print(7)"},
        ["A B C D", "edit B: exec('x = 6')"],
        ["B edited", "C upstream_edited x B", "D upstream_edited print B"],
    ),
    Story(
        "globals written",
        {"A": "globals()['x'] = 1", "B": "print(x)"},
        ["A B", "edit A: globals()['x'] = 2"],
        ["A edited", "B upstream_edited x A"],
    ),
    Story(
        "%run",
        {"A": "%run setup.py", "B": "print(anything)"},
        ["A B", "A"],
        ["A own_run A", "B upstream_stale anything A"],
    ),
    Story(
        "a star import, again and again",
        {"A": "from math import *", "B": "print(sin(0))"},
        ["A B A"],
        [],
    ),
    Story(
        "a star import and its user, again and again",
        {"A": "from math import *", "B": "print(sin(0))"},
        ["A B A B A"],
        [],
    ),
    Story(
        "an import that may have to fail first",
        {"A": "x = 1 + 1", "B": "y = x\nimport os", "C": "print(os)"},
        ["A B C", "edit B: y = z\nimport os"],
        ["B edited", "C upstream_edited os B"],
    ),
    Story(
        "a function called before the cell defines what it reads",
        {"A": "k = 1 + 1\ndef f(): return k", "B": "print(f())\nk = 5 + 5", "C": "print(k)"},
        ["A B C", "B"],
        ["B own_run k B", "C upstream_stale k B"],
    ),
    Story(
        "a registry that a decorator fills",
        {
            "A": "known = []\ndef register(f):\n    known.append(f)\n    return f",
            "B": "@register\ndef f(): return 1",
            "C": "print(len(known))",
        },
        ["A B C", "B"],
        ["B own_run known B", "C upstream_stale known B"],
    ),
    Story(
        "a generator is used up",
        {"A": "def gen():\n    yield 1", "B": "g = gen()", "C": "print(*g)", "D": "print(*g)"},
        ["A B D C"],
        ["C out_of_order g D", "D upstream_stale g C"],
    ),
    Story(
        "a global that a function gives away",
        {"A": "conf = dict()\ndef get(): return conf", "B": "get()['k'] = 1", "C": "print(conf)"},
        ["A B C", "edit B: get()['k'] = 2"],
        ["B edited", "C upstream_edited conf B"],
    ),
    Story(
        "a function put into a dictionary",
        {
            "A": "k = 1 + 1\nd = dict()",
            "B": "d['f'] = lambda: k",
            "C": "k = 2 + 2",
            "D": "print(d['f']())",
        },
        ["A B C D", "edit C: k = 3 + 3"],
        ["C edited", "D upstream_edited k C"],
    ),
    Story(
        "a function put into a list by another",
        {
            "A": "fs = []\ndef keep(f): fs.append(f)",
            "B": "keep(lambda: k)",
            "C": "k = 2 + 2",
            "D": "print(fs[0]())",
        },
        ["A B C D", "edit C: k = 3 + 3"],
        ["C edited", "D upstream_edited k C"],
    ),
    Story(
        "a function kept by its decorator",
        {
            "A": "fs = []\ndef keep(f):\n    fs.append(f)\n    return f",
            "B": "@keep\ndef f(): return k",
            "C": "k = 2 + 2",
            "D": "print(fs[0]())",
        },
        ["A B C D", "edit C: k = 3 + 3"],
        ["C edited", "D upstream_edited k C"],
    ),
    Story(
        "a method given to a class later",
        {
            "A": "class T: pass",
            "B": "T.m = lambda self: k",
            "C": "k = 2 + 2",
            "D": "print(T().m())",
        },
        ["A B C D", "edit C: k = 3 + 3"],
        ["C edited", "D upstream_edited k C"],
    ),
    Story(
        "a class changed under another name",
        {"A": "class T: n = 1", "B": "U = T", "C": "U.n = 2 + 2", "D": "print(T.n)"},
        ["A B C D", "edit C: U.n = 3 + 3"],
        ["C edited", "D upstream_edited T C"],
    ),
    Story(
        "what a function gives is not the function",
        {"A": "def f(): return []", "B": "x = f()\nx.append(1)", "C": "y = f()"},
        ["A B C", "edit B: x = f()\nx.append(2)"],
        ["B edited"],
    ),
    Story(
        "a condition may let the older value through",
        {"A": "x = 1 + 1", "F": "flag = 1 + 0", "B": "if flag: x = 0", "C": "print(x)"},
        ["A F B C", "edit A: x = 9 + 9"],
        ["A edited", "C upstream_edited x A"],
    ),
    Story(
        "two names for one new list",
        {"A": "a = b = [1] + []", "B": "a.append(2)", "C": "print(b)"},
        ["A B C", "edit B: a.append(3)"],
        ["B edited", "C upstream_edited b B"],
    ),
    Story(
        "a view of a frame",
        {"A": "df = open('f')", "B": "part = df['x']\npart[0] = 1", "C": "print(df)"},
        ["A B C", "edit B: pass"],
        ["B edited", "C upstream_edited df B"],
    ),
    Story(
        "errors swallowed",
        {"A": "x = 1 + 1", "B": "with suppress(E):\n    x = 2 + 2", "C": "print(x)"},
        ["A B C"],
        ["B unknown_name E suppress", "C upstream_stale x B"],
    ),
    Story(
        "newer Python than ours ran well",
        {"A": "x = 1 + 1", "B": "x = = 2", "C": "print(x)"},
        ["A B C"],
        [],
    ),
    Story(
        "another star import",
        {"A": "from math import *", "B": "print(sin(0))"},
        ["A B", "edit A: from cmath import *"],
        ["A edited", "B upstream_edited sin A"],
    ),
    Story(
        "an unknown cell magic",
        {"A": "x = 1 + 1", "B": "%%mystery\nx", "C": "print(x)"},
        ["A B C", "B"],
        ["B own_run x B", "C upstream_stale x B"],
    ),
    # --- IPython ---------------------------------------------------------------------------------------
    Story(
        "%%time",
        {"A": "%%time\nx = 1 + 1", "B": "print(x)"},
        ["A B", "A"],
        ["B upstream_rerun x A"],
    ),
    Story(
        "%%timeit leaves nothing",
        {"A": "x = 1 + 1", "B": "%%timeit\nx = 5", "C": "print(x)"},
        ["A B C", "B"],
        [],
    ),
    Story(
        "%%capture keeps its name",
        {"A": "%%capture out\nprint(1)", "B": "out.show()"},
        ["A B", "edit A: %%capture out\nprint(2)"],
        ["A edited", "B upstream_edited out A"],
    ),
    Story(
        "%%bash has its own names",
        {"A": "x = 1 + 1", "B": "%%bash\nx=5\necho $x", "C": "print(x)"},
        ["A B C", "B"],
        [],
    ),
    Story(
        "!command with a name",
        {"A": "path = str(1)", "B": "!ls {path}"},
        ["A B", "edit A: path = str(2)"],
        ["A edited", "B upstream_edited path A"],
    ),
    Story(
        "x = !command", {"A": "x = !ls", "B": "print(x)"}, ["A B", "A"], ["B upstream_rerun x A"]
    ),
    Story(
        "setup magics tie nothing together",
        {
            "A": "%load_ext autoreload\n%autoreload 2\n%matplotlib inline\nimport os",
            "B": "print(os)",
        },
        ["A B A"],
        [],
    ),
    Story(
        "a syntax error touches what it mentions",
        {"A": "x = 1 + 1", "B": "y = 1 + 1", "C": "pass", "D": "print(x)", "E": "print(y)"},
        ["A B C D E", "edit C: x = = 3"],
        ["C edited", "D upstream_edited x C"],
    ),
    Story(
        "a cell that may fail may leave a name what it was",
        {"A": "a = b = [0]", "B": "pass", "C": "a.append(3)", "D": "print(b)"},
        ["A B C D", "A D", "edit B: a = f()"],
        ["B edited", "C upstream_edited a B", "D upstream_stale b C"],
    ),
    # --- Other languages ---------------------------------------------------------------------------------
    Story("R in order", {"A": "x <- 1", "B": "x"}, ["A B"], [], "R"),
    Story(
        "R, the first again",
        {"A": "x <- 1", "B": "2"},
        ["A B A"],
        ["A own_run A", "B upstream_stale A"],
        "R",
    ),
    Story(
        "R, edited",
        {"A": "x <- 1", "B": "2"},
        ["A B", "edit A: x <- 2"],
        ["A edited", "B upstream_edited A"],
        "R",
    ),
    Story("R, the last again", {"A": "x <- 1", "B": "2"}, ["A B B"], ["B own_run B"], "R"),
]
