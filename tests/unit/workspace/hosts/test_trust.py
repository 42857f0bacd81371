"""Jupyter's trust in a notebook: kept where it was, never given where it was not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from cellwright import Workspace
from cellwright.workspace.hosts.trust import Notary
from cellwright.workspace.runs.run import RunOptions
from cellwright.workspace.verbs.running import follow_run, prepare_run
from tests.unit.workspace.memory import Gate, make_notebook, run, texts, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright import Book

HTML = {"output_type": "display_data", "data": {"text/html": ["<b>\n", "x"]}, "metadata": {}}


@pytest.fixture
def data_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path_factory.mktemp("jupyter")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(found))
    return found


@pytest.fixture
def notary(data_dir: Path) -> Iterator[NotebookNotary]:
    """Jupyter's own."""
    with NotebookNotary(data_dir=str(data_dir)) as notary:
        notary.secret  # noqa: B018  # made when first asked for
        yield notary


@pytest.fixture
def book(folder: Path, runner: Workspace, monkeypatch: pytest.MonkeyPatch) -> Book:
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "0.02")
    make_notebook(folder, "print a\ninput x\nprint b", "show text/html <i>", c1={"outputs": [HTML]})
    return runner.open("m.ipynb")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def sign(notary: NotebookNotary, book: Book) -> None:
    notary.sign(nbformat.read(book.path, as_version=4))


def is_trusted(notary: NotebookNotary, book: Book) -> bool:
    return bool(notary.check_signature(nbformat.read(book.path, as_version=4)))


async def test_a_notebook_that_was_signed_stays_signed(book: Book, notary: NotebookNotary) -> None:
    sign(notary, book)
    before = book.raw()
    await run(book, answers=["", ""])
    assert book.raw() != before
    assert is_trusted(notary, book)


async def test_one_that_was_not_signed_is_not_signed(book: Book, notary: NotebookNotary) -> None:
    await run(book, answers=["", ""])
    assert not is_trusted(notary, book)


async def test_saves_while_it_runs_do_not_cost_the_trust(
    book: Book, notary: NotebookNotary
) -> None:
    sign(notary, book)
    gate = Gate()
    going = asyncio.ensure_future(run(book, ask=gate.ask))
    await until(lambda: texts(book) == "a\n")
    gate.opened.set()
    await going
    assert is_trusted(notary, book)


@pytest.mark.parametrize("who", ["ours", "outside"])
async def test_what_somebody_else_put_there_meanwhile_is_not_signed(
    book: Book, notary: NotebookNotary, who: str
) -> None:
    sign(notary, book)
    gate = Gate()
    going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
    await gate.reached.wait()
    if who == "ours":
        put_in(book)
    else:
        put_in_outside(book)
    gate.opened.set()
    await going
    assert texts(book).startswith("a\n")
    assert not is_trusted(notary, book)


def put_in(book: Book) -> None:
    with Workspace(Path(book.path).parent) as other:
        other.open("m.ipynb").edit([{"op": "insert", "source": "evil"}])


def put_bytes(book: Book, content: bytes) -> None:
    Path(book.path).write_bytes(content)


def put_in_outside(book: Book) -> None:
    shape = json.loads(book.raw())
    shape["cells"][1]["outputs"][0]["data"]["text/html"] = "<script>evil</script>"
    Path(book.path).write_text(json.dumps(shape))


async def test_what_changed_between_the_call_and_the_run_is_not_signed(
    book: Book, notary: NotebookNotary
) -> None:
    sign(notary, book)
    notebook = book.load()
    put_in_outside(book)
    options = RunOptions(answers=[""])
    opened = book.workspace.caller.open(book.name)
    await follow_run(prepare_run(opened, options, notebook, cells=["c0"]))
    assert not is_trusted(notary, book)


async def test_where_nothing_was_ever_signed_nothing_is_made(book: Book, data_dir: Path) -> None:
    await run(book, answers=["", ""])
    assert names(data_dir) == []
    assert Notary.find() is None
    assert not Notary(str(data_dir)).sign(book.raw())
    assert names(data_dir) == []


async def test_a_database_that_is_no_database_is_left_as_it_is(book: Book, data_dir: Path) -> None:
    (data_dir / "nbsignatures.db").write_bytes(b"not a database at all" * 100)
    (data_dir / "notebook_secret").write_bytes(b"secret")
    notary = Notary.find()
    assert notary is not None
    assert not notary.has_signed(book.raw())
    assert names(data_dir) == ["nbsignatures.db", "notebook_secret"]
    assert (data_dir / "nbsignatures.db").read_bytes().startswith(b"not a database")


async def test_ours_agrees_with_jupyter_on_what_is_signed(
    book: Book, notary: NotebookNotary
) -> None:
    ours = Notary.find()
    assert ours is not None
    assert not ours.has_signed(book.raw())
    sign(notary, book)
    assert ours.has_signed(book.raw())
    changed = book.raw().replace(b"print a", b"print A")
    assert not ours.has_signed(changed)
    assert ours.sign(changed)
    put_bytes(book, changed)
    assert is_trusted(notary, book)
    assert not ours.sign(b"no notebook")


async def test_what_was_found_unsigned_is_looked_up_again_once_somebody_signs(
    book: Book, notary: NotebookNotary, data_dir: Path
) -> None:
    ours, content = Notary(str(data_dir)), book.raw()
    notary.sign(nbformat.reads('{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}', 4))
    ours.leave_unsigned(content)
    assert not ours.has_signed(content)
    notary.sign(nbformat.reads(content.decode(), 4))
    assert ours.has_signed(content)
