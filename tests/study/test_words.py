"""No page of the book has a typed conclusion. Alone: pytest tests/study/test_words.py"""

import functools
import re

import pandas as pd
import pytest

from nli_lib import paths
from nli_lib.claims import LEDGER, RECORD, ledger, read_claims
from nli_lib.study import book

PLACEHOLDER = re.compile(r"\{\{ *([^{}]+?) *\}\}")
LEARNT = paths.BOOK / "parts" / "6_what_we_learnt.md"
CONCLUDING = [*sorted(paths.BOOK.glob("parts/?.md")), paths.BOOK / "index.md", LEARNT]
# how a result is said: a take-away gives advice, and its results stand in placeholders
RESULT = re.compile(
    r"\b(held|did (not|as)|better|worse|beats?|as well as|(in|de)creas\w+|lower(s|ed)|rais(es|ed)|proves?|refut\w+"
    r"|(is|are|was|were) (higher|lower|larger|smaller|more|less|wrong)|\d+(\.\d+)? ?%|\d+ points)\b",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """said(low, high): the words of the book where every claim was recorded with that interval at scale small."""
    folder, claims = tmp_path_factory.mktemp("words"), read_claims()

    @functools.cache
    def of(low, high):
        rows = [(c.id, (low + high) / 2, low, high, 10**6, 5, "trainings", ";".join(c.evidence)) for c in claims]
        table = ledger(claims, pd.DataFrame(rows, columns=RECORD), "full")
        assert list(table) == LEDGER
        (folder / "small").mkdir(exist_ok=True)
        table.astype({"paper_value": str}).to_csv(folder / "small" / "63_claims.ledger.csv", index=False)
        return book.words(folder / "chapters", "small")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", folder)
        yield of


@pytest.mark.parametrize("page", CONCLUDING, ids=lambda path: path.stem)
def test_other_results_make_another_page(page, said):
    low, high = said(-9e6, -8e6), said(8e6, 9e6)
    text = page.read_text(encoding="utf-8")
    one, two = (PLACEHOLDER.sub(lambda found, words=words: words.get(found[1], ""), text) for words in (low, high))
    assert one != two
    plain = re.sub(r"\[[^]]*\]\([^)]*\)", "", PLACEHOLDER.sub("", text))  # without titles of chapters
    typed = [line for line in plain.splitlines() if not line.startswith(("#", "(", "    "))]
    assert not [line for line in typed if RESULT.search(line)], "a typed conclusion"


def test_a_typed_conclusion_is_found():
    texts = ("The subset did as well as all of them.", "Pruning made it worse.", "Its accuracy was lower by 3 points.")
    assert all(map(RESULT.search, texts))


def test_the_lessons_stand_where_the_verdicts_put_them(said):
    low, high = said(-9e6, -8e6), said(8e6, 9e6)
    assert low["lessons do"] != high["lessons do"] and low["lessons doubt"] != high["lessons doubt"]
    assert "63_claims.html#" in high["lessons do"]
    nothing = book.words(paths.RESULTS / "nowhere", "a study without a ledger")
    assert nothing["lessons do"].startswith("Nothing") and "not recorded at this scale" in nothing["lessons open"]


def test_a_verdict_from_a_stale_record_says_so(said, monkeypatch):
    claim = read_claims()[0]
    fresh = book.words(paths.RESULTS / "chapters", "small")[f"verdict {claim.id}"]
    monkeypatch.setattr(book, "stale", lambda study: [claim.notebook])
    found = book.words(paths.RESULTS / "chapters", "small")[f"verdict {claim.id}"]
    assert "from a stale record" in found and "from a stale record" not in fresh


def test_a_study_names_the_chapters_that_it_lacks(tmp_path):
    names = [path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")]
    for name in names[1:]:
        (tmp_path / f"{name}.ipynb").write_text("{}")
    said = book.absent_chapters(tmp_path)
    assert said.startswith(f"1 of {len(names)} chapters") and f"</chapters/{names[0]}>" in said
    assert f"`{names[0]}" not in said  # a reader knows a chapter by its title
    (tmp_path / f"{names[0]}.ipynb").write_text("{}")
    assert book.absent_chapters(tmp_path) == "Every chapter of the study is recorded at this scale."
