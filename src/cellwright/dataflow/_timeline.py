"""What names mean after a sequence of cells has run.

Two such sequences are compared: what ran in fact, and the notebook from top to bottom. A name has a
version, which is equal in both exactly if the same runs, or the same unchanging text (an import, a
`def`, a literal), made it what it is. Objects are followed through names that may share them, so
that a change through one name is a change of all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cellwright.dataflow._known_names import BUILTINS
from cellwright.dataflow._policy import UNKNOWN, KnownName, find_changed_objects
from cellwright.dataflow.facts import ARGUMENT, RECEIVER, base_name, freeze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import CallSite, CellFacts, Effects, Root


_NONE: frozenset[str] = frozenset()
MADE_ANEW = "before "  # a version: what a name holds has been made anew in that run
ANYTHING = "*"  # all names that no cell has mentioned yet

# Into what, what, and what the functions among it do.
Store: TypeAlias = "tuple[frozenset[Root], frozenset[Root], int]"

# A set that is to be found: its kind, and what it is about.
Node: TypeAlias = "tuple[str, Any]"
# A set is what it has itself, all of some sets, and of some other sets all but code.
Equation: TypeAlias = "tuple[int, list[Node], list[Node]]"


class Mark(NamedTuple):
    """One contribution to the value of a name: a cell, and which run of it or which text."""

    cell: str
    version: str
    order: int


class Marks:
    """The contributions to the value of a name, oldest first; of each cell only the last.

    A name may have as many as there are cells, after each of many cells. So a longer list shares
    the shorter one, and what it should not have any more is taken out only now and then.
    """

    __slots__ = ("_limit", "before", "last", "length")

    def __init__(self, last: Mark, before: Marks | None = None, limit: int = 8) -> None:
        self.last = last
        self.before = before
        self.length: int = before.length + 1 if before else 1
        self._limit = limit

    def extend(self, mark: Mark) -> Marks:
        """The same with one more."""
        if self.length < self._limit:
            return Marks(mark, self, self._limit)
        every = [mark, *(each for each in self.newest_first() if each.cell != mark.cell)]
        marks = None
        for each in reversed(every):
            marks = Marks(each, marks, 2 * len(every) + 8)
        return marks or Marks(mark)

    def newest_first(self) -> Iterator[Mark]:
        """From the last one back."""
        seen: set[str] = set()
        marks: Marks | None = self
        while marks is not None:
            if marks.last.cell not in seen:
                seen.add(marks.last.cell)
                yield marks.last
            marks = marks.before

    def __iter__(self) -> Iterator[Mark]:
        return reversed(list(self.newest_first()))


class Binding(NamedTuple):
    """The value of a name: which cells made it, and which objects it may be and hold."""

    version: str
    marks: Marks
    same: int = 0
    reach: int = 0
    effects: int = 0
    restless: bool = False
    origin: str | None = None
    is_opaque: bool = False
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What a cell would see and do at this point: all that it reads, directly or by what it calls."""

    facts: CellFacts
    inputs: Mapping[str, Binding | None]
    changes: frozenset[Root]
    writes: frozenset[str]
    stores: frozenset[Store]
    opaque: tuple[str, ...]


