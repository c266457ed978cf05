"""Elements of a picture: SVG by the standard library's XML, one style for all pictures, hover texts.

Colours are variables, so that a picture is right on light and on dark paper, in a page or alone. Nothing is
told by colour alone: what is live is filled, what is dead is hatched, what conflicts is crossed and framed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

Element = ElementTree.Element

#: of every picture; the palette is Okabe and Ito's, which colour-blind people tell apart
STYLE = (Path(__file__).parent / "picture.css").read_text()

#: hatches by name: (edge of a tile, its lines, width of a line)
HATCHES = {
    "dead": (6, "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", 1.0),
    "other": (5, "M0,2.5 h5", 1.0),
    "pool": (7, "M0,0 l7,7 M-1,6 l2,2 M6,-1 l2,2", 1.6),
    "wrong": (9, "M0,0 l9,9 M9,0 l-9,9", 1.4),
}


def number(value: float) -> str:
    """A coordinate: at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Picture:
    """One SVG under way; coordinates are pixels. `name` makes the ids of its hatches its own, so that many
    pictures may stand in one page; `style`: it brings its style itself."""

    def __init__(self, name: str, label: str, style: bool = True) -> None:
        self.name = name
        self.root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "gcpic", "role": "img"})
        self.root.set("aria-label", label)
        if style:
            ElementTree.SubElement(self.root, "style").text = STYLE
        defs = ElementTree.SubElement(self.root, "defs")
        for hatch, (edge, lines, width) in HATCHES.items():
            tile = ElementTree.SubElement(
                defs, "pattern", {"id": f"{name}-{hatch}", "width": str(edge), "height": str(edge)}
            )
            tile.set("patternUnits", "userSpaceOnUse")
            line = "h-dead" if hatch == "other" else f"h-{hatch}"
            ElementTree.SubElement(tile, "path", {"d": lines, "class": line, "stroke-width": str(width)})
        self.into = self.root

    def group(self, kind: str, **data: object) -> Element:
        """What is drawn from now on belongs to this group."""
        self.into = ElementTree.SubElement(self.root, "g", {"class": kind})
        for key, value in data.items():
            self.into.set(f"data-{key}", str(value))
        return self.into

    def rect(
        self, box: tuple[float, float, float, float], kind: str, words: str = "", hatch: str = ""
    ) -> Element:
        """`box`: x, y, width, height."""
        x, y, w, h = box
        at = {"x": number(x), "y": number(y), "width": number(max(w, 0.0)), "height": number(max(h, 0.0))}
        drawn = ElementTree.SubElement(self.into, "rect", {**at, "class": kind})
        if hatch:
            drawn.set("fill", f"url(#{self.name}-{hatch})")
        return titled(drawn, words)

    def line(
        self, from_: tuple[float, float], to: tuple[float, float], kind: str, words: str = ""
    ) -> Element:
        at = dict(zip(("x1", "y1", "x2", "y2"), map(number, (*from_, *to)), strict=True))
        return titled(ElementTree.SubElement(self.into, "line", {**at, "class": kind}), words)

    def path(self, points: list[tuple[float, float]], kind: str) -> Element:
        steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        return ElementTree.SubElement(self.into, "polyline", {"points": steps, "class": kind})

    def text(
        self, at: tuple[float, float], words: str, kind: str = "", anchor: str = "", turn: int = 0
    ) -> Element:
        """`turn`: degrees, about its own beginning."""
        x, y = number(at[0]), number(at[1])
        drawn = ElementTree.SubElement(self.into, "text", {"x": x, "y": y})
        drawn.text = words
        if kind:
            drawn.set("class", kind)
        if anchor:
            drawn.set("text-anchor", anchor)
        if turn:
            drawn.set("transform", f"rotate({turn} {x} {y})")
        return drawn

    def done(self, width: float, height: float) -> str:
        """The SVG's text."""
        w, h = number(width), number(height)
        self.root.set("viewBox", f"0 0 {w} {h}")
        self.root.set("width", w)
        self.root.set("height", h)
        return ElementTree.tostring(self.root, encoding="unicode")


@dataclass(frozen=True, slots=True)
class Sign:
    """One entry of a legend: a line or a box of a style, and what it means."""

    style: str
    words: str
    hatch: str = ""
    line: bool = False

    @property
    def width(self) -> float:
        return 24 + 6.0 * len(self.words) + 14

    def draw(self, pic: Picture, x: float, y: float) -> None:
        if self.line:
            pic.line((x, y - 4), (x + 16, y - 4), self.style)
        else:
            pic.rect((x, y - 9, 16, 10), self.style, hatch=self.hatch)
        pic.text((x + 21, y), self.words, "small")


def legend(pic: Picture, signs: list[Sign], y: float, most: float) -> float:
    """Draws them in rows of `most` pixels, the first at `y`. Where it ends."""
    pic.group("legend")
    x = 4.0
    for sign in signs:
        if x + sign.width > most and x > 4:
            x, y = 4.0, y + 18
        sign.draw(pic, x, y)
        x += sign.width
    return y


def key(name: str, signs: list[Sign]) -> str:
    """The legend apart from its picture: an SVG a sign, which flow like words. For a page that has STYLE."""
    out = []
    for n, sign in enumerate(signs):
        pic = Picture(f"{name}-{n}", sign.words, style=False)
        pic.group("legend")
        sign.draw(pic, 2, 13)
        out.append(pic.done(sign.width, 18))
    return " ".join(out)


def titled(drawn: Element, words: str) -> Element:
    """With a hover text."""
    if words:
        ElementTree.SubElement(drawn, "title").text = clean(words)
    return drawn


def clean(words: str) -> str:
    """Without what XML cannot hold (a subject's last words may have anything)."""
    return "".join(
        c
        for c in words
        if c in "\t\n" or (c >= " " and not 0xD800 <= ord(c) <= 0xDFFF and c not in "\ufffe\uffff")
    )
