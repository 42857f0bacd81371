"""Changes that a person at an editor has not accepted yet; known here, and never in the file."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict

from cellwright.document.notebook import Notebook
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cellwright.workspace.hub import Hub

    Event = dict[str, Any]

_MOST_CHANGES = 200  # of one notebook; older ones are accepted silently


class OpenReviews:
    """Keeps the events `changed` of notebooks that an editor had open, until they are accepted.

    So a page that is loaded again, or opened later, shows what it showed before, and what was
    changed meanwhile.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._guard = threading.Lock()
        self._open: dict[str, OrderedDict[str, Event]] = {}
        hub.events.subscribe(None, self._note)

    def begin(self, real: str) -> None:
        """Keep the changes of a notebook from now on."""
        with self._guard:
            self._open.setdefault(real, OrderedDict())

    def move(self, old: str, new: str) -> None:
        """Note that a notebook is called otherwise now."""
        with self._guard:
            if old in self._open:
                self._open[new] = self._open.pop(old)

    def list(self, real: str) -> list[Event]:
        """Return the changes that were neither accepted nor undone, the oldest first; blocks."""
        with self._guard:
            found = [dict(event) for event in self._open.get(real, {}).values()]
        return [event for event in found if not self._is_undone(real, event["change"])]

    def accept(self, real: str, changes: Iterable[str], cells: Iterable[str]) -> None:
        """Forget that these changes touched these cells."""
        with self._guard:
            kept = self._open.get(real, OrderedDict())
            for name in changes:
                if name in kept:
                    left = [cell for cell in kept[name]["cells"] if cell not in set(cells)]
                    kept[name] = {**kept[name], "cells": left}
                    if not left:
                        del kept[name]

    def find_before(self, real: str, change: str, cell: str) -> str | None:
        """Return the source of a cell before a change; None if there was no such cell; blocks.

        Raises:
            ChangeNotFound: there is no such change.
        """
        state = self._hub.journal.state(real, change, side="before")
        cells = Notebook.of_state(state).cells
        return next((each.source for each in cells if each.handle == cell), None)

    def _is_undone(self, real: str, change: str) -> bool:
        with contextlib.suppress(CellwrightError):
            return self._hub.journal.get(real, change).undone_by is not None
        return True  # forgotten: it cannot be undone any more

    def _note(self, event: Event) -> None:
        if event["event"] != "changed" or not event.get("change"):
            return
        with self._guard:
            kept = self._open.get(event["notebook"])
            if kept is not None:
                kept[event["change"]] = event
                while len(kept) > _MOST_CHANGES:
                    kept.popitem(last=False)