class StepOutcome(NamedTuple):
    """What a cell did to the names, and all that this came from: the same comes of the same again.

    `names` are those that it looked at or set, and `bindings` what they were before. `touched` are
    the objects that it may have changed, and `holders` the names that they could be reached by.
    """

    facts: CellFacts
    default: Binding | None
    names: Sequence[str]
    bindings: Sequence[Binding | None]
    touched: int
    holders: frozenset[str]
    step: Step
    updates: Mapping[str, Binding]
    work: int


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

    def __len__(self) -> int:
        return len(self._bits) + len(self.effects)

    def bit(self, cell: str, name: str, *, is_code: bool = False) -> int:
        """The bit of what this cell calls by this name."""
        number = self._bits.setdefault((cell, name, is_code), len(self._bits))
        bit = 1 << number
        if is_code:
            self.code |= bit
        return bit

    def make_old(self, mask: int, made: int) -> int:
        """The mask with other bits for what is in `made`: objects that were, and are not any more."""
        for number in split_bits(mask & made):
            mask ^= 1 << number
            mask |= self.bit("", f"old {number}")
        return mask

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
        """The functions of these bits."""
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
    value, whole, without_code = equation(start)
    if all(map(solved.__contains__, whole)) and all(map(solved.__contains__, without_code)):
        for each in whole:
            value |= solved[each]
        for each in without_code:
            value |= solved[each] & ~code
        budget.spend(1 + len(whole) + len(without_code))
        solved[start] = value
        return value
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
        facts: CellFacts,
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

    def describe(self, name: str) -> tuple[int, int, int, bool]:
        """Of a name after the cell: objects it may be, may reach, effects, restless."""
        return (
            self._solve("same", name),
            self._solve("reach", name),
            self._solve("effects", name),
            bool(self._solve("restless", name)),
        )

    def find_objects(self, roots: Iterable[Root]) -> int:
        """The objects behind roots."""
        found = 0
        for root in roots:
            const, whole, without_code = self._add_roots([root])
            found |= const
            for kind, name in whole:
                found |= self._solve(kind, name)
            for kind, name in without_code:
                found |= self._solve(kind, name) & ~self._tokens.code
        return found

    def apply_stores(
        self, stores: Iterable[Store]
    ) -> tuple[Callable[[str, int], tuple[int, int]], int]:
        """A function that adds what is stored to what a name holds; and all objects stored into."""
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
                every |= self._effects(base_name(name))
            parts.append((self.find_objects(inside), every))
            by_target.put(number, self.find_objects(targets))
            for name, _ in targets:
                by_name.setdefault(name, []).append(number)

        def add_stored(name: str, reach: int) -> tuple[int, int]:
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

        return add_stored, by_target.union

    # --- Equations -------------------------------------------------------------------------------

    def _solve(self, kind: str, what: str) -> int:
        return solve((kind, what), self._equation, self._solved, self._tokens.code, self._budget)

    def _effects(self, name: str) -> int:
        """The functions that a name may be, before or after the cell."""
        old = self._names.get(name)
        new = self._solve("effects", name) if name in self._values else 0
        return (old.effects if old else 0) | new

    def _equation(self, node: Node) -> Equation:
        kind, what = node
        match kind:
            case "same":
                const, whole, without_code = self._add_roots(self._values[what].same)
                return const | self._bits[what], whole, without_code
            case "reach":
                const, whole, without_code = self._add_roots(self._values[what].reach)
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
                return self._add_roots(every)
            case "effects":
                value = self._values[what]
                names = {base_name(name) for name, _ in value.reach}
                const = self._tokens.effects_mask(value.effects)
                for name in names:
                    old = self._names.get(name)
                    const |= old.effects if old else 0
                return const, [("effects", name) for name in names if name in self._values], []
            case _:
                return self._equate_restless(what)

    def _add_roots(self, roots: Iterable[Root]) -> Equation:
        const = 0
        whole: list[Node] = []
        without_code: list[Node] = []
        for name, deep in roots:
            if name.endswith("()"):
                without_code.append(("deep", base_name(name)))
            elif deep:
                whole.append(("deep", name))
            else:
                old = self._names.get(name)
                const |= old.same if old else 0
                if name in self._values:
                    whole.append(("same", name))
        return const, whole, without_code

    def _equate_restless(self, name: str) -> Equation:
        """Whether it changes by being looked at, or is what a generator gives when called."""
        value = self._values[name]
        inside = {each for each, _ in value.reach if each != name}
        is_restless = (
            value.restless
            or any((old := self._names.get(each)) and old.restless for each in inside)
            or any(
                self._effects(base_name(each)) & self._tokens.restless_effects
                for each, _ in value.same
                if each.endswith("()")
            )
        )
        return int(is_restless), [("restless", each) for each in inside if each in self._values], []


