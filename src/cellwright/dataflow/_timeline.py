"""What names stand for after a sequence of cells has run.

Two such sequences are compared: what ran in fact, and the notebook from top to bottom. A name has a
version, which is equal in both exactly if the same runs, or the same unchanging text (an import, a
`def`, a literal), made it what it is. Objects are followed through names that may share them, so
that a change through one name is a change of all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from cellwright.dataflow._objects import MaskIndex, Objects, split_bits
from cellwright.dataflow._policy import UNKNOWN, Known, changed_by
from cellwright.dataflow._tables import BUILTINS
from cellwright.dataflow.facts import ARGUMENT, RECEIVER, base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cellwright.dataflow._objects import Store, Tokens
    from cellwright.dataflow.budget import WorkBudget
    from cellwright.dataflow.facts import Call, Root, Uses

ANYTHING = "*"  # stands for all names that nobody has mentioned yet


class Mark(NamedTuple):
    """One contribution to what a name stands for: a cell, and which run of it or which text."""

    cell: str
    version: str
    order: int


class Marks:
    """The contributions to what a name stands for, oldest first; of each cell only the last.

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
    """What a name stands for: who made it so, and which objects it may be and hold."""

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

    facts: Uses
    inputs: Mapping[str, Binding | None]
    changes: frozenset[Root]
    writes: frozenset[str]
    stores: frozenset[Store]
    opaque: tuple[str, ...]


