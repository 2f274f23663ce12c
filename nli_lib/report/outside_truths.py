"""What others say of the pairs of a corpus, people and models that had no part in any score: one row a judgment."""

import pandas as pd

from nli_lib.corpora.berts import hundred_berts
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.people import annotators, human_labels
from nli_lib.corpora.varierr import known_errors

ENTROPY, ERROR = "entropy of 100 people", "rejected by 100 people"
OVERRULED, BERTS, TAKEN_BACK = "author overruled", "100 BERTs err", "taken back (VariErr)"
COLUMNS = ("truth", "position", "label", "value")


def outside_truths(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """Every judgment at hand of a (pair, label) of ``corpus``; a high value says that pair or label is doubtful.

    Columns: truth (a name of this module), position (of the pair), label (on trial: the gold label everywhere but for
    `TAKEN_BACK`), value (bits, a share, or 1 and 0).

    entropy of 100 people   ChaosNLI's labels, in bits
    rejected by 100 people  whether most of them gave another label than the gold one
    author overruled        whether the author's label is not the gold label, which the five voted for: that somebody
                            erred about the pair, not that the label on trial is wrong
    100 BERTs err           share of them that do (McCoy, Min and Linzen, 2020)
    taken back (VariErr)    whether nobody who gave the label stood by it; a pair may have several labels

    In the planted corpus people and annotators know what was planted (`corpora.people`, `corpora.varierr`).
    """
    options, gold = {"data_dir": data_dir}, corpus.labels
    hundred, five = human_labels(corpus, **options), annotators(corpus)
    berts, items = hundred_berts(corpus, **options), known_errors(corpus, **options)
    parts = {
        ENTROPY: hundred.assign(value=hundred["entropy"]),
        ERROR: hundred.assign(value=hundred["majority"] != gold[hundred["position"].to_numpy(dtype=int)]),
        OVERRULED: five.assign(value=five["author"] != five["majority"]),
        BERTS: berts.assign(value=1 - berts["right"] / 100),
        TAKEN_BACK: items.assign(value=items["error"]),
    }
    tables = [each.assign(truth=name) for name, each in parts.items() if len(each)]
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    for table in tables:
        if "label" not in table:
            table["label"] = gold[table["position"].to_numpy(dtype=int)]
    found = pd.concat([table[list(COLUMNS)] for table in tables], ignore_index=True)
    return found.astype({"position": int, "label": int, "value": float})
