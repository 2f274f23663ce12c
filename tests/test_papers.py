"""Fast, any machine: pytest tests/test_papers.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.claims import PAPERS, PaperError, paper_table, paper_value, paper_values
from nli_lib.corpora.suites import NAIK_SHARES

CITED = (
    "wanli",
    "zfilter",
    "consensus",
    "disco",
    "difficulty",
    "cartography",
    "aum",
    "snli",
    "multinli",
    "anli",
    "hans",
    "sick",
    "chaosnli",
    "gururangan",
    "competency",
    "poliak",
    "minilm",
    "sbert",
    "breakingnli",
    "cad",
    "med",
    "fever",
    "glue",
    "berts",
    "stresstest",
    "varierr",
)


def test_values_are_unique_and_within_their_units():
    values = paper_values()
    assert values["key"].is_unique
    shares, percents = values[values["unit"] == "accuracy"], values[values["unit"] == "accuracy (%)"]
    shares = shares[~shares["column"].isin(["examples"])]
    percents = percents[(percents["row"] != "size") & (percents["column"] != "size")]
    assert shares["value"].between(0, 1).all()
    assert percents["value"].between(0, 100).all()


def test_sums_that_the_papers_imply():
    sizes = paper_table("wanli", "Table 2")
    assert (sizes[["entailment", "neutral", "contradiction"]].sum(axis=1) == sizes["size"]).all()
    assert sizes["size"].sum() == paper_value("wanli-sec2.4-labeled")
    benchmark = paper_table("zfilter", "Table 5").loc["baseline"]
    assert benchmark.drop("average").mean() == pytest.approx(benchmark["average"], abs=0.05)
    levels = paper_table("difficulty", "Table 3")["examples"]
    for corpus, total in (("snli", 9824), ("multinli", 9815), ("fever", 19998)):
        assert levels[levels.index.str.startswith(corpus)].sum() == total
    hans = paper_table("zfilter", "Table 4")["hans"]
    assert hans["bert-base-mnli-seq-z"] - hans["bert-base-mnli"] == pytest.approx(13.33)
    wanli = paper_table("wanli", "Table 3")
    rounds = [f"anli-r{i}" for i in (1, 2, 3)]
    assert (wanli.loc["wanli", rounds] - wanli.loc["multinli", rounds]).mean() == pytest.approx(9.1, abs=0.05)


def test_table_4_recomposes_table_1_for_multinli():
    levels, accuracy = (
        paper_table("difficulty", "Table 3")["examples"],
        paper_table("difficulty", "Table 4")["roberta-levels"],
    )
    weights = [levels[f"multinli-{level}"] for level in ("easy", "ambiguous", "hard")]
    parts = [accuracy[f"{level}-multinli-roberta"] for level in ("easy", "ambiguous", "hard")]
    whole = sum(w * a for w, a in zip(weights, parts, strict=True)) / sum(weights)
    assert whole == pytest.approx(paper_value("difficulty-table1-multinli-pair"), abs=5e-5)


def test_tables_5_and_6_of_paper_004_weigh_their_kinds_by_size():
    """Fixture F11: one set of weights, the sizes of the stress test's parts, gives every "overall" of both tables."""
    tables = pd.concat([paper_table("difficulty", "Table 5"), paper_table("difficulty", "Table 6")])
    kinds, overall = tables.drop(columns="overall"), tables["overall"]
    assert list(kinds.columns) == list(NAIK_SHARES)
    weights = np.array(list(NAIK_SHARES.values()))
    assert weights.sum() == pytest.approx(1, abs=1e-3)
    fitted = np.linalg.lstsq(kinds.to_numpy(), overall.to_numpy(), rcond=None)[0]
    assert np.abs(kinds @ fitted - overall).max() < 1e-4
    assert np.abs(weights - fitted).max() < 1e-3
    assert np.abs(kinds.mean(axis=1) - overall).max() > 0.01  # the plain mean is another number


def test_unknown_places_are_errors_that_help():
    with pytest.raises(PaperError, match=r"no number 'wanli-table3-multinli-hanz'.*wanli-table3-multinli-hans"):
        paper_value("wanli-table3-multinli-hanz")
    with pytest.raises(PaperError, match=r"no 'Table 9' of paper 'zfilter'.*Table 12"):
        paper_table("zfilter", "Table 9")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paper: x", "must be a list"),
        ("- {paper: 'wanli', where: T, unit: u, columns: [a], rows: {r: [1, 2]}}", "2 values for 1 columns"),
        ("- {paper: 'wanli', where: T, unit: u, columns: [a], rows: {r: [x]}}", "table 1: field rows.r.0"),
        ("- {paper: 'wanli', where: T, unit: u, columns: [a, a], rows: {r: [1, 2]}}", "appears twice"),
    ],
)
def test_a_malformed_file_is_one_error(tmp_path, text, message):
    path = tmp_path / "papers.yaml"
    path.write_text(text)
    with pytest.raises(PaperError, match=message):
        paper_values(path)


def test_every_cited_work_has_an_entry():
    text = (PAPERS.parent / "references.bib").read_text()
    for key in CITED:
        assert text.count(f"{{{key},\n") == 1
    assert text.count("{") == text.count("}")
