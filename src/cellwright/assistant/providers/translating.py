"""From our conversation to the messages and tools of the library that speaks to providers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestParameters

    from cellwright.assistant.models import Message, ToolCall
    from cellwright.assistant.providers.names import Place
    from cellwright.outputs.images import ModelImage

FAILED = "[This call failed.]"
_PICTURES = "Pictures in the result of {}:"


def translate_tools(tools: Sequence[Mapping[str, Any]]) -> ModelRequestParameters:
    """The tools, each with its schema as it is."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool["name"],
                description=tool["description"],
                parameters_json_schema=dict(tool["inputSchema"]),
                strict=False,  # a provider's strict mode would need schemas rewritten
            )
            for tool in tools
        ]
    )


class Translation:
    """Translates the messages of one request.

    Args:
        place: which model they are for.
        sees: whether it gets pictures.
    """

    def __init__(self, place: Place, *, sees: bool) -> None:
        self._place = place
        self._sees = sees
        self._found: list[ModelMessage] = []
        self._parts: list[ModelRequestPart] = []
        self._names: dict[str, str] = {}
        self._pictures: list[UserContent] = []

    def translate(self, messages: Sequence[Message]) -> list[ModelMessage]:
        """All of them, in order; what is said to the model in a row is one request."""
        for message in messages:
            if message.role == "assistant":
                self._end_request()
                self._found.append(self._answer(message))
            elif message.role == "tool":
                self._parts.append(self._result(message))
            else:
                self._end_results()
                self._parts.append(self._said(message))
        self._end_request()
        return self._found

    def _end_request(self) -> None:
        from pydantic_ai.messages import ModelRequest

        self._end_results()
        if self._parts:
            self._found.append(ModelRequest(parts=self._parts))
            self._parts = []

    def _end_results(self) -> None:
        """Show pictures after the last result: between results, a provider takes nothing else."""
        from pydantic_ai.messages import UserPromptPart

        if self._pictures:
            self._parts.append(UserPromptPart(content=self._pictures))
            self._pictures = []

    def _answer(self, message: Message) -> ModelResponse:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        self._names.update({call.id: call.name for call in message.calls})
        native = message.native
        if native is not None and native.by == self._place.name:
            return native.answer  # type: ignore[return-value]  # we made it
        return ModelResponse(
            parts=[
                *([TextPart(content=_sendable(message.text))] if message.text else []),
                *(
                    ToolCallPart(tool_name=call.name, args=_arguments(call), tool_call_id=call.id)
                    for call in message.calls
                ),
            ]
        )

    def _said(self, message: Message) -> ModelRequestPart:
        from pydantic_ai.messages import SystemPromptPart

        if message.role == "system":
            return SystemPromptPart(content=_sendable(message.text))
        return self._prompt(message)

    def _prompt(self, message: Message) -> UserPromptPart:
        from pydantic_ai.messages import UserPromptPart

        if not message.images:
            return UserPromptPart(content=_sendable(message.text))
        if not self._sees:
            return UserPromptPart(content=_described(message))
        return UserPromptPart(content=[_sendable(message.text), *map(_picture, message.images)])

    def _result(self, message: Message) -> ToolReturnPart:
        from pydantic_ai.messages import ToolReturnPart

        call = message.call_id or ""
        name = self._names.get(call, "tool")
        text = _sendable(message.text) if self._sees else _described(message)
        images = [_picture(each) for each in message.images] if self._sees else []
        content: Any = text
        if self._place.dialect == "anthropic":
            content = [text, *images] if images else text
        else:  # no word for an error there, and no place for a picture
            content = f"{FAILED}\n{text}" if message.is_error else text
            if images:
                self._pictures += [_PICTURES.format(name), *images]
        return ToolReturnPart(
            tool_name=name,
            content=content,
            tool_call_id=call,
            outcome="failed"
            if message.is_error and self._place.dialect == "anthropic"
            else "success",
        )


def _picture(picture: ModelImage) -> UserContent:
    from pydantic_ai.messages import BinaryContent

    return BinaryContent(data=picture.data, media_type=picture.mime)


def _described(message: Message) -> str:
    text = _sendable(message.text)
    return "\n".join([text, *(f"[not shown: {each}]" for each in message.images)])


def _sendable(text: str) -> str:
    """Text that can be sent: half a pair of surrogates, which notebooks may hold, is spelt out."""
    return text.encode(errors="backslashreplace").decode()


def _arguments(call: ToolCall) -> Any:
    written = json.dumps(dict(call.arguments), ensure_ascii=False)
    return json.loads(written.encode(errors="replace"))  # spelt out, it would be read back
