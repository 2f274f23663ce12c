"""Alone: pytest tests/tools/test_comparison.py"""

import html.parser
import json

import numpy as np
import pytest
from compared import PREMISES, TITLE, TRUTH, N, S, made, whole

from nli_lib.select.arms import ARM, TWIN
from nli_lib.stats import Estimate
from nli_tools import compare
from nli_tools.audit import distance, points
from nli_tools.compare import (
    BETTER,
    OPEN,
    SAME,
    UNLEARNT,
    WORSE,
    Noise,
    measured_noise,
    pairs_needed,
    smallest,
    too_small,
    trainings_needed,
    verdict,
)

NOISE = Noise(0.01, 0.45)


def test_the_pairs_that_are_needed_are_the_fewest_that_are_enough():
    for trainings, family, worth in ((5, 7, 0.1), (3, 1, 0.08), (10, 9, 0.05)):
        n = pairs_needed(NOISE, trainings=trainings, family=family, worth=worth)
        found = [smallest(NOISE, n=each, trainings=trainings, family=family) for each in (n - 1, n)]
        assert found[0] > worth >= found[1]
    assert pairs_needed(Noise(0.01, 0.01), trainings=5, family=1, worth=0.5) == 1
    assert pairs_needed(NOISE, trainings=2, family=7, worth=0.05) is None
    assert trainings_needed(NOISE, family=7, worth=0.05) > 3
    assert trainings_needed(Noise(1.0, 0.45), family=7, worth=0.001) is None


def test_what_is_too_small_is_told_the_size_it_would_need():
    said = too_small(NOISE, n=50, trainings=5, family=7, worth=0.1, title="mine.csv")
    needed = pairs_needed(NOISE, trainings=5, family=7, worth=0.1)
    assert f"{needed:,} test pairs are needed" in said and "mine.csv: with 50 test pairs and 5 trainings" in said
    assert too_small(NOISE, n=needed, trainings=5, family=7, worth=0.1, title="") == ""
    said = too_small(NOISE, n=10_000, trainings=2, family=7, worth=0.05, title="")
    more = trainings_needed(NOISE, family=7, worth=0.05)
    assert f"with 2 trainings: {more} trainings" in said
    assert "No number of trainings" in too_small(Noise(1.0, 1), n=9, trainings=5, family=7, worth=0.001, title="")


def test_verdicts_by_hand():
    assert verdict(Estimate(0.05, 0.01, 0.09, 9), 0.01, 0.1) == BETTER
    assert verdict(Estimate(-0.05, -0.09, -0.01, 9), 0.01, 0.1) == WORSE
    assert verdict(Estimate(0.05, 0.01, 0.09, 9), 0.2, 0.1) == SAME  # corrected for the other arms
    assert verdict(Estimate(0.05, -0.01, 0.11, 9), 0.2, 0.1) == OPEN
    assert verdict(Estimate(0.0, float("nan"), float("nan"), 9), float("nan"), 0.1) == OPEN


def test_numbers_are_those_of_a_plain_computation_and_planted_differences_are_found():
    right, content = made()
    arms = {each["arm"]: each for each in content["arms"]}
    assert list(arms) == list(TRUTH)
    for name, each in arms.items():
        own, twin = (right[name, which][TITLE].mean() for which in (ARM, TWIN))
        assert each["accuracy"]["value"] == pytest.approx(own)
        assert each["difference"]["value"] == pytest.approx(own - twin)
        assert each["difference"]["low"] <= own - twin <= each["difference"]["high"]
        if name != "base":
            above = own - right["base", ARM][TITLE].mean()
            assert each["above the base"]["value"] == pytest.approx(above)
    assert arms["z-filter"]["verdict"] == BETTER and arms["hard"]["verdict"] == WORSE and arms["base"]["verdict"] == ""
    # Holm by hand: the smallest of four p counts four times, the next three
    p = sorted((arms[name]["difference"]["p"], arms[name]["difference"]["p, Holm"]) for name in arms if name != "base")
    assert p[0][1] == pytest.approx(min(1, 4 * p[0][0])) and p[1][1] == pytest.approx(
        min(1, max(4 * p[0][0], 3 * p[1][0]))
    )
    assert arms["z-filter"]["rank"]["value"] == 1 and arms["hard"]["rank"]["value"] == 5
    assert content["next"].startswith(
        "Keep the pairs that the z-filter keeps: the model trained so predicts held.csv better"
    )
    assert content["next"].endswith("Do not choose pairs by: hard (worse than random ones).")
    noise = measured_noise(right, PREMISES, TITLE)
    gaps = right["base", ARM][TITLE].mean(axis=1) - right["base", TWIN][TITLE].mean(axis=1)
    assert noise.spread == pytest.approx(gaps.std(ddof=1)) and 0.2 < noise.unit < 1
    assert content["detectable"]["of all"]["value"] == pytest.approx(smallest(noise, n=N, trainings=S, family=4))
    assert content["detectable"]["alone"]["value"] < content["detectable"]["of all"]["value"]
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_where_nothing_helps_the_corpus_is_left_as_it_is():
    _, content = made(dict.fromkeys(TRUTH, (0.6, 0.6)))
    assert content["next"].startswith("Leave the corpus as it is: of 4 interventions, none trains a better model")
    _, content = made(dict.fromkeys(TRUTH, (0.5, 0.5)))
    assert content["next"].startswith("Do not act on the comparison") and not content["learnt"]
    assert {each["verdict"] for each in content["arms"][1:]} == {UNLEARNT}
    assert "have not learnt the task" in compare.page(whole(content))
    # one arm whose models, like its twin's, give one label: that they are alike says nothing
    _, content = made(dict.fromkeys(TRUTH, (0.6, 0.6)) | {"hard": (0.5, 0.5), "z-filter": (0.4, 0.6)})
    verdicts = {each["arm"]: each["verdict"] for each in content["arms"]}
    assert verdicts["hard"] == UNLEARNT and verdicts["z-filter"] == WORSE and SAME in verdicts.values()
    assert "From so few pairs nothing was learnt with: hard." in content["next"]
    for unknown in (None, np.nan):
        assert distance(unknown) == "an unknown size"
    assert (distance(0.0312), points(-0.0001), points(0.0001)) == ("3.1 points", "0.0 points", "0.0 points")
    assert np.isnan(smallest(Noise(0.0, 0.0), n=9, trainings=3, family=1))
    assert too_small(Noise(0.0, 0.0), n=9, trainings=3, family=1, worth=0.1, title="") == ""


def test_a_name_is_text_on_the_page_and_the_page_shows_the_numbers_of_the_file():
    _, content = made()
    content = whole(content)
    page = compare.page(content)
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.feed(page)
    assert not {"script", "b", "i", "u"} & set(tags) and "&lt;b&gt;mine" in page
    for each in content["arms"]:
        assert f"{100 * each['accuracy']['value']:.1f}%" in page
    assert "without 2 that stand in what is trained on" in page and "none is &lt;u&gt;" in page
    table = compare.table(content).set_index("arm")
    assert table.loc["hard", "difference"] == pytest.approx(content["arms"][2]["difference"]["value"], abs=1e-5)
    assert table.loc["easy", "verdict"] == "left out: none is <u>"
