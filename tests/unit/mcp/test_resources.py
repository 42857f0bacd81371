from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

import cellwright
from cellwright.config.directories import state_directory
from cellwright.mcp import resources
from cellwright.mcp.resources import PROMPTS, notebook_path, notebook_uri
from cellwright.outputs.artifacts import ArtifactStore
from cellwright.workspace.caller import Caller
from tests.unit.mcp.serving import ERAS, door, make_root, serving

if TYPE_CHECKING:
    from pathlib import Path


# The client's own word that it is a client of 2025.
of_2025 = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


@pytest.mark.parametrize("era", ERAS)
async def test_notebooks_are_resources_that_read_as_their_text(root: Path, era: str) -> None:
    async with serving(door(root), era) as client:
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        whole = await client.read_resource("notebook://a.ipynb")
        deep = await client.read_resource(listed[-1].uri)
        cell = await client.read_resource("notebook://a.ipynb#two")

    assert "notebook://deep%20er/%C3%BC.ipynb" in [one.uri for one in listed]
    assert [one.uri_template for one in templates] == [
        "notebook://{+path}",
        "notebook://{+path}#{cell}",
        "artifact://{id}",
    ]
    expected = cellwright.to_text(cellwright.read(root / "a.ipynb"))
    assert whole.contents[0].text == expected
    assert "cell:0" in deep.contents[0].text
    assert "print('é')" in cell.contents[0].text
    assert "x = 1" not in cell.contents[0].text


def test_addresses_and_paths_lead_to_each_other() -> None:
    for path in ("a.ipynb", "ä/b c.ipynb", "100%.ipynb", "a#b.ipynb", "a?b.ipynb", "\udcff.ipynb"):
        assert notebook_path(notebook_uri(path)) == (path, None)


LEADING_OUT = (
    "notebook://../secret.ipynb",
    "notebook://..%2fsecret.ipynb",
    "notebook://%2e%2e/secret.ipynb",
    "notebook://%2e%2e%2fsecret.ipynb",
    "notebook://../root-evil.ipynb",
    "notebook://deep%20er/../../secret.ipynb",
    "notebook://link.ipynb",
    "notebook:///etc/passwd",
    "notebook:///proc/self/environ",
    "notebook://a.ipynb%00.txt",
    "notebook://",
    "notebook://.",
    "notebook://~/secret.ipynb",
    "notebook://../secret.ipynb#s",
    "artifact://../secret.txt",
    "artifact://..%2f..%2fsecret.txt",
    "artifact:///etc/passwd",
    "artifact://",
    "artifact://aaaaaaaaaaaa",
    "artifact://" + "a" * 5000,
    "file:///etc/passwd",
    "secret.txt",
    "",
)


@pytest.mark.parametrize("era", ERAS)
async def test_no_address_leads_out_of_the_root(root: Path, era: str) -> None:
    async with serving(door(root), era) as client:
        for uri in LEADING_OUT:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert "TOP SECRET" not in str(refused.value.error), uri


@pytest.mark.parametrize("name", PROMPTS)
async def test_a_prompt_brings_the_notebook_along_as_data(root: Path, name: str) -> None:
    async with serving(door(root)) as client:
        listed = {one.name: one for one in (await client.list_prompts()).prompts}
        made = await client.get_prompt(name, {"path": "a.ipynb"})
        for wrong in ({}, {"path": "../secret.ipynb"}, {"path": "none.ipynb"}):
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(name, wrong)
            assert "TOP SECRET" not in str(refused.value.error)

    assert next(iter(listed[name].arguments)).name == "path"
    asked, data = (message.content.text for message in made.messages)
    assert "a.ipynb" in asked
    assert "<data" in data or "showing 0" in data


async def test_an_unknown_prompt_names_the_known_ones(root: Path) -> None:
    async with serving(door(root)) as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("explian", {})

    assert "explain" in refused.value.error.message


async def test_the_prompt_for_debugging_takes_the_cell_that_is_meant(root: Path) -> None:
    async with serving(door(root)) as client:
        made = await client.get_prompt("debug_failing_cell", {"path": "a.ipynb", "cell": "two"})

    assert "at two" in made.messages[0].content.text
    assert "print(" in made.messages[1].content.text
    assert "x = 1" not in made.messages[1].content.text


