"""A cell's value, names, errors and awaits."""

from __future__ import annotations

import asyncio
import textwrap
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelCannot
from cellwright.kernel.events import CommMessage, Finished, Started

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.kernel.runner.conftest import Driver


async def test_a_cell_gives_started_its_result_and_one_finished(cells: Driver) -> None:
    ran = await cells.run("1 + 1")
    assert ran.events[0] == Started(1)
    assert ran.result == "2"
    assert ran.events[-1] == Finished("ok", 1)
    assert len(ran.events) == 3


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("x = 5\nx * 2", "10"),
        ("x = 5", None),
        ("None", None),
        ("x = 5; x;", None),
        ("5;", None),
        ("'text'", "'text'"),
        ("def f():\n    return 7\n\nf()\n\n# a comment", "7"),
        ("(\n    1 +\n    2\n)", "3"),
        ("", None),
        ("# nothing", None),
        ("if True:\n    3", None),
        ("'%d' % 5", "'5'"),
        ("1 != 2", "True"),
        ("# coding: latin-1\n'grüße €'", "'grüße €'"),
        ("(y := 4)", "4"),
    ],
)
async def test_the_last_expression_is_the_result(
    cells: Driver, source: str, result: str | None
) -> None:
    assert (await cells.ok(source)).result == result


@pytest.mark.parametrize(
    "source", ["'\ud800'", "'a\0b'", "0o8", "yield 3", "\t1", "await f(", "(" * 300]
)
async def test_what_is_no_expression_fails_as_python_says(cells: Driver, source: str) -> None:
    with pytest.raises((SyntaxError, ValueError)) as python:
        compile(source, "<cell 1>", "exec")
    raised = (await cells.run(source)).raised
    assert (raised.ename, raised.evalue) == (type(python.value).__name__, str(python.value))


async def test_names_and_history_live_on(cells: Driver) -> None:
    await cells.ok("a = 20")
    await cells.ok("a + 1")
    await cells.ok("a + 2")
    assert (await cells.ok("_, __, _2, Out[3], In[1]")).result == "(22, 21, 21, 22, 'a = 20')"
    assert (await cells.ok("__name__, '__file__' in globals()")).result == "('__main__', False)"


async def test_a_silent_cell_shows_nothing_and_is_not_counted(cells: Driver) -> None:
    silent = await cells.ok("y = 3\ny", silent=True)
    assert silent.shown == []
    assert silent.finished.execution_count == 0
    unstored = await cells.ok("y", store_history=False)
    assert unstored.result == "3"
    counted = await cells.ok("y")
    assert counted.finished.execution_count == 1
    assert counted.shown[0].execution_count == 1


async def test_an_error_shows_the_cells_own_lines_and_none_of_ours(cells: Driver) -> None:
    await cells.ok("def f(x):\n    return 1 / x")
    ran = await cells.run("value = 0\nf(value)")
    assert ran.status == "error"
    assert (ran.raised.ename, ran.raised.evalue) == ("ZeroDivisionError", "division by zero")
    text = "\n".join(ran.raised.traceback)
    assert 'File "<cell 2>", line 2, in <module>' in text
    assert "    f(value)" in text
    assert 'File "<cell 1>", line 2, in f' in text
    assert "return 1 / x" in text
    assert "inside" not in text
    assert text.count("File ") == 2


async def test_causes_are_shown_too(cells: Driver) -> None:
    source = "try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e"
    text = "\n".join((await cells.run(source)).raised.traceback)
    assert "ZeroDivisionError" in text
    assert "direct cause" in text
    assert "inside" not in text


async def test_a_syntax_error_has_a_caret_and_no_stack(cells: Driver) -> None:
    ran = await cells.run("x = (1,\ny = 2")
    assert ran.raised.ename == "SyntaxError"
    assert ran.raised.traceback[0].startswith('  File "<cell 1>", line')
    assert any(set(line.strip()) == {"^"} for line in ran.raised.traceback)


@pytest.mark.parametrize("source", ["exit()", "raise SystemExit(3)", "import sys; sys.exit('x')"])
async def test_exit_is_an_error_and_the_runner_lives_on(cells: Driver, source: str) -> None:
    await cells.ok("kept = 1")
    ran = await cells.run(source)
    assert (ran.status, ran.raised.ename) == ("error", "SystemExit")
    assert (await cells.ok("kept")).result == "1"


@pytest.mark.parametrize(
    ("source", "enames"),
    [
        ("def f(): f()\nf()", {"RecursionError"}),
        ("raise MemoryError", {"MemoryError"}),
        ("raise KeyboardInterrupt", {"KeyboardInterrupt"}),
        ("raise GeneratorExit", {"GeneratorExit"}),
        ("class E(BaseException): pass\nraise E", {"E"}),
        ("class E(Exception):\n    def __str__(self): 1/0\nraise E", {"E"}),
        ("'\\0' if 1 else \0", {"SyntaxError", "ValueError"}),
        ("(" * 500 + ")" * 500, {"SyntaxError", "MemoryError", "RecursionError"}),
    ],
)
async def test_whatever_a_cell_raises_is_told(cells: Driver, source: str, enames: set[str]) -> None:
    ran = await cells.run(source)
    assert ran.status == ("cancelled" if "KeyboardInterrupt" in enames else "error")
    assert ran.raised.ename in enames
    assert (await cells.ok("6")).result == "6"


