"""Configuration of the documentation site; `docs/build.py` puts its sources together and runs Sphinx."""

import fluidnb

project = "fluidnb"
author = "the fluidnb developers"
copyright = "the fluidnb developers, Apache-2.0"
release = fluidnb.__version__

extensions = [
    "myst_nb", "sphinx_design", "sphinx_copybutton", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax",
]  # fmt: skip
exclude_patterns = ["build.py", "conf.py", "reference.py", "**/.ipynb_checkpoints"]

# Notebooks are stored as they ran, and run in the tests.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_heading_slug_func = "navigation.anchor"  # links to headings of notebooks work in JupyterLab and here
# Cells that begin with a magic are no Python for the highlighter.
suppress_warnings = ["ref.python", "misc.highlighting_failure", "mystnb.unknown_mime_type"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Source", "notes_style")]

html_theme = "pydata_sphinx_theme"
html_title = "fluidnb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": True,
    "show_nav_level": 1,
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,  # notebooks have such links themselves, see navigation.py
    "footer_start": ["copyright"],
    "footer_end": [],
}
