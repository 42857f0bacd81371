"""`for_each` plays every case once, and says which one failed."""

from __future__ import annotations

import inspect

import pytest

from tests.cases import for_each

CASES = (1, 2, 3)


def test_every_case_is_played_in_one_of_the_parts() -> None:
    played: list[tuple[str, int]] = []

    def test(place: str, case: int) -> None:
        played.append((place, case))

    made = for_each("case", CASES, parts=2)(test)
    for part in range(2):
        made(part=part, place="here")
    assert sorted(played) == [("here", case) for case in (1, 2, 3)]
    assert list(inspect.signature(made).parameters) == ["part", "place"]


def test_a_failure_names_its_case() -> None:
    def test(case: int) -> None:
        assert case != 2

    with pytest.raises(AssertionError) as caught:
        for_each("case", CASES)(test)(part=0)
    assert caught.value.__notes__ == ["in the case 2"]


async def test_a_coroutine_is_awaited_for_every_case() -> None:
    played: list[int] = []

    async def test(case: int) -> None:
        played.append(case)
        assert case != 3

    made = for_each("case", CASES)(test)
    assert inspect.iscoroutinefunction(made)
    with pytest.raises(AssertionError) as caught:
        await made(part=0)
    assert (played, caught.value.__notes__) == ([1, 2, 3], ["in the case 3"])


def test_a_test_without_cases_is_refused() -> None:
    with pytest.raises(AssertionError):
        for_each("case", ())
