"""Frontends that are broken on purpose, each in one way, and the rows that must notice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cellwright.document.edits import SetMetadata
from cellwright.protocol.conformance.frontend import FRONTEND
from cellwright.protocol.conformance.reference import MemoryAccess, ReferenceFrontend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Data = dict[str, Any]
EVERY = " ".join(row.id for row in FRONTEND.rows)
BROKEN: dict[str, tuple[type[ReferenceFrontend], set[str]]] = {}


class Tampered(ReferenceFrontend):
    """Our frontend behind somebody who changes what goes in and comes out."""

    slow_source = "sleep 0.05"

    def __init__(self) -> None:
        super().__init__()
        self.methods: dict[Any, Any] = {}
        self.closed: set[str] = set()

    def incoming(self, data: Data) -> Data | None:
        return data

    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        return [data]

    async def send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        self.methods[data.get("request_id")] = data.get("method")
        changed = self.incoming(
            {**data, **({"params": dict(data["params"])} if data.get("params") else {})}
        )
        if changed is not None and comm_id not in self.closed:
            await super().send(comm_id, changed)

    async def receive(self, comm_id: str, within: float) -> Mapping[str, Any] | None:
        nothing_comes = comm_id in self.closed and self._inboxes[comm_id].empty()
        return None if nothing_comes else await super().receive(comm_id, within)

    def put(self, comm_id: str, data: Mapping[str, Any]) -> None:
        for message in self.outgoing(dict(data), self.methods.get(data.get("request_id"))):
            super().put(comm_id, message)


def breaks(name: str, rows: str) -> Callable[[type[ReferenceFrontend]], type[ReferenceFrontend]]:
    def add(kind: type[ReferenceFrontend]) -> type[ReferenceFrontend]:
        BROKEN[name] = kind, set(rows.split())
        return kind

    return add


def params(data: Data) -> Data:
    return data.get("params") or data


@breaks(
    "says nothing about errors",
    "F-04 F-05 F-08 F-09 F-10 F-24 F-25 F-27 F-35 F-36 F-37 F-44 F-51 F-52 F-60 F-61 F-62",
)
class _Silent(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        return [] if data["status"] == "error" else [data]


@breaks("leaves empty results out", "F-06 F-40 F-41 F-42 F-43 F-50 F-53")
class _NoEmpty(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        if data.get("result") == {}:
            del data["result"]
        return [data]


@breaks(
    "has errors without a code",
    "F-05 F-08 F-09 F-10 F-24 F-25 F-27 F-35 F-36 F-37 F-44 F-51 F-52 F-60 F-61 F-62",
)
class _NoCode(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        if "error" in data:
            data["error"] = {"message": data["error"]["message"]}
        return [data]


@breaks("has both result and error", "F-03 F-04")
class _Both(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        return [{"result": {}, "error": None, **data}]


@breaks("forgets the id of the request", EVERY)
class _WrongId(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        return [{**data, "request_id": "other"}]


@breaks(
    "answers twice",
    "F-07 F-12 F-13 F-24 F-25 F-27 F-30 F-31 F-32 F-33 F-34 F-35 F-36 F-37 F-54 F-60 F-70",
)
class _Twice(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        return [data, data] if method == "get_cell_count" else [data]


@breaks(
    "closes the comm after an error",
    "F-05 F-08 F-10 F-24 F-25 F-27 F-35 F-36 F-37 F-44 F-51 F-52 F-60 F-62",
)
class _Closes(Tampered):
    def put(self, comm_id: str, data: Mapping[str, Any]) -> None:
        super().put(comm_id, data)
        if data["status"] == "error":
            self.closed.add(comm_id)

    def is_open(self, comm_id: str) -> bool:
        return comm_id not in self.closed


@breaks("does not know the target", EVERY.replace("F-70 F-71", ""))
class _WrongTarget(Tampered):
    async def open(self, target: str, data: Mapping[str, Any] | None) -> str:
        comm_id = await super().open(target, data)
        if "manipulator" in target:
            self.closed.add(comm_id)
        return comm_id


@breaks("needs data in the opening message", "F-02")
class _NeedsData(Tampered):
    async def open(self, target: str, data: Mapping[str, Any] | None) -> str:
        comm_id = await super().open(target, data)
        if data is None:
            self.closed.add(comm_id)
        return comm_id


@breaks("calls everything unknown an internal error", "F-09")
class _NoUnknown(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        if data.get("error", {}).get("code") == "UNKNOWN_METHOD":
            data["error"] = {**data["error"], "code": "INTERNAL_ERROR"}
        return [data]


@breaks("falls over what is no request", "F-11")
class _Falls(Tampered):
    def incoming(self, data: Data) -> Data | None:
        return {**data, "method": data["method"]}


@breaks("does everything that comes again again", "F-12")
class _Again(Tampered):
    count = 0

    def incoming(self, data: Data) -> Data | None:
        self.count += 1
        return (
            {**data, "request_id": f"{data['request_id']}#{self.count}"}
            if "method" in data
            else data
        )

    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        del method
        return [{**data, "request_id": str(data["request_id"]).partition("#")[0]}]


@breaks("carries out what came last first", "F-13")
class _LastFirst(Tampered):
    async def send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        await super().send(comm_id, data)
        queue = self.bridge._queue
        if len(queue) > 1:
            queue.rotate(1)


@breaks("reads a range with its end", "F-22 F-23 F-27 F-28 F-34 F-38 F-70")
class _Inclusive(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "get_cell_range" and p.get("end") == p.get("start", 0) + 2:
            p["end"] += 1
        return data


@breaks("gives text cells outputs", "F-23")
class _TextOutputs(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        if method == "get_cell_range" and "result" in data:
            cells = data["result"]["cells"]
            more = [{} if cell["cell_type"] == "code" else {"outputs": []} for cell in cells]
            data["result"] = {"cells": [{**c, **m} for c, m in zip(cells, more, strict=True)]}
        return [data]


@breaks("counts only code", "F-08 F-11 F-12 F-13 F-20 F-31 F-32 F-33 F-34 F-70")
class _CountsCode(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        if method == "get_cell_count" and "result" in data:
            data["result"] = {"count": 1}
        return [data]


@breaks("tells only the metadata it knows", "F-21 F-40 F-41 F-42 F-43")
class _KnownMetadata(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        if method == "get_notebook_metadata" and "result" in data:
            known = data["result"]["metadata"]
            data["result"] = {"metadata": {k: v for k, v in known.items() if k == "kernelspec"}}
        return [data]


@breaks("words its errors as it likes", "F-24 F-25 F-35 F-44 F-51 F-52")
class _Words(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        if "error" in data:
            data["error"] = {**data["error"], "message": f"{method} failed"}
        return [data]


@breaks("takes an empty range for a mistake", "F-26 F-53")
class _NoEmptyRange(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if "end" in p and p["end"] == p.get("start"):
            p["end"] = -1
        return data


@breaks("counts negative numbers from the end", "F-27")
class _Negative(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "get_cell_range" and p.get("start") == -1:
            p["start"] = 0
        return data


@breaks("wants numbers as numbers", "F-28")
class _Strict(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if isinstance(p.get("start"), str):
            p["start"] = None
        return data


@breaks("deletes as much as there is", "F-36")
class _Clips(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if isinstance(p.get("delete_count"), int):
            p["delete_count"] = max(0, min(p["delete_count"], 2))
        return data


@breaks("never deletes", "F-30 F-32")
class _NoDelete(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if p.get("delete_count") in (1, 2):
            p["delete_count"] = 0
        return data


@breaks("inserts the cells the other way round", "F-31 F-32 F-34")
class _Reversed(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if isinstance(p.get("cells"), list):
            p["cells"] = p["cells"][::-1]
        return data


@breaks("cannot append", "F-13 F-33")
class _NoAppend(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "splice_cell_range" and p.get("start") == 3:
            p["start"] = 99
        return data


@breaks("tells the old end in affected_range", "F-30 F-31 F-32 F-33")
class _Affected(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        if method == "splice_cell_range" and "result" in data:
            start = data["result"]["affected_range"]["start"]
            data["result"] = {"affected_range": {"start": start, "end": start + 9}}
        return [data]


@breaks("drops outputs of new cells", "F-34")
class _DropsOutputs(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if isinstance(p.get("cells"), list):
            p["cells"] = [
                {k: v for k, v in c.items() if k != "outputs"} if isinstance(c, dict) else c
                for c in p["cells"]
            ]
        return data


@breaks("inserts those cells that are good", "F-37")
class _Partial(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if isinstance(p.get("cells"), list):
            p["cells"] = [
                c for c in p["cells"] if isinstance(c, dict) and c.get("source") not in (3, None)
            ]
        return data


@breaks("shows nulls in metadata", "F-38")
class _Nulls(Tampered):
    def outgoing(self, data: Data, method: Any) -> Sequence[Data]:
        if method == "get_cell_range" and "result" in data:
            cells = [
                {**c, "metadata": {**c["metadata"], "name": None}} for c in data["result"]["cells"]
            ]
            data["result"] = {"cells": cells}
        return [data]


@breaks("gives every new cell an id of its own", "F-39")
class _NewIds(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if isinstance(p.get("cells"), list):
            p["cells"] = [
                {k: v for k, v in c.items() if k != "id"} if isinstance(c, dict) else c
                for c in p["cells"]
            ]
        return data


@breaks("always replaces the metadata", "F-40 F-42 F-43")
class _Replaces(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "set_notebook_metadata" and isinstance(p, dict):
            p["merge"] = False
        return data


@breaks("always merges the metadata", "F-41")
class _Merges(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "set_notebook_metadata":
            p["merge"] = True
        return data


@breaks("replaces where merge is missing", "F-42")
class _DefaultFalse(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "set_notebook_metadata":
            p.setdefault("merge", False)
        return data


@breaks("merges only the top", "F-43")
class _Shallow(Tampered):
    async def reset(self, cells: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
        await super().reset(cells, metadata)

        class Host(MemoryAccess):
            async def apply(self, edits: Any, *, base: Any = None) -> Any:
                (edit,) = edits
                if isinstance(edit, SetMetadata) and edit.merge:
                    whole = {**self.notebook.metadata, **edit.metadata}
                    edits = [SetMetadata(whole, merge=False)]
                return await super().apply(edits, base=base)

        self.host = Host(self._notebook, self._execute)


@breaks("takes any metadata", "F-05 F-10 F-44")
class _AnyMetadata(Tampered):
    def incoming(self, data: Data) -> Data | None:
        p = params(data)
        if data.get("method") == "set_notebook_metadata" and not isinstance(
            p.get("metadata"), dict
        ):
            p["metadata"] = {}
        return data


@breaks("answers before the cells have run", "F-10 F-50 F-51 F-52 F-54")
class _Early(Tampered):
    def incoming(self, data: Data) -> Data | None:
        if data.get("method") == "execute_cell_range":
            data["params"] = {"start": 0, "end": 0}
        return data


@breaks("goes on after a failure", "F-52")
class _GoesOn(Tampered):
    async def _execute(self, cell: Any, nested: str | None) -> Any:
        from dataclasses import replace

        return replace(await super()._execute(cell, nested), status="ok")


@breaks("does nothing else while a cell runs", "F-54")
class _Blocks(Tampered):
    async def send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        await self.bridge.settle()
        await super().send(comm_id, data)


@breaks("has a notebook even if there is none", "F-60")
class _Always(Tampered):
    async def become(self, state: str) -> bool:
        return await super().become("usual" if state == "absent" else state)


@breaks("ends well whatever goes wrong", "F-61")
class _Fine(Tampered):
    async def become(self, state: str) -> bool:
        return await super().become("usual" if state == "broken" else state)


@breaks("heeds no mode", "F-62")
class _NoMode(Tampered):
    async def become(self, state: str) -> bool:
        return await super().become("usual" if state == "forbidden" else state)


@breaks("wants params in either dialect", "F-70")
class _OnlyParams(Tampered):
    def incoming(self, data: Data) -> Data | None:
        keys = {"method", "request_id", "params"}
        return {key: value for key, value in data.items() if key in keys}


@breaks("knows only six methods", "F-71")
class _Six(Tampered):
    def incoming(self, data: Data) -> Data | None:
        return {**data, "method": "x"} if data.get("method") == "get_nbformat_version" else data


@breaks("is not there", EVERY)
class _Absent(Tampered):
    def incoming(self, data: Data) -> Data | None:
        del data
        return None

    async def receive(self, comm_id: str, within: float) -> None:
        del comm_id, within
        await asyncio.sleep(0)
