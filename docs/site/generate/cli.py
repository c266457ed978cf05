"""The reference of the command line, from the Typer app that is the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from gallocheck.cli.main import app

from .markdown import fence, page, prose, table


def commands() -> dict[str, Any]:
    """By name, every command of `gallocheck`."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def cli_page() -> str:
    parts = ["# The command line", prose(app.info.help or ""), "Exit codes: 0 all is well; 1 a clause is broken (or what"
             " the command says below); 2 bad input, told in one sentence; 3 the check could not run."]  # fmt: skip
    for name, command in commands().items():
        parts += one(name, command)
    return page(*parts)


def one(name: str, command: Any) -> Iterator[str]:
    if not command.help:
        raise ValueError(f"gallocheck {name} has no help text")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    yield f"## gallocheck {name}"
    usage = " ".join(
        ["gallocheck", name, *(_usage(p) for p in arguments), *(["[OPTIONS]"] if options else [])]
    )
    yield fence(usage)
    yield from (prose(" ".join(part.split())) for part in command.help.split("\n\n"))
    rows = [[f"`{_usage(p)}`", "", prose(p.help or "")] for p in arguments]
    rows += [
        [", ".join(f"`{o}`" for o in (*p.opts, *p.secondary_opts)), _default(p), prose(p.help or "")]
        for p in options
    ]
    if rows:
        yield table(["option", "usual", "what it does"], rows)


def _usage(p: Any) -> str:
    word = p.name.upper() + ("..." if p.nargs == -1 else "")
    return word if p.required else f"[{word}]"


def _default(p: Any) -> str:
    value = p.default
    if (
        value is None
        or value is False
        or value == ()
        or callable(value)
        or "Sentinel" in type(value).__name__
    ):
        return ""
    return f"`{value.as_posix() if isinstance(value, Path) else value}`"
