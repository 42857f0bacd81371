"""`Settings`: everything a user can change, and where each value came from.

The fields are the whole list. Each has its default, its range, a sentence for `config show`, and
whether a project file may set it: a project file comes with a repository from someone else, so it
may change limits but never what code is allowed to do.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, dataclass_transform

from cellwright.config import defaults
from cellwright.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

YEAR = 31_536_000

OriginKind = Literal["flag", "variable", "project", "user", "default"]


class SettingOrigin(NamedTuple):
    """Where a value came from: `kind`, and `place`, the name of the flag, variable or file."""

    kind: OriginKind
    place: str

    def __str__(self) -> str:
        return self.place if self.kind == "default" else f"{self.kind} {self.place}"


BUILT_IN = SettingOrigin("default", "default")

Value: TypeAlias = float | bool | str | tuple[str, ...]
_SWITCH = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


class SettingSpec:
    """The default of a setting, and the values it accepts."""

    name = ""

    def __init__(
        self,
        default: Value,
        about: str,
        *,
        low: float = -math.inf,
        high: float = math.inf,
        one_of: tuple[str, ...] = (),
        project_may_set: bool = True,
    ) -> None:
        self.default = default
        self.about = about
        self.low = low
        self.high = high
        self.one_of = one_of
        self.project_may_set = project_may_set

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def accepted_values(self) -> str:
        """The accepted values in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, str):
            return f"one of {', '.join(self.one_of)}" if self.one_of else "a text"
        if isinstance(self.default, tuple):
            return "a list of names"
        whole = isinstance(self.default, int)
        return f"a {'whole number' if whole else 'number'} from {self.low:,} to {self.high:,}"

    @property
    def is_number(self) -> bool:
        """Whether it has a range."""
        return isinstance(self.default, (int, float)) and not isinstance(self.default, bool)

    def check(self, value: object, place: str) -> Value:
        """Return `value` in the type of this setting.

        Text is converted, because variables and flags are text.

        Raises:
            InvalidSetting: it is not of the right type, or out of range.
        """
        checked = self._read(value)
        if checked is None:
            raise InvalidSetting(self.name, value, place, self.accepted_values)
        return checked

    def _read(self, value: object) -> Value | None:
        if isinstance(self.default, bool):
            if isinstance(value, str):
                return _SWITCH.get(value.lower())
            return value if isinstance(value, bool) else None
        if isinstance(self.default, str):
            fits = isinstance(value, str) and (not self.one_of or value in self.one_of)
            return value if fits else None  # type: ignore[return-value]
        if isinstance(self.default, tuple):
            return _names(value)
        number = _number(value, whole=isinstance(self.default, int))
        return number if number is not None and self.low <= number <= self.high else None


