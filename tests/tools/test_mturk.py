"""HITs go to Mechanical Turk, results come back. Run alone: pytest tests/tools/test_mturk.py"""

import csv
import html
import re
import string

import pandas as pd
import pytest
from small_reviews import NASTY, corpus

from nli_lib.generate.review import NEEDED, SIDES, ReviewError, pairs, queue
from nli_tools.review import INPUT, PAGE, read_results, write_hits

MADE = pairs(corpus([*NASTY, "+1 day", "A dog runs."]))
# the columns of a results csv before the Input and Answer ones, as the requester's site writes them
COLUMNS = re.findall(
    r"\w+",
    "HITId HITTypeId Title Description Keywords Reward CreationTime MaxAssignments RequesterAnnotation "
    "AssignmentDurationInSeconds AutoApprovalDelayInSeconds Expiration NumberOfSimilarHITs LifetimeInSeconds "
    "AssignmentId WorkerId AssignmentStatus AcceptTime SubmitTime AutoApprovalTime ApprovalTime RejectionTime "
    "RequesterFeedback WorkTimeInSeconds LifetimeApprovalRate Last30DaysApprovalRate Last7DaysApprovalRate",
)


def rows_of(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def results(path, hits, answers, workers=("W9", "W2"), status="Submitted"):
    """A results csv: each worker answers each HIT; answers(worker, item) is (label, revised texts)."""
    rows = []
    for hit, given in enumerate(hits):
        for worker in workers:
            row = dict.fromkeys(COLUMNS, "") | {"HITId": f"H{hit}", "AssignmentId": f"{hit}{worker}"}
            row |= {"WorkerId": worker, "AssignmentStatus": status, **{f"Input.{k}": v for k, v in given.items()}}
            for at in range(1, 6):
                if given[f"item{at}"]:
                    label, left = answers(worker, html.unescape(given[f"item{at}"]))
                    shown = {side: html.unescape(given[f"{side}{at}"]).replace("\r\n", "\n") for side in SIDES} | left
                    row |= {f"Answer.label{at}": label} | {f"Answer.{side}{at}": shown[side] for side in SIDES}
            rows.append(row | {"Approve": "", "Reject": ""})
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def answers(worker, item):
    if (worker, item) == ("W2", "p1"):
        return "discard", {}
    return ("neutral", {"premise": 'Revised, "really"\nso.'}) if item == "p2" else ("entailment", {})


@pytest.fixture
def hits(tmp_path):
    path, _ = write_hits(tmp_path, MADE)
    return rows_of(path)


def test_what_was_answered_comes_back(tmp_path, hits):
    found = read_results([results(tmp_path / "results.csv", hits, answers)], MADE)
    rows = []
    for start in range(0, len(MADE), 5):
        for worker, alias in (("W9", "mturk-2"), ("W2", "mturk-1")):
            for pair in queue(MADE)[start : start + 5]:
                label, left = answers(worker, pair["item"])
                texts = {f"revised_{side}": left.get(side, pair[side]) for side in SIDES}
                said = {"label": None if label == "discard" else label, "discarded": label == "discard"}
                rows.append({**pair, "annotator": alias, **texts, **said})
    pd.testing.assert_frame_equal(found, pd.DataFrame(rows, columns=list(NEEDED)), check_dtype=False)
    assert found["premise"].isin(MADE["premise"]).all()


def test_nothing_in_a_text_is_run_by_a_page_or_a_spreadsheet(tmp_path, hits):
    texts = [text for hit in hits for name, text in hit.items() if not name.startswith("item")]
    assert any("&#60;script&#62;" in text for text in texts)
    for text in filter(None, texts):
        assert text[0] not in "=-+@\t\r\n" and not set(text) & set("<>\"'$\t\r\n") and text.isascii()
    shown = {html.unescape(text) for text in texts} - {""}
    assert shown == {*MADE["premise"], *MADE["hypothesis"]}
    assert len((tmp_path / INPUT).read_text().splitlines()) == 3  # no line end inside a field: header and two HITs


def test_the_page_names_every_column_once_and_has_a_field_for_each_answer(tmp_path, hits):
    page = (tmp_path / PAGE).read_text()
    wanted = {name.group("braced") for name in string.Template.pattern.finditer(page)}
    assert wanted == set(hits[0]) and len(wanted) == 15
    assert all(page.count(f'name="label{at}"') == 4 and page.count(f'name="premise{at}"') == 1 for at in range(1, 6))
    assert '<textarea name="premise1" rows="3">\n${premise1}<' in page  # HTML drops one line end after the tag


def test_rejected_and_unqualified_work_does_not_count(tmp_path, hits):
    one = results(tmp_path / "one.csv", hits, answers, workers=["W2"])
    two = results(tmp_path / "two.csv", hits, answers, workers=["W9"], status="Rejected")
    assert set(read_results([one, two], MADE)["annotator"]) == {"mturk-1"}
    both = results(tmp_path / "both.csv", hits, answers)
    assert set(read_results([both], MADE, qualified={"W9"})["annotator"]) == {"mturk-2"}
    assert read_results([], MADE).empty


def test_fewer_pairs_than_a_hit_holds(tmp_path):
    made = MADE.iloc[:2]
    path, _ = write_hits(tmp_path, made)
    file = results(tmp_path / "r.csv", rows_of(path), answers)  # has no column for the answers to examples 3 to 5
    assert read_results([file], made)["item"].nunique() == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="WorkerId"), "column WorkerId is missing"),
        (lambda t: t.drop(columns="Answer.label2"), "column Answer.label2 is missing"),
        (lambda t: t.drop(columns="Input.premise1"), "column Input.premise1 is missing"),
        (
            lambda t: t.assign(**{f"Answer.label{at}": "2" for at in range(1, 6)}),
            "no answer can be used: label '2', which is none of entailment.* the first in .*r.csv: row 1, example 1",
        ),
        (lambda t: t.assign(**{"Input.item1": "x"}), "row 1, example 1, item: there is no pair 'x'"),
        (lambda t: t.assign(**{"Input.premise1": "x"}), "row 1, example 1, premise: the text of pair .* was another"),
    ],
)
def test_what_are_no_results_of_this_review_is_named(tmp_path, hits, change, said):
    path = results(tmp_path / "r.csv", hits, answers)
    change(pd.read_csv(path, dtype=str, keep_default_na=False)).to_csv(path, index=False)
    with pytest.raises(ReviewError, match=f"r.csv: {said}"):
        read_results([path], MADE)
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReviewError, match="b.csv is no csv in UTF-8"):
        read_results([tmp_path / "b.csv"], MADE)
    with pytest.raises(ReviewError, match="c.csv cannot be read"):
        read_results([tmp_path / "c.csv"], MADE)


