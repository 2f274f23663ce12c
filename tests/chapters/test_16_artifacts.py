"""Similarity by label in chapter 16. Run alone: pytest tests/chapters/test_16_artifacts.py"""

import numpy as np
import pandas as pd
from cells import functions

chapter = functions("16_artifacts")


def test_effects_of_neighbouring_labels():
    labels = np.repeat(["entailment", "neutral", "contradiction"], 4)
    table = pd.DataFrame({"label": labels, "similarity": [9, 8, 9, 8, 1, 2, 1, 2, 2, 1, 2, 1]})
    effects = chapter.label_effects(table)
    # every entailment is closer; neutral and contradiction tie
    assert effects == {"entailment over neutral": 1.0, "neutral over contradiction": 0.0}
