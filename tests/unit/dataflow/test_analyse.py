from __future__ import annotations

import warnings
from typing import NamedTuple

import pytest

from cellwright.dataflow._timeline import Timeline, Tokens
from cellwright.dataflow.analyse import analyse
from cellwright.dataflow.budget import NOTEBOOK_LIMIT, WorkBudget
from cellwright.dataflow.facts import CellFacts, base_name
from tests.cases import for_each


class Case(NamedTuple):
    """A cell, and what it `defines; uses; changes; deletes`, each as words."""

    source: str
    expected: str


CASES = [
    Case("x = 1", "x;;;"),
    Case("x = y", "x; y;;"),
    Case("x = x + 1", "x; x;;"),
    Case("x = 1\ny = x", "x y;;;"),
    Case("x += 1", "x; x; x;"),
    Case("x: int = y", "x; y;;"),
    Case("x: T", "; T;;"),
    Case("a, (b, *c) = d", "a b c; d;;"),
    Case("a = b = c", "a b; c;;"),
    Case("a.b = c", "; a c; a;"),
    Case("a[i] = c", "; a c i; a;"),
    Case("a.b[0].c += 1", "; a; a;"),
    Case("del a", "; a;; a"),
    Case("del a[0], b.c", "; a b; a b;"),
    Case("a = 1\ndel a", ";;; a"),
    Case("import os.path", "os;;;"),
    Case("import os.path as p", "p;;;"),
    Case("from a.b import c as d, e", "d e;;;"),
    Case("from __future__ import annotations", ";;;"),
    Case("def f(a, b=c, *d: e) -> g: return h + a", "f; c e g;;"),
    Case("async def f(): await g()", "f;;;"),
    Case("await f(x)", "; f x; f x;"),
    Case("@d(1)\ndef f(): pass", "f; d;;"),
    Case("f = lambda a, b=c: a + d", "f; c;;"),
    Case("class A(B, metaclass=M):\n    x = y\n    def m(self): return z", "A; B M y;;"),
    Case("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = y", "f;;;"),
    Case("[a for a in b if c]", "; b c;;"),
    Case("{a: b for a, b in c.items()}", "; c;;"),
    Case("x = [a for a in b]\nprint(a)", "x; a b;;"),
    Case("[(x := a) for a in b]", "x; b;;"),
    Case("if (n := len(a)) > 3: print(n)", "n; a;;"),
    Case("for i in a: print(i)", "i; a;;"),
    Case("for i in a: i.append(1)", "i; a; i;"),
    Case("for i, a.b in c: pass", "i; a c; a;"),
    Case("while a: a = b", "a; a b;;"),
    Case("with a as b, open(c) as d: e = 1", "b d e; a c; a;"),
    Case(
        "try:\n    a = b\nexcept E as e:\n    a = 1\nelse:\n    c = a\nfinally:\n    d = 2",
        "a c d e; E b;;",
    ),
    Case("try: a\nexcept* E: b", "; E a b;;"),
    Case("if a: b = 1\nprint(b)", "b; a b;;"),
    Case("if a: b = 1\nelse: b = 2\nprint(b)", "b; a;;"),
    Case(
        "match a:\n    case [b, *c]: pass\n    case {'k': d, **e}: pass\n    case P(x=f) | V.w: pass",
        "b c d e f; P V a;;",
    ),
    Case("print(f'{a!r:{b}}')", "; a b;;"),
    Case("assert a, b", "; a b;;"),
    Case("raise A from b", "; A b;;"),
    Case("print(a if b else c)", "; a b c;;"),
    Case("a < b < c", "; a b c;;"),
    Case("a[b:c, d]", "; a b c d;;"),
    Case("global g\ng = 1", "g;;;"),
    Case("'x = y'", ";;;"),
    Case("# x = y", ";;;"),
    # What a call changes.
    Case("a.append(b)", "; a b; a;"),
    Case("x = a.pop()", "x; a; a;"),
    Case("a.head()", "; a;;"),
    Case("x = a.something(b)", "x; a b;;"),
    Case("a.something(b)", "; a b; a b;"),
    Case("a.fit(b)", "; a b; a;"),
    Case("a.b.c.append(d)", "; a d; a;"),
    Case("x = a.drop(b, inplace=True)", "x; a b; a;"),
    Case("x = a.drop(b, inplace=False)", "x; a b;;"),
    Case("x = f(a, out=b)", "x; a b f; b;"),
    Case("print(a, sorted(b), len(c))", "; a b c;;"),
    Case("next(a)", "; a; a;"),
    Case("setattr(a, 'b', c)", "; a c; a c;"),
    Case("import random\nrandom.shuffle(a)", "random; a; a;"),
    Case("import lib\nlib.change(a)", "lib; a; a;"),
    Case("import lib\nx = lib.make(a)", "lib x; a;;"),
    Case("import matplotlib.pyplot as plt\nplt.plot(a)", "plt; a;;"),
    Case("from seaborn import histplot\nhistplot(a)", "histplot; a;;"),
    Case("import torch\ntorch.nn.init.normal_(a)", "torch; a; a;"),
    Case("def f(p): p.append(1)\nx = f(a)", "f x; a; a;"),
    Case("def f(p): return p + 1\nf(a)", "f; a;;"),
    Case("def f(p):\n    q = p[0]\n    q.x = 1\nf(a)", "f; a; a;"),
    Case("def f(p): g(p)\ndef g(p): p.clear()\nf(a)", "f g; a; a;"),
    Case("def f(p): f(p)\nf(a)", "f; a;;"),
    # IPython.
    Case("%time x = f(y)", "x; f y;;"),
    Case("%timeit -n 10 x = f(y)", "_forgotten;;;"),
    Case("%%time\nx = y", "x; y;;"),
    Case("%%timeit s = z\nx = s + y", "; y z;;"),
    Case("%%capture out --no-stderr\nx = y", "out x; y;;"),
    Case("%%bash --out lines --err errors\necho $HOME", "errors lines;;;"),
    Case("%%writefile {name}.py\nx = y", "; name;;"),
    Case("%%html\n<b>x</b>", ";;;"),
    Case("!ls $path {a.b} $HOME", "; a b path;;"),
    Case("x = !ls {y}\nz = x", "x z; y;;"),
    Case("x = %pwd", "x;;;"),
    Case("%cd {folder}\nimport os", "os; folder;;"),
    Case("df.head?", "; df;;"),
    Case("?df", "; df;;"),
    Case("if a:\n    %matplotlib inline\n    !ls \\\n      -l\nb = 1", "b; a;;"),
    Case("x = 5 % y\nz = (a\n % b)", "x z; a b y;;"),
]


