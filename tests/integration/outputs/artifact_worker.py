"""A process that writes artifacts until it is told to stop, or killed."""

from __future__ import annotations

import sys

from cellwright.outputs.artifacts import ArtifactStore


def main() -> None:
    folder, mark, count, quota = sys.argv[1:5]
    store = ArtifactStore(folder, quota_bytes=int(quota))
    for number in range(int(count)):
        line = f"{mark} {number}\n".encode()
        with store.create(name=mark) as writer:
            for _ in range(200):
                writer.write(line * 100)
            print(writer.id, flush=True)  # noqa: T201  # before it is an artifact
            writer.commit()


if __name__ == "__main__":
    main()
