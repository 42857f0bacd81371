"""What a request to the notebook may end with.

NotebookError          any answer with an error; `code` is the protocol's
├── OutOfRange         INVALID_RANGE, OUT_OF_BOUNDS, INVALID_SPLICE_PARAMS; also IndexError
├── CellFailed         EXECUTION_FAILED
├── NotebookTimeout    TIMEOUT: no answer in time; also TimeoutError
├── NoFrontend         NO_FRONTEND: there is no frontend to ask; also ConnectionError
└── CannotWait         CANNOT_WAIT: the answer could not arrive while this cell runs; also RuntimeError
"""

from __future__ import annotations


class NotebookError(Exception):
    """A request that was not carried out."""

    def __init__(self, message: str, code: str = "INTERNAL_ERROR") -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.code)


class OutOfRange(NotebookError, IndexError):
    """There are no such cells."""


class CellFailed(NotebookError):
    """A cell that was to be run did not end well."""


class NotebookTimeout(NotebookError, TimeoutError):
    """There was no answer in time."""


class NoFrontend(NotebookError, ConnectionError):
    """There is no frontend to ask."""


class CannotWait(NotebookError, RuntimeError):
    """The answer could not arrive while this cell runs."""


_KINDS = {
    "INVALID_RANGE": OutOfRange,
    "OUT_OF_BOUNDS": OutOfRange,
    "INVALID_SPLICE_PARAMS": OutOfRange,
    "EXECUTION_FAILED": CellFailed,
}


def make_error(error: object) -> NotebookError:
    """Make the exception for an answer with an error."""
    shape = error if isinstance(error, dict) else {}
    code = str(shape.get("code", "INTERNAL_ERROR"))
    return _KINDS.get(code, NotebookError)(str(shape.get("message", "no reason was given")), code)
