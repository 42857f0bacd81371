"""`run --check`: whether a notebook gives again what it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.document.notebook import Notebook
from cellwright.workspace.runs.comparison import compare_outputs
from tests.unit.workspace.memory import MemoryKernels, cells_of, make_notebook, run

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import Workspace
    from cellwright.workspace.runs.execution import Executions


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}, **more}


def result(text: str, count: int = 1) -> dict[str, Any]:
    value = shown({"text/plain": text}, execution_count=count)
    return {**value, "output_type": "execute_result"}


def error(name: str, value: str, *traceback: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": list(traceback)}


def compared(
    stored: list[dict[str, Any]], now: list[dict[str, Any]], status: str = "ok"
) -> tuple[str, str]:
    cell = {
        "cell_type": "code",
        "id": "c",
        "metadata": {},
        "source": "",
        "execution_count": 3,
        "outputs": stored,
    }
    shape = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    found = compare_outputs(Notebook(json.dumps(shape).encode()).cells[0], status, now)
    return found.result, found.diff


PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ([], []),
        ([stream("a\nb\n")], [stream("a\n"), stream("b\n")]),
        (
            [stream("a\n"), stream("w\n", "stderr"), stream("b\n")],
            [stream("w\n", "stderr"), stream("a\nb\n")],
        ),
        ([stream("")], []),
        ([result("7", 3)], [result("7", 9)]),
        ([result("<object at 0x7f00aa11bb22>")], [result("<object at 0x7fabcdef0123>")]),
        (
            [stream("/home/x/ipykernel_71/99.py:1: W\n", "stderr")],
            [stream("/var/x/ipykernel_8/1.py:1: W\n", "stderr")],
        ),
        ([shown({"image/png": PNG + "\n"})], [shown({"image/png": PNG})]),
        ([shown({"text/html": ["<b>\n", "x"]})], [shown({"text/html": "<b>\nx"})]),
        (
            [shown({"image/png": PNG}, metadata={"image/png": {"width": 1}})],
            [shown({"image/png": PNG})],
        ),
        (
            [shown({"application/vnd.jupyter.widget-view+json": {"model_id": "a", "v": 2}})],
            [shown({"application/vnd.jupyter.widget-view+json": {"model_id": "b", "v": 2}})],
        ),
        (
            [shown({"application/json": {"b": [1], "a": 2}})],
            [shown({"application/json": {"a": 2, "b": [1]}})],
        ),
    ],
)
def test_what_may_differ_counts_as_the_same(
    stored: list[dict[str, Any]], now: list[dict[str, Any]]
) -> None:
    assert compared(stored, now) == ("same", "")


@pytest.mark.parametrize(
    ("stored", "now", "lines"),
    [
        ([stream("a\n")], [stream("b\n")], ["-[stdout] a", "+[stdout] b"]),
        ([stream("a\n")], [stream("a\n", "stderr")], ["-[stdout] a", "+[stderr] a"]),
        ([stream("a\n")], [stream("a")], []),  # to the character
        ([stream("a\n")], [], ["-[stdout] a"]),
        ([], [stream("a\n")], ["+[stdout] a"]),  # it ran then, and said nothing
        ([result("0x1f")], [result("0x2f")], ["-[text/plain] 0x1f", "+[text/plain] 0x2f"]),
        ([result("7")], [shown({"text/plain": "7"})], []),  # no result any more
        (
            [shown({"text/plain": "7", "text/html": "<b>"})],
            [shown({"text/plain": "7"})],
            ["-[text/html] <b>"],
        ),
        ([shown({"image/png": PNG})], [shown({"image/png": "AAAA"})], ["+[image/png] 3 bytes, "]),
        (
            [shown({"application/json": {"a": 1}})],
            [shown({"application/json": {"a": 2}})],
            ['-[application/json]  "a": 1', '+[application/json]  "a": 2'],
        ),
        ([stream("took 1.5 s\n")], [stream("took 1.6 s\n")], ["-[stdout] took 1.5 s"]),
    ],
)
def test_everything_else_differs_and_is_shown(
    stored: list[dict[str, Any]], now: list[dict[str, Any]], lines: list[str]
) -> None:
    kind, diff = compared(stored, now)
    assert kind == "differs"
    for line in lines:
        assert line in diff


def test_errors_are_compared_by_name_and_message() -> None:
    then = [error("KeyError", "'a'", "old traceback")]
    assert compared(then, [error("KeyError", "'a'", "new")], "error") == ("same", "")
    assert compared(then, [error("KeyError", "'b'")], "error")[0] == "differs"
    assert compared([stream("x\n")], [error("KeyError", "'a'")], "error")[0] == "failed"
    assert compared(then, [stream("fine\n")], "ok")[0] == "differs"
    assert compared([stream("x\n")], [stream("x\n")], "timed_out")[0] == "failed"
    assert compared([stream("x\n")], [stream("x\n")], "died")[0] == "failed"


def test_an_error_that_was_not_there_before_is_a_line_of_the_diff() -> None:
    status, diff = compared([stream("1\n")], [stream("1\n"), error("KeyError", "'x'")], "error")
    assert (status, diff.splitlines()[-1]) == ("failed", "+[error] KeyError: 'x'")


def test_a_long_diff_is_cut() -> None:
    then, now = ("".join(f"{word} {n}\n" for n in range(500)) for word in ("a", "b"))
    diff = compared([stream(then)], [stream(now + "x" * 1000)])[1]
    assert len(diff.splitlines()) == 41
    assert "more lines" in diff
    assert max(map(len, diff.splitlines())) <= 201


# -- runs ---------------------------------------------------------------------------------------


def results(done: Executions) -> list[str | None]:
    return [execution.check and execution.check.result for execution in done]


async def test_a_check_writes_nothing_and_has_a_kernel_of_its_own(
    folder: Path, runner: Workspace, kernels: MemoryKernels
) -> None:
    make_notebook(folder, "set x 1", "get x", "print c")
    book = runner.open("m.ipynb")
    await run(book, "c0", "c1")
    before, record = book.raw(), book.executions()
    done = await run(book, check=True, restart=True)
    assert results(done) == ["same", "same", "unstored"]
    assert [execution.saved for execution in done] == [False, False, False]
    assert (book.raw(), book.executions(), len(book.log())) == (before, record, 2)
    assert [kernel.is_alive for kernel in kernels.made] == [True, False]  # it is gone
    (same,) = await run(book, "c1")
    assert same.status == "ok"  # the notebook's own kernel has kept its state


async def test_hidden_state_is_found_out(folder: Path, runner: Workspace) -> None:
    make_notebook(folder, "get x", "set x 1", "print z")
    book = runner.open("m.ipynb")
    await run(book, "c1")
    await run(book, "c0")  # out of order
    done = await run(book, check=True)
    assert results(done) == ["failed", None, "unstored"]  # nothing to compare with, so or so
    assert [execution.status for execution in done] == ["error", "pending", "pending"]
    done = await run(book, check=True, keep_going=True)
    assert results(done) == ["failed", "same", "unstored"]


async def test_a_check_stops_where_a_run_stops(folder: Path, runner: Workspace) -> None:
    make_notebook(folder, "raise E x", "print b")
    book = runner.open("m.ipynb")
    ran = await run(book)
    done = await run(book, check=True)
    assert [each.status for each in done] == [each.status for each in ran] == ["error", "pending"]
    assert results(done) == ["same", "unstored"]
    further = await run(book, check=True, keep_going=True)
    assert [each.status for each in further] == ["error", "ok"]


async def test_what_was_stored_and_not_reached_is_not_checked(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "raise E x", "print b")
    book = runner.open("m.ipynb")
    await run(book, keep_going=True)
    assert results(await run(book, check=True)) == ["same", None]


async def test_a_cell_without_code_is_the_same_whatever_it_holds(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, " ", c0={"outputs": [error("E", "x")], "execution_count": 1})
    assert results(await run(runner.open("m.ipynb"), check=True)) == ["same"]


async def test_a_display_that_a_later_cell_renews_is_compared_as_it_ends(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "update d old", "update d new")
    book = runner.open("m.ipynb")
    await run(book)
    assert cells_of(book)[0]["outputs"][0]["data"]["text/plain"] == ["new"]
    assert results(await run(book, check=True)) == ["same", "same"]
