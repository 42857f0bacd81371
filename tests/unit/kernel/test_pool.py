"""Sessions are shared, bounded, looked after, and replaced when they die."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.config.settings import Settings
from cellwright.errors import ResetInProgress, RestartLimit, SessionNotFound, SessionsBusy
from cellwright.kernel.pool import SessionPool
from cellwright.kernel.session import CellOutcome, Key, Session
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import DisplayEvent
from tests.memory_kernel import MemoryKernel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.kernel.events import KernelEvent


class Kernels:
    """Makes kernels, and remembers them."""

    def __init__(self) -> None:
        self.made: list[MemoryKernel] = []
        self.failures: list[Exception] = []

    async def start(self) -> MemoryKernel:
        if self.failures:
            raise self.failures.pop(0)
        kernel = MemoryKernel(Launch("/", {}))
        await kernel.start()
        self.made.append(kernel)
        return kernel

    @property
    def alive(self) -> int:
        return sum(kernel.is_alive for kernel in self.made)


@pytest.fixture
def kernels() -> Kernels:
    return Kernels()


def settings(**values: Any) -> Settings:
    return Settings(**{"interrupt_grace": 0.2, "session_wait_timeout": 0.3, **values})


@pytest.fixture
async def pool() -> AsyncIterator[SessionPool]:
    async with SessionPool(settings()) as pool:
        yield pool


async def run(session: Session, source: str, **options: Any) -> tuple[CellOutcome, list[Any]]:
    """What became of a cell, and the values it showed."""
    events: list[KernelEvent] = []
    ran = await session.run(Code(source), on_event=events.append, **options)
    return ran, [event.data["text/plain"] for event in events if isinstance(event, DisplayEvent)]


def key(name: str, cwd: str = "/") -> Key:
    return Key(name, cwd)


async def test_state_is_kept_by_name_and_folder(pool: SessionPool, kernels: Kernels) -> None:
    await run(await pool.get(key("a"), kernels.start), "set x 1")
    _, seen = await run(await pool.get(key("a"), kernels.start), "get x")
    assert seen == ["1"]

    ran, _ = await run(await pool.get(key("a", "/tmp"), kernels.start), "get x")  # noqa: S108
    assert ran.outcome.status == "error"
    assert len(pool) == len(kernels.made) == 2
    with pytest.raises(SessionNotFound):
        pool.find("b")


async def test_the_least_recently_used_one_makes_room(pool: SessionPool, kernels: Kernels) -> None:
    for name in "abcd":
        await run(await pool.get(key(name), kernels.start), f"set x {name}")
    await run(pool.find("a"), "get x")
    await run(await pool.get(key("e"), kernels.start), "set x e")
    assert sorted(session.key.session for session in pool) == ["a", "c", "d", "e"]
    assert kernels.alive == 4


async def test_a_client_makes_room_among_its_own_sessions_only(
    pool: SessionPool, kernels: Kernels
) -> None:
    await run(await pool.get(key("theirs"), kernels.start, client="ada"), "set x 1")
    for name in "abcde":
        await run(await pool.get(key(name), kernels.start, client="bob"), "set x 1")
    assert sorted(each.key.session for each in pool) == ["b", "c", "d", "e", "theirs"]


async def test_a_session_that_two_clients_use_is_not_one_of_them_to_evict(
    pool: SessionPool, kernels: Kernels
) -> None:
    for client in ("bob", "ada"):
        await run(await pool.get(key("shared"), kernels.start, client=client), "set x 1")
    for name in "abcde":
        await run(await pool.get(key(name), kernels.start, client="bob"), "set x 1")
    assert sorted(each.key.session for each in pool) == ["b", "c", "d", "e", "shared"]


async def test_all_clients_together_have_a_limit_too(kernels: Kernels) -> None:
    async with SessionPool(settings(eval_sessions_total=5)) as pool:
        for number in range(7):
            session = await pool.get(key(f"s{number}"), kernels.start, client=f"client {number}")
            await run(session, "set x 1")
        assert sorted(each.key.session for each in pool) == ["s2", "s3", "s4", "s5", "s6"]


async def test_the_next_session_of_a_key_knows_what_the_evicted_one_took_with_it(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    assert session.loss is None
    await run(session, "set x 1")
    await run(session, "set y 1")
    for name in "bcde":
        await pool.get(key(name), kernels.start)
    again = await pool.get(key("a"), kernels.start)
    assert again.loss == (
        "The session `a` was ended to make room, as 4 are kept; the variables of its 2 cells are lost"
    )
    await pool.end(again.key)  # on request: no surprise
    assert (await pool.get(key("a"), kernels.start)).loss is None


async def test_a_busy_one_is_never_evicted(pool: SessionPool, kernels: Kernels) -> None:
    sessions = [await pool.get(key(name), kernels.start) for name in "abcd"]
    tasks = [asyncio.create_task(run(session, "sleep 0.8")) for session in sessions]
    await asyncio.sleep(0.05)
    with pytest.raises(SessionsBusy, match=r"All 4 sessions were busy for 0\.3 s"):
        await pool.get(key("e"), kernels.start)
    sessions[1].interrupt()
    session = await pool.get(key("e"), kernels.start)  # waits until there is room
    assert (await run(session, "result 1"))[1] == ["1"]
    statuses = [(await task)[0].outcome.status for task in tasks]
    assert statuses == ["ok", "cancelled", "ok", "ok"]
    assert sorted(session.key.session for session in pool) == ["a", "c", "d", "e"]


async def test_a_notebooks_session_does_not_count(pool: SessionPool, kernels: Kernels) -> None:
    for name in "abcdef":
        await pool.get(key(name), kernels.start, kind="notebook")
    await pool.get(key("e1"), kernels.start)
    assert len(pool) == 7


async def test_cells_of_a_session_run_one_at_a_time_in_order(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    order: list[str] = []

    async def cell(name: str) -> None:
        await run(session, "sleep 0.02")
        order.append(name)

    await asyncio.gather(*(cell(str(number)) for number in range(8)))
    assert order == [str(number) for number in range(8)]
    assert len(kernels.made) == 1


async def test_a_reset_gives_a_fresh_kernel_before_its_cell(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "set x 1")
    ran, _ = await run(session, "get x", reset=True)
    assert ran.outcome.status == "error"
    assert (len(kernels.made), kernels.alive) == (2, 1)


async def test_a_second_reset_is_refused_while_one_runs(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "set x 1")
    is_running, may_end = asyncio.Event(), asyncio.Event()

    async def ask(_: object) -> str:
        is_running.set()
        await may_end.wait()
        return "go on"

    running = asyncio.create_task(run(session, "input ?", ask=ask))
    await is_running.wait()
    first = asyncio.create_task(run(session, "result first", reset=True))
    await asyncio.sleep(0)  # it begins, and waits for its turn
    with pytest.raises(ResetInProgress):
        await run(session, "result second", reset=True)
    may_end.set()
    assert (await first)[1] == ["first"]
    assert (await running)[0].outcome.status == "ok"
    assert (await run(session, "result third", reset=True))[1] == ["third"]


async def test_a_dead_kernel_is_replaced_before_the_next_cell(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "set x 1")
    kernels.made[0].kill()
    assert session.state == "dead"
    ran, _ = await run(session, "result 1")
    assert (ran.outcome.status, ran.replaced, ran.retried) == ("ok", True, False)


async def test_a_cell_that_kills_its_kernel_is_retried_once_and_said_so(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "set x 1")
    retries: list[int] = []
    ran = await session.run(Code("die 9"), on_retry=lambda: retries.append(1))
    assert (ran.outcome.status, ran.retried, retries) == ("died", True, [1])
    assert len(kernels.made) == 2

    # That was one restart without a success; the next one is one too many.
    with pytest.raises(RestartLimit, match="Python kernel restarted too many times in this ses"):
        await run(session, "result 1")
    ran, seen = await run(session, "result 1", reset=True)  # the way out
    assert (ran.outcome.status, seen) == ("ok", ["1"])


async def test_a_success_between_makes_the_count_begin_anew(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "result 1")
    for _ in range(5):
        kernels.made[-1].kill()
        ran, _ = await run(session, "result 1")
        assert (ran.outcome.status, ran.replaced) == ("ok", True)


async def test_a_kernel_that_we_killed_for_its_timeout_does_not_count(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    for _ in range(3):
        ran, _ = await run(session, "stuck 60", timeout=0.02)
        assert (ran.outcome.status, ran.outcome.state_kept) == ("timed_out", False)
    assert kernels.alive == 0


async def test_a_notebooks_cell_is_never_run_twice(pool: SessionPool, kernels: Kernels) -> None:
    session = await pool.get(key("/nb.ipynb"), kernels.start, kind="notebook")
    ran, _ = await run(session, "die 9")
    assert (ran.outcome.status, ran.retried) == ("died", False)
    assert len(kernels.made) == 1
    ran, _ = await run(session, "result 1")
    assert (ran.outcome.status, ran.replaced) == ("ok", True)


async def test_a_restart_stops_what_runs_and_what_waits(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "set x 1")
    tasks = [asyncio.create_task(run(session, "sleep 60")) for _ in range(3)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await session.restart()
        assert [(await task)[0].outcome.status for task in tasks] == ["cancelled"] * 3
    ran, _ = await run(session, "get x")
    assert ran.outcome.status == "error"


async def test_a_call_of_its_own_leaves_nothing_behind(pool: SessionPool, kernels: Kernels) -> None:
    async def call() -> None:
        async with pool.per_call(key("once"), kernels.start) as session:
            assert (await run(session, "result 1"))[1] == ["1"]
            assert kernels.alive == 1
            raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        await call()
    assert (kernels.alive, len(pool)) == (0, 0)


async def test_owners_share_a_session_and_leave_it_one_by_one(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start, owner="one")
    assert await pool.get(key("a"), kernels.start, owner="two") is session
    await run(session, "set x 1")
    assert session.owners == {"one", "two"}

    pool.detach("one")

    assert (session.owners, len(pool), kernels.alive) == ({"two"}, 1, 1)


async def test_idle_sessions_are_swept_and_used_ones_stay(kernels: Kernels) -> None:
    chosen = settings(eval_session_idle_timeout=600, session_sweep_interval=0.1)
    async with SessionPool(chosen) as pool:
        idle = await pool.get(key("idle"), kernels.start)
        used = await pool.get(key("used"), kernels.start)
        for session in (idle, used):
            await run(session, "result 1")
            session.used -= 700  # as if it were eleven minutes later
            await run(used, "result 1")
        async with asyncio.timeout(30):
            while idle.state != "closed":
                await asyncio.sleep(0.01)
        assert list(pool) == [used]
        assert (idle.state, kernels.alive) == ("closed", 1)
    assert kernels.alive == 0


async def test_a_heartbeat_finds_the_kernel_that_no_longer_answers(kernels: Kernels) -> None:
    async with SessionPool(settings(heartbeat_interval=0.1)) as pool:
        session = await pool.get(key("a"), kernels.start)
        await run(session, "set x 1")
        kernels.made[0].ping = _no_answer  # type: ignore[method-assign]
        async with asyncio.timeout(30):
            while kernels.made[0].is_alive:
                await asyncio.sleep(0.02)
        ran, _ = await run(session, "result 1")
        assert (ran.outcome.status, ran.replaced) == ("ok", True)


async def _no_answer(within: float) -> bool:
    await asyncio.sleep(min(within, 0.01))
    return False


async def test_when_files_run_out_idle_sessions_and_the_spare_make_room_once(
    kernels: Kernels,
) -> None:
    released: list[int] = []

    async def release() -> None:
        released.append(1)

    async with SessionPool(settings(), release_spare=release) as pool:
        await run(await pool.get(key("a"), kernels.start), "set x 1")
        busy = await pool.get(key("b"), kernels.start)
        task = asyncio.create_task(run(busy, "sleep 0.5"))
        await asyncio.sleep(0.05)
        kernels.failures = [OSError(errno.EMFILE, "Too many open files")]
        session = await pool.get(key("c"), kernels.start)
        assert (await run(session, "result 1"))[1] == ["1"]
        assert released == [1]
        assert sorted(each.key.session for each in pool) == ["b", "c"]

        kernels.failures = [OSError(errno.ENFILE, "Too many open files")] * 2
        with pytest.raises(OSError, match="Too many open files"):  # once, not for ever
            await run(await pool.get(key("d"), kernels.start), "result 1")
        assert (await task)[0].outcome.status == "ok"


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENFILE, "in the whole system"),
        RuntimeError("cannot fork: Too many open files"),
    ],
    ids=["EMFILE", "ENFILE", "in words"],
)
async def test_every_way_to_run_out_of_files_makes_room_and_another_failure_does_not(
    failure: Exception, kernels: Kernels
) -> None:
    released: list[int] = []

    async def release() -> None:
        released.append(1)

    async with SessionPool(settings(), release_spare=release) as pool:
        await run(await pool.get(key("a"), kernels.start), "set x 1")
        kernels.failures = [RuntimeError("no such kernel")]
        with pytest.raises(RuntimeError, match="no such kernel"):
            await run(await pool.get(key("b"), kernels.start), "result 1")
        assert (released, kernels.alive) == ([], 1)
        kernels.failures = [failure]
        session = await pool.get(key("c"), kernels.start)
        assert (await run(session, "result 1"))[1] == ["1"]
        assert (released, kernels.alive) == ([1], 1)  # the idle one is gone


async def test_closing_the_pool_ends_running_cells(kernels: Kernels) -> None:
    async with SessionPool(settings()) as pool:
        session = await pool.get(key("a"), kernels.start)
        task = asyncio.create_task(run(session, "stuck 60"))
        await asyncio.sleep(0.05)
    assert (await task)[0].outcome.status == "cancelled"
    assert kernels.alive == 0


async def test_one_session_that_does_not_end_well_keeps_no_other_alive(kernels: Kernels) -> None:
    pool = SessionPool(settings())
    for name in "ab":
        await run(await pool.get(key(name), kernels.start), "set x 1")

    async def fail(*, now: bool = False) -> None:
        raise OSError(now)

    kernels.made[0].shutdown = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="False"):
        await pool.close()
    assert not kernels.made[1].is_alive


class AttachedKernel(MemoryKernel):
    """Was running before the session, and stays when the session leaves."""

    async def start(self) -> None:
        if self.starts == 0:
            await super().start()

    async def restart(self) -> bool:
        await super().start()
        return True

    async def shutdown(self, *, now: bool = False) -> None:
        del now


@pytest.mark.parametrize("used_before", [True, False])
@pytest.mark.parametrize("by", ["restart", "reset"])
async def test_an_attached_kernel_is_restarted_in_its_place(by: str, *, used_before: bool) -> None:
    kernel = AttachedKernel(Launch("/", {}))
    await kernel.start()
    async for _ in kernel.execute(Code("set x 1")):  # another client's cell
        pass

    async def attach() -> AttachedKernel:
        await kernel.start()
        return kernel

    session = Session(key("a"), attach, settings())
    if used_before:
        assert (await run(session, "get x"))[1] == ["1"]
    life = session.life

    if by == "restart":
        await session.restart()
    ran, _ = await run(session, "get x", reset=by == "reset")

    assert ran.outcome.error is not None
    assert ran.outcome.error.ename == "NameError"
    assert ran.kernel not in {"", life}
    assert kernel.starts == 2
    await session.close()
    assert kernel.is_alive


async def test_restarting_a_session_replaces_a_kernel_of_its_own(
    pool: SessionPool, kernels: Kernels
) -> None:
    session = await pool.get(key("a"), kernels.start)
    await run(session, "set x 1")

    await session.restart()

    assert (len(kernels.made), kernels.alive) == (2, 1)
