"""When a claim was declared, by git. Alone: pytest tests/study/test_declarations.py"""

import os
import subprocess

import pandas as pd
import pytest
from cells import functions

from nli_lib import paths
from nli_lib.claims import Claim, read_claims

CELLS = functions("63_claims")
CLAIM = {
    "paper": "wanli", "where": "Table 3", "claim": "Cats sit on mats.", "notebook": "10_data_map",
    "statistic": "Share of cats on mats; Wilson interval.", "unit": "share", "paper_value": 0.7, "evidence": ["snli"],
}  # fmt: skip


def unfounded(claims, history):
    """What contradicts "declared before" in the history, one sentence a claim; empty when nothing does."""
    known, found = history.set_index("id").to_dict("index"), []
    for claim in claims:
        row = known.get(claim.id, {})
        if claim.declared == "after" or not row.get("recorded_in"):
            continue
        if not row["declared_in"] or pd.Timestamp(row["declared_on"]) >= pd.Timestamp(row["recorded_on"]):
            found.append(f"{claim.id}: first recorded in {row['recorded_in']}, declared in {row['declared_in']}")
        elif row["confirmed_then"] not in (None, str(claim.confirm)):
            then = f"{claim.id}: confirmed by values {row['confirmed_then']} when it was first recorded"
            found.append(f"{then}, by values {claim.confirm} now")
    return found


def claim(id, above=0.5, **more):
    return Claim.model_validate({**CLAIM, "id": id, "confirm": {"above": above}, **more})


@pytest.fixture
def project(tmp_path):
    """commit(day, file, text) writes a file and commits it at noon of that day in January."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    def commit(day, file, text):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        time = f"2026-01-{day:02}T12:00:00+00:00"
        person = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **person, "GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
        for words in (["add", "."], ["commit", "-qm", "x"]):
            subprocess.run(["git", "-C", str(tmp_path), *words], check=True, env=environment)

    return tmp_path, commit


def declared(*claims):
    return "\n".join(f"- id: {id}\n  confirm: {{above: {above}}}" for id, above in claims) + "\n"


def recorded(*ids):
    return "id,value\n" + "".join(f"{id},0.6\n" for id in ids)


def test_the_first_commits_count_and_an_old_id_is_the_same_claim(project):
    home, commit = project
    commit(1, "book/claims.yaml", declared(("000-one", 0.5)))
    commit(2, "data/results/small/10_data_map.claims.csv", recorded("000-one"))
    commit(3, "book/claims.yaml", declared(("wanli-one", 0.5), ("wanli-two", 0.5)))
    commit(4, "data/results/small/10_data_map.claims.csv", recorded("wanli-one"))
    one, two = CELLS.declarations(home).to_dict("records")
    assert (one["id"], one["declared_on"][:10], one["recorded_on"][:10]) == ("wanli-one", "2026-01-01", "2026-01-02")
    assert (two["id"], two["declared_on"][:10], two["recorded_in"]) == ("wanli-two", "2026-01-03", None)
    assert one["confirmed_then"] == "above 0.5"


def test_before_is_refused_where_the_record_came_first_or_with_it_or_the_values_changed(project):
    home, commit = project
    commit(1, "data/results/small/10_data_map.claims.csv", recorded("wanli-late"))
    commit(2, "book/claims.yaml", declared(("wanli-late", 0.5), ("wanli-moved", 0.5), ("wanli-sound", 0.5)))
    commit(3, "data/results/small/16_artifacts.claims.csv", recorded("wanli-moved", "wanli-sound"))
    both = declared(("wanli-late", 0.5), ("wanli-moved", 0.4), ("wanli-sound", 0.5), ("wanli-same", 0.5))
    (home / "data/results/small/20_z.claims.csv").write_text(recorded("wanli-same"))
    commit(4, "book/claims.yaml", both)
    ids = [("wanli-new", 0.5), ("wanli-late", 0.5), ("wanli-moved", 0.4), ("wanli-sound", 0.5), ("wanli-same", 0.5)]
    history = CELLS.declarations(home)
    refused = unfounded([claim(*each) for each in ids], history)
    assert [said.partition(":")[0] for said in refused] == ["wanli-late", "wanli-moved", "wanli-same"]
    assert "above 0.5 when it was first recorded, by values above 0.4 now" in refused[1]
    assert unfounded([claim(*each, declared="after") for each in ids], history) == []


def test_without_a_history_nothing_is_known(project, tmp_path):
    home, commit = project
    assert CELLS.declarations(tmp_path / "nowhere").columns.tolist() == CELLS.COLUMNS
    for day in (1, 2):
        commit(day, "book/claims.yaml", declared((f"wanli-{day}", 0.5)))
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", home.as_uri(), str(shallow)], check=True)
    assert CELLS.declarations(shallow).empty, "its one commit would seem to have declared and recorded everything"
    assert unfounded([claim("wanli-1")], CELLS.declarations(shallow)) == []


def test_no_claim_of_this_project_says_before_and_was_not():
    history = CELLS.declarations(paths.HOME)
    if history.empty:
        pytest.skip("no git history here, or only a part of it")
    assert unfounded(read_claims(), history) == []
