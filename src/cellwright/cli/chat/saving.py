"""The chat in a file of the person's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cellwright.assistant.transcripts import Transcripts, to_markdown
from cellwright.cli.chat.slash import WrongCommand
from cellwright.errors import AlreadyExists

if TYPE_CHECKING:
    from cellwright.assistant.transcripts import Transcript


def save_as(transcript: Transcript, name: str, transcripts: Transcripts | None) -> str:
    """Write a chat: as JSON if the file is called so, as Markdown otherwise.

    Raises:
        AlreadyExists: there is such a file, which is left alone.
        WrongCommand: it cannot be written.
    """
    path = Path(name).expanduser()
    if path.suffix.lower() == ".json":
        data = (transcripts or Transcripts(path.parent)).without_keys(transcript.to_json())
        text = json.dumps(data, ensure_ascii=False, indent=1, default=str) + "\n"
    else:
        text = (transcripts or Transcripts(path.parent)).without_keys(to_markdown(transcript))
    try:
        with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError:
        raise AlreadyExists(name) from None
    except OSError as error:
        raise WrongCommand(f"`{name}` cannot be written: {error.strerror}") from None
    return str(path)
