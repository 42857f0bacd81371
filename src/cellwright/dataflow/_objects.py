"""Which objects names may stand for, so that a change through one name is seen by all.

Every name that a cell gives to something is one bit; sets of objects are integers.
"""

from __future__ import annotations

from typing import TypeAlias

from cellwright.dataflow.facts import base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cellwright.dataflow._timeline import Binding
    from cellwright.dataflow.facts import Effects, Root, Uses

# Into what, what, and what the functions among it do.
Store: TypeAlias = "tuple[frozenset[Root], frozenset[Root], frozenset[Effects]]"

_Held: TypeAlias = "Callable[[str, int], tuple[int, frozenset[Effects]]]"


class Tokens:
    """One bit for every object that a cell gave a name to."""

    def __init__(self) -> None:
        self._bits: dict[tuple[str, str, bool], int] = {}
        self.code = 0  # the bits of functions, classes and modules

    def bit(self, cell: str, name: str, *, is_code: bool = False) -> int:
        """The bit of what this cell calls by this name."""
        bit = self._bits.setdefault((cell, name, is_code), 1 << len(self._bits))
        if is_code:
            self.code |= bit
        return bit


class Objects:
    """Which objects the names of a running cell may be and hold, before and after."""

    def __init__(
        self, inputs: Mapping[str, Binding | None], facts: Uses, cell: str, tokens: Tokens
    ) -> None:
        self._names = inputs
        self._tokens = tokens
        self._new: dict[str, tuple[int, int, frozenset[Effects], bool]] = {}
        values = facts.values
        for name, value in values.items():
            is_code = name in facts.origins or name in facts.code
            bit = tokens.bit(cell, name, is_code=is_code)
            self._new[name] = (bit, bit, value.effects, value.restless)
        again = bool(values)
        while again:  # names may pass objects on to each other; at most as often as there are names
            again = False
            for name, value in values.items():
                same, reach, effects, restless = self._new[name]
                for root in value.same:
                    same |= self._root(root)
                    restless = restless or self._gives_restless(root[0])
                for root in value.reach:
                    reach |= self._root(root)
                    restless = restless or (root[0] != name and self._is_restless(root[0]))
                    effects |= self._effects(root[0])
                found = (same, reach | same, effects, restless)
                if found != self._new[name]:
                    self._new[name] = found
                    again = True

    def of(self, name: str) -> tuple[int, int, frozenset[Effects], bool]:
        """Of a name after the cell: objects it may be, may reach, effects, restless."""
        return self._new[name]

    def mask(self, roots: Iterable[Root]) -> int:
        """The objects behind roots."""
        found = 0
        for root in roots:
            found |= self._root(root)
        return found

    def hold(self, stores: Iterable[Store]) -> tuple[_Held, int]:
        """What a name holds after all has been stored, given what it held; and where it went."""
        every = 0
        parts: list[tuple[set[str], int, int, frozenset[Effects]]] = []
        for targets, roots, literal in stores:
            effects = literal.union(*(self._effects(name) for name, _ in roots))
            target = self.mask(targets)
            every |= target
            parts.append(({name for name, _ in targets}, target, self.mask(roots), effects))

        def held(name: str, reach: int) -> tuple[int, frozenset[Effects]]:
            found: frozenset[Effects] = frozenset()
            for _ in parts:  # what is stored may in turn be what something is stored into
                before = reach, found
                for names, target, inside, effects in parts:
                    if name in names or reach & target:
                        reach |= inside
                        found |= effects
                if before == (reach, found):
                    break
            return reach, found

        return held, every

    def _root(self, root: Root, visited: frozenset[str] = frozenset()) -> int:
        name, deep = root
        if name.endswith("()"):
            return self._root((base(name), True), visited) & ~self._tokens.code
        found = 0
        old = self._names.get(name)
        if old:
            found |= old.reach if deep else old.same
        new = self._new.get(name)
        if new:
            found |= new[1] if deep else new[0]
        if deep and name not in visited:
            for effect in self._effects(name):
                for inner in effect.returns:
                    found |= self._root(inner, visited | {name})
        return found

    def _effects(self, name: str) -> frozenset[Effects]:
        name = base(name)
        found: frozenset[Effects] = frozenset()
        if old := self._names.get(name):
            found |= old.effects
        if name in self._new:
            found |= self._new[name][2]
        return found

    def _is_restless(self, name: str) -> bool:
        old, new = self._names.get(name), self._new.get(name)
        return bool(old and old.restless) or bool(new and new[3])

    def _gives_restless(self, name: str) -> bool:
        """Whether it is what a generator, or the class of something restless, gives when called."""
        return name.endswith("()") and any(each.restless for each in self._effects(name))
