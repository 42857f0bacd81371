"""The error codes of the protocol, and what each error of ours is called there."""

from __future__ import annotations

from enum import StrEnum

from cellwright.errors import CellwrightError, InvalidMetadata, ModeForbids

_LONGEST = 400


class Code(StrEnum):
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

    def __init__(self, code: Code, message: str) -> None:
        message = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
        super().__init__(message)
        self.code = code
        self.message = message


def metadata_refusal(reason: str) -> Refusal:
    """Metadata that the notebook cannot have."""
    return Refusal(Code.INVALID_METADATA, f"Failed to update notebook metadata: {reason}")


def refusal_of(error: Exception) -> Refusal:
    """What an error is called in the protocol."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InvalidMetadata):
        return metadata_refusal(error.message)
    if isinstance(error, CellwrightError):
        code = Code.MODE_FORBIDS if isinstance(error, ModeForbids) else Code.INTERNAL_ERROR
        return Refusal(code, f"{error.message}. {error.hint}" if error.hint else error.message)
    said = " ".join(str(error).split())
    return Refusal(Code.INTERNAL_ERROR, f"{type(error).__name__}: {said}" if said else repr(error))
