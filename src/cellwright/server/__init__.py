"""The Jupyter Server extension: pages of JupyterLab reach the engine and the assistant through it.

`relay.py` has the routes, `chats.py` what pages say to the assistant; `kernels.py` lets tabs use
kernels of the engine; `persona.py` is the assistant in Jupyter AI. Jupyter enables this package by itself when it is installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Tell Jupyter Server what to load."""
    return [{"module": "cellwright.server"}]


def _load_jupyter_server_extension(app: ServerApp) -> None:
    """Add our route to a server that starts, and the kernels of the engine."""
    from cellwright.server.relay import add_routes

    add_routes(app)
    try:
        from cellwright.server.kernels import use_engine_kernels
    except ImportError as error:  # another version of Jupyter Server, with other names
        app.log.warning("Notebooks do not get kernels of Cellwright's engine here: %s", error)
    else:
        use_engine_kernels(app)
