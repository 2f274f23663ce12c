"""The reference: a page of each package and of each of its modules, made by autodoc, napoleon and autosummary from the
docstrings.

A page says which package, modules or module it is of, in a line each

    .. api:: nli_lib.measure

The page of one module has tables of its functions and classes first, then what autodoc finds in the docstrings. The
page of a package, or of several modules, has a table of what has an example and one of the modules. What has an example
is what a user calls: it comes first, on the page and in its table. The packages that only some parts need (torch and
others) are stood in for, so that the book is built where they are not installed.
"""

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from zlib import crc32

from numpy.typing import ArrayLike
from sphinx.ext.autodoc.mock import MockFinder, _MockObject
from sphinx.util.typing import stringify_annotation

LINE = re.compile(r"(?:^\.\. api:: \S+\n*)+", re.MULTILINE)
ROOT = Path(importlib.util.find_spec("nli_lib").origin).parents[1]
# scipy asks whether an array is one of torch's, which a stand-in cannot answer: what draws on scipy comes first
FIRST = ("scipy.stats", "sklearn.linear_model", "statsmodels.api", "seaborn", "plotly.express")
# Sphinx reads a page again when its source or a module changed, and everything when this number is another
CODE_VERSION = crc32(Path(__file__).read_bytes())
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([^\[\]]+)\]\]")
ANNOTATED = re.compile(r"~\w+\.Annotated\[(.+?), (?:<[^<>]*>|FieldInfo\(.*?\]\))\]")  # of options and parameters
ABSENT = [
    "accelerate", "anywidget", "argilla", "cleanlab", "datasets", "gguf", "ipywidgets", "jscatter", "nltk",
    "openai", "ot", "playwright", "sacrebleu", "safetensors", "sentence_transformers", "snakemake", "spellchecker",
    "tokenizers", "torch", "transformers", "xllamacpp",
]  # fmt: skip


def modules(package):
    """The dotted names of a package's modules, private ones left out; of a module its own."""
    folder = ROOT.joinpath(*package.split("."))
    if not folder.is_dir():
        return [package]
    return [f"{package}.{path.stem}" for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def of(page):
    """The packages and modules that a page says it is of."""
    return re.findall(r"^\.\. api:: (\S+)$", page, re.MULTILINE)


def offered(name):
    """The public functions and classes of a module, in its order: those with an example, and the others."""
    tree = ast.parse(ROOT.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name[0] != "_"]
    called = [each for each in found if ">>>" in (ast.get_docstring(each) or "")]
    return called, [each for each in found if each not in called]


def table(names, title):
    """A table of names with the first sentence of their docstrings; nothing where there are none."""
    rows = "".join(f"   {name}\n" for name in names)
    return f".. rubric:: {title}\n\n.. autosummary::\n   :nosignatures:\n\n{rows}" if names else ""


def module_page(name):
    called, others = offered(name)
    tables = {"To begin with": called, "Also here" if called else "Functions and classes": others}
    parts = [table([f"~{name}.{each.name}" for each in listed], title) for title, listed in tables.items()]
    parts.append(f".. automodule:: {name}\n")
    for each in [*called, *others]:
        kind = "autoclass" if isinstance(each, ast.ClassDef) else "autofunction"
        parts.append(f".. {kind}:: {name}.{each.name}\n" + "   :members:\n" * (kind == "autoclass"))
    return "\n\n".join(filter(None, parts))


def package_page(names):
    called = [f"~{name}.{each.name}" for name in names for each in offered(name)[0]]
    return "\n\n".join(filter(None, [table(called, "To begin with"), table(names, "Modules")]))


def write_pages(app, docname, source):
    """Put tables and autodoc's directives in place of the lines."""

    def listed(found):
        names = [name for package in of(found[0]) for name in modules(package)]
        for name in names:
            app.env.note_dependency(str(ROOT.joinpath(*name.split(".")).with_suffix(".py")))
        return module_page(names[0]) if names == of(found[0]) and len(names) == 1 else package_page(names)

    if docname.startswith("reference/"):
        source[0] = LINE.sub(listed, source[0])


def signature(app, what, name, obj, options, given, returned):
    """Types as the code has them: autodoc spells out what ArrayLike and NDArray stand for, half a line each."""
    return tuple(text and _as_written(text) for text in (given, returned))


def _as_written(text):
    text = ANNOTATED.sub(r"\1", text.replace(ARRAY_LIKE, "~numpy.typing.ArrayLike"))
    return ARRAY.sub(lambda found: "~numpy.typing.NDArray" + f"[{found[1]}]" * ("ScalarT" not in found[1]), text)


def is_nothing_of_ours(app, what, name, obj, skip, options):
    """Whether a member is left out: fields of named tuples, which their class describes, other classes that a class
    names as its own ("alias of"), and pydantic's settings."""
    alias = what == "class" and isinstance(obj, type)
    return True if alias or type(obj).__name__ == "_tuplegetter" or name == "model_config" else None


def stand_in():
    """Let nothing of `ABSENT` be imported while the book is built, whether it is installed or not: torch takes long."""
    for name in FIRST:
        importlib.import_module(name)
    _MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self  # "Tensor | None"
    sys.meta_path.insert(0, MockFinder(ABSENT))


def setup(app):
    stand_in()
    for name in ("autodoc", "napoleon", "autosummary"):
        app.setup_extension(f"sphinx.ext.{name}")
    app.config.default_role = "code"
    app.config.napoleon_google_docstring = False
    app.config.napoleon_use_ivar = True
    app.config.autosummary_generate = False
    app.config.autodoc_member_order = "bysource"
    app.config.autodoc_mock_imports = ABSENT
    app.config.autodoc_typehints = "signature"
    app.config.autodoc_preserve_defaults = True  # as written: a path of this machine belongs on no page
    app.config.add_module_names = False
    app.config.python_maximum_signature_line_length = 100
    app.connect("source-read", write_pages)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", is_nothing_of_ours)
    return {"version": "1", "env_version": CODE_VERSION, "parallel_read_safe": True}
