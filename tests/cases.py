"""Many cheap cases in few tests: pytest takes longer over a test than most cases take."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Test = Callable[..., Any]


def for_each(
    argument: str,
    cases: Iterable[Any],
    *,
    name: Callable[[Any], object] = repr,
    parts: int = 1,
) -> Callable[[Test], Any]:
    """Call a test with each of the cases, in as many tests as there are parts.

    Fixtures are made once for a part. A failure names its case, and its part ends with it.
    """
    every = list(cases)
    assert every, "a test without cases proves nothing"

    @contextlib.contextmanager
    def naming(case: Any) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            error.add_note(f"in the case {name(case)}")
            raise

    def decorate(test: Test) -> Any:
        @functools.wraps(test)
        def play_plain(part: int, **fixtures: Any) -> None:
            for case in every[part::parts]:
                with naming(case):
                    test(**fixtures, **{argument: case})

        @functools.wraps(test)
        async def play_async(part: int, **fixtures: Any) -> None:
            for case in every[part::parts]:
                with naming(case):
                    await test(**fixtures, **{argument: case})

        play: Test = play_async if inspect.iscoroutinefunction(test) else play_plain
        wanted = inspect.signature(test)
        kept = [value for value in wanted.parameters.values() if value.name != argument]
        part = inspect.Parameter("part", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        vars(play)["__signature__"] = wanted.replace(parameters=[part, *kept])
        return pytest.mark.parametrize("part", range(parts))(play)

    return decorate
