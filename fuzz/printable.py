"""Text from files as it may be shown: no terminal acts on it, and it stays on its line."""

from __future__ import annotations


def printable(text: str) -> str:
    """Control characters, line ends and characters that turn the direction become visible escapes: "\\x1b", "\\n".

    So a name in a file moves no cursor and begins no line (GitHub takes one that begins with "::error::" as a command).
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
