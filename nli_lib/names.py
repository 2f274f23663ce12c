"""Names for readers: tables are recorded with short names, such as `snli` or, for a row of a paper's table,
`snli-own-split`, and shown with these."""

import re
from pathlib import Path

import yaml

from nli_lib.corpora.corpus import TWO_WAY
from nli_lib.corpora.sources import SOURCES
from nli_lib.measure.dynamics import DOUBT

CORPORA = {name: source.title for name, source in SOURCES.items()}
MODELS, PRINTED = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text(encoding="utf-8")).values()
WORDS = {name: name.replace("_", " ") for name in (*DOUBT, TWO_WAY[1], "lexical_overlap")} | {"aum": "AUM"}
NAMES = CORPORA | MODELS | WORDS
VERSION = re.compile("disco(?=, )")  # in a prompt's name: "disco, 2022 code"
SPLIT = re.compile(r"(\w+) ((?:train|validation|test)\w*)")  # "snli validation"

PARTS = re.compile("|".join([*sorted((part for part in PRINTED if "-" in part), reverse=True), "[^-]+"]))


def name_of(name: object) -> object:
    """The name that readers know for a corpus, a split, a model or a score; anything else is not changed.

    Examples
    --------
    >>> from nli_lib.names import name_of
    >>> name_of("mnli")
    'MultiNLI'
    """
    if not isinstance(name, str):
        return name
    if split := SPLIT.fullmatch(name):
        return f"{CORPORA.get(split[1], split[1])} {split[2]}"
    return NAMES.get(name) or VERSION.sub("DISCO", name)


def printed_name(key: str) -> str:
    """The readable name of a row or column of a paper's table: "subset-add-disco" becomes "subset + DISCO"."""
    return " ".join(PRINTED.get(part) or str(name_of(part)) for part in PARTS.findall(key))


def unsigned_zero(number: str) -> str:
    """Remove the sign of a written number if all its digits are zero: "-0.0 %" becomes "0.0 %"."""
    return re.sub(r"^[-+](?=0(\.0+)?\D*$)", "", number)
