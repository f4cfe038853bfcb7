"""The documentation as a site: ``make docs``; nothing is fetched when it is read."""

project = "layout-advise"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "layout-advise"
html_show_sphinx = False
html_show_copyright = False
smartquotes = False  # options begin with two hyphens
myst_heading_anchors = 3
