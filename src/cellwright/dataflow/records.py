"""What goes into `staleness` and what comes out of it: plain, frozen data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    State = Literal["fresh", "stale", "never", "not_code"]

_LONGEST_ID = 64


def source_hash(source: str) -> str:
    """A hash of a cell's text, to tell whether it is the one that ran."""
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class DataflowCell(NamedTuple):
    """A cell of the notebook as it is now. `id` is its handle: unique, and the same in its runs."""

    id: str
    source: str
    type: str = "code"


@dataclass(frozen=True, slots=True)
class DataflowRun:
    """One execution of a cell, or of code that is in no cell.

    Attributes:
        cell: The handle that the cell had.
        order: Larger for what started later in the same kernel.
        status: `ok`, or why not: `error timed_out cancelled died running`. A `pending` run has
            not happened yet.
        kernel: Which life of which kernel it ran in; another one knows nothing of it.
        source: The text that ran. Without it, `hash` (of `source_hash`) tells whether it is the
            text that the cell has now; if it is not, what the run did is unknown.
    """

    cell: str
    order: int
    status: str = "ok"
    kernel: str = ""
    source: str | None = None
    hash: str = ""

    @property
    def source_hash(self) -> str:
        """The hash of the text that ran."""
        return source_hash(self.source) if self.source is not None else self.hash


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cell is stale, or what to beware of: a kind for programs, a sentence for people.

    `names` are the names that it is about, `cell` is the other cell that it is about, if any.

    | kind | the cell … |
    |---|---|
    | `never` | has not run |
    | `edited` | was edited since it ran |
    | `kernel` | ran in a kernel that is gone |
    | `failed` `running` | did not finish without an error, or has not finished yet |
    | `upstream_edited` `upstream_never` `upstream_failed` | uses a name of a cell that was edited, has not run, failed |
    | `upstream_rerun` | uses a name that another cell defined or changed again after it ran |
    | `upstream_stale` | uses a name of a cell that is itself stale |
    | `upstream_deleted` | used a name of a cell that is not in the notebook any more |
    | `out_of_order` | used a name as a cell below it left it |
    | `own_run` | used a name as its own earlier run left it |
    | `other_source` | used a name from another cell than it would from top to bottom |
    | `unknown_name` | used a name that no cell defines |
    | `history` | uses an earlier output by number |
    | `opaque` | depends on a cell whose effects are unknown |

    Only in warnings: `defined_below`, `undefined`, `rerun_differs`, `cannot_tell`.
    """

    kind: str
    sentence: str
    names: tuple[str, ...] = ()
    cell: str | None = None


@dataclass(frozen=True, slots=True)
class CellState:
    """Whether what a cell shows is what the notebook, run from top to bottom, would give."""

    cell: str
    index: int
    state: State
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether there is a result, and it cannot be relied on."""
        return self.state == "stale"

    @property
    def stale_reason(self) -> str | None:
        """The most telling reason, as one sentence; None if the cell is not stale."""
        return self.reasons[0].sentence if self.reasons and self.is_stale else None


def quote_id(cell: str) -> str:
    """The id of a cell as a part of a sentence; one that could be read as words is quoted."""
    if len(cell) <= _LONGEST_ID and all(sign.isalnum() or sign in "_-.+()" for sign in cell):
        return cell
    import json

    return json.dumps(cell[:_LONGEST_ID])
