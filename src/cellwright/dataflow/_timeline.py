"""What names stand for after a sequence of cells has run.

Two such sequences are compared: what ran in fact, and the notebook from top to bottom. A name has a
version, which is equal in both exactly if the same runs, or the same unchanging text (an import, a
`def`, a literal), made it what it is. Objects are followed through names that may share them, so
that a change through one name is a change of all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple

from cellwright.dataflow._objects import Objects
from cellwright.dataflow._policy import UNKNOWN, Known, changed_by
from cellwright.dataflow._tables import BUILTINS
from cellwright.dataflow.facts import ARGUMENT, RECEIVER, base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cellwright.dataflow._objects import Store, Tokens
    from cellwright.dataflow.facts import Call, Effects, Root, Uses


ANYTHING = "*"  # stands for all names that nobody has mentioned yet


class Mark(NamedTuple):
    """One contribution to what a name stands for: a cell, and which run of it or which text."""

    cell: str
    version: str
    order: int


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for: who made it so, and which objects it may be and hold."""

    version: str
    marks: tuple[Mark, ...]
    same: int = 0
    reach: int = 0
    effects: frozenset[Effects] = frozenset()
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

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self.names: dict[str, Binding] = {}
        self._holders: dict[int, set[str]] = {}
        self.default: Binding | None = None  # where a name that nobody bound could come from

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
        seen: dict[tuple[str, Effects], int] = {}
        waiting = list(facts.loads.items())
        while waiting:
            name, moment = waiting.pop()
            binding = self.get(name) if name in names else None  # else it is the cell's own
            effects = binding.effects if binding else frozenset()
            if name in facts.values:
                effects |= facts.values[name].effects
            if binding and binding.restless:
                changes.add((name, True))
            if (
                binding
                and binding.is_opaque
                and name not in self.names
                and name in names - BUILTINS
            ):
                opaque.append(f"`{name}`, which may come from anywhere")
            for effect in effects:
                if seen.get((name, effect), moment + 1) <= moment:
                    continue
                seen[name, effect] = moment
                changes |= effect.changes
                writes |= effect.writes
                opaque += effect.opaque
                calls |= effect.calls
                for read in effect.reads:
                    if facts.bound.get(read, moment + 1) > moment:
                        names.add(read)
                    waiting.append((read, moment))
        stores: set[Store] = {
            (targets, value.reach, value.effects) for targets, value in facts.stores
        }
        about = self._known(facts, names)
        for call in calls:
            changes |= changed_by(call, about)
        for call in calls:  # a function may put what it is given into whatever it changes
            if (call.arguments or call.effects) and about(call.callee).effects:
                stores.add((_outside(changes), call.arguments, call.effects))
        if opaque:
            names |= {*self.names, ANYTHING}
        return Step(
            facts,
            {name: self.get(name) for name in names},
            _outside(changes),
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
                effects = binding.effects if binding else frozenset()
                origin = binding.origin if binding else None
                if name in facts.values:
                    value = facts.values[name]
                    effects |= value.effects
                    for root in (base(each) for each, _ in value.reach):  # `model = Model()`
                        if root in facts.values:
                            effects |= facts.values[root].effects
                        if root in names and root in self.names:
                            effects |= self.names[root].effects
                    origin = facts.origins.get(name)
                found = Known(effects, origin) if effects or origin else UNKNOWN
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
        fresh = Objects(step.inputs, facts, cell, self._tokens)
        mask = fresh.mask(step.changes)
        held, targets = fresh.hold(step.stores)
        mark = Mark(cell, version, order)
        changed = {name for name, _ in step.changes} | step.writes
        updates: dict[str, Binding] = {}
        for name in self._holding(mask | targets) | (changed & self.names.keys()):
            old = self.names[name]
            reach, effects = held(name, old.reach)
            new = _over(old, mark) if name in changed or (mask & old.reach) else old
            updates[name] = replace(new, reach=reach, effects=old.effects | effects)
        for name in step.writes:
            everything = fresh.mask((each, True) for each in {*step.inputs, *facts.loads})
            bit = self._tokens.bit(cell, name)
            updates[name] = replace(
                _over(self.get(name), mark), same=bit | everything, reach=bit | everything
            )
        for name in changed - self.names.keys() if self.default else ():
            updates.setdefault(name, _over(self.default, mark))
        for name, binding in updates.items():
            self._set(name, binding)
        for name in facts.values:
            same, reach, effects, restless = fresh.of(name)
            reach, more = held(name, reach)
            effects |= more
            text = facts.stable.get(name) if known or name in facts.early else None
            if name in facts.deletes and surely:
                binding = Binding("deleted", (mark,), is_deleted=True)
                if not known:
                    binding = _or_still(binding, self.get(name))
            elif not surely or name in facts.perhaps or name in facts.deletes:
                covered = _over(self.get(name), mark)
                binding = replace(
                    covered,
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
                    own.version, (own,), same, reach, effects, restless, facts.origins.get(name)
                )
                if not known and name not in facts.early:
                    binding = _or_still(binding, self.get(name))
            self._set(name, binding)
        for module in facts.stars:
            self._cover(Mark(cell, f"import * {module}", order), is_opaque=False)
        if step.opaque:
            self._cover(mark, is_opaque=True)

    def _set(self, name: str, binding: Binding) -> None:
        old = self.names.get(name)
        self.names[name] = binding
        for bit in _bits(binding.reach & ~(old.reach if old else 0)):
            self._holders.setdefault(bit, set()).add(name)

    def _holding(self, mask: int) -> set[str]:
        """The names through which one of these objects may be reached."""
        found = set()
        for bit in _bits(mask):
            found |= self._holders.get(bit, set())
        return {name for name in found if self.names[name].reach & mask}

    def _cover(self, mark: Mark, *, is_opaque: bool) -> None:
        """Any name may have become something else."""
        everything = 0
        for binding in self.names.values():
            everything |= binding.reach
        for name, old in self.names.items():
            new = _over(old, mark)
            if is_opaque:
                new = replace(new, same=new.same | everything, reach=new.reach | everything)
            self._set(name, new)
        new = _over(self.default, mark)
        self.default = replace(new, is_opaque=is_opaque or new.is_opaque)


def _bits(mask: int) -> Iterator[int]:
    """The single bits of a mask."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _over(old: Binding | None, mark: Mark) -> Binding:
    """What was there before, perhaps changed or replaced by a run."""
    if old is None:
        return Binding(_digest(f"|{mark.version}"), (mark,))
    if old.marks[-1][:2] == mark[:2]:
        return old  # the same star import once more
    marks = (*(each for each in old.marks if each.cell != mark.cell), mark)
    return replace(
        old, version=_digest(f"{old.version}|{mark.version}"), marks=marks, is_deleted=False
    )


def _or_still(new: Binding, old: Binding | None) -> Binding:
    """What a name stands for after a cell that may have failed before it got there."""
    if old is None:
        return new
    return replace(
        new,
        same=new.same | old.same,
        reach=new.reach | old.reach,
        effects=new.effects | old.effects,
        restless=new.restless or old.restless,
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _outside(roots: Iterable[Root]) -> frozenset[Root]:
    return frozenset(root for root in roots if root[0] not in {ARGUMENT, RECEIVER})
