"""A story's pictures as one SVG file: the subject's memory map, the model's, and the plans."""

from __future__ import annotations

import re
import textwrap
from xml.etree import ElementTree

from .drawing import Picture, number
from .story import Story
from .svg import over_time, tops

MARGIN, TITLE, LINE, LETTER = 12, 26, 17, 7.2  #: pixels; of a title, of one of its lines, of a letter
NARROWEST = 460.0  #: pixels, without margins


def plot(story: Story) -> str:
    """The SVG's text."""
    from .page import plan_drawing

    mine, theirs = story.frames, story.model_frames
    scale = {kind: max(top, tops(theirs).get(kind, 1)) for kind, top in tops(mine or theirs).items()}
    parts = [(story.headline, "")]
    if mine:
        parts.append(("The subject", over_time(mine, "subject", scale, style=False)))
    parts.append(
        (story.model_title if story.planner else "The model", over_time(theirs, "model", scale, style=False))
    )
    for k, plan in enumerate(story.plans):
        drawing, title, words = plan_drawing(f"plan{k}", plan, story)
        parts.append((f"{title}\n{words}", drawing.all()))
    return stacked(parts)


def stacked(parts: list[tuple[str, str]]) -> str:
    """Pictures with their titles, one under the other; a part without a picture is a title alone."""
    inners = [
        ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", svg, count=1)) if svg else None
        for _, svg in parts
    ]
    wide = max([NARROWEST, *(float(x.get("width", "0")) for x in inners if x is not None)])
    pic, y = Picture("all", parts[0][0]), float(MARGIN)
    for (title, _), inner in zip(parts, inners, strict=True):
        for line in wrapped(title, wide):
            pic.text((MARGIN, y + 14), line, "head")
            y += LINE
        y += TITLE - LINE
        if inner is None:
            continue
        inner.set("x", number(MARGIN))
        inner.set("y", number(y))
        pic.root.append(inner)
        y += float(inner.get("height", "0")) + MARGIN
    return pic.done(wide + 2 * MARGIN, y)


def wrapped(title: str, wide: float) -> list[str]:
    """The lines of a title, none longer than so many pixels."""
    most = int(wide / LETTER)
    return [line for part in title.splitlines() for line in textwrap.wrap(part, most)] or [""]
