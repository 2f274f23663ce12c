"""Names as a reader knows them: tables are recorded with short ones, `snli` for SNLI and `snli-own-split` for a row of
a paper's table, and shown with these.

"""

import re
from pathlib import Path

import yaml

from nli_lib.corpora.corpus import TWO_WAY
from nli_lib.corpora.sources import SOURCES
from nli_lib.measure.dynamics import DOUBT

CORPORA = {name: source.title for name, source in SOURCES.items()}
MODELS = {
    "minilm": "MiniLM",
    "smollm2": "SmolLM2",
    "smollm2-6": "SmolLM2 (6 layers)",
    "roberta": "RoBERTa",
    "roberta-base": "RoBERTa-base",
    "roberta-large": "RoBERTa-large",
    "deberta": "DeBERTa",
    "deberta-v3-base": "DeBERTa-v3-base",
    "bert-base": "BERT-base",
    "electra-small": "ELECTRA-small",
    "gpt2-large": "GPT-2 large",
}
WORDS = {name: name.replace("_", " ") for name in (*DOUBT, TWO_WAY[1], "lexical_overlap")} | {"aum": "AUM"}
NAMES = CORPORA | MODELS | WORDS
VERSION = re.compile("disco(?=, )")  # of a prompt: "disco, 2022 code"
SPLIT = re.compile(r"(\w+) ((?:train|validation|test)\w*)")  # "snli validation"

PRINTED, HOVER_WORDS = yaml.safe_load_all(Path(__file__).with_name("names.yaml").read_text(encoding="utf-8"))
PARTS = re.compile("|".join([*sorted((part for part in PRINTED if "-" in part), reverse=True), "[^-]+"]))


def name_of(name: object) -> object:
    """The reader's name of a corpus, a split of one, a model or a score; anything else as it is."""
    if not isinstance(name, str):
        return name
    if split := SPLIT.fullmatch(name):
        return f"{CORPORA.get(split[1], split[1])} {split[2]}"
    return NAMES.get(name) or VERSION.sub("DISCO", name)


def printed_name(key: str) -> str:
    """A row or column of a paper's table in words: "subset-add-disco" as "subset + DISCO"."""
    return " ".join(PRINTED.get(part) or str(name_of(part)) for part in PARTS.findall(key))


def unsigned_zero(number: str) -> str:
    """A written number without its sign where all its digits are zero: "-0.0 %" as "0.0 %"."""
    return re.sub(r"^[-+](?=0(\.0+)?\D*$)", "", number)
