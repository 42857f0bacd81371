"""What a row of the manifest is: a promise, where it was made, and how far we are with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Source = Literal["S0", "S1", "S2", "S3", "S4", "D"]

TITLES: dict[Source, str] = {
    "S0": "notebook mode",
    "S1": "notebook and python tools",
    "S2": "NotebookEdit",
    "S3": "notebook as text",
    "S4": "Manipulator Protocol v1",
    "D": "the design",
}

Topic = Literal[
    "house",
    "document",
    "text view",
    "history and command line",
    "kernels",
    "workspace and engine",
    "tools and MCP",
    "manipulator protocol",
    "assistant",
    "JupyterLab",
    "batch",
]
TOPICS: tuple[Topic, ...] = get_args(Topic)


@dataclass(frozen=True, slots=True)
class Done:
    """Kept, and held by `test`: `tests/…/test_x.py::test_name`, with no parameters.

    `also` are the other tests that it takes to hold all of the claim. `only_all` says that the
    test is too long for every run; it is then looked for only in the results of
    `./dev test --all`.
    """

    test: str
    only_all: bool = False
    also: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """All tests that hold the claim."""
        return (self.test, *self.also)


@dataclass(frozen=True, slots=True)
class Measured:
    """Kept, and shown by a benchmark, which `./dev bench` runs and judges; no test is timed."""

    benchmark: str


@dataclass(frozen=True, slots=True)
class NotYet:
    """To be kept by the work on `topic`."""

    topic: Topic


@dataclass(frozen=True, slots=True)
class NotOurs:
    """No promise of this product, and why."""

    why: str


Status = Done | Measured | NotYet | NotOurs


@dataclass(frozen=True, slots=True)
class Promise:
    """One promised behaviour.

    `lines` are the lines of the source document, or the section for the design; a dash where
    the promise is an edge that the document leaves open.
    """

    id: str
    source: Source
    lines: str
    claim: str
    status: Status


def row(identifier: str, lines: str, claim: str, status: Status) -> Promise:
    """A promise whose source is the first part of its identifier."""
    prefix = identifier.partition("-")[0]
    source = next(known for known in TITLES if known == prefix)
    return Promise(identifier, source, lines, claim, status)
