"""A Jupyter Server or Kernel Gateway: its kernels, its kernelspecs and its sessions."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from uuid import uuid4

from cellwright.errors import KernelMissing, KernelStartFailed, KernelUnreachable
from cellwright.kernel.remote.address import parse
from cellwright.kernel.remote.rest import Rest, Timeouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from cellwright.kernel.remote.rest import Answer

_log = logging.getLogger("cellwright.kernel")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True, slots=True)
class RunningKernel:
    """A kernel on a server, as the server sees it."""

    id: str
    name: str = ""
    state: str = "unknown"
    connections: int = 0


@dataclass(frozen=True, slots=True)
class RunningSession:
    """A notebook, or another client, and the kernel that the server runs for it."""

    id: str
    path: str
    name: str
    type: str
    kernel: RunningKernel


@dataclass(frozen=True, slots=True)
class KernelSpecs:
    """The kernels that a server can start: the language of each by name, and its default."""

    default: str | None = None
    languages: Mapping[str, str] = field(default_factory=dict)


class RemoteServer:
    """The REST side of a server.

    Args:
        url: its address; a token in it (`?token=…`) is taken out and used.
        token: goes into the header of each call, and nowhere else.
        verify: whether a certificate has to be valid. Without, anyone on the way can be the server.
        ca_file: certificates to trust instead of the machine's own.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        verify: bool = True,
        ca_file: str | Path | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.address, secret = parse(url, token)
        tls = _tls(self.address.url, verify=verify, ca_file=ca_file)
        self.rest = Rest(self.address, secret, tls, timeouts or Timeouts())
        if secret and not self.address.is_private:
            _log.warning("token goes unencrypted", extra={"server": self.address.url})
        if tls is not None and not verify:
            _log.warning("certificates are not checked", extra={"server": self.address.url})

    def __repr__(self) -> str:
        return f"RemoteServer({self.address.url!r})"

    @property
    def timeouts(self) -> Timeouts:
        """How long each step may take."""
        return self.rest.timeouts

    async def kernels(self) -> list[RunningKernel]:
        """The kernels that run; a gateway tells only if it is set up to."""
        answer = await self.rest.call("GET", "kernels", repeatable=True)
        return [_kernel(item) for item in _items(self._done(answer, "list its kernels"))]

    async def specs(self) -> KernelSpecs:
        """The kernels that can be started."""
        answer = await self.rest.call("GET", "kernelspecs", repeatable=True)
        body = _mapping(self._done(answer, "list its kernelspecs"))
        return KernelSpecs(
            default=_text(body.get("default")) or None,
            languages={
                name: _text(_mapping(_mapping(spec).get("spec")).get("language"))
                for name, spec in sorted(_mapping(body.get("kernelspecs")).items())
            },
        )

    async def sessions(self) -> list[RunningSession]:
        """The notebooks that have a kernel there."""
        answer = await self.rest.call("GET", "sessions", repeatable=True)
        return [
            RunningSession(
                id=_text(item.get("id")),
                path=_text(item.get("path")),
                name=_text(item.get("name")),
                type=_text(item.get("type")),
                kernel=_kernel(_mapping(item.get("kernel"))),
            )
            for item in _items(self._done(answer, "list its sessions"))
        ]

    async def kernel_of(self, notebook: str) -> RunningKernel | None:
        """The kernel that runs for a notebook, named by its path below the server's root."""
        wanted = notebook.strip("/")
        for session in await self.sessions():
            if session.type == "notebook" and session.path.strip("/") == wanted:
                return session.kernel
        return None

    async def start_kernel(
        self,
        name: str | None = None,
        *,
        path: str | None = None,
        env: Mapping[str, str] | None = None,
        kernel_id: str | None = None,
    ) -> RunningKernel:
        """Start a kernel; a server that fails with 5xx is asked once more.

        Args:
            name: which; the server's default if None.
            path: the folder it starts in, below the server's root.
            env: variables for it; gateways take those that they are set up to take.
            kernel_id: the id it should get; one is made up if None. It is why asking twice does
                not start two, but on servers that are too old to heed it.

        Raises:
            KernelMissing: the server has no kernel of that name.
            KernelStartFailed: it has, and could not start it.
        """
        wanted = {"name": name, "path": path, "env": dict(env or {})}
        answer = await self.rest.call(
            "POST",
            "kernels",
            body={
                "kernel_id": kernel_id or str(uuid4()),
                **{key: value for key, value in wanted.items() if value},
            },
            within=self.timeouts.ready,
            repeatable=True,
        )
        if answer.is_ok:
            started = _kernel(_mapping(answer.body))
            if not started.id:
                raise KernelStartFailed(name or "default", "the server gave no id for it")
            return started
        await self._explain_missing(name)
        said = answer.reason or "no reason given"
        raise KernelStartFailed(name or "default", f"the server answered {answer.status}: {said}")

    async def kernel(self, kernel_id: str) -> RunningKernel | None:
        """What the server knows of a kernel; None when it has no such kernel."""
        answer = await self.rest.call("GET", "kernels", kernel_id, repeatable=True)
        if answer.status == 404:
            return None
        return _kernel(_mapping(self._done(answer, "tell of the kernel")))

    async def interrupt(self, kernel_id: str, *, within: float | None = None) -> None:
        """Interrupt a kernel."""
        answer = await self.rest.call("POST", "kernels", kernel_id, "interrupt", within=within)
        self._done(answer, "interrupt the kernel")

    async def restart(self, kernel_id: str) -> bool:
        """Restart a kernel, which keeps its id; False when there is no such kernel any more."""
        answer = await self.rest.call(
            "POST", "kernels", kernel_id, "restart", within=self.timeouts.ready
        )
        # A server that has none says 500, as for everything that goes wrong with a restart.
        if answer.status == 404 or (answer.status >= 500 and await self.kernel(kernel_id) is None):
            return False
        self._done(answer, "restart the kernel")
        return True

    async def delete(self, kernel_id: str) -> None:
        """End a kernel; one that is gone already is no mistake."""
        answer = await self.rest.call("DELETE", "kernels", kernel_id, repeatable=True)
        if answer.status != 404:
            self._done(answer, "end the kernel")

    async def _explain_missing(self, name: str | None) -> None:
        if name is None:
            return
        known = list((await self.specs()).languages)
        if name not in known:
            raise KernelMissing(
                f"{self.address} has no kernel `{name}`",
                hint=f"It has {', '.join(known)}" if known else "It has none at all",
            )

    def _done(self, answer: Answer, what: str) -> Any:
        if not answer.is_ok:
            said = f": {answer.reason}" if answer.reason else ""
            raise self.rest.unreachable(
                f"it could not {what} (HTTP {answer.status}{said})",
                hint="Is there a Jupyter server at that address?"
                if answer.status == 404
                else "Try again; the server's own log says more",
            )
        return answer.body


def _tls(url: str, *, verify: bool, ca_file: str | Path | None) -> ssl.SSLContext | None:
    if not url.startswith("https:"):
        return None
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise KernelUnreachable(
            url, "the file of certificates cannot be read", hint="It has to be in PEM format"
        ) from None
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _kernel(item: Mapping[str, Any]) -> RunningKernel:
    connections = item.get("connections")
    return RunningKernel(
        id=_kernel_id(item.get("id")),
        name=_text(item.get("name")),
        state=_text(item.get("execution_state")) or "unknown",
        connections=connections if isinstance(connections, int) else 0,
    )


def _kernel_id(value: Any) -> str:
    # It becomes a part of addresses: what could lead elsewhere is no id.
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def _items(body: Any) -> list[Mapping[str, Any]]:
    return [item for item in body if isinstance(item, dict)] if isinstance(body, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