class Timeline:
    """The names of a kernel at one moment."""

    def __init__(self, tokens: Tokens, budget: WorkBudget) -> None:
        self._tokens = tokens
        self._budget = budget
        self.names: dict[str, Binding] = {}
        self._numbers: dict[str, int] = {}
        self._by_number: list[str] = []
        self._reach = MaskIndex()  # of every name, by its number
        self._changed: set[str] = set()  # names that the index does not have as they are now
        self.default: Binding | None = None  # where a name that no cell binds could come from

    def copy(self) -> Timeline:
        """The same names, to go another way from here."""
        other = Timeline(self._tokens, self._budget)
        other.names = dict(self.names)
        other._numbers = dict(self._numbers)
        other._by_number = list(self._by_number)
        other._reach = self._reach.copy()
        other._changed = set(self._changed)
        other.default = self.default
        return other

    def get(self, name: str) -> Binding | None:
        """The value of a name; None if no cell defines or changes it."""
        return self.names.get(name, self.default)

    # --- Looking ---------------------------------------------------------------------------------

    def look(self, facts: CellFacts) -> Step:
        """What a cell would see and do now."""
        names = {*facts.uses, *facts.builtins}
        changes: set[Root] = set(facts.changes)
        writes: set[str] = set()
        opaque: set[str] = set()  # because of others; functions have no order of their own
        calls: set[CallSite] = set(facts.calls)
        seen_effects = 0
        seen_names: dict[str, bool] = {}  # and whether it was what another cell made of it
        # What is loaded first comes first: what it leads to then holds for all that come later.
        for load, moment in sorted(facts.loads.items(), key=lambda load: load[1]):
            waiting = [load]
            while waiting:
                name = waiting.pop()
                is_input = name in names
                if seen_names.get(name, -1) >= is_input:
                    continue
                seen_names[name] = is_input
                binding = self.get(name) if is_input else None  # else it is the cell's own
                effects = binding.effects if binding else 0
                if name in facts.values:
                    effects |= self._tokens.effects_mask(facts.values[name].effects)
                if binding and binding.restless:
                    changes.add((name, True))
                if (
                    binding
                    and binding.is_opaque
                    and name not in self.names
                    and name not in BUILTINS
                ):
                    opaque.add(f"`{name}`, which may come from anywhere")
                for number in split_bits(effects & ~seen_effects):
                    effect = self._tokens.effects[number]
                    changes |= effect.changes
                    writes |= effect.writes
                    opaque |= effect.opaque
                    calls |= effect.calls
                    for read in effect.reads:
                        if facts.bound.get(read, moment + 1) > moment:
                            names.add(read)
                    waiting += effect.reads
                    self._budget.spend(1 + len(effect.reads) + len(effect.calls))
                seen_effects |= effects
        self._budget.spend(1 + len(facts.loads) + len(calls))
        about = self._describe_names(facts, names)
        changes |= find_changed_objects(calls, about, self._budget)
        outside = _drop_parameters(changes)
        stores: set[Store] = {
            (targets, value.reach, self._tokens.effects_mask(value.effects))
            for targets, value in facts.stores
        }
        given: set[Root] = set()
        effects = 0
        for call in calls:  # a function may put its arguments into what it changes
            if (call.arguments or call.effects) and about(call.callee).effects:
                given |= call.arguments
                effects |= self._tokens.effects_mask(call.effects)
        if given or effects:
            stores.add((outside, frozenset(given), effects))
        reasons = tuple(dict.fromkeys([*facts.opaque, *sorted(opaque)]))
        if reasons:
            names |= {*self.names, ANYTHING}
            self._budget.spend(len(names))
        return Step(
            facts,
            {name: self.get(name) for name in names},
            outside,
            freeze(writes),
            freeze(stores),
            reasons,
        )

    def _describe_names(self, facts: CellFacts, names: set[str]) -> Callable[[str], KnownName]:
        cache: dict[str, KnownName] = {}

        def describe_name(name: str) -> KnownName:
            found = cache.get(name)
            if found is None:
                binding = self.names.get(name) if name in names else None
                effects = binding.effects if binding else 0
                origin = binding.origin if binding else None
                if name in facts.values:
                    value = facts.values[name]
                    every = value.effects
                    self._budget.spend(len(value.reach))
                    for root in (base_name(each) for each, _ in value.reach):  # `model = Model()`
                        if root in facts.values:
                            every |= facts.values[root].effects
                        if root in names and root in self.names:
                            effects |= self.names[root].effects
                    effects |= self._tokens.effects_mask(every)
                    origin = facts.origins.get(name)
                found = UNKNOWN
                if effects or origin:
                    found = KnownName(self._tokens.effects_set(effects), origin)
                cache[name] = found
            return found

        return describe_name

    # --- Running ---------------------------------------------------------------------------------

    def begin_again(self, facts: CellFacts, cell: str, order: int) -> None:
        """A cell is about to run once more: it makes its lists and dicts anew.

        They will be equal, so that what used them stays as it is. But a name that still holds one
        of the old ones does not share it with the new name any more.
        """
        made = 0
        for name, text in facts.stable.items():
            if "[" in text or "{" in text:
                made |= self._tokens.bit(cell, name)
        mark = Mark(cell, f"{MADE_ANEW}{cell}@{order}", order)
        for name in self._find_holders(made):
            old = self.names[name]
            new = old if name in facts.values else _add_mark(old, mark)
            same = self._tokens.make_old(old.same, made)
            self._set(name, new._replace(same=same, reach=self._tokens.make_old(old.reach, made)))

    def repeat(self, known: StepOutcome, facts: CellFacts) -> bool:
        """Do again what such a cell did before, if all is as it was then; else do nothing."""
        names = self.names
        if (
            known.facts is not facts
            or known.default is not self.default
            or list(map(names.get, known.names)) != known.bindings
            or (known.touched and self._find_holders(known.touched) != known.holders)
        ):
            return False
        self._budget.spend(known.work)
        names.update(known.updates)
        self._changed.update(known.updates)
        return True

    def run(
        self,
        step: Step,
        cell: str,
        version: str,
        order: int,
        *,
        surely: bool = True,
        known: bool = True,
        before: StepOutcome | None = None,
        work: int = 0,
    ) -> StepOutcome | None:
        """The cell runs; returns what came of it, unless it may have changed any name.

        If not `surely`, it failed somewhere: anything in it may have happened. If not `known`, it
        has not run like this: it may fail where its text allows that. `before` is what came of it
        the last time: what is the same again need not be looked at further down. `work` is what
        it took to find out what the cell would see and do.
        """
        facts, spent = step.facts, self._budget.spent - work
        fresh = Objects(step.inputs, facts, cell, self._tokens, self._budget)
        mask = fresh.find_objects(step.changes)
        add_stored, targets = fresh.apply_stores(step.stores)
        mark = Mark(cell, version, order)
        changed = {name for name, _ in step.changes} | step.writes
        holders = self._find_holders(mask | targets)
        updates: dict[str, Binding] = {}
        for name in holders | (changed & self.names.keys()):
            old = self.names[name]
            reach, effects = add_stored(name, old.reach)
            new = _add_mark(old, mark) if name in changed or (mask & old.reach) else old
            updates[name] = new._replace(reach=reach, effects=old.effects | effects)
        if step.writes:
            everything = fresh.find_objects((each, True) for each in {*step.inputs, *facts.loads})
            for name in step.writes:
                bit = self._tokens.bit(cell, name)
                updates[name] = _add_mark(self.get(name), mark)._replace(
                    same=bit | everything, reach=bit | everything
                )
        for name in changed - self.names.keys() if self.default else ():
            updates.setdefault(name, _add_mark(self.default, mark))
        self._budget.spend(len(updates) + len(facts.values))
        for name in facts.values:
            same, reach, effects, restless = fresh.describe(name)
            reach, more = add_stored(name, reach)
            effects |= more
            text = facts.stable.get(name) if known or name in facts.early else None
            was = updates.get(name) or self.get(name)
            if name in facts.deletes and surely:
                binding = Binding("deleted", Marks(mark), is_deleted=True)
                if not known:
                    binding = _join_old(binding, was)
            elif not surely or name in facts.perhaps or name in facts.deletes:
                covered = _add_mark(was, mark)
                binding = covered._replace(
                    same=same | covered.same,
                    reach=reach | covered.reach,
                    effects=effects | covered.effects,
                    restless=restless or covered.restless,
                    origin=facts.origins.get(name),
                )
            else:
                own = mark
                if text and name not in changed and not (mask & reach):
                    own = Mark(cell, _digest(text), order)
                binding = Binding(
                    own.version,
                    Marks(own),
                    same,
                    reach,
                    effects,
                    restless,
                    facts.origins.get(name),
                )
                if not known and name not in facts.early:
                    binding = _join_old(binding, was)
            updates[name] = binding
        if before is not None:
            for name in updates.keys() & before.updates.keys():
                if _is_same(before.updates[name], updates[name]):
                    updates[name] = before.updates[name]
        outcome = None
        if not (facts.stars or step.opaque):
            names = [*step.inputs.keys() | changed | facts.values.keys() | holders]
            outcome = StepOutcome(
                facts,
                self.default,
                names,
                [*map(self.names.get, names)],
                mask | targets,
                holders,
                step,
                updates,
                self._budget.spent - spent,
            )
        for name, binding in updates.items():
            self._set(name, binding)
        for module in facts.stars:
            self._cover(Mark(cell, f"import * {module}", order), is_opaque=False)
        if step.opaque:
            self._cover(mark, is_opaque=True)
        return outcome

    def _set(self, name: str, binding: Binding) -> None:
        self.names[name] = binding
        self._changed.add(name)

    def _fill_index(self) -> MaskIndex:
        """What each name reaches. Few cells need it, so it is made up to date for those."""
        for name in self._changed:
            number = self._numbers.setdefault(name, len(self._numbers))
            if number == len(self._by_number):
                self._by_number.append(name)
            self._reach.put(number, self.names[name].reach)
        self._changed.clear()
        return self._reach

    def _find_holders(self, mask: int) -> frozenset[str]:
        """The names through which one of these objects may be reached."""
        if not mask:  # of most cells
            return _NONE
        return frozenset(self._by_number[number] for number in self._fill_index().find(mask))

    def _cover(self, mark: Mark, *, is_opaque: bool) -> None:
        """Any name may have become something else."""
        everything = self._fill_index().union
        self._budget.spend(4 * len(self.names))
        for name, old in self.names.items():
            new = _add_mark(old, mark)
            if is_opaque:
                new = new._replace(same=new.same | everything, reach=new.reach | everything)
            self._set(name, new)
        new = _add_mark(self.default, mark)
        self.default = new._replace(is_opaque=is_opaque or new.is_opaque)


def _add_mark(old: Binding | None, mark: Mark) -> Binding:
    """The value as before, perhaps changed or replaced by a run."""
    if old is None:
        return Binding(_digest(f"|{mark.version}"), Marks(mark))
    if old.marks.last[:2] == mark[:2]:
        return old  # the same star import once more
    version = _digest(f"{old.version}|{mark.version}")
    return old._replace(version=version, marks=old.marks.extend(mark), is_deleted=False)


def _is_same(one: Binding, two: Binding) -> bool:
    """Whether two bindings, which are two objects, say the same."""
    return (
        one.marks.last == two.marks.last
        and one.marks.before is two.marks.before
        and one._replace(marks=two.marks) == two
    )


def _join_old(new: Binding, old: Binding | None) -> Binding:
    """The value of a name after a cell that may have failed before it set the name."""
    if old is None:
        return new
    return new._replace(
        same=new.same | old.same,
        reach=new.reach | old.reach,
        effects=new.effects | old.effects,
        restless=new.restless or old.restless,
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _drop_parameters(roots: Iterable[Root]) -> frozenset[Root]:
    return freeze(root for root in roots if root[0] not in {ARGUMENT, RECEIVER})
