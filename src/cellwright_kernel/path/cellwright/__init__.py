"""What `%load_ext cellwright` loads in an environment that has no Cellwright.

One that has it gets its own: this folder may come first on the path, and steps aside.
"""

from __future__ import annotations

import sys as _sys
from pathlib import Path as _Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_here = _Path(__file__).resolve().parents[1]


def _find_installed() -> ModuleSpec | None:
    path = _sys.path[:]
    _sys.path[:] = [folder for folder in path if _Path(folder).resolve() != _here]
    try:
        for finder in _sys.meta_path:
            spec = finder.find_spec("cellwright", None)
            if spec is not None and spec.loader is not None and spec.origin is not None:
                return spec
    finally:
        _sys.path[:] = path
    return None


_spec = _find_installed()
if _spec is not None and _spec.loader is not None:
    __spec__, __loader__, __file__ = _spec, _spec.loader, str(_spec.origin)
    __path__ = list(_spec.submodule_search_locations or ())
    _spec.loader.exec_module(_sys.modules[__name__])
if "load_ipython_extension" not in globals():
    from cellwright_kernel import load_ipython_extension, unload_ipython_extension

    _magics = (load_ipython_extension, unload_ipython_extension)
