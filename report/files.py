"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from ..fuzz.whole_file import write_whole
from .record import RecordError


def write(text: str, folder: Path, name: str) -> Path:
    """Writes a file whole or not at all. Raises RecordError."""
    target = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(target, text.encode())
    except OSError as error:
        raise RecordError(f"{target} cannot be written ({error.strerror}): name another place.") from None
    return target
