"""The reference of replay files, from the schema that reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from gallocheck.fuzz import replay
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS

from .interface import comments
from .markdown import details, fence, page, prose, table

#: which record of the C interface a record of the file is, whose comments say what the fields mean
RECORDS = {
    "TypeFile": "gc_type", "ContextFile": "gc_context", "SetupFile": "gc_setup", "TensorFile": "gc_tensor",
    "OpFile": "gc_op", "ObservationFile": "gc_obs",
}  # fmt: skip


def schema() -> dict[str, Any]:
    return msgspec.json.schema(replay._File)


def replay_page() -> str:
    whole = schema()
    definitions = whole["$defs"]
    example = next(d for d in DEFECTS if d.clause == "R6")
    parts = [
        "# Replay files",
        prose(" ".join((replay.__doc__ or "").split())),
        f"This is version {replay.VERSION}. A file of a newer version, of another shape, or that describes what makes no"
        " sense is refused with one sentence; one that was written by an older version is read. Fields that have their"
        " usual value are left out. Sizes are bytes.",
        f"For example `fuzz/canaries/{path_of(example).name}` (planted defect {example.number}: {prose(example.what)}):",
        fence(path_of(example).read_text(), "json"),
        "## The file",
        prose(" ".join((replay.Replay.__doc__ or "").split())),
    ]
    head = definitions["_File"]
    parts += record(head, {})
    for name, definition in definitions.items():
        if name != "_File":
            parts += [
                f"## {prose(name.removesuffix('File'))}",
                *record(definition, comments(RECORDS.get(name, ""))),
            ]
    parts.append("## As JSON Schema")
    parts.append(details("The whole schema", fence(json.dumps(whole, indent=1), "json")))
    return page(*parts)


def record(definition: dict[str, Any], says: dict[str, str]) -> Iterator[str]:
    needed = set(definition.get("required", ()))
    rows = []
    for name, field in definition["properties"].items():
        usual = "needed" if name in needed else f"usually `{json.dumps(field.get('default'))}`"
        rows.append([f"`{name}`", kind(field), usual, prose(says.get(name, ""))])
    yield table(["field", "is", "", "meaning"], rows)


def kind(field: dict[str, Any]) -> str:
    """What a field holds, in a few words."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1].removesuffix("File")
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(kind(f) for f in field["anyOf"])
    if "enum" in field:
        return " or ".join(f"`{json.dumps(v)}`" for v in field["enum"])
    if field.get("type") == "array":
        return f"list of {kind(field['items'])}"
    words = {"integer": "number", "string": "text", "null": "`null`"}.get(
        field.get("type", ""), field.get("type", "")
    )
    least = f" (at least {field['minimum']})" if field.get("minimum") not in (None, 0) else ""
    return words + least
