"""The package two folders up, for a kernel that has only this folder on its path.

The engine's own packages lie beside that one; a kernel must not see those.
"""

from pathlib import Path as _Path

_home = _Path(__file__).resolve().parents[2]
__path__ = [str(_home)]
__file__ = str(_home / "__init__.py")
exec(compile(_Path(__file__).read_bytes(), __file__, "exec"))  # noqa: S102  # our own
