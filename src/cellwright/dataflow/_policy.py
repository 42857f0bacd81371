"""Which objects a call may change.

The text alone does not say that. So this is a policy, the same for all calls:

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

from typing import TypeAlias

from cellwright.dataflow import _known_names as known_names
from cellwright.dataflow.facts import RECEIVER, is_argument_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import CallSite, Effects, Root

# A function of the notebook, by name, as one of several, or by what it does.
_Function: TypeAlias = "str | frozenset[Effects] | Effects"

_NONE: frozenset[Root] = frozenset()


class KnownName:
    """What is known about the name that a call starts from.

    Attributes:
        effects: What the functions and classes do that it may name.
        origin: The module that it was imported from.
        methods: The methods of those classes.
        changing: Those of them that change their object.
    """

    __slots__ = ("changing", "effects", "methods", "origin")

    def __init__(
        self, effects: frozenset[Effects] = frozenset(), origin: str | None = None
    ) -> None:
        self.effects = effects
        self.origin = origin
        self.methods = {name for each in effects for name in each.methods}
        self.changing = {name for each in effects for name in each.changing}


UNKNOWN = KnownName()


def find_changed_objects(
    calls: Iterable[CallSite], known: Callable[[str], KnownName], budget: WorkBudget
) -> set[Root]:
    """The objects that calls may change, given what is known about names."""
    calls = list(calls)
    changers = _find_changers(calls, known, budget)
    found: set[Root] = set()
    for call in calls:
        found |= _find_direct_changes(call, known(call.callee) if call.callee else UNKNOWN)
        if not changers.isdisjoint(call.functions):
            found |= call.passed
    return found


def _find_changers(
    calls: Iterable[CallSite], known: Callable[[str], KnownName], budget: WorkBudget
) -> set[_Function]:
    """Of all functions that calls lead to, those that may change what is passed to them.

    A function does so by its own text, or by passing its arguments on to a function that does.
    So the search goes forward to all functions, and back from those of the first kind.
    """
    users: dict[_Function, list[_Function]] = {}
    waiting: list[_Function] = [each for call in calls for each in call.functions]
    seen: set[_Function] = set()
    found: set[_Function] = set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        used: Collection[_Function]
        if isinstance(function, str):
            used = (known(function).effects,)
        elif isinstance(function, frozenset):
            used = function
        else:
            used = function.passes_to
            budget.spend(len(function.argument_calls))
            if is_argument_in(function.changes) or any(
                is_argument_in(
                    _find_direct_changes(call, known(call.callee) if call.callee else UNKNOWN)
                )
                for call in function.argument_calls
            ):
                found.add(function)
        for each in used:
            users.setdefault(each, []).append(function)
            waiting.append(each)
        budget.spend(1 + len(used))
    waiting = list(found)
    while waiting:
        more = set(users.get(waiting.pop(), ())) - found
        found |= more
        waiting += more
    return found


def _find_direct_changes(call: CallSite, about: KnownName) -> frozenset[Root]:
    """What a call changes apart from what functions of the notebook do to their arguments."""
    method = call.path[-1] if call.path else ""
    found = call.receiver if call.in_place else _NONE
    if method in about.changing:
        found |= call.receiver
    if about.origin is not None:
        return found | _find_library_changes(call, method, about.origin)
    if not call.path:
        return found | _find_function_changes(call, about)
    if method in known_names.MUTATORS or _is_in_place(method):
        found |= call.receiver
    if call.statement and method not in known_names.PURE_METHODS and method not in about.methods:
        found |= call.receiver
        if method not in known_names.KEEPS_ARGUMENTS:
            found |= call.arguments
    return found


def _find_library_changes(call: CallSite, method: str, origin: str) -> frozenset[Root]:
    name = method or origin.rpartition(".")[2]
    if name in known_names.MUTATING_FUNCTIONS or _is_in_place(name):
        return call.arguments
    if method in known_names.MUTATORS and len(call.path) == 1 and "." in origin:
        return call.receiver  # `from shared import registry`, then `registry.append(…)`
    if (
        not call.statement
        or origin.partition(".")[0] in known_names.SHOWING_MODULES
        or name in known_names.SHOWING_FUNCTIONS
        or name in known_names.KEEPS_ARGUMENTS
    ):
        return _NONE
    return call.arguments


def _find_function_changes(call: CallSite, about: KnownName) -> frozenset[Root]:
    if call.callee in known_names.MUTATING_BUILTINS:
        return call.arguments
    looks_only = call.callee in known_names.SHOWING_BUILTINS or call.callee in known_names.PROVIDED
    if not call.statement or about.effects or looks_only:
        return _NONE
    return call.arguments | call.receiver


def _is_in_place(name: str) -> bool:
    """Whether the name says so, by the convention of PyTorch: `add_`, `normal_`."""
    return len(name) > 1 and name.endswith("_") and not name.endswith("__") and name[0] != "_"


def changes_receiver(effects: Effects, budget: WorkBudget) -> bool:
    """Whether a method may change its own object, by its own text alone."""
    changed = {*effects.changes, *find_changed_objects(effects.calls, lambda _: UNKNOWN, budget)}
    return (RECEIVER, False) in changed or (RECEIVER, True) in changed
