"""Converts tools with the libraries of model APIs; runs in the environment `.dev/converters`.

It reads tools as JSON on stdin and prints `{"problems": {converter: {tool: problem}}, "tokens": N}`.
A converter without an entry took them all. With the argument `count` it reads a list of texts, and
prints how many tokens of o200k each has.
"""

from __future__ import annotations

import json
import re
import sys
from copy import deepcopy
from typing import Any

import bpe_openai
from agents.mcp.util import MCPUtil
from anthropic import transform_schema
from anthropic.types import ToolParam
from google.genai import _mcp_utils, types
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_google_genai._function_utils import convert_to_genai_function_declarations
from mcp.types import Tool
from pydantic import TypeAdapter
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer, GoogleOpenAPISchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer


def convert_to_gemini(tool: dict[str, Any]) -> Any:
    found = _mcp_utils.mcp_to_gemini_tool(Tool.model_validate(tool))
    return found.function_declarations[0].parameters.model_dump(exclude_none=True)


def convert_to_gemini_json(tool: dict[str, Any]) -> Any:
    made = types.FunctionDeclaration(name=tool["name"], parameters_json_schema=tool["inputSchema"])
    return made.parameters_json_schema


class NoServer:
    """As much of a server as `MCPUtil` asks for."""

    name = "cellwright"
    tool_input_guardrails = tool_output_guardrails = None

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: False


def convert_to_agents(tool: dict[str, Any]) -> Any:
    made = MCPUtil.to_function_tool(Tool.model_validate(tool), NoServer(), True)
    if not made.strict_json_schema:
        raise ValueError("not strict")
    return made.params_json_schema


def convert_to_anthropic(tool: dict[str, Any]) -> Any:
    TypeAdapter(ToolParam).validate_python(
        {
            "name": tool["name"],
            "description": tool["description"],
            "input_schema": tool["inputSchema"],
        },
        strict=True,
    )
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
        raise ValueError("not a name")
    return transform_schema(tool["inputSchema"])


def convert_to_langchain(tool: dict[str, Any]) -> Any:
    shape = {"title": tool["name"], "description": tool["description"], **tool["inputSchema"]}
    return convert_to_openai_tool(shape, strict=True)["function"]["parameters"]


def convert_to_langchain_google(tool: dict[str, Any]) -> Any:
    shape = {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["inputSchema"],
    }
    (made,) = convert_to_genai_function_declarations([shape])
    return made.function_declarations[0].parameters.model_dump(exclude_none=True)


CONVERTERS = {
    "google-genai": convert_to_gemini,
    "google-genai, JSON schema": convert_to_gemini_json,
    "openai-agents, strict": convert_to_agents,
    "pydantic-ai, OpenAI strict": lambda tool: OpenAIJsonSchemaTransformer(
        tool["inputSchema"], strict=True
    ).walk(),
    "pydantic-ai, Google": lambda tool: GoogleJsonSchemaTransformer(tool["inputSchema"]).walk(),
    "pydantic-ai, Google Live": lambda tool: GoogleOpenAPISchemaTransformer(
        tool["inputSchema"]
    ).walk(),
    "langchain, OpenAI strict": convert_to_langchain,
    "langchain, Google": convert_to_langchain_google,
    "Anthropic": convert_to_anthropic,
}


def check(convert: Any, tool: dict[str, Any]) -> str:
    """What is wrong with a tool for a converter; empty if nothing is."""
    try:
        made = convert(deepcopy(tool))
    except Exception as error:  # noqa: BLE001  # whatever it is, it belongs into the table
        return f"{type(error).__name__}: {str(error)[:200]}"
    lost = set(tool["inputSchema"]["properties"]) - set(made.get("properties", {}))
    return f"lost: {', '.join(sorted(lost))}" if lost else ""


def count_tokens(texts: list[str]) -> list[int]:
    encoding = bpe_openai.get_encoding("o200k_base")
    return [len(encoding.encode(text)) for text in texts]


def main() -> None:
    if sys.argv[1:] == ["count"]:
        json.dump(count_tokens(json.load(sys.stdin)), sys.stdout)
        return
    tools = json.load(sys.stdin)
    problems: dict[str, dict[str, str]] = {}
    for name, convert in CONVERTERS.items():
        for tool in tools:
            problem = check(convert, tool)
            if problem:
                problems.setdefault(name, {})[tool["name"]] = problem
    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    (tokens,) = count_tokens([text])
    json.dump({"problems": problems, "converters": [*CONVERTERS], "tokens": tokens}, sys.stdout)


if __name__ == "__main__":
    main()
