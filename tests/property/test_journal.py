"""Whatever is edited, the journal gives every state back to the byte."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellwright import Notebook
from cellwright.document.change import Change
from cellwright.errors import Conflict
from cellwright.journal import Journal
from cellwright.journal._changes import decode_origins, encode_origins
from cellwright.journal._states import _cut, _decode_gaps, _encode_gaps
from tests.conftest import RUN_ALL
from tests.property import strategies
from tests.property.test_lossless import edit_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

few = settings(max_examples=300 if RUN_ALL else 12)
numbers = itertools.count()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """One for all examples: they share whatever pieces they have in common."""
    with Journal(tmp_path_factory.mktemp("journal") / "j") as journal:
        yield journal


def new_path() -> str:
    return f"/somewhere/{next(numbers)}.ipynb"


@few
@given(data=strategies.files(), draw=st.data())
def test_every_state_of_fifty_edits_comes_back_and_undo_leads_to_the_first(
    journal: Journal, data: bytes, draw: Any
) -> None:
    path = new_path()
    notebook = Notebook(data)
    states = [data]
    for _ in range(50 if RUN_ALL else 12):
        change = notebook.apply(draw.draw(edit_lists(len(notebook.cells))))
        entry = journal.begin(path, change, actor="test:me").finish()
        assert (entry is None) == (notebook.to_bytes() == states[-1])
        if entry is not None:
            states.append(notebook.to_bytes())
            assert (entry.before, entry.after) == (
                change.before.snapshot.revision,
                change.after.snapshot.revision,
            )
    _check_states(journal, path, states)
    notebook = Notebook(notebook.to_bytes())
    for expected in reversed(states[:-1]):
        target = journal.undo_target(path, "test:me")
        change = notebook.apply(journal.change(target).inverse())
        journal.begin(path, change, actor="test:me", kind="undo", concerns=target.id).finish()
        assert notebook.to_bytes() == expected
    for expected in states[1:]:
        target = journal.redo_target(path, "test:me")
        change = notebook.apply(journal.change(target))
        journal.begin(path, change, actor="test:me", kind="redo", concerns=target.id).finish()
        assert notebook.to_bytes() == expected
    assert journal.warnings == []


@few
@given(data=strategies.files(), draw=st.data())
def test_a_change_is_taken_back_and_made_again_alike_if_only_its_cells_are_read(
    journal: Journal, data: bytes, draw: Any
) -> None:
    """Also on top of later changes, where they leave its cells alone."""
    path, notebook = new_path(), Notebook(data)
    entries = []
    for _ in range(5):
        change = notebook.apply(draw.draw(edit_lists(len(notebook.cells))))
        entries.append(journal.begin(path, change, actor="test:me").finish())
    for entry in filter(None, entries):
        before = _apply(notebook, journal.change(entry).inverse())
        assert _apply(notebook, journal.change(entry, notebook.state).inverse()) == before
        if before is not None:
            undone = Notebook(before)
            again = _apply(undone, journal.change(entry))
            assert _apply(undone, journal.change(entry, undone.state)) == again


def _apply(notebook: Notebook, change: Change) -> bytes | None:
    """The bytes of a notebook after a change; None if there is a conflict."""
    copy = Notebook.of_state(notebook.state)
    try:
        copy.apply(change)
    except Conflict:
        return None
    return copy.to_bytes()


def _check_states(journal: Journal, path: str, states: list[bytes]) -> None:
    log = journal.log(path, limit=1000)[::-1]
    assert [entry.number for entry in log] == list(range(1, len(states)))
    for number, entry in enumerate(log):
        change = journal.change(entry)
        assert change.before.layout.to_bytes() == states[number]
        assert change.after.layout.to_bytes() == states[number + 1]
        assert journal.state(path, entry.id).layout.to_bytes() == states[number + 1]
        assert [repr(cell) for cell in change.cells] == [repr(cell) for cell in entry.cells]
    if log:
        assert journal.first(path).layout.to_bytes() == states[0]


@few
@given(one=strategies.files(), two=strategies.files(), three=strategies.files(valid=True))
def test_any_file_may_take_the_place_of_any_other(
    journal: Journal, one: bytes, two: bytes, three: bytes
) -> None:
    path = new_path()
    last = one
    journal.begin(path, Notebook(one).apply([]), actor="test:me", kind="create").finish()
    for data in (two, three, one):
        state = Notebook(data).state
        entry = journal.catch_up(path, state)
        assert (entry is None) == (data == last)
        if entry is not None:
            assert entry.kind == "outside"
            change = journal.change(entry)
            assert change.before.layout.to_bytes() == last
            assert change.after.layout.to_bytes() == data
            expected = Change.between(Notebook(last).state, state).cells
            assert {c.handle for c in entry.cells} <= {c.handle for c in expected}
        last = data
    assert journal.warnings == []


@few
@given(data=strategies.files(), draw=st.data())
def test_blame_follows_each_cell_through_all_edits(
    journal: Journal, data: bytes, draw: Any
) -> None:
    """Held against a list that is kept beside the notebook, cell by cell."""
    path = new_path()
    notebook = Notebook(data)
    blamed: list[str | None] = [None] * len(notebook.cells)
    for _ in range(6):
        change = notebook.apply(draw.draw(edit_lists(len(notebook.cells))))
        entry = journal.begin(path, change, actor="test:me").finish()
        if entry is None:
            continue
        old, new = change.before.snapshot.hashes, change.after.snapshot.hashes
        blamed = [
            blamed[i] if i is not None and old[i] == new[j] else entry.id
            for j, i in enumerate(change.origins)
        ]
    if journal.log(path):
        assert [row.change for row in journal.blame(path)] == blamed


@few
@given(data=strategies.files())
def test_every_snapshot_is_recalled_as_it_was(journal: Journal, data: bytes) -> None:
    path = new_path()
    snapshot = Notebook(data).snapshot()
    journal.remember(path, snapshot)
    found = journal.recall(path, snapshot.revision)
    assert found is not None
    assert list(found.ids) == list(snapshot.ids)
    assert list(found.hashes) == list(snapshot.hashes)
    assert journal.warnings == []


@given(st.lists(st.none() | st.integers(0, 20)))
def test_origins_survive(origins: list[int | None]) -> None:
    assert decode_origins(encode_origins(origins)) == origins


@given(st.lists(st.sampled_from([b"", b",", b",\n  ", b" , \t", b"\r\n"])))
def test_gaps_survive(gaps: list[bytes]) -> None:
    assert _decode_gaps(_encode_gaps(gaps)) == gaps


@given(st.lists(st.integers(1, 2**31), max_size=2_000))
def test_a_list_that_is_cut_can_be_put_together(numbers: list[int]) -> None:
    cuts = _cut(numbers)
    assert [number for cut in cuts for number in cut] == numbers
    assert all(0 < len(cut) <= 256 for cut in cuts)
