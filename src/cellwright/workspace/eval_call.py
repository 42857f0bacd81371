"""What an `eval` call asks for: cells, and where and how they are run."""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.errors import InvalidEdit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


@dataclass(frozen=True, slots=True)
class EvalCell:
    """One cell of an `eval` call."""

    code: str
    title: str = ""
    language: str = ""
    reset: bool = False
    timeout: float | None = None

    @classmethod
    def parse(cls, value: EvalCell | Mapping[str, Any] | str, position: int = 0) -> EvalCell:
        """From its JSON shape, or from its code alone."""
        if isinstance(value, EvalCell):
            return value
        if isinstance(value, str):
            return cls(value)
        kinds: dict[str, tuple[type, ...]] = {
            "code": (str,),
            "title": (str,),
            "language": (str,),
            "reset": (bool,),
            "timeout": (int, float, type(None)),
        }
        for name, given in value.items():
            if name not in kinds:
                raise InvalidEdit(
                    f"a cell has no `{name}`", position=position, hint=f"It has {', '.join(kinds)}"
                )
            if not isinstance(given, kinds[name]) or (name == "timeout" and given is True):
                raise InvalidEdit(f"`{name}` is {given!r}", position=position)
        if "code" not in value:
            raise InvalidEdit("a cell needs `code`", position=position)
        return cls(**value)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalCall:
    """Where and how cells are evaluated."""

    session: str = "default"
    cwd: str
    environ: Mapping[str, str]
    kernel: str | None = None
    runner: bool = False
    server: str | None = None
    server_token: str | None = None
    kernel_id: str | None = None
    per_call: bool = False
    timeout: float | None = None
    answers: Sequence[str] = ()
    root: str | None = None
    mode: str = "agent"
    owner: str | None = None
    keep_going: bool = False
