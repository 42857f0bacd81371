"""What a Python session has defined."""

from __future__ import annotations

import json

from cellwright.errors import KernelCannot
from cellwright.kernel.transport import Code
from cellwright.outputs.events import StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.session import Session

_WITHIN = 30.0
_VARIABLES = """
def _cellwright_variables():
    import json, types
    hidden = {"In", "Out", "exit", "quit", "get_ipython", "open", "display"}
    rows = []
    for name, value in list(globals().items()):
        if name.startswith("_") or name in hidden or isinstance(value, types.ModuleType):
            continue
        try:
            text = repr(value)
        except Exception as error:
            text = "<repr failed: %s>" % type(error).__name__
        size = getattr(value, "shape", None)
        if size is None:
            try:
                size = len(value)
            except Exception:
                size = None
        rows.append({"name": name, "type": type(value).__name__,
                     "size": None if size is None else str(size), "value": text[:200]})
    print(json.dumps(rows))
_cellwright_variables()
del _cellwright_variables
"""


async def list_variables(session: Session) -> list[dict[str, Any]]:
    """Name, type, size and the beginning of the repr of all that a user's code has defined.

    Raises:
        KernelCannot: it is no Python, or does not answer.
    """
    texts: list[str] = []

    def take(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and event.name == "stdout":
            texts.append(event.text)

    code = Code(_VARIABLES, silent=True, store_history=False)
    ran = await session.run(code, timeout=_WITHIN, on_event=take)
    try:
        found: list[dict[str, Any]] = json.loads("".join(texts))
    except ValueError:
        found = []
    if ran.outcome.status != "ok":
        raise KernelCannot(session.note or "kernel", "list its variables")
    return found
