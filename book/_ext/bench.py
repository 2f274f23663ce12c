"""What the book needs from Sphinx: pages that read from disk without a network, computed words, a banner on top.

- A placeholder such as {{ verdicts wanli }} in a tracked page is replaced by what the recorded tables say. `nli-study
  book` computes the replacements (nli_lib.study.book) and leaves them in chapters/words.json.
- Scripts from elsewhere are taken out: Jupyter Book puts those of thebe (live code) on every page. It also puts the
  one copy of plotly's script, 5 MB, on every page; it stays on those with an interactive figure.
- The sidebar shows behind each chapter's title the verdict of its answer, or that it was not run.
- The banner on top of every page is the announcement in chapters/words.json, which is not empty at scale smoke.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

REMOTE = ("http://", "https://", "//")
PLACEHOLDER = re.compile(r"\{\{ *([^{}]+?) *\}\}")
ABSENT = "*not recorded at this scale*"


def words_of(folder):
    path = Path(folder, "chapters", "words.json")
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def computed_words(app, docname, source):
    """Replace each placeholder of a page; one that nothing explains is a warning that names it."""
    if not PLACEHOLDER.search(source[0]) or docname.startswith("chapters/"):
        return
    words = words_of(app.srcdir)
    app.env.note_dependency(str(Path(app.srcdir, "chapters", "words.json")))

    def word(found):
        if found[1] not in words:
            logging.getLogger(__name__).warning(f"no such placeholder: {found[0]}", location=docname)
        return words.get(found[1]) or ABSENT

    source[0] = PLACEHOLDER.sub(word, source[0])


def verdicts(app, env):
    """Put the verdict of each chapter behind its title in the sidebar; all pages are written anew where one changed."""
    words, changed = words_of(app.srcdir), False
    for name in [name for name in env.tocs if name.startswith("chapters/")]:
        badge = words.get(f"badge {name.removeprefix('chapters/')}", "")
        entry = next(iter(env.tocs[name].findall(nodes.reference)))
        before = [node for node in entry if isinstance(node, nodes.raw)]
        changed |= [node.astext() for node in before] != [f" {badge}"] * bool(badge)
        for node in before:
            entry.remove(node)
        entry += [nodes.raw("", f" {badge}", format="html")] if badge else []
    return list(env.found_docs) if changed else []


def local_scripts(app, pagename, templatename, context, doctree):
    """Keep the scripts that lie beside the page, and plotly's only where a figure needs it."""
    drawn = 'class="interactive"' in context.get("body", "")

    def needed(script):
        name = str(getattr(script, "filename", script) or "")
        inline = (getattr(script, "attributes", {}) or {}).get("body", "")
        remote = name.startswith(REMOTE) or "thebe" in f"{inline}{script}".lower()
        return not remote and (drawn or not name.endswith("plotly.min.js"))

    if "script_files" in context:
        context["script_files"] = [script for script in context["script_files"] if needed(script)]


def banner(app, config):
    """Show the announcement, when there is one, on top of every page."""
    if announcement := words_of(app.srcdir).get("announcement"):
        config.html_theme_options = {**config.html_theme_options, "announcement": announcement}


def setup(app):
    app.connect("source-read", computed_words)
    app.connect("env-updated", verdicts)
    app.connect("html-page-context", local_scripts, priority=999)
    app.connect("config-inited", banner)
    app.add_config_value("bench", Path(__file__).read_text(encoding="utf-8"), "html")  # pages are written anew after it
    # it says nothing of processes, and has nothing to number here
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
    return {"parallel_read_safe": True, "parallel_write_safe": True}