def list_changed(facts: CellFacts) -> set[str]:
    """The names through which a cell may change an object, if it is the first that runs."""
    step = Timeline(Tokens(), WorkBudget(NOTEBOOK_LIMIT)).look(facts)
    return {base_name(name) for name, _ in step.changes}


@for_each("case", CASES)
def test_what_a_cell_does_to_names(case: Case) -> None:
    found = analyse(case.source)

    assert found.opaque == ()
    assert found.syntax_error is None
    sets = [found.defines, found.uses, list_changed(found), found.deletes]
    assert [set(names) for names in sets] == [
        set(part.split()) for part in case.expected.split(";")
    ]


@pytest.mark.parametrize(
    "source",
    [
        "exec(code)",
        "x = eval(code)",
        "globals()['x'] = 1",
        "locals().update(d)",
        "vars()['x'] = 1",
        "get_ipython().run_cell('x = 1')",
        "%run other.py",
        "%reset -f",
        "%pylab inline",
        "%store -r x",
        "%%cython\ncdef int x",
        "%%R -o y\ny <- 1",
        "x = %sql SELECT 1",
    ],
)
def test_what_nobody_can_tell_is_opaque(source: str) -> None:
    assert analyse(source).opaque


@pytest.mark.parametrize(
    "source",
    [
        "%load_ext autoreload\n%autoreload 2",
        "%matplotlib inline",
        "get_ipython().run_line_magic('matplotlib', 'inline')",
        "%env X=1",
        "%cd ..",
    ],
)
def test_setting_up_the_kernel_is_noted_and_not_opaque(source: str) -> None:
    found = analyse(source)

    assert found.environment
    assert not found.opaque


