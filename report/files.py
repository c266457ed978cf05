"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .record import RecordError


def write(text: str, folder: Path, name: str) -> Path:
    """Writes a file whole or not at all. Raises RecordError."""
    target, temporary = folder / name, None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=f".{name}.", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise RecordError(f"{target} cannot be written ({error.strerror}): name another place.") from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
    return target