class Timeline:
    """The names of a kernel at one moment."""

    def __init__(self, tokens: Tokens, budget: WorkBudget) -> None:
        self._tokens = tokens
        self._budget = budget
        self.names: dict[str, Binding] = {}
        self._numbers: dict[str, int] = {}
        self._by_number: list[str] = []
        self._reach = MaskIndex()  # of every name, by its number
        self.default: Binding | None = None  # where a name that nobody bound could come from

    def copy(self) -> Timeline:
        """The same names, to go another way from here."""
        other = Timeline(self._tokens, self._budget)
        other.names = dict(self.names)
        other._numbers = dict(self._numbers)
        other._by_number = list(self._by_number)
        other._reach = self._reach.copy()
        other.default = self.default
        return other

    def get(self, name: str) -> Binding | None:
        """What a name stands for; None if no cell had anything to do with it."""
        return self.names.get(name, self.default)

    # --- Looking ---------------------------------------------------------------------------------

    def step(self, facts: Uses) -> Step:
        """What a cell would see and do now."""
        names = {*facts.uses, *facts.builtins}
        changes: set[Root] = set(facts.changes)
        writes: set[str] = set()
        opaque = list(facts.opaque)
        calls: set[Call] = set(facts.calls)
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
                    opaque.append(f"`{name}`, which may come from anywhere")
                for number in split_bits(effects & ~seen_effects):
                    effect = self._tokens.effects[number]
                    changes |= effect.changes
                    writes |= effect.writes
                    opaque += sorted(effect.opaque)
                    calls |= effect.calls
                    for read in effect.reads:
                        if facts.bound.get(read, moment + 1) > moment:
                            names.add(read)
                    waiting += effect.reads
                    self._budget.spend(1 + len(effect.reads) + len(effect.calls))
                seen_effects |= effects
        self._budget.spend(1 + len(facts.loads) + len(calls))
        about = self._known(facts, names)
        changes |= changed_by(calls, about, self._budget)
        outside = _outside(changes)
        stores: set[Store] = {
            (targets, value.reach, self._tokens.effects_mask(value.effects))
            for targets, value in facts.stores
        }
        given: set[Root] = set()
        effects = 0
        for call in calls:  # a function may put what it is given into whatever it changes
            if (call.arguments or call.effects) and about(call.callee).effects:
                given |= call.arguments
                effects |= self._tokens.effects_mask(call.effects)
        if given or effects:
            stores.add((outside, frozenset(given), effects))
        if opaque:
            names |= {*self.names, ANYTHING}
            self._budget.spend(len(names))
        return Step(
            facts,
            {name: self.get(name) for name in names},
            outside,
            frozenset(writes),
            frozenset(stores),
            tuple(dict.fromkeys(opaque)),
        )

    def _known(self, facts: Uses, names: set[str]) -> Callable[[str], Known]:
        cache: dict[str, Known] = {}

        def known(name: str) -> Known:
            found = cache.get(name)
            if found is None:
                binding = self.names.get(name) if name in names else None
                effects = binding.effects if binding else 0
                origin = binding.origin if binding else None
                if name in facts.values:
                    value = facts.values[name]
                    every = value.effects
                    self._budget.spend(len(value.reach))
                    for root in (base(each) for each, _ in value.reach):  # `model = Model()`
                        if root in facts.values:
                            every |= facts.values[root].effects
                        if root in names and root in self.names:
                            effects |= self.names[root].effects
                    effects |= self._tokens.effects_mask(every)
                    origin = facts.origins.get(name)
                found = UNKNOWN
                if effects or origin:
                    found = Known(self._tokens.effects_set(effects), origin)
                cache[name] = found
            return found

        return known

    # --- Running ---------------------------------------------------------------------------------

    def run(
        self,
        step: Step,
        cell: str,
        version: str,
        order: int,
        *,
        surely: bool = True,
        known: bool = True,
    ) -> None:
        """The cell runs.

        If not `surely`, it failed somewhere: anything in it may have happened. If not `known`, it
        has not run like this: it may fail where its text allows that.
        """
        facts = step.facts
        fresh = Objects(step.inputs, facts, cell, self._tokens, self._budget)
        mask = fresh.mask(step.changes)
        held, targets = fresh.hold(step.stores)
        mark = Mark(cell, version, order)
        changed = {name for name, _ in step.changes} | step.writes
        updates: dict[str, Binding] = {}
        for name in self._holding(mask | targets) | (changed & self.names.keys()):
            old = self.names[name]
            reach, effects = held(name, old.reach)
            new = _over(old, mark) if name in changed or (mask & old.reach) else old
            updates[name] = new._replace(reach=reach, effects=old.effects | effects)
        if step.writes:
            everything = fresh.mask((each, True) for each in {*step.inputs, *facts.loads})
            for name in step.writes:
                bit = self._tokens.bit(cell, name)
                updates[name] = _over(self.get(name), mark)._replace(
                    same=bit | everything, reach=bit | everything
                )
        for name in changed - self.names.keys() if self.default else ():
            updates.setdefault(name, _over(self.default, mark))
        self._budget.spend(len(updates) + len(facts.values))
        for name, binding in updates.items():
            self._set(name, binding)
        for name in facts.values:
            same, reach, effects, restless = fresh.of(name)
            reach, more = held(name, reach)
            effects |= more
            text = facts.stable.get(name) if known or name in facts.early else None
            if name in facts.deletes and surely:
                binding = Binding("deleted", Marks(mark), is_deleted=True)
                if not known:
                    binding = _or_still(binding, self.get(name))
            elif not surely or name in facts.perhaps or name in facts.deletes:
                covered = _over(self.get(name), mark)
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
                    binding = _or_still(binding, self.get(name))
            self._set(name, binding)
        for module in facts.stars:
            self._cover(Mark(cell, f"import * {module}", order), is_opaque=False)
        if step.opaque:
            self._cover(mark, is_opaque=True)

    def _set(self, name: str, binding: Binding) -> None:
        self.names[name] = binding
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == len(self._by_number):
            self._by_number.append(name)
        self._reach.put(number, binding.reach)

    def _holding(self, mask: int) -> set[str]:
        """The names through which one of these objects may be reached."""
        return {self._by_number[number] for number in self._reach.find(mask)}

    def _cover(self, mark: Mark, *, is_opaque: bool) -> None:
        """Any name may have become something else."""
        everything = self._reach.union
        self._budget.spend(4 * len(self.names))
        for name, old in self.names.items():
            new = _over(old, mark)
            if is_opaque:
                new = new._replace(same=new.same | everything, reach=new.reach | everything)
            self._set(name, new)
        new = _over(self.default, mark)
        self.default = new._replace(is_opaque=is_opaque or new.is_opaque)


def _over(old: Binding | None, mark: Mark) -> Binding:
    """What was there before, perhaps changed or replaced by a run."""
    if old is None:
        return Binding(_digest(f"|{mark.version}"), Marks(mark))
    if old.marks.last[:2] == mark[:2]:
        return old  # the same star import once more
    version = _digest(f"{old.version}|{mark.version}")
    return old._replace(version=version, marks=old.marks.extend(mark), is_deleted=False)


def _or_still(new: Binding, old: Binding | None) -> Binding:
    """What a name stands for after a cell that may have failed before it got there."""
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


def _outside(roots: Iterable[Root]) -> frozenset[Root]:
    return frozenset(root for root in roots if root[0] not in {ARGUMENT, RECEIVER})
