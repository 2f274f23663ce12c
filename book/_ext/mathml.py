"""Formulas as MathML, set when the book is built: a page needs no script for them, and no network.

Pages and notebooks write $...$ and $$...$$, which JupyterLab shows too. The converter is docutils' own; what it does
not know is a warning that names the page, and the formula's source on it.
"""

import re
from html import escape

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

APPLIED = "<mo>&ApplyFunction;</mo>"  # behind log, which browsers set without a space


def mathml(source, block=False):
    """The MathML of a formula, one line; a `ValueError` where it cannot be set."""
    made = "".join(line.strip() for line in tex2mathml(source.strip(), as_block=block).splitlines())
    return re.sub(rf"{APPLIED}(?!<mo|<mrow><mo)", f'{APPLIED}<mspace width="0.17em"></mspace>', made)


def shown(self, node):
    block, source = isinstance(node, nodes.math_block), node.astext()
    tag = "div" if block else "span"
    try:
        made = mathml(source, block)
    except ValueError as error:
        logging.getLogger(__name__).warning(f"formula {source!r}: {error}", location=node)
        made = f"<code>{escape(source)}</code>"
    self.body.append(f'<{tag} class="formula">{made}</{tag}>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (shown, None), (shown, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
