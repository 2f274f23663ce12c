"""Decisions of a reviewer, and the list of suspects in the order learnt from them."""

import json

import pandas as pd
import pytest

from nli_lib.store import StoreError
from nli_tools.own_corpus import IntegrationError
from nli_tools.suspects import ASIDE, joined, kept, read_decisions, reorder

SUSPECTS = [  # uid, kind, gap: the first order
    ("a", "P0G2", 6.0),
    ("b", "P1G0", 5.0),
    ("c", "P0G2", 4.0),
    ("d", "P1G0", 3.0),
    ("e", "P0G2", 2.0),
    ("=f", "P1G0", 1.0),
]


@pytest.fixture
def folder(tmp_path):
    rows = [
        {"rank": at, "uid": uid, "premise": "P", "hypothesis": "-H", "kind": kind, "gap": gap}
        for at, (uid, kind, gap) in enumerate(SUSPECTS, 1)
    ]
    (tmp_path / "suspects.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def decide(folder, text):
    path = folder / "decided.csv"
    path.write_text(text, encoding="utf-8-sig")  # as a spreadsheet saves it
    return read_decisions(path)


def test_the_kind_that_was_right_goes_to_the_end(folder):
    said = reorder(folder, decide(folder, "uid,decision\na,keep\nb, Fix \nc,\nd,\n"))
    assert said == ("2 decisions (1 fix, 1 keep, 0 ambiguous). The other 4 suspects are in the order learnt from them.")
    table = pd.read_csv(folder / "suspects.csv", keep_default_na=False)
    assert table["uid"].tolist() == ["d", "'=f", "c", "e", "a", "b"]
    assert table["rank"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["decision"].tolist() == ["", "", "", "", "keep", "fix"]
    lines = [json.loads(line) for line in (folder / "suspects.jsonl").read_text().splitlines()]
    assert lines[1] == {
        "rank": 2, "uid": "=f", "premise": "P", "hypothesis": "-H", "kind": "P1G0", "gap": 1.0, "decision": "",
        "learnt": "",
    }  # fmt: skip
    assert reorder(folder, decide(folder, "uid,decision\na,keep\nb,fix\n")) == said  # again, the same


def test_without_both_answers_the_order_is_that_of_the_gap(folder):
    said = reorder(folder, decide(folder, "uid,decision\nb,fix\nc,ambiguous\nz,keep\n"))
    assert f"2 decisions (1 fix, 0 keep, 1 ambiguous; set aside in {ASIDE}, for" in said and "list: 1)." in said
    assert said.endswith("The other 4 suspects are in the order of the gap, until one label was fixed and one kept.")
    assert pd.read_csv(folder / "suspects.csv")["uid"].tolist() == ["a", "d", "e", "'=f", "b", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("uid\na\n", "has no column 'decision'. Add a column named decision to suspects.csv, and write fix, keep"),
        ("id,decision\na,fix\n", "has no column 'uid'"),
        ("uid,decision\na,keep\nb,wrong\n", "decided.csv, row 3, decision 'wrong': write fix, keep, ambiguous or"),
        ("uid,decision\na,keep\na,fix\n", "row 3, uid 'a' is decided twice"),
        ("uid,decision,fix_to\na,,neutral\n", "row 2, fix_to 'neutral' stands beside the decision '': write fix there"),
    ],
)
def test_what_cannot_be_used_is_one_message(folder, text, said):
    with pytest.raises(IntegrationError, match=said):
        decide(folder, text)
    with pytest.raises(StoreError, match=r"none.csv cannot be read as a csv: .*No such file"):
        read_decisions(folder / "none.csv")
    with pytest.raises(StoreError, match="cannot be read as a csv: No columns"):
        decide(folder, "")


def test_decisions_in_the_list_itself_are_kept(folder):
    assert kept(folder) is None  # there is no list yet
    reorder(folder, decide(folder, "uid,decision\na,keep\nb,fix\n=f,keep\n"))
    assert "'=f" in (folder / "suspects.csv").read_text()  # as a spreadsheet shows it, and saves it
    assert kept(folder)["decision"].to_dict() == {"a": "keep", "b": "fix", "=f": "keep"}
    (folder / "suspects.csv").write_text("uid,decision\na,\nb,\n")
    assert kept(folder) is None
    (folder / "suspects.csv").write_text("uid,decision\na,fixx\n")
    with pytest.raises(IntegrationError, match=r"suspects.csv, row 2, decision 'fixx'"):
        kept(folder)
    (folder / "suspects.csv").write_text('"uid";"decision"\n"a";"fix"\n')  # as some spreadsheets save a csv
    assert kept(folder)["decision"].to_dict() == {"a": "fix"}
    (folder / "suspects.csv").write_text("uid,gap\na,1\n")
    assert kept(folder) is None


def test_a_note_without_a_decision_stays_with_its_label(folder):
    said = reorder(folder, decide(folder, "uid,decision,note\na,keep,sure\nb,fix,\nc,,ask Eva\nz,,gone\n"))
    assert said.startswith("2 decisions (1 fix, 1 keep, 0 ambiguous). The other 4")
    written = pd.read_csv(folder / "suspects.csv", keep_default_na=False).set_index("uid")
    assert written["note"].to_dict() == {"a": "sure", "b": "", "c": "ask Eva", "d": "", "e": "", "'=f": ""}
    assert written.loc["c", "decision"] == ""
    again = kept(folder)
    assert again["note"].to_dict() == {"z": "gone", "c": "ask Eva", "a": "sure", "b": ""}
    later = decide(folder, "uid,decision,note\na,,only a thought\nd,,new\n")
    assert joined(again, later)["decision"].to_dict() == {"z": "", "c": "", "a": "keep", "b": "fix", "d": ""}


def test_a_decision_waits_while_its_label_is_not_in_the_list(folder):
    reorder(folder, decide(folder, "uid,decision,note\na,keep,sure\nb,fix,\n"))
    whole = (folder / "suspects.jsonl").read_text()
    lines = [line for line in whole.splitlines() if json.loads(line)["uid"] not in "ab"]
    (folder / "suspects.jsonl").write_text("\n".join(lines) + "\n")  # another list, of other models
    assert "0 decisions" in reorder(folder, kept(folder)) and len(pd.read_csv(folder / ASIDE)) == 2
    (folder / "suspects.jsonl").write_text(whole)
    assert reorder(folder, kept(folder)).startswith("2 decisions (1 fix, 1 keep, 0 ambiguous).")
    table = pd.read_csv(folder / "suspects.csv", keep_default_na=False).set_index("uid")
    assert table.loc["a", "note"] == "sure" and not (folder / ASIDE).exists()


def test_a_decision_on_another_text_is_set_aside(folder):
    """Without ids of its own a corpus names its pairs by their rows: the row before them is gone, and b is another."""
    text = "uid,decision,premise,hypothesis\na,keep,P,'-H\nb,fix,Q,'-H\nc,keep,,\nd,fix, P ,'-H\n"
    said = reorder(folder, decide(folder, text))
    assert said.startswith(f"3 decisions (1 fix, 2 keep, 0 ambiguous; set aside in {ASIDE}")
    table = pd.read_csv(folder / "suspects.csv", keep_default_na=False).set_index("uid")
    assert table["decision"].to_dict() == {"b": "", "e": "", "'=f": "", "a": "keep", "c": "keep", "d": "fix"}
    assert pd.read_csv(folder / ASIDE)["premise"].tolist() == ["Q"]
