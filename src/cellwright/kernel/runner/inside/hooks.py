"""What is put right in libraries when, and only when, a cell imports them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Hooks:
    """A finder in front of the others that lets a function see some modules once they are loaded."""

    def __init__(self, hooks: dict[str, Callable[[Any], None]]) -> None:
        self._hooks = hooks
        for name in [name for name in hooks if name in sys.modules]:
            hooks.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find what the others find; those we wait for tell us when they are loaded."""
        if name not in self._hooks:
            return None
        hook = self._hooks.pop(name)
        spec: Any = None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        loader: Any = spec.loader
        if type(loader).__name__ == "SourceFileLoader":  # one a module; others may be shared
            run = loader.exec_module

            def run_and_tell(module: Any) -> None:
                run(module)
                hook(module)

            loader.exec_module = run_and_tell
        return spec


def ipython_hook(displays: Any) -> Callable[[Any], None]:
    """Make `IPython.display` show things here, where there is no IPython shell."""

    def hook(module: Any) -> None:
        def publish(data: Any, metadata: Any = None, **more: Any) -> None:
            transient = more.get("transient") or {}
            displays.display(
                data,
                raw=True,
                metadata=metadata,
                display_id=transient.get("display_id"),
                update=more.get("update", False),
            )

        def update_display(value: Any, *, display_id: str, **more: Any) -> None:
            displays.display(value, display_id=display_id, update=True, **more)

        module.display = displays.display
        module.publish_display_data = publish
        module.update_display = update_display
        module.clear_output = displays.clear

    return hook
