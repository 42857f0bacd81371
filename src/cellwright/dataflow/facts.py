"""What one cell does to names, as plain data.

A `Root` is where an object may come from: `("df", False)` is the object that `df` names itself,
`("df", True)` is that or anything that can be reached from it. Inside functions, `ARGUMENT` and
`RECEIVER` are what a caller passes in. `("f()", True)` is what a call of `f`, or of a method
of it, may give: all that `f` holds, but not the function, class or module `f` itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")

Root: TypeAlias = tuple[str, bool]

ARGUMENT = "<argument>"
RECEIVER = "<self>"


def freeze(items: Iterable[T]) -> frozenset[T]:
    """The items as a set. Most sets of a cell are empty, and all of those are one object."""
    return frozenset(items) or _EMPTY


_EMPTY: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call and the objects that it could change.

    `callee` is the global name that it starts from, or empty; `path` the attributes after it, the
    last one being the method. `effects` are those of functions among the arguments. `statement`
    says that the result is not used, so that the call is made for its effect.

    The rest follows from that: `passed` are the objects that a function of the notebook would get,
    `functions` what the call runs or passes on, if it is a function: `f(x)`, `map(f, xs)`.
    """

    callee: str
    path: tuple[str, ...] = ()
    receiver: frozenset[Root] = frozenset()
    arguments: frozenset[Root] = frozenset()
    statement: bool = False
    in_place: bool = False
    effects: frozenset[Effects] = frozenset()
    passed: frozenset[Root] = field(init=False, repr=False, compare=False)
    functions: frozenset[str | Effects] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        passed = self.arguments | self.receiver if self.path else self.arguments
        names = {base_name(name) for name, _ in self.arguments}
        if self.callee:
            names.add(self.callee)
        object.__setattr__(self, "passed", freeze(passed))
        object.__setattr__(self, "functions", self.effects.union(names))


@dataclass(frozen=True, slots=True)
class Effects:
    """What running a function does to global names, whenever it is called.

    Of a class, it is what all methods do. `methods` are known by name, and those that change their
    own object are `changing`. `returns` are global objects that a caller may get. `restless` marks
    what changes by being read: generators, or objects that count how often they are read.

    The rest follows from that: `argument_calls` are the calls that get something of the arguments,
    `passes_to` the functions that get it.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    changes: frozenset[Root] = frozenset()
    calls: frozenset[CallSite] = frozenset()
    opaque: frozenset[str] = frozenset()
    restless: bool = False
    returns: frozenset[Root] = frozenset()
    methods: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()
    argument_calls: tuple[CallSite, ...] = field(init=False, repr=False, compare=False)
    passes_to: frozenset[str | Effects] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calls = tuple(
            call
            for call in self.calls
            if is_argument_in(call.arguments) or is_argument_in(call.receiver)
        )
        passes_to = {
            each for call in calls if is_argument_in(call.passed) for each in call.functions
        }
        object.__setattr__(self, "argument_calls", calls)
        object.__setattr__(self, "passes_to", frozenset(passes_to))
        parts = (self.reads, self.writes, self.changes, self.calls, self.opaque, self.returns)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash  # it is a member of many sets


@dataclass(frozen=True, slots=True)
class ValueExpression:
    """What the value of an expression may be (`same`) and what it may hold (`reach`)."""

    same: frozenset[Root] = frozenset()
    reach: frozenset[Root] = frozenset()
    effects: frozenset[Effects] = frozenset()
    restless: bool = False

    def take_part(self) -> ValueExpression:
        """Something taken out of it, such as an item, an attribute or a view."""
        return ValueExpression(self.reach, self.reach, self.effects, self.restless)

    @staticmethod
    def join(values: Iterable[ValueExpression]) -> ValueExpression:
        """One of them."""
        return _join(list(values), keep_same=True)

    @staticmethod
    def hold(values: Iterable[ValueExpression]) -> ValueExpression:
        """A new object that has them inside."""
        return _join(list(values), keep_same=False)


def _join(values: list[ValueExpression], *, keep_same: bool) -> ValueExpression:
    if not values:
        return NEW
    if len(values) == 1 and keep_same:
        return values[0]
    none: frozenset[Root] = _EMPTY
    return ValueExpression(
        freeze(none.union(*(value.same for value in values))) if keep_same else none,
        freeze(none.union(*(value.reach for value in values))),
        freeze(frozenset[Effects]().union(*(value.effects for value in values))),
        any(value.restless for value in values),
    )


NEW = ValueExpression()


def list_call_results(roots: Iterable[Root]) -> frozenset[Root]:
    """What calling something of these may give."""
    return frozenset(
        (name if name in {ARGUMENT, RECEIVER} or name.endswith("()") else f"{name}()", True)
        for name, _ in roots
    )


def is_argument_in(roots: frozenset[Root]) -> bool:
    """Whether something that a caller passes in is among these."""
    return (ARGUMENT, False) in roots or (ARGUMENT, True) in roots


def base_name(name: str) -> str:
    """The name in a root that is the result of a call: `f` of `f()`."""
    return name.removesuffix("()")


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What a cell does to the names of its notebook.

    Attributes:
        defines: Names that it binds; those in `perhaps` only under a condition.
        uses: Names that it reads before it has surely bound them itself, without Python's own.
        deletes: Names that it removes.
        opaque: Why the text does not show what it does to names, such as `exec` or code that is too
            large to analyse; empty if it does.
        stars: Modules that it imports all names of.
        environment: It sets up something other than names, such as the working directory.
        syntax_error: Why it is not valid Python; it then may do anything to the names that it mentions.
    """

    defines: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    opaque: tuple[str, ...] = ()
    stars: tuple[str, ...] = ()
    environment: bool = False
    syntax_error: str | None = None
    perhaps: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()
    # For the timeline. `builtins`: like `uses`, but Python's own names, which another cell may have
    # given a new meaning. `loads`: every global name read, and when first. `bound`: when a name was
    # surely bound. `stable`: names whose value depends on nothing but the text given; `early`: those
    # of them that come before any statement that could fail; `code`: functions and classes.
    loads: Mapping[str, int] = field(default_factory=dict, hash=False)
    bound: Mapping[str, int] = field(default_factory=dict, hash=False)
    values: Mapping[str, ValueExpression] = field(default_factory=dict, hash=False)
    origins: Mapping[str, str] = field(default_factory=dict, hash=False)
    stable: Mapping[str, str] = field(default_factory=dict, hash=False)
    early: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    calls: frozenset[CallSite] = frozenset()
    changes: frozenset[Root] = frozenset()
    stores: frozenset[tuple[frozenset[Root], ValueExpression]] = frozenset()
    work: int = 1  # how many steps the analysis took
