"""The reference: a page of each room of the library, made from the docstrings alone.

A page says which package, or which modules, it is of, in a line each

    .. api:: nli_lib.measure

and every module of it that has a docstring follows, with what autodoc finds there. The packages that only some parts
need (torch and others) are stood in for, so that the book is built where they are not installed.
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

LINE = re.compile(r"^\.\. api:: (\S+)$", re.MULTILINE)
LIBRARY = Path(importlib.util.find_spec("nli_lib").origin).parent
# scipy asks whether an array is one of torch's, which a stand-in cannot answer: what draws on scipy comes first
FIRST = ("scipy.stats", "sklearn.linear_model", "statsmodels.api", "seaborn", "plotly.express")
MEMBERS = "   :members:\n   :member-order: bysource\n"
ROWS = re.compile(r"(\S(?:.*?\S)?) {2,}(\S.*)")  # "name      what it is"
NUMBERED = re.compile(r"\d+\. ")
CODE = re.compile(r"`+([^`]+)`+")
HEADS = "Shapes|Formula|Method|Features|Columns|Keys|Order|Sources?|[*]?Departures[*]?"  # what a line can be about
ABOUT = re.compile(rf"\n(?=(?:{HEADS}): |Raises |Returns )")
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


def source_of(module):
    """The file of a module of the library. Nothing is imported: that is autodoc's task, with the stand-ins."""
    path = LIBRARY.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules(package):
    """The dotted names of a package and of the modules below it, private ones left out; of a module its own."""
    names, folder = [package], source_of(package).parent
    if source_of(package).name != "__init__.py":
        return names
    for path in sorted(folder.iterdir()):
        name = f"{package}.{path.stem}"
        if (path / "__init__.py").is_file():
            names += modules(name)
        elif path.suffix == ".py" and not path.name.startswith("_"):
            names.append(name)
    return names


def write_pages(app, docname, source):
    """Put the modules' directives in place of the line."""

    def listed(found):
        parts = []
        for name in modules(found[1]):
            app.env.note_dependency(str(source_of(name)))
            title = name.removeprefix("nli_lib.")
            # what a package hands on is described where it is made
            package = source_of(name).name == "__init__.py"
            if package and not ast.get_docstring(ast.parse(source_of(name).read_text(encoding="utf-8"))):
                continue
            members = "" if package else MEMBERS
            parts.append(f"{title}\n{'-' * len(title)}\n\n.. automodule:: {name}\n{members}")
        return "\n\n".join(parts)

    if docname.startswith("reference/"):
        source[0] = LINE.sub(listed, source[0])


def as_rst(text):
    """Plain words as reStructuredText: `names` in code, everything that means something there escaped."""
    parts, last = [], 0
    for found in CODE.finditer(text):
        code = found[1].strip()
        parts += [_escaped(text[last : found.start()]), f"``{code}``"]
        if text[found.end() : found.end() + 1].isalnum():
            parts.append("\\ ")
        last = found.end()
    return "".join([*parts, _escaped(text[last:])])


def _escaped(text):
    text = re.sub(r"([\\*_|@])", r"\\\1", text)  # "word@premise" is no address
    return re.sub(r"\\\*(\w+)\\\*", r"*\1*", text)  # *Departures* stays what it is


def docstring(app, what, name, obj, options, lines):
    """Our docstrings are written to be read in an editor: a line for shapes, one for the formula, one for the source;
    rows of "name  meaning"; examples set in by blanks."""
    made, blocks = [], ABOUT.sub("\n\n", "\n".join(lines).strip("\n")).split("\n\n")
    for block in blocks:
        rows = block.strip("\n").splitlines()
        if not rows:
            continue
        if rows[0].startswith(" ") or _is_code(block):
            made += ["::", "", *(f"    {row}" for row in rows), ""]
        elif all(NUMBERED.match(row) for row in rows):
            made += [*map(as_rst, rows), ""]
        elif any(ROWS.fullmatch(row) for row in rows):
            made += [*_definitions(rows), ""]
        else:
            made += [as_rst(" ".join(row.strip() for row in rows)), ""]
    lines[:] = [*made, *_definitions(_keys(obj))]


def _is_code(block):
    """Whether a block is an example that a docstring without other paragraphs has lost the indentation of."""
    try:
        return "(" in block and bool(ast.parse(block).body)
    except SyntaxError:
        return False


def _definitions(rows):
    """Rows of "name  meaning" as a definition list; a meaning goes on in lines set in or begun in lower case."""
    made, text = [], []
    for row in rows:
        found = ROWS.fullmatch(row)
        if found and not row.startswith(" "):
            if text:
                made += [as_rst(" ".join(text)), ""]
                text = []
            made += ["", f"``{found[1].strip('`*')}``", f"    {as_rst(found[2])}"]
        elif made and not text and (row.startswith(" ") or row[0].islower()):
            made.append(f"    {as_rst(row.strip())}")
        else:
            text.append(row.strip())
    return [*made, *(["", as_rst(" ".join(text))] if text else [])]


def _keys(obj):
    """Rows of "name  meaning" for the keys of a section of the dial, which says what they mean beside each of them."""
    fields = getattr(obj, "model_fields", {}) if isinstance(obj, type) else {}
    if not any(each.description for each in fields.values()):
        return []
    types = {name: _short(each) for name, each in fields.items()}
    meanings = {name: f"{each.description} (`{types[name]}`)" for name, each in fields.items() if each.description}
    return [f"{name}  {meanings.get(name, f'`{types[name]}`')}" for name in fields]


def _short(field):
    """A key's type without the modules of its parts, and its default where it has one."""
    default = "" if field.is_required() or field.default_factory else f" = {field.default!r}"
    return re.sub(r"~?\b[a-zA-Z_]\w*\.", "", stringify_annotation(field.annotation, "smart")) + default


def signature(app, what, name, obj, options, given, returned):
    """Types as the code has them: autodoc spells out what ArrayLike and NDArray stand for, half a line each."""
    if _keys(obj):
        return "", None  # they follow, with what they mean
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
    app.setup_extension("sphinx.ext.autodoc")
    app.config.autodoc_mock_imports = ABSENT
    app.config.autodoc_typehints = "signature"
    app.config.autodoc_preserve_defaults = True  # as written: a path of this machine belongs on no page
    app.config.add_module_names = False
    app.config.python_maximum_signature_line_length = 100
    app.connect("source-read", write_pages)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", is_nothing_of_ours)
    return {"version": "1", "env_version": CODE_VERSION, "parallel_read_safe": True}
