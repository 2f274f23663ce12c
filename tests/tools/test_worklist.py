"""The page of suspects as a file, and the widget's file of decisions. What they do in a browser: tests/browser."""

import re

import numpy as np
import pandas as pd
import pytest

from nli_tools.suspects import read_page, worklist, write_page

CLASSES = ("entailment", "neutral", "contradiction")
NASTY = '</script><script>alert(1)</script><!-- {{ 7*7 }} \u2028 "q" é'


def table(count=6):
    rows = {"rank": np.arange(1, count + 1), "uid": [f"u{at}" for at in range(count)]}
    texts = {"premise": NASTY, "hypothesis": "=1+1", "gold": "neutral", "predicted": "entailment", "kind": "P0G1"}
    return pd.DataFrame(rows).assign(**texts, gap=np.arange(count, 0, -1.0), p_gold=0.1, fold=0, pruned=False)


def made(rows, **more):
    return worklist(rows, classes=CLASSES, title="<b>", **more)


def test_a_page_holds_the_list_and_no_text_of_it_is_markup(tmp_path):
    found = made(table(), said=["One."], warning="Not better.")
    page = write_page(tmp_path / "suspects.html", found)
    text = page.read_text(encoding="utf-8")
    assert read_page(page) == found
    assert found["rows"][0]["premise"] == NASTY
    assert len(re.findall("<script", text)) == 2 and "alert(1)</script>" not in text and "<!--" not in text
    assert "<title>&lt;b&gt;</title>" in text
    assert re.search(r"https?://", re.sub(r"http://www.w3.org\S*", "", text)) is None  # nothing is fetched
    assert "default-src 'none'" in text


def test_a_long_list_keeps_its_first_rows_and_every_decided_one():
    rows = table().assign(decision=["", "", "", "", "", "keep"], note=["", "", "", "hm", "", ""], when="")
    found = made(rows, most=2)
    assert [row["uid"] for row in found["rows"]] == ["u0", "u1", "u3", "u5"]
    assert [(uid, each["decision"], each["note"]) for uid, each in found["made"]] == [
        ("u3", "", "hm"),
        ("u5", "keep", ""),
    ]
    assert all(each["when"] for _, each in found["made"])  # else a browser could not tell which decision is the later
    assert found["said"] == ["This page holds 4 of 6 suspects; suspects.csv holds all of them."]


def test_decisions_are_kept_under_a_key_of_the_list_and_not_of_its_order():
    rows = table()
    key = made(rows)["key"]
    assert made(rows.iloc[::-1].assign(decision="keep"))["key"] == key
    assert made(rows.assign(predicted="contradiction"))["key"] != key
    assert worklist(rows, classes=CLASSES, title="other")["key"] != key


def test_the_widget_writes_what_is_decided_and_reads_it_again(tmp_path):
    pytest.importorskip("anywidget")
    from nli_tools.explorer import suspects_widget
    from nli_tools.own_corpus import IntegrationError

    with pytest.raises(IntegrationError, match="holds no suspects.html"):
        suspects_widget(tmp_path)
    rows = table().assign(uid=["=u0", *(f"u{at}" for at in range(1, 6))])
    write_page(tmp_path / "suspects.html", made(rows))
    widget = suspects_widget(tmp_path)
    assert widget.made == [] and not widget.file.exists()
    given = {"decision": "fix", "fix_to": "entailment", "note": "=x", "when": "2026", "learnt": ""}
    widget.made = [["=u0", given], ["u3", {**given, "decision": "", "fix_to": "", "note": ""}]]  # one taken back
    found = pd.read_csv(widget.file, keep_default_na=False)
    assert found["uid"].tolist() == ["'=u0"] and found["note"].tolist() == ["'=x"]
    assert found["premise"].tolist() == [NASTY] and found["hypothesis"].tolist() == ["'=1+1"]
    assert suspects_widget(tmp_path).made == [["=u0", given]]
    widget.file.write_text("id\n1\n")
    with pytest.raises(IntegrationError, match="decisions.csv has no column 'uid'"):
        suspects_widget(tmp_path)


def test_a_decision_that_cannot_be_written_is_said(tmp_path):
    pytest.importorskip("anywidget")
    from nli_tools.explorer import suspects_widget

    write_page(tmp_path / "suspects.html", made(table()))
    widget = suspects_widget(tmp_path)
    widget.file = tmp_path / "suspects.html" / "decisions.csv"  # below a file
    widget.made = [["u0", {"decision": "keep", "fix_to": "", "note": "", "when": "", "learnt": ""}]]
    assert widget.fault.startswith("Not written: ")