def test_rows_with_more_fields_than_the_header_are_named(tmp_path, hits):
    path = results(tmp_path / "r.csv", hits, answers)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *(f"{row},x" for row in rows)]) + "\n")
    with pytest.raises(ReviewError, match=r"r.csv: the rows have more fields than the header"):
        read_results([path], MADE)


def test_answers_that_say_no_one_label_are_counted(tmp_path, hits, capsys):
    path = results(tmp_path / "r.csv", hits, answers)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    whole = read_results([path], MADE)
    table.loc[0, ["Answer.label1", "Answer.label2"]] = ["", "2"]
    table.loc[3, "WorkerId"] = ""
    pd.concat([table, table.iloc[1:2]]).to_csv(path, index=False)
    found = read_results([path], MADE)
    pd.testing.assert_frame_equal(found, whole.drop(index=[0, 1, *whole.index[-2:]]).reset_index(drop=True))
    assert capsys.readouterr().out == (
        f"{path}: left out: no label (1, the first in {path}: row 1, example 1); label '2', which is none of "
        f"entailment, neutral, contradiction, discard (1, the first in {path}: row 1, example 2); no annotator (2, the "
        f"first in {path}: row 4, example 1); an answer that was given before (5, the first in {path}: row 5, example "
        "1).\n"
    )