def test_calling_a_function_that_is_opaque_shows_only_when_it_is_called() -> None:
    assert not analyse("def f(): exec('x = 1')").opaque


def test_a_star_import_is_known_by_its_module() -> None:
    found = analyse("from math import *")

    assert found.stars == ("math",)
    assert not found.opaque


def test_names_bound_under_a_condition_are_marked() -> None:
    found = analyse("a = 1\nif a: b = 2\nfor c in d: pass\nwith suppress(E): e = 1")

    assert found.perhaps == {"b", "c", "e"}


def test_what_is_no_python_may_do_anything_to_the_names_it_mentions() -> None:
    found = analyse("x = = y.z")

    assert found.syntax_error
    assert found.defines == found.uses == list_changed(found) == {"x", "y", "z"}
    assert analyse("exec x y").opaque
    assert analyse("from a import * from b").opaque


@pytest.mark.parametrize("language", ["R", "julia", "kotlin", "bash", ""])
def test_other_languages_are_opaque_unless_blank(language: str) -> None:
    assert analyse("x = 1", language).opaque
    assert analyse(" \n", language) == analyse("")


@pytest.mark.parametrize("language", ["python", "Python", "python3", "ipython"])
def test_python_goes_by_several_names(language: str) -> None:
    assert analyse("x = 1", language).defines == {"x"}


HOSTILE = {
    "a hundred thousand lines": "x = 1\n" * 100_000,
    "a long line": "x = [" + "1," * 400_000 + "]",
    "a thousand parentheses": "(" * 1000 + ")" * 1000,
    "a thousand brackets open": "[" * 1000,
    "many signs": "-" * 50_000 + "1",
    "many negations": "not " * 20_000 + "1",
    "a long sum": "+".join(["a"] * 50_000),
    "many attributes": "a" + ".b" * 20_000,
    "many calls": "a" + "()" * 10_000,
    "functions in functions": "".join("  " * k + f"def f{k}():\n" for k in range(95))
    + " " * 200
    + "1",
    "lambdas in lambdas": "lambda:" * 300 + "1",
    "many elifs": "if a: b\n" + "elif a: b\n" * 2000,
    "braces in a string": "f'" + "{" * 200 + "'",
    "null characters": "x\0 = y",
    "half a character": "x = '\ud800'",
    "half a character as a name": "\ud800 = 1",
    "a huge number": "x = " + "9" * 10_000,
    "magics without end": "%a \\\n" * 2000,
    "carriage returns": "x = 1\ry = 2\r\n",
    "form feeds": "x = 1\x0c\ny = 2\x0b",
    "tabs and spaces": "if a:\n\tb\n        c\n",
    "only percent signs": "%%\n%\n%%%",
    "only question marks": "?\n??\n?x?",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_no_text_makes_it_raise(source: str) -> None:
    found = analyse(source)

    assert found == analyse(source)


@pytest.mark.parametrize("what", ["a hundred thousand lines", "many signs", "a long sum"])
def test_what_is_too_much_is_opaque(what: str) -> None:
    assert analyse(HOSTILE[what]).opaque


def test_python_s_own_warnings_are_not_heard() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        analyse("x = '\\d'\nx is 1\n1()\nassert (x, 'y')")

    assert heard == []
