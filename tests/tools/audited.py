"""What tests of the tools share: calls of commands and what they leave, files and corpora of a few pairs."""

import csv
import html.parser
import json
import sys

import numpy as np
import pytest
from tiny_words import corpus_from
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora.corpus import LABELS, Corpus
from nli_tools import commands
from nli_tools.own_corpus import ToolError

WORDS = ("surely", "perhaps", "never")  # one a label
NAMES = [f"n{at}" for at in range(60)]


def call(*words):
    return CliRunner().invoke(commands.app, [str(word) for word in words])


def ran(*words):
    """What a command that ends well writes on its standard output."""
    done = call(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def refused(said, function, *given, error=ToolError, **options):
    """That a call ends in an error that says so."""
    with pytest.raises(error, match=said):
        function(*given, **options)


def exit_code(command, monkeypatch, *words):
    """The exit code of a command of the command line."""
    monkeypatch.setattr(sys, "argv", ["nli-study", command, *map(str, words)])
    with pytest.raises(SystemExit) as end:
        commands.main()
    return end.value.code


def export(name):
    """The one exported file or folder of a name."""
    (path,) = paths.EXPORTS.glob(f"*/{name}")
    return path


def text_of(name):
    return export(name).read_text(encoding="utf-8")


def numbers_of(name):
    return json.loads(text_of(name))


def lines(path):
    """The values of a file of one JSON value a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def label_studio(configuration):
    """Label Studio's own judge of a configuration, its tasks and annotations."""
    reason = "label-studio-sdk is not installed: no judge of the files (.ci/setup test)"
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason=reason)
    interface = sdk.LabelInterface(configuration.read_text(encoding="utf-8"))
    interface.validate()
    return interface


def elements(page):
    """The elements of a page by name, and what they link to."""
    tags, links, parser = [], [], html.parser.HTMLParser()

    def start(tag, attributes):
        tags.append(tag)
        links.extend(value for name, value in attributes if name in ("src", "href"))

    parser.handle_starttag = start
    parser.feed(page)
    return tags, links


def write(path, rows, header=("premise", "hypothesis", "label"), delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


def telling(n, labels=LABELS, start=0, wrong=9, more=""):
    """n rows whose hypotheses say their label by a word, but for every ``wrong``-th."""
    random, rows = np.random.default_rng(start), []
    for at in range(start, start + n):
        label = at % len(labels)
        word = WORDS[label] if at % wrong else random.choice(WORDS[: len(labels)])
        premise = f"dog {NAMES[at // 2 % 60]} {NAMES[at // 120]} runs{more}"
        rows.append((premise, f"it {word} {random.choice(NAMES)}", labels[label]))
    return rows


def corpus(rows, classes=LABELS, skipped=None):
    rows = [(premise, hypothesis, classes.index(label)) for premise, hypothesis, label in rows]
    return corpus_from(rows, classes=classes, skipped=skipped)


def planted(n=240, classes=LABELS):
    """Every third pair has *zebra* in the hypothesis, always with the first label; the other words are drawn."""
    random, rows = np.random.default_rng(0), []
    words = [f"w{at}" for at in range(12)]
    for at in range(n):
        label = classes[at % len(classes)]
        text = " ".join([*random.choice(words, 5), "zebra" if label == classes[0] else random.choice(words)])
        rows.append((f"premise {at // 3} " + " ".join(random.choice(words, 4)), text, label))
    return corpus(rows, classes)


def shuffled(given):
    """A corpus whose labels are drawn anew."""
    table = given.table.assign(label=np.random.default_rng(1).permutation(given.labels))
    return Corpus(table, "mine", "train")


SIGNS = "山水火木金土人口手足目耳牛羊鸟鱼米竹花草"


def written(*, blanks, seed, told=0.0, shares=(1 / 3, 1 / 3, 1 / 3), n=450):
    """Pairs of drawn words, or where there are no ``blanks`` of drawn characters; the label's shares are exact.

    told  share of the hypotheses of the last label that have two words (or characters) of their own
    """
    random, words = np.random.default_rng(seed), [f"w{at}" for at in range(20)] if blanks else list(SIGNS)
    labels = random.permutation(np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n).astype(int)))
    classes = LABELS if len(shares) == 3 else ("entailment", "not_entailment")
    rows = []
    for at, label in enumerate(labels):
        premise, text = (list(random.choice(words, 8)) for _ in range(2))
        if label == len(shares) - 1 and random.random() < told:
            text[3:5] = ["never", "ever"] if blanks else ["没", "有"]
        join, end = (" ", ".") if blanks else ("", "。")
        rows.append((join.join([f"{at // 3}", *premise]) + end, join.join(text) + end, classes[label]))
    return corpus(rows, classes)
