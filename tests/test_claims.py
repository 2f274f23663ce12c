"""The papers' numbers, the declared claims and their verdicts. Fast, any machine: pytest tests/test_claims.py"""

import math
import re

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats
from tiny_words import cases

from nli_lib import claims
from nli_lib.claims import RECORD, VERDICTS, ledger, p_value, paper_table, paper_value, read_claims, verdict
from nli_lib.corpora.suites import NAIK_SHARES
from nli_lib.errors import StudyError
from nli_lib.paths import BOOK, NOTEBOOKS
from nli_lib.stats import t_interval

CITED = """wanli zfilter consensus disco difficulty cartography aum snli multinli anli hans sick chaosnli gururangan
    competency poliak minilm sbert breakingnli cad med fever glue berts stresstest varierr"""
HELD, NOT_HELD, INCONCLUSIVE, NOT_JUDGED = VERDICTS
DECLARED = read_claims()
SOUND = {
    **{"id": "wanli-toy", "paper": "wanli", "where": "Table 3", "claim": "Cats sit on mats.", "unit": "share"},
    **{"notebook": "10_data_map", "statistic": "Share of cats on mats; Wilson interval.", "paper_value": 0.7},
    **{"confirm": {"above": 0.5}, "evidence": ["snli"], "min_n": 100}}  # fmt: skip
ENOUGH = {"value": 0.65, "low": 0.6, "high": 0.7, "n": 100, "seeds": 3, "over": "trainings", "corpora": "snli"}
BY_ID = {claim.id: claim for claim in DECLARED}


def test_values_are_unique_and_within_their_units():
    values = claims.paper_values()
    assert values["key"].is_unique
    shares, percents = values[values["unit"] == "accuracy"], values[values["unit"] == "accuracy (%)"]
    assert shares.loc[shares["column"] != "examples", "value"].between(0, 1).all()
    percents = percents[(percents["row"] != "size") & (percents["column"] != "size")]
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
    wanli = paper_table("wanli", "Table 3")[["anli-r1", "anli-r2", "anli-r3"]]
    assert (wanli.loc["wanli"] - wanli.loc["multinli"]).mean() == pytest.approx(9.1, abs=0.05)


def test_table_4_recomposes_table_1_for_multinli():
    levels = paper_table("difficulty", "Table 3")["examples"]
    accuracy = paper_table("difficulty", "Table 4")["roberta-levels"]
    parts = ("easy", "ambiguous", "hard")
    weights = [levels[f"multinli-{level}"] for level in parts]
    whole = np.average([accuracy[f"{level}-multinli-roberta"] for level in parts], weights=weights)
    assert whole == pytest.approx(paper_value("difficulty-table1-multinli-pair"), abs=5e-5)


def test_tables_5_and_6_of_paper_004_weigh_their_kinds_by_size():
    """Fixture F11: one set of weights, the sizes of the stress test's parts, gives every "overall" of both tables."""
    tables = pd.concat([paper_table("difficulty", "Table 5"), paper_table("difficulty", "Table 6")])
    kinds, overall = tables.drop(columns="overall"), tables["overall"]
    assert list(kinds.columns) == list(NAIK_SHARES)
    weights = np.array(list(NAIK_SHARES.values()))
    assert weights.sum() == pytest.approx(1, abs=1e-3)
    fitted = np.linalg.lstsq(kinds.to_numpy(), overall.to_numpy(), rcond=None)[0]
    assert np.abs(kinds @ fitted - overall).max() < 1e-4 and np.abs(weights - fitted).max() < 1e-3
    assert np.abs(kinds.mean(axis=1) - overall).max() > 0.01  # the plain mean is another number


def test_unknown_places_are_errors_that_help():
    with pytest.raises(StudyError, match=r"no number 'wanli-table3-multinli-hanz'.*wanli-table3-multinli-hans"):
        paper_value("wanli-table3-multinli-hanz")
    with pytest.raises(StudyError, match="no number '009-nothing'"):
        paper_value("009-nothing")
    with pytest.raises(StudyError, match=r"no 'Table 9' of paper 'zfilter'.*Table 12"):
        paper_table("zfilter", "Table 9")


@pytest.mark.parametrize(("text", "message"), [
    ("paper: x", "must be a list"),
    ("- {paper: 'wanli', where: T, unit: u, columns: [a], rows: {r: [1, 2]}}", "2 values for 1 columns"),
    ("- {paper: 'wanli', where: T, unit: u, columns: [a], rows: {r: [x]}}", "table 1: field rows.r.0"),
    ("- {paper: 'wanli', where: T, unit: u, columns: [a, a], rows: {r: [1, 2]}}", "appears twice")])  # fmt: skip
