"""Count the displays of a cell, but stop altogether when it begins.

Prints the kernel's process id, then how many displays have arrived.
"""

from __future__ import annotations

import asyncio
import os
import signal

from cellwright.kernel.local import LocalKernel
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import DisplayEvent, StreamEvent

SOURCE = """
from IPython.display import display
print("go", flush=True)
for number in range(10_000):
    display({"text/plain": str(number)}, raw=True)
"""


async def main() -> None:
    kernel = LocalKernel(Launch(cwd="/", env=dict(os.environ), kernel_name="python3"))
    await kernel.start()
    print(kernel.info.pid, flush=True)  # noqa: T201
    count = 0
    async for event in kernel.execute(Code(SOURCE)):
        if isinstance(event, StreamEvent) and event.text == "go\n":
            os.kill(os.getpid(), signal.SIGSTOP)
        count += isinstance(event, DisplayEvent)
    print(count, flush=True)  # noqa: T201
    await kernel.shutdown(now=True)


if __name__ == "__main__":
    asyncio.run(main())
