"""`Value`: a frozen record with attributes, equality and a JSON shape, cheap to define.

Requests and answers are values. They are not dataclasses because a command that ends within
milliseconds would pay for the code that `dataclass` generates for each of them.
"""

from __future__ import annotations

import re
import sys

from cellwright.document.costs import GarbagePause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import KW_ONLY
    from typing import Any, ClassVar, Self, dataclass_transform
else:
    KW_ONLY = None

    def dataclass_transform(**_: object) -> object:
        """Do nothing: only type checkers need it."""
        return lambda kind: kind


__all__ = ["KW_ONLY", "Value", "to_members", "to_plain"]


_MANY = 100
_class_names = re.compile(r"\b[A-Z]\w*").findall


@dataclass_transform(frozen_default=True)
class Value:
    """A record whose fields are the annotations of its class, in order.

    Fields after `_: KW_ONLY` are given by name. A field named in `OPTIONAL` is left out of the
    JSON shape while it is None. A list of values, or a value, is restored as such from JSON.
    `TEXT` names the field that may be very long, if there is one.
    """

    OPTIONAL: ClassVar[frozenset[str]] = frozenset()
    FIELDS: ClassVar[tuple[str, ...]] = ()
    _POSITIONAL: ClassVar[int] = 0
    _ANNOTATIONS: ClassVar[dict[str, str]] = {}
    _DEFAULTS: ClassVar[dict[str, Any]] = {}
    _NESTED: ClassVar[tuple[tuple[str, type[Value]], ...] | None] = None
    _REQUIRED: ClassVar[set[str]] = set()
    _NOTHING: ClassVar[dict[str, Any]] = {}
    HAS_OWN_JSON: ClassVar[bool] = False
    TEXT: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        annotations = dict(cls._ANNOTATIONS)
        positional = cls._POSITIONAL
        is_positional = positional == len(annotations)
        for name, kind in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063
            if name == "_":
                is_positional = False
            elif not kind.startswith("ClassVar"):
                annotations[name] = kind
                positional += is_positional
        own = {name: cls.__dict__[name] for name in annotations if name in cls.__dict__}
        cls._ANNOTATIONS, cls._POSITIONAL = annotations, positional
        cls._DEFAULTS = {**cls._DEFAULTS, **own}
        cls.FIELDS = tuple(annotations)
        cls._NESTED = None
        cls.HAS_OWN_JSON = cls.to_json is not Value.to_json

    def __init__(self, *args: Any, **given: Any) -> None:
        if len(args) == self._POSITIONAL == len(self.FIELDS) and not given:  # by far the most
            self.__dict__.update(zip(self.FIELDS, args, strict=True))
            return
        values = {**self._DEFAULTS, **dict(zip(self.FIELDS, args, strict=False)), **given}
        is_positional = len(args) <= self._POSITIONAL and (
            not args or given.keys().isdisjoint(self.FIELDS[: len(args)])
        )
        if not is_positional or values.keys() != self._ANNOTATIONS.keys():
            raise TypeError(self._describe_misuse(args, given))
        self.__dict__.update({name: values[name] for name in self.FIELDS})

    def _describe_misuse(self, args: tuple[Any, ...], given: dict[str, Any]) -> str:
        name = type(self).__name__
        if len(args) > self._POSITIONAL:
            return f"{name} takes {self._POSITIONAL} positional arguments, not {len(args)}"
        known = {*self.FIELDS[: len(args)], *given, *self._DEFAULTS}
        missing = [field for field in self.FIELDS if field not in known]
        if missing:
            return f"{name} needs {', '.join(f'`{field}`' for field in missing)}"
        unknown = [field for field in given if field not in self._ANNOTATIONS]
        if unknown:
            return f"{name} has no `{unknown[0]}`"
        return f"{name} was given the same field twice"

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]  # lists are among the fields

    def __repr__(self) -> str:
        shown = [
            f"{name}={value!r:.200}"
            for name in self.FIELDS
            if (value := getattr(self, name)) != self._DEFAULTS.get(name, ...)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def replace(self, **given: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**{name: getattr(self, name) for name in self.FIELDS}, **given})

    @classmethod
    def list_parameters(cls) -> list[tuple[str, str, Any]]:
        """Return name, kind (`positional` or `keyword`) and default (`...` for none) of each field."""
        return [
            (
                name,
                "positional" if place < cls._POSITIONAL else "keyword",
                cls._DEFAULTS.get(name, ...),
            )
            for place, name in enumerate(cls.FIELDS)
        ]

    @classmethod
    def extend(cls, base: Value, **given: Any) -> Self:
        """Return a value with the fields of another, and more."""
        return cls(**{**{name: getattr(base, name) for name in base.FIELDS}, **given})

    def list_members(self) -> dict[str, Any]:
        """Return the fields that the JSON shape has, as they are."""
        values, optional = self.__dict__, self.OPTIONAL
        return {
            name: value
            for name in self.FIELDS
            if (value := values[name]) is not None or name not in optional
        }

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return {
            name: value if type(value) in _PLAIN else to_plain(value)
            for name, value in self.list_members().items()
        }

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the value that `to_json` made into data. It takes the data over."""
        if cls._NESTED is None:
            cls._NESTED = tuple(cls._find_nested().items())
            # Those of `OPTIONAL` are left out while they are None.
            left_out = {**cls._DEFAULTS, **dict.fromkeys(cls.OPTIONAL)}
            cls._REQUIRED = cls._ANNOTATIONS.keys() - left_out.keys()
            cls._NOTHING = {**dict.fromkeys(cls.FIELDS), **left_out}
        found = shape if shape.keys() == cls._ANNOTATIONS.keys() else cls._complete(shape)
        for name, kind in cls._NESTED:
            value = found[name]
            if type(value) is dict:
                found[name] = kind.from_json(value)
            elif isinstance(value, list):
                found[name] = _restore_all(kind, value)
        made = cls.__new__(cls)
        _take_over(made, found)
        return made

    @classmethod
    def _complete(cls, shape: dict[str, Any]) -> dict[str, Any]:
        """The fields of a shape with what it left out, and without what is new to us."""
        found = {**cls._NOTHING, **shape}
        if len(found) == len(cls.FIELDS) and shape.keys() >= cls._REQUIRED:
            return found
        known = {
            name: found[name] for name in cls.FIELDS if name in shape or name not in cls._REQUIRED
        }
        return cls(**known).__dict__  # which says what is missing

    @classmethod
    def _find_nested(cls) -> dict[str, type[Value]]:
        found = {}
        for kind in cls.__mro__:
            names = vars(sys.modules[kind.__module__])
            for field, annotation in kind.__dict__.get("__annotations__", {}).items():  # noqa: RUF063
                for word in _class_names(annotation) if field in cls._ANNOTATIONS else ():
                    if isinstance(names.get(word), type) and hasattr(names[word], "from_json"):
                        found[field] = names[word]
        return found


_take_over = vars(Value)["__dict__"].__set__  # past `__setattr__`, and without a copy
_PLAIN = frozenset({str, int, float, bool, type(None)})


def to_members(value: Any) -> Any:
    """Return what an encoder shall write for a value: its members, which may be values again."""
    if isinstance(value, Value) and not value.HAS_OWN_JSON:
        return value.list_members() if value.OPTIONAL else value.__dict__
    return to_plain(value)


def to_plain(value: Any) -> Any:
    """Return a value as JSON can have it: records, edits, paths and sequences become plain data."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, dict):
        return {name: to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    return value


def _restore_all(kind: type[Value], shapes: list[Any]) -> list[Any]:
    if len(shapes) < _MANY:
        return list(map(kind.from_json, shapes))
    with GarbagePause():
        return list(map(kind.from_json, shapes))