def test_a_malformed_file_of_numbers_is_one_error(tmp_path, text, message):
    path = tmp_path / "papers.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        claims.paper_values(path)


def test_every_table_and_figure_of_the_papers_has_a_chapter_or_a_reason():
    listed = yaml.safe_load((BOOK / "exhibits.yaml").read_text(encoding="utf-8"))
    counts = {"wanli": (11, 9), "zfilter": (15, 2), "consensus": (3, 3), "disco": (5, 4), "difficulty": (7, 6)}
    named = {paper: {*(f"Table {n + 1}" for n in range(tables)), *(f"Figure {n + 1}" for n in range(figures))}
             for paper, (tables, figures) in counts.items()}  # fmt: skip
    assert {paper: set(rows) for paper, rows in listed.items()} == named
    sources = {path.stem: path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.ipynb")}
    for row in (row for of in listed.values() for row in of.values()):
        assert set(row) - {"note"} in ({"shows", "chapters"}, {"shows", "without"})  # a comma in a text is a new key
        assert set(row.get("chapters", ())) <= set(sources)
    copied = [(row["paper"], re.match(r"Table \d+", row["where"])) for row in yaml.safe_load(claims.PAPERS.read_text())]
    assert all(table[0] in listed[paper] for paper, table in copied if table and paper in listed)
    for chapter, source in sources.items():
        for paper, table in re.findall(r'paper_table\(\\"(\w+)\\", \\"(Table \d+)', source):
            assert chapter in listed[paper][table]["chapters"], f"{chapter} shows {table} of {paper}"
    read = " ".join([*sources.values(), *(key for claim in read_claims() for key in claim.paper_keys)])
    for each in claims.read_entries(claims.PAPERS, claims.Table):  # nothing is copied in vain
        shown = f'paper_table(\\"{each.paper}\\", \\"{each.where}'
        assert shown in read or claims._key(each, "", "value") in read, f"nobody reads {each.where} of {each.paper}"


def test_every_cited_work_has_an_entry():
    text = (claims.PAPERS.parent / "references.bib").read_text()
    assert [key for key in CITED.split() if text.count(f"{{{key},\n") != 1] == [] and text.count("{") == text.count("}")


# ---------------------------------------------------------------- claims


def written(folder, *entries):
    path = folder / "claims.yaml"
    path.write_text(yaml.safe_dump(list(entries)))
    return path


@pytest.fixture
def toy(tmp_path):
    return read_claims(written(tmp_path, SOUND))[0]


@pytest.mark.parametrize(("confirm", "inside", "across", "outside"), [
    ({"above": 1}, [(1.1, 2)], [(1, 2)], [(0, 1)]), ({"below": 1}, [(0, 0.9)], [(0, 1)], [(1, 3)]),
    ({"between": [0, 1]}, [(0, 1)], [(-0.1, 0.5), (-1, 2)], [(1.1, 2), (-2, -0.1)])])  # fmt: skip
def test_where_an_interval_lies(confirm, inside, across, outside):
    region = claims.Region.model_validate(confirm)
    assert {region.place(*each) for each in inside} == {"inside"}
    assert {region.place(*each) for each in across} == {"across the border of"}
    assert {region.place(*each) for each in outside} == {"outside"}


@pytest.mark.parametrize(("low", "high", "word"),
    [(0.6, 0.7, HELD), (0.3, 0.4, NOT_HELD), (0.4, 0.6, INCONCLUSIVE), (math.nan, math.nan, NOT_JUDGED)])  # fmt: skip
def test_verdicts(toy, low, high, word):
    assert verdict(toy, ENOUGH | {"low": low, "high": high}, "small")[0] == word


@pytest.mark.parametrize(("kind", "change", "scale", "reason"), cases("evidence"))
def test_evidence_that_does_not_suffice(toy, kind, change, scale, reason):
    judged, said = verdict(toy.model_copy(update=kind), ENOUGH | change, scale)
    assert (judged == HELD) if reason is None else (judged == NOT_JUDGED and reason in said)


@pytest.mark.parametrize(("kind", "n", "scale", "beyond"), [
    ("absolute", 100, "small", True), ("absolute", 100, "full", False), ("annotators", 99, "full", True),
    ("annotators", 100, "small", False), ("trained", 99, "small", False)])  # fmt: skip
def test_a_claim_that_no_run_at_this_scale_can_judge_is_marked(toy, kind, n, scale, beyond):
    records = pd.DataFrame([ENOUGH | {"id": "wanli-toy", "n": n}])
    assert ledger([toy.model_copy(update={kind: True})], records, scale)["beyond"].tolist() == [beyond]


def test_a_p_value_is_that_of_the_border_by_t_over_trainings_and_by_the_normal_otherwise(toy):
    values = np.array([0.62, 0.65, 0.68])
    found, error = ENOUGH | t_interval(values)._asdict(), values.std(ddof=1) / np.sqrt(3)
    assert p_value(toy, found) == pytest.approx(stats.ttest_1samp(values, 0.5).pvalue)
    assert claims.detectable(found) == pytest.approx((stats.t(2).ppf(0.975) + stats.norm.ppf(0.8)) * error)
    between = toy.model_copy(update={"confirm": claims.Region(between=(0.5, 0.8))})
    cases = [({"value": x, "low": x - 0.05, "high": x + 0.05}, p) for x, p in ((0.55, 0.05), (0.45, 0.05), (0.5, 1))]
    cases += [({"over": "pairs"}, 2 * stats.norm.sf(3 * 1.95996)), ({"seeds": 1}, 1)]
    for change, p in cases:  # between two borders the nearest decides
        assert p_value(toy, ENOUGH | change) == p_value(between, ENOUGH | change) == pytest.approx(p, rel=1e-3)


def test_a_verdict_that_does_not_survive_the_correction_is_there_beside_the_other(tmp_path):
    sound = read_claims(written(tmp_path, *(SOUND | {"id": f"wanli-{name}"} for name in "abcd")))
    ends = [(0.9, 0.85, 0.95), (0.56, 0.501, 0.619), (0.52, 0.45, 0.59), (0.9, 0.85, 0.95)]
    rows = [(f"wanli-{id}", *end, 500, 3, "trainings", "snli") for id, end in zip("abcd", ends, strict=True)]
    rows[3] = (*rows[3][:-1], "planted")
    table = ledger(sound, pd.DataFrame(rows, columns=RECORD), "small")
    assert table["verdict"].tolist() == [HELD, HELD, INCONCLUSIVE, NOT_JUDGED]
    assert table["corrected"].tolist() == [HELD, INCONCLUSIVE, INCONCLUSIVE, NOT_JUDGED]
    p = np.sort(table["p"][:3]) * 3 / [1, 2, 3]
    assert sorted(table["q"][:3]) == pytest.approx(np.minimum.accumulate(p[::-1])[::-1].tolist())
    assert table["q"].isna().tolist() == [False, False, False, True]


def test_ledger_has_every_claim_once_and_in_order(tmp_path):
    both = read_claims(written(tmp_path, SOUND, SOUND | {"id": "wanli-other"}))
    records = pd.DataFrame([("wanli-toy", 0.65, 0.6, 0.7, 500, 3, "pairs", "snli;hans")], columns=RECORD)
    table = ledger(both, records, "small").set_index("id")
    assert table.index.tolist() == ["wanli-toy", "wanli-other"]
    first = table.loc["wanli-toy", ["value", "verdict", "confirm", "region_low"]]
    assert first.tolist() == [0.65, HELD, "above 0.5", 0.5]
    assert table.loc["wanli-other", ["verdict", "reason"]].tolist() == [NOT_JUDGED, "not recorded"]
    assert ledger(both, records, "smoke")["verdict"].eq(NOT_JUDGED).all()
    assert ledger(both, records.iloc[:0], "small")["verdict"].eq(NOT_JUDGED).all()
    open_ended = ledger(both, records.astype({"low": object}).assign(low=None), "small")
    assert open_ended.loc[0, ["verdict", "reason"]].tolist() == [NOT_JUDGED, "no interval was recorded"]
    for wrong, message in (
        (pd.concat([records, records]), "recorded twice"),
        (pd.concat([records, records]).assign(part="a"), "was recorded twice"),
        (records.assign(id="wanli-toi"), "no claim 'wanli-toi'.*wanli-toy"),
    ):
        with pytest.raises(StudyError, match=message):
            ledger(both, wrong, "small")


@pytest.mark.parametrize(("change", "field", "message"), [
    ({"confirm": {"above": 1, "below": 2}}, "confirm", "exactly one"),
    ({"confirm": {"over": 1}}, "confirm.over", "Extra inputs"),
    ({"confirm": {"between": [2, 1]}}, "confirm", "left side of interval must be"),
    ({"evidence": []}, "evidence", "at least 1"), ({"paper": "zfilter"}, "whole", "does not start with its paper"),
    ({"paper_keys": ["wanli-table3-multinli-hanz"]}, "whole", "no number 'wanli-table3-multinli-hanz'"),
    ({"min_n": 0}, "min_n", "greater than or equal to 1"), ({"colour": "blue"}, "colour", "Extra inputs")])  # fmt: skip
def test_a_malformed_claim_is_one_error_that_names_claim_and_field(tmp_path, change, field, message):
    with pytest.raises(StudyError) as error:
        read_claims(written(tmp_path, SOUND | change))
    assert f"claim wanli-toy: field {field}:" in str(error.value) and message in str(error.value)


def test_other_broken_files(tmp_path):
    texts = {"- id: [": "not valid YAML", "id: one": "must be a list", "- word": "claim 1"}
    texts[yaml.safe_dump([SOUND, SOUND])] = "appears twice"
    missing = {key: value for key, value in SOUND.items() if key != "unit"}
    texts[yaml.safe_dump([missing])] = "claim wanli-toy: field unit: Field required"
    for text, message in texts.items():
        (tmp_path / "claims.yaml").write_text(text)
        with pytest.raises(StudyError, match=message):
            read_claims(tmp_path / "claims.yaml")


def test_the_declared_claims():
    counts = pd.Series([claim.paper for claim in DECLARED]).value_counts()
    assert counts["wanli"] >= 7 and counts["zfilter"] >= 5 and counts["difficulty"] >= 10
    assert len({claim.claim for claim in DECLARED}) == len(DECLARED), "a reader could not tell two claims apart"
    chapters = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert {claim.notebook for claim in DECLARED} - chapters <= {"53_across_encoders"}  # declared before it is written
    assert BY_ID["wanli-fig9-wanli-spread"].confirm.above == 0


@pytest.mark.parametrize("claim", DECLARED, ids=lambda claim: claim.id)
def test_each_declared_claim_would_be_confirmed_by_the_papers_own_value(claim):
    for key in claim.paper_keys:
        assert math.isfinite(paper_value(key))
    if isinstance(claim.paper_value, float):
        assert claim.confirm.place(claim.paper_value, claim.paper_value) == "inside"


@pytest.mark.parametrize(("claim_id", "key", "first", "second", "unit"), [
    ("wanli-sec4.1-hypothesis-only-lower", "wanli-sec4.1-hypothesis-only-{}", "wanli", "multinli", 100),
    ("zfilter-table2-hard-below-test", "zfilter-table2-baseline-{}", "snli-hard", "snli", 100),
    ("difficulty-table1-premise-adds", "difficulty-table1-snli-{}", "pair", "hypothesis", 1),
    ("difficulty-table1-snli-gives-away-more", "difficulty-table1-{}-hypothesis", "snli", "multinli", 1)])  # fmt: skip
def test_differences_stated_as_the_papers_value_follow_from_its_numbers(claim_id, key, first, second, unit):
    difference = (paper_value(key.format(first)) - paper_value(key.format(second))) / unit
    assert BY_ID[claim_id].paper_value == pytest.approx(difference, abs=1e-9)


def part_of(name, low, high, **more):
    return {**ENOUGH, "id": "wanli-toy", "part": name, "value": (low + high) / 2, "low": low, "high": high, **more}


@pytest.mark.parametrize(("parts", "word", "decides", "said"), [
    ([("a", 0.6, 0.7), ("b", 0.55, 0.9)], HELD, "b", "2 of 2 parts hold"),
    ([("a", 0.6, 0.7), ("b", 0.45, 0.9)], INCONCLUSIVE, "b", "1 of 2 parts hold"),
    ([("a", 0.3, 0.4), ("b", 0.45, 0.9), ("c", 0.6, 0.7)], NOT_HELD, "a", "1 of 3 parts hold")])  # fmt: skip
def test_a_claim_in_parts_holds_when_all_parts_hold(toy, parts, word, decides, said):
    records = [part_of(*each) for each in parts]
    verdict_, reason, part = claims.judge(toy, records, "small")
    assert (verdict_, part["part"]) == (word, decides) and reason.startswith(f"{decides}: ") and reason.endswith(said)
    row = ledger([toy], pd.DataFrame(records), "small").iloc[0]
    assert (row["verdict"], row["low"]) == (word, part["low"])


def test_a_part_that_cannot_be_judged_leaves_the_claim_open(toy):
    assert claims.judge(toy, [part_of("a", 0.6, 0.7), part_of("b", 0.1, 0.2, n=5)], "small")[0] == NOT_JUDGED
