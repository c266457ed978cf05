"""A folder that one process at a time may use: of a campaign, of mutants."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def locked(folder: Path, error: type[Exception], holds: str, user: str, option: str) -> int:
    """A descriptor that holds the folder's lock; the folder is made where it is not there. The lock goes
    with the process, however that ends.

    Raises `error` where the folder cannot hold what it `holds`, or another `user` has it; `option` names another.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as why:
        raise error(
            f"{folder} cannot hold {holds} ({why.strerror}): name another folder with {option}."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise error(
            f"{folder} is in use by another {user}: wait for it, or name another folder with {option}."
        ) from None
    return lock
