"""Sphinx's settings. The sources are made by generate/ into build/docs/sources; `make docs` does it all."""

from __future__ import annotations

from importlib import metadata

project = "gallocheck"
author = "the gallocheck project"
release = metadata.version("gallocheck")
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
html_theme = "furo"
html_title = "gallocheck"
html_static_path = ["_static"]
html_css_files = ["site.css", "picture.css"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
highlight_language = "text"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
nitpicky = True
templates_path: list[str] = []
exclude_patterns: list[str] = []


def _kept_highlights() -> None:
    """The same code stands on many pages: it is coloured once."""
    from functools import cache
    from typing import Any

    from sphinx.highlighting import PygmentsBridge

    plain = PygmentsBridge.highlight_block
    colour = cache(
        lambda bridge, text, language, options: plain(bridge, text, language, **options_of[options])
    )
    options_of: dict[str, dict[str, Any]] = {}

    def highlight_block(self: Any, source: str, lang: str, **options: Any) -> str:
        options.pop("location", None)  # only said in warnings, of which there are none
        key = repr(sorted(options.items(), key=lambda item: item[0]))
        options_of[key] = options
        return str(colour(self, source, lang, key))

    PygmentsBridge.highlight_block = highlight_block  # type: ignore[method-assign]


_kept_highlights()
