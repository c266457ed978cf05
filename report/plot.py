"""A story's pictures as one SVG file: the subject's memory map, the model's, and the plans."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from .drawing import Picture, number
from .story import Story
from .svg import over_time, tops

MARGIN, TITLE = 12, 26  #: pixels


def plot(story: Story) -> str:
    """The SVG's text."""
    from .page import plan_of

    mine, theirs = story.frames, story.model_frames
    scale = {kind: max(top, tops(theirs).get(kind, 1)) for kind, top in tops(mine or theirs).items()}
    parts = [(story.headline, "")]
    if mine:
        parts.append(("The subject", over_time(mine, "subject", scale, style=False)))
    parts.append(
        (story.model_title if story.planner else "The model", over_time(theirs, "model", scale, style=False))
    )
    for k, plan in enumerate(story.plans):
        shown = plan_of(f"plan{k}", plan, story)
        parts.append((f"{shown.title} ({shown.words})", str(shown.svg)))
    return stacked(parts)


def stacked(parts: list[tuple[str, str]]) -> str:
    """Pictures with their titles, one under the other; a part without a picture is a title alone."""
    pic = Picture("all", parts[0][0])
    y, wide = float(MARGIN), 0.0
    for title, svg in parts:
        pic.text((MARGIN, y + 14), title, "head")
        y += TITLE
        wide = max(wide, 2 * MARGIN + 6.6 * len(title))
        if not svg:
            continue
        inner = ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", svg, count=1))
        inner.set("x", number(MARGIN))
        inner.set("y", number(y))
        pic.root.append(inner)
        wide = max(wide, float(inner.get("width", "0")) + 2 * MARGIN)
        y += float(inner.get("height", "0")) + MARGIN
    return pic.done(wide, y)
