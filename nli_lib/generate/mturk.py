"""Amazon Mechanical Turk: a review written as an input csv and the page of a HIT, and the batch's results read back.

Texts are written into the input csv as ASCII with HTML's character references. The page shows them as the texts that
they are, runs nothing in them, and no field holds a sign that a spreadsheet takes for a formula. An Answer of the
results csv is what a worker typed, as it is: look at that file with `read_results`, not in a spreadsheet.

Source: WANLI's `process_amt_batch.py` (W11): five pairs a HIT; rejected assignments and unqualified workers do not
count. *Departures*: its answers are codes (0 contradiction, 1 entailment, 2 neutral, 3 discard) and ours are names;
worker ids are replaced here, when the results are read, and there before the release.
"""

import html
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import jinja2
import pandas as pd

from nli_lib.csv_files import write_csv
from nli_lib.generate.annotations import SIDES
from nli_lib.generate.exchange import Answers, annotation, known_pair, table
from nli_lib.generate.review import ReviewError, queue
from nli_lib.store import atomic

PER_HIT = 5
INPUT, PAGE = "mturk_input.csv", "mturk_page.html"
DOCUMENTED = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus")  # of a results csv, as far as they are read
# what a page or a spreadsheet would take for more than a letter, and whatever is not ASCII
_SPECIAL = re.compile(r"[-=+@&<>\"'$\t\r\n]|[^\x00-\x9f]")


def write_hits(folder: Path, pairs: pd.DataFrame, *, seed: int = 0, per_hit: int = PER_HIT) -> list[Path]:
    """Write the input csv, ``per_hit`` pairs a row in the order that ``seed`` decides, and the page; the two paths.

    Columns item1, premise1, hypothesis1, item2, ...; the last row may end in empty ones. Ask for two assignments a HIT.
    """
    shown = pd.DataFrame(queue(pairs, seed)).map(_referenced)
    wide = pd.concat(
        [shown.iloc[at::per_hit].reset_index(drop=True).add_suffix(str(at + 1)) for at in range(per_hit)], axis=1
    )
    page = jinja2.Template(Path(__file__).with_name("mturk.html").read_text(encoding="utf-8"))
    written = [Path(folder) / INPUT, Path(folder) / PAGE]
    write_csv(written[0], wide)
    with atomic(written[1]) as draft:
        draft.write_text(page.render(numbers=range(1, per_hit + 1)) + "\n", encoding="utf-8")
    return written


def read_results(
    files: Sequence[Path], pairs: pd.DataFrame, *, qualified: Collection[str] | None = None
) -> pd.DataFrame:
    """The annotations of one or more results csv files, as `nli_lib.generate.annotations` takes them.

    Rejected assignments, and those of workers who are not ``qualified`` (ids; None: all are), do not count. Workers are
    called "mturk-1", "mturk-2", ... in the order of their ids; give all files of a study in one call. An answer without
    worker or label, and a second one of the same worker to a pair, are counted, and it is said. Raises `ReviewError`
    naming the file, the row and the column, or where no answer is left.
    """
    tables = [_read(Path(file)) for file in files]
    workers = sorted({worker for table in tables for worker in table["WorkerId"]} - {""})
    alias = {worker: f"mturk-{number}" for number, worker in enumerate(workers, start=1)}
    shown, answers = pairs.set_index("item")[list(SIDES)], Answers(", ".join(map(str, files)))
    for file, results in zip(files, tables, strict=True):
        counts = results["AssignmentStatus"] != "Rejected"
        if qualified is not None:
            counts &= results["WorkerId"].isin(list(qualified))
        for row, said in results[counts].iterrows():
            for at in (number for number in _numbers(results) if said[f"Input.item{number}"]):
                where, label = f"{file}: row {row + 1}, example {at}", said[f"Answer.label{at}"]
                given = {name: html.unescape(said[f"Input.{name}{at}"]) for name in ("item", *SIDES)}
                left = {side: said[f"Answer.{side}{at}"] for side in SIDES}
                pair = known_pair(given, shown, where)
                if answers.label(said["WorkerId"], [label] if label else [], where):
                    answers.take(pair["item"], annotation(pair, alias[said["WorkerId"]], label, left), where)
    return table(answers.rows())


def _referenced(text: str) -> str:
    return _SPECIAL.sub(lambda found: "".join(f"&#{ord(letter)};" for letter in found[0]), text)


def _read(file: Path) -> pd.DataFrame:
    """A results csv, every field a string, with the columns that are needed."""
    try:
        results = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except OSError as error:
        raise ReviewError(f"{file} cannot be read ({error.strerror}). Download the batch's results again.") from None
    except ValueError as error:
        raise ReviewError(f"{file} is no csv in UTF-8: {error}. Download the batch's results again.") from None
    numbers = _numbers(results) or ["1"]
    fields = [f"Answer.{part}{at}" for at in numbers for part in ("label", *SIDES)]
    fields += [f"Input.{part}{at}" for at in numbers for part in ("item", *SIDES)]
    if lacking := [name for name in (*DOCUMENTED, *fields) if name not in results]:
        raise ReviewError(
            f"{file}: column {lacking[0]} is missing. Give the results csv of a batch that was made with {INPUT} and "
            f"{PAGE}."
        )
    if not isinstance(results.index, pd.RangeIndex):  # pandas takes the first field of a longer row for a name
        raise ReviewError(f"{file}: the rows have more fields than the header. Download the batch's results again.")
    return results


def _numbers(results: pd.DataFrame) -> list[str]:
    """The numbers of the examples of a HIT that some row has: "1", "2", ..."""
    items = [name for name in results if name.startswith("Input.item") and results[name].ne("").any()]
    return [name.removeprefix("Input.item") for name in items]