def _names(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return tuple(value)
    return None


def _number(value: object, *, whole: bool) -> float | None:
    if isinstance(value, bool):  # an int in Python, but not a number for people
        return None
    try:
        if whole:
            return int(value) if isinstance(value, (int, str)) else None
        number = float(value) if isinstance(value, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _setting(
    default: float, low: float, high: float, about: str, *, project_may_set: bool = True
) -> Any:
    return SettingSpec(default, about, low=low, high=high, project_may_set=project_may_set)


def _choice(
    default: Value, about: str, *, one_of: tuple[str, ...] = (), project_may_set: bool = True
) -> Any:
    return SettingSpec(default, about, one_of=one_of, project_may_set=project_may_set)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Frozen:
    """Takes its fields as arguments, and never changes; a dataclass takes 8 ms to import."""

    def __init__(self, **given: Any) -> None:
        unknown = given.keys() - type(self).__annotations__.keys()
        if unknown:
            raise TypeError(f"there is no setting {min(unknown)}")
        vars(self).update(given)
        self._check()

    def _check(self) -> None:
        """Check the values, and put defaults where none is given."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name}: settings do not change")


class Settings(_Frozen):
    """The current settings; durations in seconds, sizes in bytes.

    `load()` makes them from flags, variables and files. `Settings()` has the defaults, and its
    arguments are checked in the same way.
    """

    max_file_bytes: int = _setting(
        defaults.MAX_FILE_BYTES, 1024, 2**40, "largest file read as a notebook"
    )
    lock_timeout: float = _setting(
        defaults.LOCK_TIMEOUT, 0, YEAR, "wait for another writer of the same notebook"
    )
    eval_sessions_kept: int = _setting(4, 1, 1024, "eval sessions kept alive for each client")
    eval_sessions_total: int = _setting(32, 1, 1024, "eval sessions kept alive for all clients")
    eval_session_idle_timeout: float = _setting(
        300.0, 1, YEAR, "idle time before an eval session ends"
    )
    session_sweep_interval: float = _setting(
        30.0, 0.1, YEAR, "time between looks for idle sessions"
    )
    heartbeat_interval: float = _setting(5.0, 0.1, YEAR, "time between checks that a kernel lives")
    kernel_restarts_allowed: int = _setting(1, 0, 100, "restarts without a success between them")
    interrupt_grace: float = _setting(
        defaults.INTERRUPT_GRACE, 0, YEAR, "time from an interrupt to the kill"
    )
    output_bytes_kept: int = _setting(
        defaults.OUTPUT_BYTES_KEPT, 1024, 2**30, "bytes of output kept in memory"
    )
    output_lines_kept: int = _setting(
        defaults.OUTPUT_LINES_KEPT, 1, 10**7, "lines of output kept in memory"
    )
    notebook_output_bytes: int = _setting(
        10 * 2**20, 1024, 2**40, "bytes of output a cell keeps in its notebook"
    )
    run_save_interval: float = _setting(
        2.0, 0, YEAR, "time between saves of a running cell, 0 for none"
    )
    artifact_quota_bytes: int = _setting(
        defaults.ARTIFACT_QUOTA_BYTES,
        2**20,
        2**50,
        "bytes that all artifacts may take",
        project_may_set=False,  # a small one would remove what other projects have
    )
    artifact_max_bytes: int = _setting(
        defaults.ARTIFACT_MAX_BYTES, 1024, 2**40, "bytes that one artifact may take"
    )
    eval_timeout: float = _setting(30.0, 0, YEAR, "time an eval cell may run, 0 for no limit")
    eval_timeout_max: float = _setting(
        3_600.0, 0, YEAR, "longest eval timeout a call may ask for, 0 for any"
    )
    notebook_session_idle_timeout: float = _setting(
        3_600.0, 1, YEAR, "idle time before a kernel ends"
    )
    session_wait_timeout: float = _setting(
        30.0, 0, YEAR, "wait for a session when all of them are busy"
    )
    kernel_start_timeout: float = _setting(60.0, 1, YEAR, "time a kernel may take to become ready")
    eval_mode: str = _choice(
        "session",
        "whether calls of `eval` share the kernel of their session, or each has one of its own",
        one_of=("session", "per-call"),
    )
    kernel: str = _choice(
        "",
        "kernel to use where a call names none: a kernelspec's name or an interpreter's path",
        project_may_set=False,
    )
    spare_kernel: bool = _choice(default=True, about="whether one kernel is started in advance")
    pass_variables: tuple[str, ...] = _choice(
        (),
        "keys and tokens that kernels may see, by name or pattern (`AWS_*`)",
        project_may_set=False,
    )
    server: str = _choice(
        "",
        "address of a Jupyter server whose kernels run code where a call names none",
        project_may_set=False,
    )
    servers: tuple[str, ...] = _choice(
        (),
        "addresses of Jupyter servers whose kernels agents may use",
        project_may_set=False,
    )
    engine: str = _choice(
        "auto",
        "when commands use the background engine",
        one_of=("auto", "never", "always"),
        project_may_set=False,
    )
    engine_idle_timeout: float = _setting(60.0, 1, YEAR, "idle time before the engine ends")
    edit_mode_edits: bool = _choice(
        default=False,
        about="whether mode `edit` may change notebooks, rather than propose changes",
        project_may_set=False,
    )
    assistant_model: str = _choice(
        "",
        "language model of chats, as provider:name; empty for the built-in one",
        project_may_set=False,
    )
    assistant_base_url: str = _choice(
        "",
        "address of the model's server; empty for the provider's own",
        project_may_set=False,
    )
    assistant_max_tokens: int = _setting(
        defaults.ASSISTANT_MAX_TOKENS, 1, 10**6, "longest answer of a model, in tokens"
    )
    assistant_timeout: float = _setting(120.0, 1, YEAR, "time a model may be silent")
    assistant_retries: int = _setting(4, 0, 20, "times a model that is busy is asked again")
    assistant_images: bool = _choice(
        default=True,
        about="whether models get pictures, rather than their descriptions",
        project_may_set=False,
    )
    assistant_prompts: str = _choice(
        "",
        "folder with prompt files of your own; empty for none",
        project_may_set=False,
    )
    assistant_prompts_off: tuple[str, ...] = _choice(
        (),
        "prompt files not used, as name.md or, in one mode, as mode:name.md",
        project_may_set=False,
    )
    assistant_context_in_system_prompt: bool = _choice(
        default=False,
        about="whether a notebook's state is part of the system prompt, rather than after it",
        project_may_set=False,
    )
    assistant_transcripts: bool = _choice(
        default=True, about="whether chats are kept, to be resumed", project_may_set=False
    )
    origins: Mapping[str, SettingOrigin] = MappingProxyType({})
    warnings: tuple[str, ...] = ()

    def _check(self) -> None:
        given = vars(self)
        for name, spec in SPECS.items():
            given[name] = spec.check(given.get(name, spec.default), self._place(name))
        if 0 < self.eval_timeout_max < self.eval_timeout:
            # Report the one that was set; if both were, the one that is beyond the other.
            if self.eval_timeout == SPECS["eval_timeout"].default:
                name, expected = "eval_timeout_max", f"at least eval_timeout, {self.eval_timeout:g}"
            else:
                name, expected = (
                    "eval_timeout",
                    f"at most eval_timeout_max, {self.eval_timeout_max:g}",
                )
            raise InvalidSetting(name, getattr(self, name), self._place(name), expected)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(tuple(self.to_json().values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.to_json().items())
        return f"Settings({values})"

    def _place(self, name: str) -> str:
        return self.origins[name].place if name in self.origins else "the arguments"

    def to_json(self) -> dict[str, Value]:
        """Every setting by name, in the order they are documented."""
        return {name: getattr(self, name) for name in SPECS}

    def origin(self, name: str) -> SettingOrigin:
        """Where the value of setting `name` came from.

        Raises:
            KeyError: there is no such setting.
        """
        if name not in SPECS:
            raise KeyError(name)
        return self.origins.get(name, BUILT_IN)


SPECS: Mapping[str, SettingSpec] = MappingProxyType(
    {name: spec for name, spec in vars(Settings).items() if isinstance(spec, SettingSpec)}
)
"""The specification of every setting by name, in the order in which they are shown."""
