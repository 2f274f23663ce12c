"""Terms explain themselves: where one first occurs on a page, its definition in the glossary of `notation` appears when
a reader points at it, taps it or reaches it with Tab.

The definition is an attribute (`aria-description`), written when the book is built and shown by report.css: no script.
Headings, links, tables, code and captions are left as they are. Words that pages also use in another sense are not
explained there.
"""

import re
from html import escape

from docutils import nodes
from sphinx import addnodes

SOURCE = "notation"
BADGE = re.compile(r'<span (?=class="verdict verdict-(\w+)")')  # of a chapter's verdict
NEVER = {"held", "part", "Yes", "Partly", "Barely", "No", "Open"}  # common words: the last five are explained at badges
ELSEWHERE = {  # the pages on which a word has another sense
    "confidence": r"parts/2|chapters/(24|30)",
    "correctness": r"chapters/(14|22|42)",
    "declared": "faq",
    "gap": r"chapters/(10|15|4)",
    "label alone": "parts",
    "level": r"chapters/(22|63)",
    "margin": r"parts/6|chapters/(22|64)",
    "mismatch": r"chapters/5",
}
SKIPPED = (
    nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.table, nodes.caption, nodes.raw, nodes.math,
    nodes.math_block, nodes.term, nodes.comment, addnodes.pending_xref,
)  # fmt: skip


def meanings(env):
    """Term -> definition, as the glossary has them; empty in a book without it."""
    if SOURCE not in env.found_docs:
        return {}
    items = [each for part in env.get_doctree(SOURCE).findall(addnodes.glossary) for each in part[0]]
    found = {}
    for item in items:
        told = " ".join(next(iter(item.findall(nodes.definition))).astext().split())
        found |= {term.astext(): told for term in item.findall(nodes.term)}
    return found


def pattern(term):
    """Finds a term in running text: singular or plural, of "cross-scoring" also "cross-scored", at the start of a
    sentence too."""
    first, stem = f"[{term[0]}{term[0].upper()}]", re.escape(term[1:].removesuffix("ing"))
    ending = "(?:ing|ed|es?)" if term.endswith("ing") else "(?:e?s)?"
    return re.compile(rf"(?<![\w-]){first}{stem}{ending}(?![\w-])")


def opened(tag, told):
    """The start of an element that shows a definition."""
    return f'<{tag} tabindex="0" aria-description="{escape(told)}"'


def changed(app, env):
    """All pages are written again where a definition has changed."""
    before, env.glossary = getattr(env, "glossary", None), meanings(env)
    return list(env.found_docs) if before != env.glossary else []


def explain(app, doctree, docname):
    if docname.startswith((SOURCE, "reference", "chapters/status")):
        return
    told = app.env.glossary
    wanted = [term for term in told if term not in NEVER and not re.match(ELSEWHERE.get(term, "$"), docname)]
    left = {term: pattern(term) for term in wanted}
    texts = [text for text in doctree.findall(nodes.Text) if not inside(text)]
    for text in texts:
        parts, rest = [], text.astext()
        while hits := [(hit.start(), -len(term), term, hit[0]) for term in left if (hit := left[term].search(rest))]:
            at, _, term, word = min(hits)
            left = {each: left[each] for each in left if told[each] != told[term]}
            made = f'{opened("dfn", told[term])} class="term">{escape(word)}</dfn>'
            parts += [nodes.Text(rest[:at]), nodes.raw("", made, format="html")]
            rest = rest[at + len(word) :]
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(rest)])
    for raw in doctree.findall(nodes.raw):
        found = BADGE.match(raw.astext())
        if found and found[1].title() in told and not inside(raw.parent):
            made = BADGE.sub(f"{opened('span', told[found[1].title()])} ", raw.astext(), count=1)
            raw.parent.replace(raw, nodes.raw("", made.replace('class="', 'class="term '), format="html"))
            break


def inside(node):
    """Whether a node is in a place that is left as it is."""
    while node is not None:
        if isinstance(node, SKIPPED):
            return True
        node = node.parent
    return False


def setup(app):
    app.connect("env-updated", changed)
    app.connect("doctree-resolved", explain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
