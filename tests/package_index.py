"""The package index that pip is configured with, for tests that need a published file.

Nothing here names a host: the address is `PIP_INDEX_URL`, else pip's configuration, else the
default that pip itself carries.
"""

from __future__ import annotations

import ast
import base64
import html
import json
import re
import shutil
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT = 60.0
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
PIP_DEFAULT = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """A simple index (PEP 503 pages or PEP 691 JSON) at `url`."""

    url: str = field(repr=False)  # may carry a password
    certificates: str | None = None

    @classmethod
    def configured(cls, environ: Mapping[str, str]) -> PackageIndex:
        """The index that `pip install` would use with those variables."""
        pip = _Pip.find(environ)
        url = environ.get("PIP_INDEX_URL") or pip.setting("index-url") or pip.default_index()
        return cls(url, environ.get("PIP_CERT") or pip.setting("cert"))

    def sdist(self, name: str, version: str) -> bytes:
        """The bytes of a source distribution.

        Raises:
            LookupError: the index has no such file.
            OSError: the index cannot be reached.
        """
        page = f"{self.url.rstrip('/')}/{_normalised(name)}/"
        body, content_type = self._get(page)
        wanted = f"{_normalised(name)}-{version}.tar.gz"
        for filename, address in _links(body, content_type):
            # File names spell a project as its author did: pytest_notebook, Pytest.Notebook.
            stem, _, rest = filename.rpartition("-")
            if f"{_normalised(stem)}-{rest}" == wanted:
                return self._get(urllib.parse.urljoin(page, address))[0]
        raise LookupError(f"the index lists no {wanted}")

    def _get(self, url: str) -> tuple[bytes, str]:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in {"http", "https", "file"}:
            raise LookupError(f"cannot fetch from a {parts.scheme or 'nameless'} address")
        user, _, host = parts.netloc.rpartition("@")
        url = parts._replace(netloc=host).geturl()
        request = urllib.request.Request(url, headers={"Accept": ACCEPT})  # noqa: S310 - checked
        if user:
            # urllib takes a password in an address for part of the host's name, and would carry
            # an ordinary header along to wherever it is redirected.
            token = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {token}")
        context = ssl.create_default_context()
        if self.certificates:
            is_folder = Path(self.certificates).is_dir()
            where = {"capath" if is_folder else "cafile": self.certificates}
            context.load_verify_locations(**where)
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:  # noqa: S310
            return answer.read(), answer.headers.get("Content-Type", "")


@dataclass(frozen=True, slots=True)
class _Pip:
    """Some interpreter on this machine that has pip; an environment made by uv has none."""

    python: str
    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> _Pip:
        base = Path(sys.base_prefix, "bin", "python3")
        for python in (sys.executable, str(base), shutil.which("python3")):
            if python and cls(python, environ)._run("-c", "import pip") is not None:
                return cls(python, environ)
        raise LookupError("no Python with pip is here to ask which package index to use")

    def setting(self, name: str) -> str | None:
        """The value of an option in pip's configuration files, as pip merges them."""
        for line in (self._run("-m", "pip", "config", "list") or "").splitlines():
            key, _, value = line.partition("=")
            if key == f"global.{name}":
                return str(ast.literal_eval(value))
        return None

    def default_index(self) -> str:
        url = self._run("-c", PIP_DEFAULT)
        if not url:
            raise LookupError("pip does not say which package index it uses")
        return url

    def _run(self, *arguments: str) -> str | None:
        command = [self.python, *arguments]
        done = subprocess.run(
            command, env=self.environ, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _links(body: bytes, content_type: str) -> list[tuple[str, str]]:
    """File names and addresses on an index page of either kind."""
    if "json" in content_type:
        return [(file["filename"], file["url"]) for file in json.loads(body)["files"]]
    pattern = r"""<a\s[^>]*?href\s*=\s*["']([^"']+)["']"""
    addresses = [html.unescape(found) for found in re.findall(pattern, body.decode("utf-8"))]
    return [
        (urllib.parse.unquote(urllib.parse.urlsplit(address).path.rpartition("/")[2]), address)
        for address in addresses
    ]