async def test_paths_and_cells_are_completed(root: Path) -> None:
    template = types.ResourceTemplateReference(uri="notebook://{+path}#{cell}")
    prompt = types.PromptReference(name="debug_failing_cell")
    async with serving(door(root)) as client:
        paths = await client.complete(prompt, {"name": "path", "value": "A.ip"})
        inside = await client.complete(template, {"name": "path", "value": "ü"})
        cells = await client.complete(
            template, {"name": "cell", "value": "t"}, context_arguments={"path": "a.ipynb"}
        )
        out = await client.complete(
            prompt, {"name": "cell", "value": ""}, context_arguments={"path": "../secret.ipynb"}
        )
        other = await client.complete(prompt, {"name": "what", "value": ""})

    assert paths.completion.values == ["a.ipynb"]
    assert inside.completion.values == ["deep er/ü.ipynb"]
    assert cells.completion.values == ["two"]
    assert out.completion.values == other.completion.values == []


async def test_a_name_that_hides_something_is_not_offered(root: Path) -> None:
    prompt = types.PromptReference(name="debug_failing_cell")
    for name in ("hidden\u202e", "hidden\x1b[2J", "hidden\nforged", "hidden\U000e0041"):
        (root / f"{name}.ipynb").write_bytes((root / "a.ipynb").read_bytes())
    async with serving(door(root)) as client:
        paths = await client.complete(prompt, {"name": "path", "value": "hidden"})

    assert paths.completion.values == []


@of_2025
async def test_a_client_of_2025_hears_of_changes_until_it_has_had_enough(root: Path) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            await heard.put(str(message.params.uri))

    async with serving(door(root), "legacy", message_handler=hear) as client:
        assert client.server_capabilities.resources.subscribe is True
        await client.subscribe_resource("notebook://a.ipynb")
        await client.subscribe_resource("notebook://a.ipynb")  # twice is once
        await _edit(client, "x = 2")
        async with asyncio.timeout(10):
            assert await heard.get() == "notebook://a.ipynb"
        await client.unsubscribe_resource("notebook://a.ipynb")
        await _edit(client, "x = 3")
        await client.subscribe_resource("notebook://deep%20er/%C3%BC.ipynb")
        await _edit(client, "2", path="deep er/ü.ipynb", cell="only")
        async with asyncio.timeout(10):
            assert await heard.get() == "notebook://deep%20er/%C3%BC.ipynb"
        assert heard.empty()


async def test_a_client_of_today_listens_to_a_stream_of_changes(root: Path) -> None:
    async with (
        serving(door(root)) as client,
        client.listen(resource_subscriptions=["notebook://a.ipynb"]) as stream,
    ):
        await _edit(client, "x = 2")
        async with asyncio.timeout(10):
            event = await anext(aiter(stream))
        assert event.uri == "notebook://a.ipynb"


@of_2025
async def test_changes_made_without_us_are_heard_of_too(root: Path) -> None:
    heard = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.set()

    async with serving(door(root), "legacy", message_handler=hear) as client:
        await client.subscribe_resource("notebook://a.ipynb")
        async with asyncio.timeout(15):
            number = 0
            while not heard.is_set():  # the watch may look only after the first change
                number += 1
                whole = json.loads((root / "a.ipynb").read_text())
                whole["metadata"]["n"] = number
                (root / "a.ipynb").write_text(json.dumps(whole))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.7):
                        await heard.wait()


async def _edit(client: Any, source: str, path: str = "a.ipynb", cell: str = "one") -> None:
    edit = {"op": "replace", "cell": cell, "source": source}
    done = await client.call_tool("notebook_edit", {"path": path, "edits": [edit]})
    assert not done.is_error


async def test_a_long_artifact_is_read_in_parts_by_the_address_that_it_names(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_MOST_BYTES", 100)
    text = "".join(f"line {number}\n" for number in range(50))
    origin = Caller(root).origin  # an artifact of another root does not exist here
    store = ArtifactStore(state_directory() / "artifacts", origin=origin)
    uri = f"artifact://{store.put(text.encode(), mime='text/plain').id}"
    seen = ""
    async with serving(door(root)) as client:
        for _ in range(10):
            (part,) = (await client.read_resource(uri)).contents
            said, _, rest = part.text.partition("\nLEFT OUT: the rest; ")
            seen += said
            if not rest:
                break
            uri = rest.removesuffix(" continues")
        with pytest.raises(MCPError):
            await client.read_resource(f"{uri.partition('#')[0]}#x")
    assert seen == text
