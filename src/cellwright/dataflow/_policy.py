"""Which objects a call may change.

Nobody can know that from the text, so this is a policy, the same wherever a call stands:

| call | may change |
|---|---|
| `x.append(…)`, `x.fit(…)`, `x.add_(…)`: a known mutator, or `inplace=True` | `x` |
| `f(x)`, `x.m()` with `f`, or the class of `x`, defined in the notebook | what its body changes |
| `map(f, xs)`, `df.apply(f)` with such an `f` | `xs`, `df` |
| `next(x)`, `setattr(x, …)`, `random.shuffle(x)`, `out=x`: known to change arguments | `x` |
| `x.m(y)` as a statement, `m` unknown | `x` and `y`: it is called for its effect |
| `lib.f(x)` as a statement, `f` imported and unknown | `x`, for the same reason |
| `x.head()`, `plt.plot(x)`, `print(x)`, `lib.save(x)`: known to look only | nothing |
| `y = x.m()`, `y = lib.f(x)`: the result is wanted, `m` and `f` unknown | nothing |

Of an imported module itself, only assignment to its attributes counts as a change: the state inside
libraries (random seeds, display options, the current figure) is not followed, nor are files.
"""

from __future__ import annotations

from cellwright.dataflow import _tables as tables
from cellwright.dataflow.facts import ARGUMENT, RECEIVER, base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.dataflow.facts import Call, Effects, Root

_NONE: frozenset[Root] = frozenset()


class Known:
    """What is known about the name that a call starts from."""

    __slots__ = ("effects", "origin")

    def __init__(
        self, effects: frozenset[Effects] = frozenset(), origin: str | None = None
    ) -> None:
        self.effects = effects
        self.origin = origin


UNKNOWN = Known()


def changed_by(
    call: Call, known: Callable[[str], Known], visited: frozenset[str] = frozenset()
) -> frozenset[Root]:
    """The objects that a call may change, given what is known about names."""
    method = call.path[-1] if call.path else ""
    about = known(call.callee) if call.callee else UNKNOWN
    found = call.receiver if call.in_place else _NONE
    if about.effects and call.callee not in visited:
        found |= _by_notebook_code(call, method, about, known, visited | {call.callee})
    if _hands_on(call, known, visited):
        found |= call.arguments | call.receiver if call.path else call.arguments
    if about.origin is not None:
        return found | _by_library(call, method, about.origin)
    if not call.path:
        return found | _by_plain_function(call, about)
    if method in tables.MUTATORS or _in_place_by_name(method):
        found |= call.receiver
    if call.statement and method not in tables.PURE_METHODS and not _is_known(method, about):
        found |= call.receiver
        if method not in tables.KEEPS_ARGUMENTS:
            found |= call.arguments
    return found


def _hands_on(call: Call, known: Callable[[str], Known], visited: frozenset[str]) -> bool:
    """Whether a function is passed on that changes what it gets: `map(f, xs)`, `df.apply(f)`."""
    if any(changes_arguments(each, known, visited) for each in call.effects):
        return True
    names = {base(name) for name, _ in call.arguments} - visited
    return any(
        changes_arguments(each, known, visited | {name})
        for name in names
        for each in known(name).effects
    )


def _by_notebook_code(
    call: Call, method: str, about: Known, known: Callable[[str], Known], visited: frozenset[str]
) -> frozenset[Root]:
    found = _NONE
    for effects in about.effects:
        if changes_arguments(effects, known, visited):
            found |= call.arguments | call.receiver if call.path else call.arguments
        if method in effects.changing:
            found |= call.receiver
    return found


def _by_library(call: Call, method: str, origin: str) -> frozenset[Root]:
    name = method or origin.rpartition(".")[2]
    if name in tables.MUTATING_FUNCTIONS or _in_place_by_name(name):
        return call.arguments
    if method in tables.MUTATORS and len(call.path) == 1 and "." in origin:
        return call.receiver  # `from shared import registry`, then `registry.append(…)`
    if (
        not call.statement
        or origin.partition(".")[0] in tables.SHOWING_MODULES
        or name in tables.SHOWING_FUNCTIONS
        or name in tables.KEEPS_ARGUMENTS
    ):
        return _NONE
    return call.arguments


def _by_plain_function(call: Call, about: Known) -> frozenset[Root]:
    if call.callee in tables.MUTATING_BUILTINS:
        return call.arguments
    looks_only = call.callee in tables.SHOWING_BUILTINS or call.callee in tables.PROVIDED
    if not call.statement or about.effects or looks_only:
        return _NONE
    return call.arguments | call.receiver


def _is_known(method: str, about: Known) -> bool:
    """Whether the method is one of a class of the notebook, so that its body has been looked at."""
    return any(method in effects.methods for effects in about.effects)


def _in_place_by_name(name: str) -> bool:
    """PyTorch's convention: `add_`, `normal_`."""
    return len(name) > 1 and name.endswith("_") and not name.endswith("__") and name[0] != "_"


def changes_arguments(
    effects: Effects, known: Callable[[str], Known], visited: frozenset[str] = frozenset()
) -> bool:
    """Whether a function may change what is passed to it."""
    if any(root == ARGUMENT for root, _ in effects.changes):
        return True
    return any(
        root == ARGUMENT
        for call in effects.calls
        if ARGUMENT in {name for name, _ in call.arguments | call.receiver}
        for root, _ in changed_by(call, known, visited)
    )


def changes_receiver(effects: Effects) -> bool:
    """Whether a method may change its own object, by its own text alone."""
    if any(root == RECEIVER for root, _ in effects.changes):
        return True
    return any(
        root == RECEIVER
        for call in effects.calls
        for root, _ in changed_by(call, lambda _: UNKNOWN)
    )
