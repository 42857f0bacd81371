"""The part of docs/tools.md that is made from the tools; run as a script, it writes it anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import allowed_effects

if TYPE_CHECKING:
    from cellwright.tools.tool import Tool

PAGE = Path(__file__).parents[3] / "docs" / "tools.md"
BEGIN, END = "<!-- made by tests/unit/tools/reference.py -->", "<!-- end -->"
AGENT = allowed_effects("agent")


def reference() -> str:
    """Every tool of every profile: what it is for, what it takes, what it may do."""
    parts = []
    for profile, tools in PROFILES.items():
        if profile == "all":
            continue
        parts.append(f"### Profile `{profile}`")
        parts += [_tool(tool) for tool in tools]
    return "\n\n".join(parts)


def _tool(tool: Tool) -> str:
    schema = tool.schema(AGENT)
    required = schema.get("required", ())
    rows = [
        f"| `{name}`{'' if name in required else ' ?'} | {_type(field)} | {_words(field)} |"
        for name, field in schema["properties"].items()
    ]
    table = "\n".join(["| parameter | type | |", "|---|---|---|", *rows])
    return f"**`{tool.name}`** (`#{tool.reference}`, {_effects(tool)}). {tool.describe(AGENT)}\n\n{table}"


def _effects(tool: Tool) -> str:
    if isinstance(tool.effects, str):
        more = [
            f"`{name}={value}` {effect}s"
            for name, values in tool.options.items()
            for value, effect in values.items()
            if effect != tool.effects
        ]
        return ", ".join([f"{tool.effects}s", *more])
    by_effect: dict[str, list[str]] = {}
    for action, effect in tool.effects.items():
        by_effect.setdefault(effect, []).append(action)
    if len(by_effect) == 1:
        return f"{next(iter(by_effect))}s"
    return "; ".join(f"{', '.join(actions)}: {effect}s" for effect, actions in by_effect.items())


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    kind = field.get("type", "any")
    if kind == "array":
        items = field.get("items", {})
        return f"list of {_type(items)}" if items else "list"
    if kind == "object" and "properties" in field:
        required = field.get("required", ())
        names = [name if name in required else f"{name}?" for name in field["properties"]]
        return f"`{{{', '.join(names)}}}`"
    return " \\| ".join(kind) if isinstance(kind, list) else str(kind)


def _words(field: dict[str, Any]) -> str:
    default = f"(default `{json.dumps(field['default'])}`)" if "default" in field else ""
    return f"{field.get('description', '')} {default}".strip()


def page(text: str) -> str:
    """The page with its reference made anew."""
    made = f"{BEGIN}\n\n{reference()}\n\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: made, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
