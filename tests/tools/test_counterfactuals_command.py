"""From a file to counterfactuals for review. Alone: pytest tests/tools/test_counterfactuals_command.py"""

import json
import shlex
from functools import partial

import pandas as pd
import pytest
from audited import exit_code

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.generate import llm, perturb
from nli_lib.generate.perturb import IN_HYPOTHESIS
from nli_lib.generate.review import pairs
from nli_lib.select.selection import KEPT, SMALL
from nli_lib.study import runner
from nli_tools import generate

LABELS = ("entailment", "neutral", "contradiction")
REASONS = ["the request failed: Timeout", IN_HYPOTHESIS, SMALL]


def written(folder, kept=4):
    """What chapter 41 exports: three that were dropped, each for another reason, and some that were kept."""
    folder.mkdir(parents=True, exist_ok=True)
    n = kept + len(REASONS)
    rows = pd.DataFrame(
        {
            "uid": [f"7>neutral@{at}-9" for at in range(n)],
            "premise": [None, *(f"Dog {at} runs." for at in range(1, n))],
            "hypothesis": [f"Dog {at} moves." for at in range(n)],
            "label": [at % 3 for at in range(n)],
            "intended_label": [LABELS[at % 3] for at in range(n)],
            "origin_uid": "7",
            "origin_corpus": "mine",
            "origin_premise": "A cat runs.",
            "origin_label": "entailment",
            "maker": "smollm2",
            "direction": "e2n",
            "span": "A cat",
            "generation": "Dog",
            "text": [None, *["Dog"] * (n - 1)],
            "reason": [*REASONS, *[KEPT] * kept],
            "shift": [None, None, 0.01, *(0.2 + at / 100 for at in range(kept))],
        }
    )
    rows.to_parquet(folder / "41_perturb_and_filter.written.parquet")


@pytest.fixture
def mine(home, monkeypatch, tmp_path):
    """A user's file; chapters that would run are listed, end well, and leave what `written` writes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(llm.ADDRESS, raising=False)
    monkeypatch.setattr(llm, "weights", lambda model: "here")
    monkeypatch.setattr(perturb, "check_parser", lambda: None)
    asked = []

    def fake(names, request, jobs=1):
        asked.append((names[0], request))
        written(paths.EXPORTS / request.study)
        return [runner.Outcome(names[0], "finished")]

    monkeypatch.setattr(runner, "run", fake)
    monkeypatch.setattr(runner, "stale", lambda name, request: ["never run"])
    rows = [f"Person {at} walks,Person {at} moves {label},{label}" for at in range(20) for label in LABELS]
    (tmp_path / "mine.csv").write_text("\n".join(["premise,hypothesis,label", *rows]) + "\n")
    return asked


call = partial(exit_code, "counterfactuals")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_from_a_file_to_pairs_that_can_be_reviewed(mine, monkeypatch, capsys):
    assert call(monkeypatch, "mine.csv", "--n", "3", "--model", "larger") == 0
    assert [name for name, _ in mine] == list(generate.DISCO_CHAPTERS)
    asks, filters = (request for _, request in mine)
    assert asks.others == {"ORIGINALS": 3} and filters.others == {"GENERATOR": "larger"}
    assert {(request.scale, request.seeds) for _, request in mine} == {("small", 2)}
    said = capsys.readouterr().out
    assert "Of 7 perturbations that were asked for 6 were written, and 3 are kept." in said
    kept = paths.EXPORTS / asks.study / generate.COUNTERFACTUALS
    line = said.strip().splitlines()[-1]
    assert shlex.split(line.partition("with: ")[2]) == ["nli-study", "review", str(kept), "--annotator", "NAME"]
    assert [row["shift"] for row in lines(kept)] == [0.23, 0.22, 0.21]  # the largest shift first
    queue = pairs(load(str(kept)))
    assert queue["intended_label"].tolist() == ["entailment", "contradiction", "neutral"]
    assert set(queue["origin_uid"]) == {"7"} and set(queue["maker"]) == {"smollm2"}


def test_scale_smoke_says_that_it_reads_a_part(mine, monkeypatch, capsys):
    assert call(monkeypatch, "mine.csv") == 0
    assert "small part" not in capsys.readouterr().out
    assert call(monkeypatch, "mine.csv", "--scale", "smoke") == 0
    assert "reads a small part of a corpus" in capsys.readouterr().out


def test_every_drop_has_its_reason(mine, monkeypatch, capsys):
    assert call(monkeypatch, "mine.csv", "--n", "3") == 0
    dropped = lines(paths.EXPORTS / mine[0][1].study / generate.DROPPED)
    assert [row["reason"] for row in dropped] == [*REASONS, generate.TOO_MANY]
    assert set(dropped[0]) == {*generate.JUDGED, "reason"}
    said = capsys.readouterr().out
    assert all(reason in said for reason in REASONS)


@pytest.mark.parametrize(("n", "originals"), [(300, 150), (1, 3), (7, 4)])
def test_how_many_premises_are_perturbed(n, originals):
    assert generate.originals_for(n) == originals


def test_a_chapter_that_fails_ends_it(mine, monkeypatch, capsys):
    run = runner.run

    def fake(names, request, jobs=1):
        (end,) = run(names, request)
        return [runner.Outcome(end.notebook, "failed", "why")]

    monkeypatch.setattr(runner, "run", fake)
    assert call(monkeypatch, "mine.csv") == 2
    assert capsys.readouterr().err == "40_spans_and_prompts did not finish. The same command continues there.\n"
    assert len(mine) == 1


def test_without_the_parser_one_line_before_anything_is_trained(mine, monkeypatch, capsys):
    def missing():
        raise perturb.SpanError("spans need spaCy.")

    monkeypatch.setattr(perturb, "check_parser", missing)
    assert call(monkeypatch, "mine.csv") == 2
    assert capsys.readouterr().err == "spans need spaCy.\n"
    assert not mine


def test_nothing_left_is_an_error_and_the_reasons_are_written(mine, monkeypatch, capsys, tmp_path):
    request = runner.Request(scale="small", corpus=str(tmp_path / "mine.csv"))
    folder = paths.EXPORTS / request.study
    written(folder, kept=0)
    with pytest.raises(generate.GenerateError, match="No counterfactual is left"):
        generate.write_counterfactuals(request, 5)
    assert [row["reason"] for row in lines(folder / generate.DROPPED)] == REASONS
    assert not (folder / generate.COUNTERFACTUALS).exists()


def test_labels_that_the_prompt_has_no_word_for_are_refused(mine, monkeypatch, capsys, tmp_path):
    rows = [f"Person {at} walks,Person {at},{label}" for at in range(30) for label in ("entailment", "not_entailment")]
    (tmp_path / "two.csv").write_text("\n".join(["premise,hypothesis,label", *rows]) + "\n")
    assert call(monkeypatch, "two.csv") == 2
    assert "two: the prompt has no word for the label 'not_entailment'; it knows" in capsys.readouterr().err
    assert not mine
