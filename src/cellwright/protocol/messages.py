"""Requests and replies as they are in comm messages, in both dialects, and the codes of refusals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from cellwright.errors import CellwrightError, InvalidMetadata, ModeForbids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal


_LONGEST = 400


class ErrorCode(StrEnum):
    """What an error answer may be called: nine codes of the protocol, and one of ours."""

    INVALID_RANGE = "INVALID_RANGE"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    INVALID_SPLICE_PARAMS = "INVALID_SPLICE_PARAMS"
    INVALID_METADATA = "INVALID_METADATA"
    INVALID_CELL_DATA = "INVALID_CELL_DATA"
    EXECUTION_FAILED = "EXECUTION_FAILED"
    UNKNOWN_METHOD = "UNKNOWN_METHOD"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    NO_ACTIVE_NOTEBOOK = "NO_ACTIVE_NOTEBOOK"
    MODE_FORBIDS = "MODE_FORBIDS"


class Refusal(Exception):
    """A request that is answered with an error; the message says it all, clients may drop the code."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        message = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
        super().__init__(message)
        self.code = code
        self.message = message


def metadata_refusal(reason: str) -> Refusal:
    """Metadata that the notebook cannot have."""
    return Refusal(ErrorCode.INVALID_METADATA, f"Failed to update notebook metadata: {reason}")


def refusal_of(error: Exception) -> Refusal:
    """What an error is called in the protocol."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InvalidMetadata):
        return metadata_refusal(error.message)
    if isinstance(error, CellwrightError):
        code = (
            ErrorCode.MODE_FORBIDS if isinstance(error, ModeForbids) else ErrorCode.INTERNAL_ERROR
        )
        return Refusal(code, f"{error.message}. {error.hint}" if error.hint else error.message)
    said = " ".join(str(error).split())
    return Refusal(
        ErrorCode.INTERNAL_ERROR, f"{type(error).__name__}: {said}" if said else repr(error)
    )


MANIPULATOR = "jupyter.notebook.manipulator.v1"
"""The target of the protocol: parameters stand in `params`."""
NOTEKIT = "jupyter.notekit.v1"
"""The target of its released relative: parameters stand beside the method."""
TARGETS = (MANIPULATOR, NOTEKIT)

NESTED = "nested_execute"
"""In `features` of the opening message: cells can be run while the cell that asks is waiting."""
ON_CONTROL = "control_replies"
"""In `features` of the opening message: answers are to be sent on the control channel."""
NESTED_MARK = "nbmp_request"
"""In the metadata of an execute request: the id of the request that it is run for."""

MANIPULATOR_METHODS = (
    "get_cell_count",
    "get_notebook_metadata",
    "get_cell_range",
    "splice_cell_range",
    "set_notebook_metadata",
    "execute_cell_range",
)
METHODS = {
    MANIPULATOR: frozenset(MANIPULATOR_METHODS),
    NOTEKIT: frozenset({*MANIPULATOR_METHODS, "get_nbformat_version"}),
}

_ENVELOPE = frozenset({"method", "request_id", "params", "nested"})


class CommLike(Protocol):
    """A message on a comm, as the events of a kernel have it."""

    @property
    def kind(self) -> str:
        """`open`, `msg` or `close`."""
        ...

    @property
    def comm_id(self) -> str:
        """Which comm."""
        ...

    @property
    def target(self) -> str:
        """Its target; only in the opening message."""
        ...

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says."""
        ...

    @property
    def is_ours(self) -> bool:
        """Whether it is for us to answer: the kernel said it in answer to us, to no other client."""
        ...


@dataclass(frozen=True, slots=True)
class ManipulatorRequest:
    """One request, whatever its dialect.

    `caller` is the handle of the cell that asks, if that is known. `nests` says that the kernel
    runs cells for this request while that cell waits.
    """

    comm_id: str
    id: Any
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    target: str = MANIPULATOR
    caller: str | None = None
    nests: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What is to be sent to the kernel, on the same comm."""

    comm_id: str
    data: Mapping[str, Any]
    channel: Literal["shell", "control"] = "shell"


def is_request(data: Mapping[str, Any]) -> bool:
    """Tell requests from whatever else may come over a comm."""
    return ("method" in data or "request_id" in data) and "status" not in data


def read_params(data: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, from `params` or from beside the method; `params` wins."""
    beside = {key: value for key, value in data.items() if key not in _ENVELOPE}
    params = data.get("params")
    return {**beside, **params} if isinstance(params, dict) else beside


def make_result(request_id: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request that was carried out; `result` is there even if it is empty."""
    return {"request_id": request_id, "status": "ok", "result": dict(result)}


def make_refusal(request_id: Any, refusal: Refusal) -> dict[str, Any]:
    """The answer to a request that was not."""
    error = {"message": refusal.message, "code": str(refusal.code)}
    return {"request_id": request_id, "status": "error", "error": error}


def show_value(value: Any) -> str:
    """A value from outside as messages show it: short, on one line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= 80 else f"{text[:77]}..."