async def test_a_huge_exception_is_bounded(cells: Driver) -> None:
    ran = await cells.run("raise ValueError('x' * 100_000_000)")
    assert len(ran.raised.evalue) < 20_000
    assert sum(map(len, ran.raised.traceback)) < 100_000
    deep = await cells.run(
        "def f(n):\n    if n % 2: return g(n)\n    return f(n - 1)\n"
        "def g(n):\n    return 1 / 0 if n < 0 else f(n - 2)\nf(800)"
    )
    assert len(deep.raised.traceback) <= 201


async def test_await_works_at_the_top_and_tasks_live_on(cells: Driver) -> None:
    await cells.ok(
        "import asyncio\nseen = []\n"
        "async def work():\n    for i in range(100):\n        seen.append(i)\n"
        "        await asyncio.sleep(0.001)"
    )
    assert (await cells.ok("await asyncio.sleep(0, 'value')")).result == "'value'"
    await cells.ok("task = asyncio.create_task(work()); await asyncio.sleep(0.001)")
    async with asyncio.timeout(20):  # it gets on although no cell awaits it
        while (await cells.ok("len(seen)")).result != "100":
            await asyncio.sleep(0.01)
    await cells.ok("await task")
    assert (await cells.ok("asyncio.run(asyncio.sleep(0, 5))")).result == "5"


async def test_an_await_that_fails_is_an_error_with_the_cells_line(cells: Driver) -> None:
    ran = await cells.run("async def f():\n    raise OSError('no')\nawait f()")
    assert ran.raised.ename == "OSError"
    assert "raise OSError('no')" in "\n".join(ran.raised.traceback)
    assert "inside" not in "\n".join(ran.raised.traceback)


async def test_folder_and_variables_are_set_per_cell(cells: Driver, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "neighbour.py").write_text("here = 1\n")
    source = "import os, sys\nprint(os.getcwd())\nprint(os.environ.get('CW_A'))\nsys.path[0]"
    ran = await cells.ok(source, cwd=str(other), env={"CW_A": "1"})
    assert ran.stdout == f"{other}\n1\n"
    assert ran.result == repr(str(other))
    assert (await cells.ok("import neighbour; neighbour.here")).result == "1"
    await cells.ok("os.chdir('/')")
    assert (await cells.ok("os.getcwd()", cwd=str(other))).result == "'/'"
    assert (await cells.ok("os.getcwd()", cwd=str(tmp_path))).result == repr(str(tmp_path))
    gone = await cells.ok("os.environ.get('CW_A', 'gone')", env={"CW_A": None})
    assert gone.result == "'gone'"


async def test_a_folder_that_is_not_there_is_the_cells_error(cells: Driver) -> None:
    for _ in range(2):
        ran = await cells.run("1", cwd="/no/such/folder")
        assert (ran.status, ran.raised.ename) == ("error", "FileNotFoundError")


async def test_source_of_functions_can_be_inspected(cells: Driver) -> None:
    await cells.ok("def double(x):\n    return 2 * x")
    ran = await cells.ok("import inspect\nprint(inspect.getsource(double), end='')")
    assert ran.stdout == "def double(x):\n    return 2 * x\n"


async def test_what_cells_define_can_be_pickled_and_forked(cells: Driver) -> None:
    await cells.ok("import pickle\nclass Point:\n    x = 1\npickle.loads(pickle.dumps(Point()))")
    source = """
        import multiprocessing
        def square(x):
            print("in child", x, flush=True)
            return x * x
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(square, [1, 2, 3]))
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert "[1, 4, 9]" in ran.stdout
    assert ran.stdout.count("in child") == 3


async def test_spawned_processes_work_too(cells: Driver, tmp_path: Path) -> None:
    (tmp_path / "helper_module.py").write_text("def triple(x):\n    return 3 * x\n")
    source = """
        import multiprocessing, helper_module
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            answer = pool.map(helper_module.triple, [1, 2])
        answer
    """
    assert (await cells.ok(textwrap.dedent(source))).result == "[3, 6]"


async def test_a_runner_has_no_comms(cells: Driver) -> None:
    with pytest.raises(KernelCannot):
        await cells.runner.send_comm(CommMessage("open", "c"))


async def test_a_cell_has_the_future_module_of_its_python(cells: Driver) -> None:
    source = (
        "import __future__\n(__future__.annotations.compiler_flag > 0, __future__.__file__ > '')"
    )
    assert (await cells.ok(source)).result == "(True, True)"
