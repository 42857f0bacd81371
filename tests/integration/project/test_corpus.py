"""The corpus itself, fetched from a small package index that these tests run on loopback."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests import corpus
from tests.package_index import PackageIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {
    "pkg_one-1.0/a.ipynb": b'{"nbformat": 4}',
    "pkg_one-1.0/docs/copy of a.ipynb": b'{"nbformat": 4}',
    "pkg_one-1.0/docs/a.ipynb": b'{"nbformat": 3}',
    "../../escape.ipynb": b"not JSON",
    "pkg_one-1.0/setup.py": b"raise SystemExit",
}


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("pkg_one-1.0/link.ipynb")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


class Index:
    """A package index with one project, speaking HTML or JSON."""

    def __init__(self) -> None:
        self.kind = "json"
        self.content = archive()
        self.requests: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests.append(self.path)
                body, content_type = index.answer(self.path)
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", content_type)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"

    def answer(self, path: str) -> tuple[bytes, str]:
        if path == "/files/pkg_one-1.0.tar.gz":
            return self.content, "application/octet-stream"
        if path != "/simple/pkg-one/":
            return b"", "text/plain"
        address = "../../files/pkg_one-1.0.tar.gz"
        if self.kind == "html":
            page = f'<a data-x="1" href="{address}#sha256=00&amp;x">pkg_one-1.0.tar.gz</a>'
            return page.encode(), "text/html"
        files = [{"filename": "pkg_one-1.0.tar.gz", "url": address, "hashes": {}}]
        return json.dumps({"files": files}).encode(), "application/vnd.pypi.simple.v1+json"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    index = Index()
    pin = corpus.Sdist("pkg.one", "1.0", hashlib.sha256(index.content).hexdigest())
    monkeypatch.setattr(corpus, "ROOT", tmp_path / "corpus")
    monkeypatch.setattr(corpus, "SDISTS", (pin,))
    monkeypatch.setattr(corpus, "ATTEMPTS", 1)
    monkeypatch.setattr(PackageIndex, "configured", lambda _: PackageIndex(index.url))
    thread = Thread(target=index.server.serve_forever, args=(0.01,))
    thread.start()
    yield index
    index.server.shutdown()
    thread.join()
    index.server.server_close()


@pytest.mark.parametrize("kind", ["html", "json"])
def test_each_content_is_there_once_under_a_readable_name(kind: str, index: Index) -> None:
    index.kind = kind

    names = [corpus.ids(path) for path in corpus.notebooks()]

    assert [name.rpartition("-")[0] for name in names] == [
        "pkg.one-a",
        "pkg.one-a",
        "pkg.one-escape",
    ]
    assert len(set(names)) == 3


def test_nothing_is_written_outside_the_folder_and_nothing_else_is_kept(
    index: Index, tmp_path: Path
) -> None:
    folder = corpus.notebooks()[0].parent

    assert index.requests
    assert [entry.name for entry in tmp_path.iterdir()] == ["corpus"]
    assert {entry.name for entry in corpus.ROOT.iterdir()} == {"lock", folder.name}
    assert len(list(folder.iterdir())) == 4  # three notebooks and where they came from


def test_the_kinds_are_told_apart(index: Index) -> None:
    assert sorted(map(corpus.format_of, corpus.notebooks())) == ["3", "4", "not JSON"]
    assert len(index.requests) == 2


def test_a_second_call_needs_no_network(index: Index) -> None:
    first = corpus.notebooks()
    index.requests.clear()

    assert corpus.notebooks() == first
    assert index.requests == []


def test_callers_at_the_same_time_fetch_once(index: Index) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: corpus.notebooks(), range(4)))

    assert answers == [answers[0]] * 4
    assert len(index.requests) == 2


def test_what_an_interrupted_fetch_left_is_cleared_away(index: Index) -> None:
    (corpus.ROOT / "new-1").mkdir(parents=True)
    (corpus.ROOT / "notebooks-of-an-older-table").mkdir()
    (corpus.ROOT / "archives").mkdir()
    (corpus.ROOT / "archives" / "pkg.one-1.0.tar.gz").write_bytes(index.content[:100])

    assert len(corpus.notebooks()) == 3
    assert len(list(corpus.ROOT.iterdir())) == 2


def test_a_whole_archive_of_an_interrupted_fetch_is_used(index: Index) -> None:
    (corpus.ROOT / "archives").mkdir(parents=True)
    (corpus.ROOT / "archives" / "pkg.one-1.0.tar.gz").write_bytes(index.content)

    assert len(corpus.notebooks()) == 3
    assert index.requests == []


def test_other_bytes_than_the_pinned_ones_are_refused(index: Index) -> None:
    index.content += b"\0"

    with pytest.raises(corpus.CorpusUnavailable, match=r"pkg\.one 1\.0 is not the pinned file"):
        corpus.notebooks()

    assert not list(corpus.ROOT.glob("notebooks-*"))


def test_a_version_that_the_index_does_not_have_is_named(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "SDISTS", (corpus.Sdist("pkg.one", "2.0", "0" * 64),))

    with pytest.raises(corpus.CorpusUnavailable, match=r"pkg\.one 2\.0.*lists no"):
        corpus.notebooks()

    assert len(index.requests) == 1


def test_an_index_out_of_reach_is_told_with_the_package(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = index.url.replace("http://", "https://user:secret@")
    monkeypatch.setattr(PackageIndex, "configured", lambda _: PackageIndex(nowhere))

    with pytest.raises(corpus.CorpusUnavailable, match=r"Cannot fetch pkg\.one 1\.0") as caught:
        corpus.notebooks()

    assert "secret" not in str(caught.value)


def test_the_index_is_the_one_pip_is_configured_with(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://files.invalid/simple\n", encoding="utf-8")

    assert PackageIndex.configured(variables).url
    variables["PIP_CONFIG_FILE"] = str(settings)
    assert PackageIndex.configured(variables).url == "https://files.invalid/simple"
    variables["PIP_INDEX_URL"] = "https://variable.invalid/simple"
    assert PackageIndex.configured(variables).url == "https://variable.invalid/simple"
