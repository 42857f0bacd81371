"""What goes over the wire between a model's library and a server: both dialects, by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellwright.assistant.models.model import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

INPUT, CACHED, OUTPUT = 120, 100, 30
"""The tokens that every answer says it took; `CACHED` are a part of `INPUT`."""

_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_PIECES = 9  # characters of a text, or of arguments, in one event


@dataclass(frozen=True)
class Writing:
    """An answer as events: all of it but its end, its end, and a beginning that breaks off."""

    body: bytes
    end: bytes
    broken: bytes


# --- HTTP ----------------------------------------------------------------------------------------


async def receive(
    reader: asyncio.StreamReader,
) -> tuple[str, dict[str, str], dict[str, Any]] | None:
    """The path, the headers and the body of a request; None if the client left."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.splitlines()
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in rest if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return None
    return first.split()[1], headers, json.loads(body)


async def send(
    writer: asyncio.StreamWriter, status: int, body: Any, headers: Mapping[str, str]
) -> None:
    """A whole answer in JSON."""
    content = json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} Whatever",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode() + content)
    await writer.drain()


async def begin_stream(writer: asyncio.StreamWriter) -> None:
    """The head of a stream of events."""
    lines = [
        "HTTP/1.1 200 OK",
        "Content-Type: text/event-stream; charset=utf-8",
        "Transfer-Encoding: chunked",
        "Connection: close",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    await writer.drain()


async def send_pieces(writer: asyncio.StreamWriter, content: bytes, size: int) -> None:
    """A part of the stream, in pieces that end anywhere."""
    for at in range(0, len(content), size):
        piece = content[at : at + size]
        writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        await writer.drain()


async def end_stream(writer: asyncio.StreamWriter) -> None:
    """Its regular end."""
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def failure(is_anthropic: bool, message: str, kind: str, code: str | None) -> dict[str, Any]:
    """The body of an error."""
    error = {"type": kind, "message": message}
    if is_anthropic:
        return {"type": "error", "error": error}
    return {"error": {**error, "param": None, "code": code}}


# --- Answers -------------------------------------------------------------------------------------


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECES] for at in range(0, len(text), _PIECES)]


def _arguments(line: Any) -> str:
    if isinstance(line, ToolCall):
        return json.dumps(dict(line.arguments), ensure_ascii=False)
    return str(line.arguments)


def _is_call(line: Any) -> bool:
    return hasattr(line, "arguments")


def _why(lines: Iterable[Any]) -> str:
    return "tool_calls" if any(_is_call(line) for line in lines) else "stop"


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {name}\n" if name else ""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {text}\n\n".encode()


def _break_off(body: bytes, lines: Sequence[Any]) -> bytes:
    """All texts, but not the last arguments of a call: the break is in the middle of an event."""
    is_in_call = bool(lines) and _is_call(lines[-1])
    return body[:-25] if is_in_call else body


def openai(lines: Sequence[Any], stop: str | None, model: str) -> Writing:
    """An answer as chunks of a chat completion."""

    def chunk(delta: dict[str, Any] | None, finish: str | None = None) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        usage = None
        if delta is None:
            usage = {
                "prompt_tokens": INPUT,
                "completion_tokens": OUTPUT,
                "total_tokens": INPUT + OUTPUT,
                "prompt_tokens_details": {"cached_tokens": CACHED},
            }
        return event(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": model,
                "choices": choices,
                "usage": usage,
            }
        )

    events = [chunk({"role": "assistant", "content": ""})]
    calls = 0
    for line in lines:
        if isinstance(line, str):
            events += [chunk({"content": piece}) for piece in _pieces(line)]
        elif _is_call(line):
            first = {
                "index": calls,
                "id": line.id,
                "type": "function",
                "function": {"name": line.name, "arguments": ""},
            }
            events.append(chunk({"tool_calls": [first]}))
            events += [
                chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
                for piece in _pieces(_arguments(line))
            ]
            calls += 1
        else:
            events += [chunk({"reasoning_content": piece}) for piece in _pieces(line.text)]
    end = [chunk({}, stop or _why(lines)), chunk(None), event("[DONE]")]
    body = b"".join(events)
    return Writing(body, b"".join(end), _break_off(body, lines))


def anthropic(lines: Sequence[Any], stop: str | None, model: str) -> Writing:
    """An answer as the events of a message."""

    def told(kind: str, **more: Any) -> bytes:
        return event({"type": kind, **more}, kind)

    usage = {
        "input_tokens": INPUT - CACHED,
        "cache_read_input_tokens": CACHED,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events = [told("message_start", message=message), told("ping")]
    for index, line in enumerate(lines):
        if isinstance(line, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(line)]
        elif _is_call(line):
            block = {"type": "tool_use", "id": line.id, "name": line.name, "input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in ["", *_pieces(_arguments(line))]
            ]
        else:
            block = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": each} for each in _pieces(line.text)]
            deltas.append({"type": "signature_delta", "signature": line.signature})
        events.append(told("content_block_start", index=index, content_block=block))
        events += [told("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(told("content_block_stop", index=index))
    why = {"stop_reason": _STOPS[stop or _why(lines)], "stop_sequence": None}
    end = [
        told("message_delta", delta=why, usage={"output_tokens": OUTPUT}),
        told("message_stop"),
    ]
    body = b"".join(events)
    whole = b"".join(events[:-1]) if lines else body  # the last block does not end, either
    return Writing(body, b"".join(end), _break_off(whole, lines))


# --- Requests ------------------------------------------------------------------------------------


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def text_of(content: Any) -> str:
    """The text of a message's or of a result's content."""
    return "".join(
        block["text"] for block in _blocks({"content": content}) if block["type"] == "text"
    )


def said(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Every text with the role of who said it."""
    return [
        (message["role"], block["text"])
        for message in messages
        if message["role"] in ("user", "assistant")
        for block in _blocks(message)
        if block["type"] == "text"
    ]


def calls(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, Any]]:
    """Every call: id, name and arguments."""
    found = []
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call["function"]
            found.append((call["id"], function["name"], json.loads(function["arguments"])))
        found += [
            (block["id"], block["name"], block["input"])
            for block in _blocks(message)
            if block["type"] == "tool_use"
        ]
    return found


def results(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, bool]]:
    """Every result: id, text, and whether it says that the call failed."""
    found = []
    for message in messages:
        if message["role"] == "tool":
            text = text_of(message["content"])
            found.append((message["tool_call_id"], text, text.startswith("[This call failed.]")))
        found += [
            (block["tool_use_id"], text_of(block["content"]), bool(block.get("is_error")))
            for block in _blocks(message)
            if block["type"] == "tool_result"
        ]
    return found


def images(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Every picture in base64, wherever it stands."""
    found = []
    for message in messages:
        blocks = _blocks(message)
        for block in blocks:
            if block["type"] == "tool_result":
                blocks = [*blocks, *_blocks(block)]
        for block in blocks:
            if block["type"] == "image_url":
                found.append(block["image_url"]["url"].partition(",")[2])
            elif block["type"] == "image":
                found.append(block["source"]["data"])
    return found
