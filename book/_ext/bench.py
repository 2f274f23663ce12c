"""Two small things the book needs from Sphinx: pages that read from disk without a network, and a banner on top.

Jupyter Book puts scripts of thebe (live code) on every page, which nobody here uses and which name a remote address;
they are taken out. The banner comes from chapters/announcement.html, which `nli-study book` writes for scale smoke.
"""

from pathlib import Path

REMOTE = ("http://", "https://", "//")


def local_scripts(app, pagename, templatename, context, doctree):
    """Keep the scripts that lie beside the page."""

    def remote(script):
        inline = (getattr(script, "attributes", {}) or {}).get("body", "")
        return (
            str(getattr(script, "filename", script) or "").startswith(REMOTE) or "thebe" in f"{inline}{script}".lower()
        )

    if "script_files" in context:
        context["script_files"] = [script for script in context["script_files"] if not remote(script)]


def banner(app, config):
    """Show the announcement, when there is one, on top of every page."""
    path = Path(app.srcdir, "chapters", "announcement.html")
    if path.is_file():
        config.html_theme_options = {
            **config.html_theme_options,
            "announcement": path.read_text(encoding="utf-8").strip(),
        }


def setup(app):
    app.connect("html-page-context", local_scripts, priority=999)
    app.connect("config-inited", banner)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
