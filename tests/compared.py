"""What a comparison of arms found, made up: the content of compare.json without a training."""

import numpy as np

from nli_lib.select.arms import ARM, TWIN
from nli_lib.stats import clustered_share
from nli_tools.compare import comparison, named

TITLE, N, S = "held.csv", 900, 5
PREMISES = {TITLE: np.arange(N) // 3}
TRUTH = {
    "base": (0.6, 0.6), "z-filter": (0.75, 0.6), "hard": (0.4, 0.6), "AUM": (0.6, 0.6),
    "<b>mine</b> added": (0.6, 0.6)}  # fmt: skip


def answers(truth=TRUTH, seed=0):
    """Whether each training gets each pair right: the pairs differ in how hard they are, the trainings hardly."""
    random, found = np.random.default_rng(seed), {}
    for name, both in truth.items():
        for which, share in zip((ARM, TWIN), both, strict=True):
            hard = random.random(N) * 0.2 - 0.1
            found[name, which] = {TITLE: random.random((S, N)) < share + hard}
    return found


def made(truth=TRUTH, worth=0.1):
    right, own = answers(truth), named([name for name in truth if not name.startswith("<")], ["<b>mine</b>"])
    labels = np.arange(N) % 2
    return right, comparison(right, PREMISES, TITLE, arms={name: own[name] for name in truth},
        whole={TITLE: right["base", ARM][TITLE]}, distinct=dict.fromkeys(right, 250), rows=300,
        majority=clustered_share(labels == 0, PREMISES[TITLE]), worth=worth, resamples=100)  # fmt: skip


def whole(content):
    """As `nli_tools.compare` completes it."""
    settings = {"rows of a training set": 300, "added or swapped in": 75, "candidates": 900, "trainings": S, "folds": 5}
    settings |= {"encoder": "minilm", "epochs": 3, "batch size": 32, "learning rate": 1e-4}
    test = {"name": "<i>held</i>.csv", "digest": "0", "pairs": N, "premises": 300, "taken out": 2}
    facts = {"corpus": "<script>x</script>", "digest": "0" * 64, "version": "1", "absent": {"easy": "none is <u>"}}
    return content | facts | {"settings": settings, "test": test, "classes": ["a", "b"], "format": 1}
