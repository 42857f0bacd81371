"""Work that is done while the disk is busy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def side_by_side(wait: Callable[[], None], work: Callable[[], object]) -> None:
    """Do what waits for the disk in a thread, and some work here, at the same time.

    Whatever happens to the work, the other is over when this returns or raises.
    """
    from threading import Event, Thread

    over = Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            wait()
        except BaseException as error:  # noqa: BLE001  # raised below, where the caller is
            errors.append(error)
        finally:
            over.set()

    thread = Thread(target=run)
    try:
        thread.start()
    except RuntimeError:  # no thread to be had
        wait()
        work()
        return
    interruption: BaseException | None = None
    try:
        work()
    except BaseException as error:  # noqa: BLE001  # raised below, when the disk has answered
        interruption = error
    # Not by `join` alone: after an interrupted one, Python may take the thread for dead.
    while not over.is_set():
        try:
            over.wait()
        except BaseException as error:  # noqa: BLE001  # Ctrl-C
            interruption = error
    thread.join()
    if errors or interruption:
        raise errors[0] if errors else interruption or KeyboardInterrupt
