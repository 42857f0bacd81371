"""Which objects names may stand for, so that a change through one name is seen by all.

Every name that a cell gives to something is one bit; sets of objects are integers. So are sets of
functions: every `Effects` has its bit too.
"""

from __future__ import annotations

from typing import TypeAlias

from cellwright.dataflow.facts import base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from cellwright.dataflow._timeline import Binding
    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Effects, Root, Uses

# Into what, what, and what the functions among it do.
Store: TypeAlias = "tuple[frozenset[Root], frozenset[Root], int]"

# A set that is to be found: its kind, and what it is about.
Node: TypeAlias = "tuple[str, Any]"
# A set is what it has itself, all of some sets, and of some other sets all but code.
Equation: TypeAlias = "tuple[int, list[Node], list[Node]]"


def split_bits(mask: int) -> Iterator[int]:
    """The positions of the bits of a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Tokens:
    """One bit for every object that a cell gave a name to, and one for every function."""

    def __init__(self) -> None:
        self._bits: dict[tuple[str, str, bool], int] = {}
        self.code = 0  # the bits of functions, classes and modules
        self.effects: list[Effects] = []
        self._numbers: dict[Effects, int] = {}
        self._masks: dict[frozenset[Effects], int] = {}
        self._sets: dict[int, frozenset[Effects]] = {}
        self.restless_effects = 0
        self.returning_effects = 0  # those that give away global objects

    def bit(self, cell: str, name: str, *, is_code: bool = False) -> int:
        """The bit of what this cell calls by this name."""
        number = self._bits.setdefault((cell, name, is_code), len(self._bits))
        bit = 1 << number
        if is_code:
            self.code |= bit
        return bit

    def effects_mask(self, every: frozenset[Effects]) -> int:
        """The bits of functions."""
        mask = self._masks.get(every)
        if mask is None:
            mask = 0
            for effects in every:
                number = self._numbers.setdefault(effects, len(self._numbers))
                if number == len(self.effects):
                    self.effects.append(effects)
                    self.restless_effects |= effects.restless << number
                    self.returning_effects |= bool(effects.returns) << number
                mask |= 1 << number
            self._masks[every] = mask
        return mask

    def effects_set(self, mask: int) -> frozenset[Effects]:
        """The functions that these bits stand for."""
        found = self._sets.get(mask)
        if found is None:
            found = self._sets[mask] = frozenset(self.effects[k] for k in split_bits(mask))
        return found


class MaskIndex:
    """Finds which of many sets have something in common with another, without a look at each.

    A tree over the sets: a node is the union of what is below it.
    """

    def __init__(self) -> None:
        self._width = 1
        self._nodes = [0, 0]

    def copy(self) -> MaskIndex:
        """The same sets, to be changed separately."""
        other = MaskIndex()
        other._width = self._width
        other._nodes = list(self._nodes)
        return other

    @property
    def union(self) -> int:
        """All sets together."""
        return self._nodes[1]

    def put(self, number: int, mask: int) -> None:
        """Set or replace the set with this number."""
        nodes = self._nodes
        while number >= self._width:
            leaves = nodes[self._width :] + [0] * self._width
            self._width *= 2
            nodes = self._nodes = [0] * self._width + leaves
            for k in range(self._width - 1, 0, -1):
                nodes[k] = nodes[2 * k] | nodes[2 * k + 1]
        k = number + self._width
        nodes[k] = mask
        while k > 1:
            k //= 2
            union = nodes[2 * k] | nodes[2 * k + 1]
            if union == nodes[k]:
                break
            nodes[k] = union

    def find(self, mask: int) -> Iterator[int]:
        """The numbers of the sets that share something with this one."""
        waiting = [1] if self._nodes[1] & mask else []
        while waiting:
            k = waiting.pop()
            if k >= self._width:
                yield k - self._width
            else:
                waiting += [each for each in (2 * k + 1, 2 * k) if self._nodes[each] & mask]


def solve(
    start: Node,
    equation: Callable[[Node], Equation],
    solved: dict[Node, int],
    code: int,
    budget: WorkBudget,
) -> int:
    """The least set that fulfils its equation; it and all that it depends on get into `solved`."""
    if start in solved:
        return solved[start]
    equations: dict[Node, Equation] = {}
    order: dict[Node, None] = {}  # each after what it depends on, but for circles
    has_circles = False
    waiting = [(start, False)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order[node] = None
        elif node in equations:
            has_circles = has_circles or node not in order
        elif node not in solved:
            found = equations[node] = equation(node)
            waiting.append((node, True))
            waiting += [(each, False) for part in found[1:] for each in part]
    for node in order:
        solved[node] = equations[node][0]
    is_changed = True
    while is_changed:
        is_changed = False
        for node in order:
            old = new = solved[node]
            _, whole, without_code = equations[node]
            for each in whole:
                new |= solved[each]
            for each in without_code:
                new |= solved[each] & ~code
            budget.spend(1 + len(whole) + len(without_code))
            if new != old:
                solved[node] = new
                is_changed = has_circles
    return solved[start]


class Objects:
    """Which objects the names of a running cell may be and hold, before and after."""

    def __init__(
        self,
        inputs: Mapping[str, Binding | None],
        facts: Uses,
        cell: str,
        tokens: Tokens,
        budget: WorkBudget,
    ) -> None:
        self._names = inputs
        self._values = facts.values
        self._tokens = tokens
        self._budget = budget
        self._bits = {
            name: tokens.bit(cell, name, is_code=name in facts.origins or name in facts.code)
            for name in facts.values
        }
        self._solved: dict[Node, int] = {}

    def of(self, name: str) -> tuple[int, int, int, bool]:
        """Of a name after the cell: objects it may be, may reach, effects, restless."""
        return (
            self._solve("same", name),
            self._solve("reach", name),
            self._solve("effects", name),
            bool(self._solve("restless", name)),
        )

    def mask(self, roots: Iterable[Root]) -> int:
        """The objects behind roots."""
        found = 0
        for root in roots:
            const, whole, without_code = self._sum([root])
            found |= const
            for kind, name in whole:
                found |= self._solve(kind, name)
            for kind, name in without_code:
                found |= self._solve(kind, name) & ~self._tokens.code
        return found

    def hold(self, stores: Iterable[Store]) -> tuple[Callable[[str, int], tuple[int, int]], int]:
        """What a name holds after all has been stored, given what it held; and where it went."""
        parts: list[tuple[int, int]] = []  # what gets into a target: objects, functions
        by_name: dict[str, list[int]] = {}
        by_target = MaskIndex()
        together: dict[frozenset[Root], tuple[set[Root], int]] = {}
        for targets, roots, effects in stores:
            inside, before = together.setdefault(targets, (set(), 0))
            inside |= roots
            together[targets] = inside, before | effects
        for number, (targets, (inside, effects)) in enumerate(together.items()):
            self._budget.spend(len(targets) + len(inside))
            every = effects
            for name, _ in inside:
                every |= self._effects(base(name))
            parts.append((self.mask(inside), every))
            by_target.put(number, self.mask(targets))
            for name, _ in targets:
                by_name.setdefault(name, []).append(number)

        def held(name: str, reach: int) -> tuple[int, int]:
            found = 0
            done: set[int] = set()
            waiting = {*by_name.get(name, ()), *by_target.find(reach)}
            while waiting:  # what is stored may in turn be what something is stored into
                new = 0
                for number in waiting:
                    inside, effects = parts[number]
                    new |= inside
                    found |= effects
                self._budget.spend(len(waiting))
                done |= waiting
                new &= ~reach
                reach |= new
                waiting = set(by_target.find(new)) - done if new else set()
            return reach, found

        return held, by_target.union

    # --- Equations -------------------------------------------------------------------------------

    def _solve(self, kind: str, what: str) -> int:
        return solve((kind, what), self._equation, self._solved, self._tokens.code, self._budget)

    def _effects(self, name: str) -> int:
        """What the functions do that a name, before or after the cell, may stand for."""
        old = self._names.get(name)
        new = self._solve("effects", name) if name in self._values else 0
        return (old.effects if old else 0) | new

    def _equation(self, node: Node) -> Equation:
        kind, what = node
        match kind:
            case "same":
                const, whole, without_code = self._sum(self._values[what].same)
                return const | self._bits[what], whole, without_code
            case "reach":
                const, whole, without_code = self._sum(self._values[what].reach)
                return const | self._bits[what], [*whole, ("same", what)], without_code
            case "deep":  # what can be reached from a name, before or after the cell
                old = self._names.get(what)
                whole = [("reach", what)] if what in self._values else []
                if returning := self._effects(what) & self._tokens.returning_effects:
                    whole.append(("returned", returning))
                return (old.reach if old else 0), whole, []
            case "returned":  # by any of these functions
                every = {
                    root
                    for number in split_bits(what)
                    for root in self._tokens.effects[number].returns
                }
                self._budget.spend(len(every))
                return self._sum(every)
            case "effects":
                value = self._values[what]
                names = {base(name) for name, _ in value.reach}
                const = self._tokens.effects_mask(value.effects)
                for name in names:
                    old = self._names.get(name)
                    const |= old.effects if old else 0
                return const, [("effects", name) for name in names if name in self._values], []
            case _:
                return self._is_restless(what)

    def _sum(self, roots: Iterable[Root]) -> Equation:
        const = 0
        whole: list[Node] = []
        without_code: list[Node] = []
        for name, deep in roots:
            if name.endswith("()"):
                without_code.append(("deep", base(name)))
            elif deep:
                whole.append(("deep", name))
            else:
                old = self._names.get(name)
                const |= old.same if old else 0
                if name in self._values:
                    whole.append(("same", name))
        return const, whole, without_code

    def _is_restless(self, name: str) -> Equation:
        """Whether it changes by being looked at, or is what a generator gives when called."""
        value = self._values[name]
        inside = {each for each, _ in value.reach if each != name}
        is_restless = (
            value.restless
            or any((old := self._names.get(each)) and old.restless for each in inside)
            or any(
                self._effects(base(each)) & self._tokens.restless_effects
                for each, _ in value.same
                if each.endswith("()")
            )
        )
        return int(is_restless), [("restless", each) for each in inside if each in self._values], []
