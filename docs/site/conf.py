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
