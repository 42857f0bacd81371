"""Parameters that several tools share, in the same words."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from cellwright.errors import CellwrightError

DEADLINE = 45.0
"""Seconds until a result comes although cells still run: clients give up after a minute."""


def _check_name(name: str) -> str:
    """A name that the system can take: without a NUL, and with a UTF-8 form."""
    try:
        if b"\0" in name.encode():
            raise ValueError("it holds a NUL")
    except UnicodeEncodeError:
        raise ValueError("it holds a surrogate") from None
    return name


CellName = StrictStr | StrictInt
Flag = StrictBool
Name = Annotated[str, AfterValidator(_check_name)]
Path = Annotated[Name, Field(description="Notebook, relative to the root")]
OptionalPath = Annotated[
    Name | None, Field(description="Notebook, relative to the root; default: the active one")
]
Cells = Annotated[
    list[CellName] | None, Field(description="Cell ids or 0-based indices; ranges as '2-5'")
]
MaxTokens = Annotated[int, Field(ge=200, le=100_000, description="Budget of the answer")]
Timeout = Annotated[
    float | None, Field(ge=0, le=1e6, description="Seconds per cell; 0 for no limit")
]


class Params(BaseModel):
    """Parameters of a tool: unknown ones are refused, since a typo would be lost silently."""

    model_config = ConfigDict(extra="forbid")


class InvalidParameters(CellwrightError, ValueError):
    """Parameters that a tool cannot take; nothing was done."""

    code = "INVALID_PARAMETERS"
