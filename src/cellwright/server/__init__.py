"""The Jupyter Server extension: pages of JupyterLab reach the engine through it.

`relay.py` has the one route. Jupyter enables this package by itself when it is installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Tell Jupyter Server what to load."""
    return [{"module": "cellwright.server"}]


def _load_jupyter_server_extension(app: ServerApp) -> None:
    """Add our route to a server that starts."""
    from cellwright.server.relay import add_routes

    add_routes(app)
