"""The routes of pages: to the engine, and to the assistant.

To the engine it is a WebSocket on one side, and the engine's socket on the other. A page speaks the
engine's own messages (`docs/engine.md`, `docs/live.md`), one a frame. Jupyter checks who it is: its
token or cookie, the origin, and the right to execute. The relay says the greeting in the page's
place, so that a page is confined to the server's root folder, and adds the address of the kernel
that the page names.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os

import tornado.websocket  # noqa: TID253  # only a Jupyter server imports this module
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import url_path_join

from cellwright.app.workspaces import name_actor
from cellwright.engine import wire
from cellwright.engine.client import EngineConnection
from cellwright.engine.launch import greet_engine
from cellwright.errors import CellwrightError, InvalidCall
from cellwright.workspace.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from jupyter_server.serverapp import ServerApp

    from cellwright.server.chats import ChatPage

log = logging.getLogger("cellwright.server")

# What a page may not say itself.
_OURS = ("hello", "stop")
_READ = 2**18
_MOST_WAITING = 20_000  # messages for a page that does not read them


def add_routes(app: ServerApp) -> None:
    """Add `/cellwright/engine` and `/cellwright/chat` to a server."""
    base = url_path_join(app.web_app.settings["base_url"], "cellwright")
    routes = [("engine", EngineHandler), ("chat", ChatHandler)]
    app.web_app.add_handlers(".*$", [(url_path_join(base, name), each) for name, each in routes])


def find_root(settings: dict[str, Any]) -> str:
    """Return the root folder of a server, as an absolute path."""
    return os.path.abspath(os.path.expanduser(str(settings["server_root_dir"])))  # noqa: PTH100, PTH111


class PageHandler(WebSocketMixin, tornado.websocket.WebSocketHandler, JupyterHandler):
    """The WebSocket of one page, for a user who may execute."""

    auth_resource = "kernels"

    @property
    def max_message_size(self) -> int:
        """The longest message of a page."""
        return wire.MAX_FRAME

    def get_compression_options(self) -> None:
        """Do not compress: both ends are usually on one machine."""

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Let an authenticated user connect."""
        user = self.current_user
        if not await _ensure(self.authorizer.is_authorized(self, user, "execute", "kernels")):
            raise tornado.web.HTTPError(403)
        await super().get(*args, **kwargs)

    def log_exception(self, kind: Any, error: Any, trace: Any) -> None:
        """Log an error of ours without the page's address, which may have a token inside."""
        if isinstance(error, tornado.web.HTTPError):
            super().log_exception(kind, error, trace)
        else:
            log.error("%s failed", self.request.path, exc_info=(kind, error, trace))

    def _hang_up(self, code: int, why: str) -> None:
        """Close the connection; the reason has at most 123 bytes."""
        self.close(code, why.encode("utf-8", "replace")[:120].decode("utf-8", "ignore"))


class EngineHandler(PageHandler):
    """A page that speaks with the engine."""

    def initialize(self) -> None:
        """Begin without a connection to the engine."""
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Connect to the engine, which is started if needed."""
        super().open(*args, **kwargs)
        root = find_root(self.settings)
        caller = Caller(root, cwd=root, actor=name_actor("lab"))

        def greet(connected: socket.socket) -> socket.socket:
            EngineConnection(connected, lambda: wire.make_hello(caller))
            return connected

        try:
            connected = await asyncio.to_thread(greet_engine, greet, start=True)
        except (CellwrightError, OSError) as error:
            self._hang_up(1011, str(error))
            return
        assert connected is not None  # noqa: S101  # it was started, or an error raised
        reader, self._writer = await asyncio.open_unix_connection(sock=connected, limit=_READ)
        self._reading = asyncio.ensure_future(self._read(reader))

    async def on_message(self, message: str | bytes) -> None:
        """Pass a message of the page on to the engine."""
        if self._writer is None:
            return
        try:
            shape = wire.decode(_to_bytes(message))
        except InvalidCall:
            return
        if shape.get("method") in _OURS and "id" in shape:
            return
        self._add_server(shape.get("params"))
        with contextlib.suppress(OSError):
            self._writer.write(wire.encode(shape))
            await self._writer.drain()

    def on_close(self) -> None:
        """Hang up when the page is gone; what it started continues."""
        super().on_close()
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add_server(self, params: object) -> None:
        """Tell the engine where the kernel is that a page names, which only the server knows."""
        kernel = params.get("kernel") if isinstance(params, dict) else None
        if isinstance(kernel, dict):
            app = self.serverapp
            kernel["server"] = app.connection_url
            kernel["token"] = app.identity_provider.token

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Pass what the engine says on to the page, until one of them is gone."""
        frames = wire.Frames()
        try:
            while chunk := await reader.read(_READ):
                frames.feed(chunk)
                while (line := frames.next()) is not None:
                    await self.write_message(line.decode())
        except (OSError, tornado.websocket.WebSocketClosedError):
            pass
        finally:
            self.close(1012, "the engine is gone")


class ChatHandler(PageHandler):
    """A page that speaks with the assistant; `chats.py` has what it says."""

    def initialize(self) -> None:
        """Begin with nothing to say."""
        self._page: ChatPage | None = None
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._writing: asyncio.Task[None] | None = None

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to speak with the page."""
        super().open(*args, **kwargs)

        # When the first page asks for it: a server starts without the assistant.
        from cellwright.app.chats import serve_chats
        from cellwright.server.chats import ChatPage

        self._page = ChatPage(serve_chats(find_root(self.settings)), self._send)
        self._writing = asyncio.ensure_future(self._write())

    def on_message(self, message: str | bytes) -> None:
        """Carry out what the page asks for, beside what it asked for before."""
        if self._page is not None:
            self._page.take(_to_bytes(message))

    def on_close(self) -> None:
        """Let the turns continue without the page."""
        super().on_close()
        if self._page is not None:
            self._page.close()
        if self._writing is not None:
            self._writing.cancel()

    def _send(self, message: dict[str, Any]) -> None:
        """Send a message after those before it."""
        try:
            self._lines.put_nowait(wire.encode(message))
        except asyncio.QueueFull:  # the page does not read; it gets everything when it comes back
            self.close(1013, "the page is too slow")

    async def _write(self) -> None:
        with contextlib.suppress(tornado.websocket.WebSocketClosedError, OSError):
            while True:
                await self.write_message((await self._lines.get()).decode())


def _to_bytes(message: str | bytes) -> bytes:
    return message.encode("utf-8", "replace") if isinstance(message, str) else message


async def _ensure(value: Any) -> Any:
    return await value if asyncio.iscoroutine(value) else value
