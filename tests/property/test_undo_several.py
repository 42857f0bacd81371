"""Whatever was edited: several changes as one lead to the same place, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cellwright import Notebook
from tests.conftest import RUN_ALL
from tests.property import strategies
from tests.property.test_lossless import edit_lists

if TYPE_CHECKING:
    from cellwright.document.change import Change

few = settings(max_examples=500 if RUN_ALL else 20)


@few
@given(data=strategies.files(), draw=st.data())
def test_changes_as_one_lead_from_the_first_state_to_the_last_and_back(
    data: bytes, draw: Any
) -> None:
    notebook = Notebook(data)
    before = notebook.state
    changes = [
        notebook.apply(draw.draw(edit_lists(len(notebook.cells))))
        for _ in range(draw.draw(st.integers(1, 6)))
    ]
    whole = changes[0]
    for change in changes[1:]:
        whole = whole.then(change)
    assert (whole.before, whole.after) == (before, notebook.state)
    assert len(whole.origins) == len(notebook.cells)

    # A cell is followed through all changes, or was new in one of them.
    for place, origin in enumerate(whole.origins):
        at: int | None = place
        for change in reversed(changes):
            at = None if at is None else change.origins[at]
        assert origin == at

    again = Notebook.of_state(whole.after)
    again.apply(whole.inverse())
    assert again.to_bytes() == data


@few
@given(data=strategies.files(), draw=st.data())
def test_taken_back_one_after_the_other_they_are_one_change_too(data: bytes, draw: Any) -> None:
    """As an undo of several does it: the newest first, each onto what the one before left."""
    notebook = Notebook(data)
    changes = [notebook.apply(draw.draw(edit_lists(len(notebook.cells)))) for _ in range(4)]
    now = notebook.state
    done: Change | None = None
    for change in reversed(changes):
        step = notebook.apply(change.inverse())
        done = step if done is None else done.then(step)
    assert done is not None
    assert notebook.to_bytes() == data
    assert done.before is now
    assert done.after is notebook.state
    assert len(done.origins) == len(notebook.cells)
    kept = [origin for origin in done.origins if origin is not None]
    assert len(set(kept)) == len(kept)
