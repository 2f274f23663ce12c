"""What a statement of the book rests on: the tables behind a chapter's headline, the verdicts on its claims, and which
chapters a study lacks."""

import ast
import os
from pathlib import Path

import pandas as pd

from nli_lib import paths
from nli_lib.report.ledger import verdict_counts
from nli_lib.study import manifest as records
from nli_lib.study import pages
from nli_lib.study.tables import find_table


def _tree(source: str) -> ast.Module:
    return ast.parse("\n".join(line for line in source.splitlines() if not line.startswith("%")))


def _names(tree: ast.Module, use: type[ast.expr_context]) -> set[str]:
    """Names that a cell reads (`ast.Load`) or gives a value (`ast.Store`)."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, use)}


def _tables(tree: ast.Module, name: str) -> list[str]:
    """What `study.table(...)` reads in a cell, as "notebook.part"; a part whose name is computed cannot be told."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "study.table"]
    found = []
    for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        part, *notebook = (*node.args, *(each.value for each in node.keywords))
        if isinstance(part, ast.Constant):
            found.append(f"{notebook[0].value if notebook else name}.{part.value}")
    return found


def headline_tables(name: str) -> list[str]:
    """The tables that the headline of a chapter is computed from, as "10_data_map.eval", by its drawing cells: what the
    cells of the headline read, and those before them that give a value to a name which they use."""
    cells = [cell for cell in records.cells(paths.NOTEBOOKS / f"{name}.ipynb") if cell["cell_type"] == "code"]
    needed, found = set(), []
    for cell in reversed(cells):
        tags = set(cell["metadata"].get("tags", []))
        tree = _tree("" if tags & pages.MACHINERY else cell["source"])
        if "headline" in tags or needed & _names(tree, ast.Store):
            needed |= _names(tree, ast.Load)
            found = _tables(tree, name) + found
    return list(dict.fromkeys(found))


def rests_on(name: str, study: str, ledger: pd.DataFrame) -> str:
    """Markdown: the tables of a chapter's headline, each to take away, and the verdicts on the chapter's claims.

    "" where a table is not recorded in this study. `ledger` has no rows where no verdict is.
    The link to the verdicts leads from a page in the book's root.
    """
    files = {table: find_table(paths.RESULTS / study / table) for table in headline_tables(name)}
    if not files or None in files.values():
        return ""
    links = [f"{{download}}`{table} </{_seen_from_book(path)}>`" for table, path in files.items()]
    own = ledger[ledger["notebook"] == name] if len(ledger) else ledger
    if own.empty:
        return f"from {', '.join(links)}; no claim on this chapter has a verdict"
    # to the first of them: MyST looks for targets in its sources, and a row of the ledger is made when it is drawn
    counts = f'<a href="chapters/63_claims.html#{own["id"].iloc[0]}">{verdict_counts(own)}</a>'
    return f"from {', '.join(links)}; all claims on this chapter: {counts}"


def _seen_from_book(path: Path) -> str:
    return Path(os.path.relpath(path, paths.BOOK)).as_posix()


def title_of(name: str) -> str:
    """The title of a chapter, as its first cell has it."""
    return records.cells(paths.NOTEBOOKS / f"{name}.ipynb")[0]["source"].partition("\n")[0].lstrip("# ")


def absent_chapters(chapters: Path) -> str:
    """One sentence of Markdown that names the notebooks without a drawn page in the folder ``chapters``."""
    names = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))
    lacking = [name for name in names if not (chapters / f"{name}.ipynb").is_file()]
    if not lacking:
        return "Every chapter of the study is recorded at this scale."
    listed = ", ".join(f"{{doc}}`{title_of(name)} </chapters/{name}>`" for name in lacking)
    return f"{len(lacking)} of {len(names)} chapters are *not recorded at this scale*: {listed}."
