"""Parameters of a run: how they are read, written in each language, and set in the kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.errors import InvalidEdit, KernelCannot
from cellwright.workspace.runs import parameters
from cellwright.workspace.runs.execution import CellError
from cellwright.workspace.runs.parameters import assign, parse_parameters, parse_value
from tests.unit.workspace.memory import MemoryKernels, cells_of, make_notebook, run, texts

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import Book, Workspace

pytestmark = pytest.mark.timeout(120)

TAGGED = {"metadata": {"tags": ["parameters"]}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("+3", 3),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ('"3"', "3"),
        ("'3'", "3"),
        ("'it''s'", "it's"),
        ("[1, 2.5, null]", [1, 2.5, None]),
        ('{"a": [1]}', {"a": [1]}),
        ("007", "007"),
        ("1_000", "1_000"),
        ("north", "north"),
        ("a=b", "a=b"),
        ("", ""),
        (" spaced ", " spaced "),
        ("[1, 2", "[1, 2"),
        ("2026-01-01", "2026-01-01"),
        ("'", "'"),
    ],
)
def test_values_are_what_they_look_like(text: str, value: object) -> None:
    found = parse_value(text)
    assert (type(found), found) == (type(value), value)
    assert parse_parameters([f"n={text}"]) == {"n": value}


def test_the_last_value_of_a_name_counts() -> None:
    assert parse_parameters(["a=1", "b=2", "a=3"]) == {"a": 3, "b": 2}


@pytest.mark.parametrize("text", ["alone", "=3", " =3"])
def test_a_parameter_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(InvalidEdit) as caught:
        parse_parameters([text])
    assert "NAME=VALUE" in str(caught.value.hint)


# -- languages ----------------------------------------------------------------------------------

NASTY = "a'b\"c\\d $HOME `x` ${y}\n\tend"
VALUES: list[Any] = [
    3,
    -(2**40),
    0.5,
    True,
    False,
    None,
    NASTY,
    [1, "two", [3.5, None]],
    {"k": {"n": [True]}, NASTY: 1},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_python_gets_the_very_value(value: Any) -> None:
    names: dict[str, Any] = {}
    exec(assign("python", "p", value), names)  # noqa: S102
    assert (type(names["p"]), names["p"]) == (type(value), value)


def test_python_gets_numbers_that_json_has_not() -> None:
    names: dict[str, Any] = {}
    lines = [assign("python3", "n", math.nan), assign("python", "i", -math.inf)]
    exec("\n".join(lines), names)  # noqa: S102
    assert math.isnan(names["n"])
    assert names["i"] == -math.inf


@pytest.mark.parametrize(
    ("language", "value", "line"),
    [
        ("R", {"a": [1, None], "b": True}, 'p <- list("a" = list(1, NULL), "b" = TRUE)'),
        ("R", 'a"b\\c\n', 'p <- "a\\"b\\\\c\\n"'),
        ("julia", {"a": [1, None]}, 'p = Dict("a" => [1, nothing])'),
        ("julia", "cost $5\f", 'p = "cost \\$5\\u000c"'),
        ("julia", "\\f", 'p = "\\\\f"'),  # a backslash and a letter
        ("julia", -math.inf, "p = -Inf"),
        ("kotlin", [1, 2**40], "val p = listOf(1, 1099511627776L)"),
        ("kotlin", {"a": "$x"}, 'val p = mapOf("a" to "\\$x")'),
        ("kotlin", math.nan, "val p = Double.NaN"),
        ("javascript", 1, "p = 1;"),
        ("typescript", 1, "p = 1;"),
    ],
)
def test_other_languages_write_it_their_way(language: str, value: Any, line: str) -> None:
    assert assign(language, "p", value) == line


def test_a_language_that_nobody_knows_is_refused() -> None:
    with pytest.raises(KernelCannot) as caught:
        assign("cobol", "p", 1)
    assert "python" in str(caught.value.hint)


# -- runs ---------------------------------------------------------------------------------------


@pytest.fixture
def language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parameters be set in the language of memory kernels."""
    script = parameters._LANGUAGES["bash"]._replace(
        assign="set {name} {value}", declare="set {name} {value}", text=str
    )
    monkeypatch.setitem(parameters._LANGUAGES, "script", script)


@pytest.fixture
def book(folder: Path, runner: Workspace, language: None) -> Book:  # noqa: ARG001
    make_notebook(folder, "set other =", "set alpha 1\nresult shown", "get alpha", c1=TAGGED)
    return runner.open("m.ipynb")


def results(book: Book) -> list[str]:
    return [
        "".join(output["data"]["text/plain"])
        for cell in cells_of(book)
        for output in cell["outputs"]
    ]


async def test_they_are_set_right_after_the_tagged_cell_and_are_not_in_the_file(book: Book) -> None:
    before = [cell["source"] for cell in cells_of(book)]
    done = await run(book, parameters={"alpha": 3})
    assert [execution.status for execution in done] == ["ok", "ok", "ok"]
    assert results(book) == ["shown", "3"]  # the cell's own result is not covered
    assert [cell["execution_count"] for cell in cells_of(book)] == [1, 2, 3]
    assert [cell["source"] for cell in cells_of(book)] == before


async def test_without_a_tagged_cell_they_are_set_before_the_first(
    book: Book, folder: Path
) -> None:
    make_notebook(folder, "get alpha", "set alpha 1", "get alpha")
    await run(book, parameters={"alpha": 3})
    assert results(book) == ["3", "1"]
    assert cells_of(book)[0]["execution_count"] == 1


@pytest.mark.usefixtures("language")
async def test_a_cell_that_sets_a_parameter_to_its_own_value_is_named(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "get year", "year = 2020", "month = 3")
    done = await run(runner.open("m.ipynb"), parameters={"year": 2026, "day": 1})
    (note,) = done[0].notes
    assert note == (
        "Cell c1 assigns the parameter `year` again; tag it parameters, "
        "and parameters are set after it"
    )


async def test_when_the_tagged_cell_does_not_run_they_are_set_before_the_first(book: Book) -> None:
    await run(book, "c2", parameters={"alpha": 4})
    assert results(book) == ["4"]


async def test_a_language_without_assignments_runs_nothing(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(parameters._LANGUAGES, "script")
    before = book.raw()
    with pytest.raises(KernelCannot, match="script"):
        await run(book, parameters={"alpha": 3})
    assert book.raw() == before
    assert book.executions() == []


async def test_a_bad_name_runs_nothing(book: Book, kernels: MemoryKernels) -> None:
    for name in ("", "a b", "1a", "a;b", "import"):
        with pytest.raises(InvalidEdit):
            await run(book, parameters={name: 3})
    assert kernels.made == []


async def test_when_they_cannot_be_set_the_cell_has_failed(
    book: Book, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    broken = parameters._LANGUAGES["script"]._replace(
        assign="raise BadValue {name}", declare="raise BadValue {name}"
    )
    monkeypatch.setitem(parameters._LANGUAGES, "script", broken)
    done = await run(book, parameters={"alpha": 3})
    assert [execution.status for execution in done] == ["ok", "error", "pending"]
    assert 'The parameters could not be set: "BadValue: alpha"' in done[1].notes
    make_notebook(folder, "print kept", c0={"execution_count": 5})
    (first,) = await run(book, parameters={"alpha": 3})
    assert (first.status, first.error, first.saved) == (
        "error",
        CellError("BadValue", "alpha", []),
        False,
    )
    assert (texts(book), cells_of(book)[0]["execution_count"]) == ("", 5)  # it never ran
