"""The old notebooks of the corpus are read, kept and upgraded."""

from __future__ import annotations

import re

import pytest

from cellwright import Notebook
from tests import corpus
from tests.unit.document.samples import (
    sources,
)


@pytest.mark.corpus
def test_the_old_notebooks_of_the_corpus_are_read_kept_and_upgraded() -> None:
    found = 0
    for path in corpus.notebooks():
        data = path.read_bytes()
        if b'"nbformat": 4' in data or not re.search(rb'"nbformat": ?[23]\b', data):
            continue
        notebook = Notebook(data)
        if not notebook.needs_upgrade:
            continue
        found += 1
        assert notebook.to_bytes() == data, path.name
        read = sources(notebook)
        notebook.upgrade()
        assert sources(notebook) == read, path.name
        assert notebook.validate() is None, path.name
    assert found >= 5
