"""Cells as values, and the notebook's cells and metadata as Python collections."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from cellwright_kernel.verbs import Notebook

CellLike = Union[str, "Cell", "dict[str, Any]"]


@dataclass(frozen=True)
class Cell:
    """One cell as it was when it was asked for, or one to be inserted."""

    type: str
    source: str
    id: str | None = None
    index: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    execution_count: int | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, shape: dict[str, Any], index: int | None = None) -> Cell:
        """The cell of an answer."""
        source = shape.get("source", "")
        return cls(
            str(shape.get("cell_type", "raw")),
            source if isinstance(source, str) else "".join(source),
            shape.get("id"),
            index,
            shape.get("metadata") or {},
            shape.get("execution_count"),
            shape.get("outputs") or [],
        )

    def to_dict(self) -> dict[str, Any]:
        """The cell as the protocol has it."""
        shape: dict[str, Any] = {
            "cell_type": self.type,
            "source": self.source,
            "metadata": self.metadata,
        }
        if self.id is not None:
            shape["id"] = self.id
        if self.type == "code":
            shape.update(execution_count=self.execution_count, outputs=self.outputs)
        return shape


def code(source: str, **metadata: Any) -> Cell:
    """A code cell to insert."""
    return Cell("code", source, metadata=metadata)


def markdown(source: str, **metadata: Any) -> Cell:
    """A Markdown cell to insert."""
    return Cell("markdown", source, metadata=metadata)


def raw(source: str, **metadata: Any) -> Cell:
    """A raw cell to insert."""
    return Cell("raw", source, metadata=metadata)


def to_shape(cell: CellLike) -> dict[str, Any]:
    """Convert a cell to the protocol's shape; a plain string is code."""
    if isinstance(cell, str):
        return code(cell).to_dict()
    return cell.to_dict() if isinstance(cell, Cell) else dict(cell)


class Cells(Sequence[Cell]):
    """The cells of the notebook; every access asks the frontend."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    def __len__(self) -> int:
        return int(self._notebook.cell_count())

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            steps = range(*place.indices(len(self)))
            if not steps:
                return []
            low = min(steps[0], steps[-1])
            found = self._notebook.cell_range(low, max(steps[0], steps[-1]) + 1)
            return [found[i - low] for i in steps]
        (cell,) = self._notebook.cell_range(place)
        return cell

    def __iter__(self) -> Iterator[Cell]:
        return iter(self[:])

    def __repr__(self) -> str:
        return f"<{len(self)} cells>"


class Metadata(MutableMapping[str, Any]):
    """The metadata of the notebook; changes are made at once."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    def __getitem__(self, key: str) -> Any:
        return self._notebook.get_metadata()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._notebook.set_metadata(
            {key: _make_patch(self._notebook.get_metadata().get(key), value)}
        )

    def __delitem__(self, key: str) -> None:
        if key not in self._notebook.get_metadata():
            raise KeyError(key)
        self._notebook.set_metadata({key: None})

    def __iter__(self) -> Iterator[str]:
        return iter(self._notebook.get_metadata())

    def __len__(self) -> int:
        return len(self._notebook.get_metadata())

    def merge(self, patch: dict[str, Any]) -> None:
        """Merge into what is there, objects within objects; None removes a field."""
        self._notebook.set_metadata(patch)

    def replace(self, metadata: dict[str, Any]) -> None:
        """Replace all metadata."""
        self._notebook.set_metadata(metadata, merge=False)

    def __repr__(self) -> str:
        return repr(self._notebook.get_metadata())


def _make_patch(old: Any, new: Any) -> Any:
    """Make the patch that turns `old` into `new` when merged."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {key: None for key in old if key not in new}
    return {**gone, **{key: _make_patch(old.get(key), value) for key, value in new.items()}}
