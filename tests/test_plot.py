"""Figures hold the numbers they were given, under a reader's names. Fast, any machine: pytest tests/test_plot.py"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from nli_lib import plots
from nli_lib.claims import paper_table
from nli_lib.corpora.corpus import LABELS
from nli_lib.learn.text import HUB_MODELS, OFFLINE_MODELS
from nli_lib.measure.dynamics import LEVELS
from nli_lib.names import name_of, printed_name
from nli_lib.plots import COLOURS, GREY, STYLE, boxes, interactive_map, interval_plot

mpl.use("Agg")
COLOURS_SHARED = ("not_entailment", "non_contradiction")  # two-class names share the colour of what they hold
WORDS = pd.DataFrame(
    [(f"{label} {i}", label, n, 0.2 + 0.1 * i) for i, n in enumerate((10, 200, 3000)) for label in LABELS],
    columns=["feature", "label", "n", "p"])  # fmt: skip
SUITE = pd.DataFrame([
    (title, condition, 0.6, 0.55, 0.65) for title in ("SNLI test", "HANS") for condition in ("pair", "random twin")],
    columns=["title", "condition", "accuracy", "low", "high"])  # fmt: skip
PARTIAL = pd.DataFrame({"corpus": ["WANLI"], "view": "hypothesis", "accuracy": 0.42, "low": 0.4, "high": 0.44})


def drawn_texts(figure):
    return [text for text in figure.findobj(mpl.text.Text) if text.get_text() and text.get_visible()]


def written(figure):
    return " ".join(text.get_text().replace("\n", " ") for text in drawn_texts(figure))


def lines_named(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def offsets(axes):
    return [np.asarray(c.get_offsets()) for c in axes.collections if isinstance(c, mpl.collections.PathCollection)]


@pytest.fixture(scope="module")
def figures():
    share = np.random.default_rng(0).integers(0, 5, 60) / 4
    chance = {"reference": 1 / 3, "reference_label": "chance", "paper": {("hypothesis", "WANLI"): 0.416}}
    return {
        "data_map": plots.data_map(share / 2, 1 - share / 3, share, epochs=4, overlay=share == 0, title="A map"),
        "competency": plots.competency(WORDS, title="words"),
        "suite": interval_plot(SUITE, reference={"HANS": 0.5}, paper={"SNLI test": 0.9}),
        "partial": interval_plot(PARTIAL, y="view", hue="corpus", **chance)}  # fmt: skip


def test_no_text_is_smaller_than_eleven_points_at_seven_inches(figures):
    for name, figure in figures.items():
        assert figure.get_size_inches()[0] == 7, name
        assert min(text.get_fontsize() for text in drawn_texts(figure)) >= 11, name


def test_every_style_key_is_accepted_by_matplotlib():
    with plt.rc_context(STYLE):
        assert set(STYLE) <= set(mpl.rcParams)


def test_drawing_changes_no_global_state_and_leaves_no_open_figure():
    before = dict(mpl.rcParams)
    plots.competency(WORDS)
    with plots.drawing(1, 2, height=3) as (figure, panels):
        panels[0].plot([0, 1])
    assert figure.get_size_inches().tolist() == [7, 3] and dict(mpl.rcParams) == before and not plt.get_fignums()


def test_a_thing_has_one_colour_in_every_figure():
    shares = (0.2126, 0.7152, 0.0722)
    for names in (LABELS, LEVELS):
        grey = sorted(np.dot(mpl.colors.to_rgb(COLOURS[name]), shares) for name in names)
        assert min(np.diff(grey)) > 0.12, "labels and levels differ in greyscale"
    light = [np.dot(np.array(mpl.colors.to_rgb(COLOURS[level])) ** 2.2, shares) for level in LEVELS]
    assert light == sorted(light, reverse=True) and 1.05 / (light[0] + 0.05) > 3, "levels darken, all legible on white"
    colours = plots.palette(["easy", "SNLI", "a new thing", "random twin of the third", "neutral"])
    assert [colours[name] for name in ("neutral", "easy", "SNLI")] == [COLOURS[n] for n in ("neutral", "easy", "snli")]
    assert colours["random twin of the third"] == GREY
    own = {name: colour for name, colour in COLOURS.items() if name not in ("multinli", *COLOURS_SHARED)}
    assert len(set(own.values())) == len(own) and colours["a new thing"] not in own.values()
    figure = interval_plot(pd.DataFrame({"title": "hard", "condition": sorted(LABELS), "accuracy": 0.3}))
    drawn = {bars.get_label(): bars.lines[0].get_color() for bars in figure.axes[0].containers}
    assert drawn == {label: COLOURS[label] for label in LABELS}


def test_data_map_draws_every_pair_and_three_histograms():
    v, c, share = np.array([0.1, 0.4, 0.2]), np.array([0.9, 0.5, 0.1]), np.array([1, 0.5, 0])
    figure = plots.data_map(v, c, share, epochs=4, overlay=np.array([False, True, False]))
    (points, ring), drawn = offsets(figure.axes[0]), figure.axes[0].collections[0]
    assert np.allclose(points, np.column_stack([v, c])) and np.allclose(ring, [[0.4, 0.5]])
    assert np.allclose(drawn.get_array(), share) and drawn.get_rasterized()
    assert [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes[1:4]] == [3, 3, 3]
    assert all(word in written(figure) for word in ("easy to learn", "ambiguous", "hard to learn"))


def test_data_map_turns_to_hexagons_when_dense_and_refuses_counts():
    values = np.linspace(0, 0.5, 50)
    figure = plots.data_map(values, values, values, epochs=5, dense=10)
    assert isinstance(figure.axes[0].collections[0], mpl.collections.PolyCollection)
    with pytest.raises(ValueError, match="share from 0 to 1, not 0 to 4"):
        plots.data_map([0.1, 0.2], [0.1, 0.2], [0, 4], epochs=4)


def test_competency_draws_every_feature_and_the_lines_of_significance():
    figure = plots.competency(WORDS, named=1, tests=9)
    everything, ringed = offsets(figure.axes[0])
    assert sorted(map(tuple, everything)) == sorted(zip(WORDS["n"], WORDS["p"], strict=True)) and len(ringed) == 3
    lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].get_lines()}
    for label, z in (("α = 0.01", 2.326348), ("α = 0.01, Bonferroni", norm.isf(0.01 / 9))):
        n, p = lines[label][200]
        assert (p - 1 / 3) / np.sqrt(2 / 9 / n) == pytest.approx(z, rel=1e-5)


def test_competency_names_do_not_overlap():
    p = 0.7 + 0.01 * np.random.default_rng(0).random(30)
    rows = [(f"word number {i}", LABELS[i % 3], 500 + i, p[i]) for i in range(30)]
    axes = plots.competency(pd.DataFrame(rows, columns=WORDS.columns), named=10).axes[0]
    with plt.rc_context(STYLE):
        placed = [t.get_window_extent() for t in axes.texts if t.get_text().startswith("word")]
    assert 2 <= len(placed) < 30 and not any(a.overlaps(b) for i, a in enumerate(placed) for b in placed[:i])


def test_competency_panels_share_their_axes():
    words = pd.concat([WORDS.assign(panel="one"), WORDS[WORDS["n"] < 100].assign(panel="two")])
    one, two = ((axes.get_title(loc="left"), axes.get_xlim()) for axes in plots.competency(words).axes)
    assert (one[0], two[0]) == ("one", "two") and one[1] == two[1]


def test_z_by_rank_draws_three_curves_a_label():
    sets = {"before": 9.0, "after": 2.0, "random twin": 5.0}
    rows = [(label, rank, z - rank, name) for label in LABELS[:2] for name, z in sets.items() for rank in (1, 2, 3)]
    figure = plots.z_by_rank(pd.DataFrame(rows, columns=["label", "rank", "z", "pairs"]).assign(line=4.2), title="flat")
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(LABELS[:2])
    for axes in figure.axes:
        lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
        assert lines["all pairs"] == [8, 7, 6] and lines["kept"] == [1, 0, -1] and [4.2, 4.2] in lines.values()


# ---------------------------------------------------------------- intervals


def test_suite_marks(figures):
    axes = figures["suite"].axes[0]
    assert lines_named(axes) == ["SNLI test", "HANS"] and np.allclose(offsets(axes)[-1], [[0.9, 0]])
    twin = next(c for c in axes.containers if c.get_label() == "random twin")
    assert mpl.colors.to_hex(twin.lines[0].get_color()) == COLOURS["random twin"]
    assert np.allclose(twin.lines[0].get_xdata(), 0.6)
    texts = {text.get_text() for text in drawn_texts(figures["suite"])}
    assert {"majority label", "the paper", "pair", "random twin"} <= texts
    # the paper's value of one condition, and a line for all
    assert "chance 0.333" in written(figures["partial"])
    assert np.allclose(offsets(figures["partial"].axes[0])[-1], [[0.416, 0]])


def test_intervals_take_any_columns_leave_gaps_out_and_stay_within_what_is_possible():
    table = pd.DataFrame({"score": ["a", "b", "c"], "area": [0.9, np.nan, 0.4], "low": [0.7, 0.1, np.nan], "high": 1.2})
    figure = interval_plot(table, value="area", y="score", hue=None, within=(0, 1))
    ends = [segment[:, 0] for segment in figure.axes[0].containers[0].lines[2][0].get_segments()]
    assert lines_named(figure.axes[0]) == ["a", "c"] and np.allclose(ends, [[0.7, 1], [0.4, 1]]) and not figure.legends
    table = pd.DataFrame({"condition": ["a", "b"], "label": ["x", "x"], "accuracy": [0.2, 0.4]})
    for hue in (None, "label"):  # a column called condition can be the lines
        assert lines_named(interval_plot(table, y="condition", hue=hue).axes[0]) == ["a", "b"]


def test_a_reference_of_zero_needs_no_number_and_a_table_without_values_says_so():
    zero, half = (written(interval_plot(SUITE, reference=at, reference_label="by chance")) for at in (0.0, 0.5))
    assert "by chance" in zero and "by chance 0" not in zero and "by chance 0.5" in half
    for empty in (SUITE.assign(accuracy=np.nan), SUITE[:0]):
        assert "Nothing to show" in written(interval_plot(empty, title="Wrong labels"))


# ---------------------------------------------------------------- boxes


@pytest.fixture
def measured():
    random, at = np.random.default_rng(0), np.arange(400)
    table = {"level": np.array(["easy", "hard"])[at % 2], "label": np.array(["entailment", "neutral"])[at // 2 % 2]}
    return pd.DataFrame(table | {"overlap": random.random(400), "length": random.normal(size=400)})


def in_levels(table, columns, **options):
    return boxes(table, columns, group="level", order=("easy", "hard"), **options)


def test_a_panel_for_each_column_with_its_medians_and_means(measured):
    for axes, column in zip(in_levels(measured, ["overlap", "length"]).axes, ("overlap", "length"), strict=True):
        assert axes.get_title() == "" and axes.get_title(loc="left") == column
        heights, of_level = [y for line in axes.lines for y in line.get_ydata()], measured.groupby("level")[column]
        assert all(np.isclose(heights, median, atol=1e-6).any() for median in of_level.median())
        assert np.allclose([line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"], of_level.mean())


def test_points_beyond_the_whiskers_are_not_drawn_and_yes_or_no_is_drawn_as_shares(measured):
    measured.loc[0, "overlap"] = 1000.0
    (axes,) = in_levels(measured, ["overlap"]).axes[:1]
    assert max(y for line in axes.lines if line.get_marker() != "D" for y in line.get_ydata()) <= 1
    negated = measured.assign(negated=(np.arange(400) % 4 == 0).astype(float))  # every second of the easy ones
    assert [bar.get_height() for bar in in_levels(negated, ["negated"]).axes[0].patches] == [0.5, 0.0]
    rare = measured.assign(rare=np.arange(400) % 10 // 8 * 0.5)  # in one pair of five
    assert np.allclose([bar.get_height() for bar in in_levels(rare, ["rare"]).axes[0].patches], 0.1)


def test_labels_split_the_boxes(measured):
    figure = in_levels(measured, ["overlap", "length"], hue="label")
    assert [text.get_text() for text in figure.legends[0].texts] == ["entailment", "neutral"]
    assert figure.axes[1].get_legend() is None


# ---------------------------------------------------------------- figures that answer the pointer

POINTS = pd.DataFrame(
    {"position": [7, 1, 4], "variability": [0.1, 0.4, 0.3], "confidence": [0.2, 0.5, 0.9], "correctness": [0, 0.5, 1]}
    | {"label": ["neutral", "entailment", "neutral"], "premise": ["A dog <i>runs</i>. " + "word " * 40, None, None]}
    | {"hypothesis": ["It & others move.", None, None]}
)


def a_map(points, **options):
    hover = [*plots.SAMPLE, "confidence", "variability", "correctness", "position"]
    return interactive_map(points, "variability", "confidence", color="correctness", hover=hover, **options)


def told(figure):
    """All points of a figure: (x, y) -> what the pointer is told there."""
    traces = [trace for trace in figure.data if trace.customdata is not None]
    return {(x, y): text for t in traces for x, y, (text,) in zip(t.x, t.y, t.customdata, strict=True)}


def test_a_point_says_its_texts_label_and_scores_and_leaves_out_what_is_missing():
    figure = a_map(POINTS)
    assert all(trace.type == "scattergl" for trace in figure.data)
    first, second = told(figure)[0.1, 0.2], told(figure)[0.4, 0.5]
    assert first.startswith("<b>label</b>: neutral<br><b>premise</b>: A dog")
    for line in ("<b>confidence</b>: 0.2", "<b>variability</b>: 0.1", "<b>correctness</b>: 0", "<b>pair</b>: 7"):
        assert line in first
    assert "premise" not in second and "nan" not in second.lower() and "None" not in second
    # tags of a corpus are text, and long texts are broken
    assert "&lt;i&gt;runs&lt;/i&gt;" in first and "It &amp; others" in first and "<i>" not in first
    assert max(len(line) for line in first.split("<br>")) < 120


def test_words_have_a_colour_each_and_points_tell_what_is_recorded():
    rows = POINTS.assign(kind=["P1G0", "P1G0", "P0G1"], gap=[1, 2, 3.0], predicted="contradiction", votes=[3, 1, 2])
    look = {"color": "kind", "hover": ["predicted", "votes", "wrong"]}
    figure = interactive_map(rows, "gap", "confidence", **look)
    text = told(figure)[3.0, 0.9]
    assert {trace.name for trace in figure.data} == {"P1G0", "P0G1"} and "wrong" not in text
    assert "<b>the model says</b>: contradiction" in text and "<b>seeds that prune it</b>: 2" in text
    judged = interactive_map(rows.assign(wrong=[True, None, None]), "gap", "confidence", **look)
    assert "<b>wrong by people</b>: True" in told(judged)[1.0, 0.2]


def test_of_too_many_points_a_part_is_drawn_and_of_none_an_empty_figure(monkeypatch):
    assert not told(a_map(POINTS[:0]))
    assert not told(interactive_map(POINTS[:0], "variability", "confidence", color="label", hover=[]))
    monkeypatch.setattr(plots, "MOST", 2)
    figure = a_map(POINTS, title="Map")
    assert len(told(figure)) == 2 and figure.layout.title.text == "Map (2 of 3 points)"


# ---------------------------------------------------------------- names


NAMED = {
    "mnli": "MultiNLI", "snli validation_matched": "SNLI validation_matched", "mine validation": "mine validation",
    "max_variability": "max variability", "not_entailment": "not entailment", "smollm2-6": "SmolLM2 (6 layers)",
    "disco, 2022 code": "DISCO, 2022 code", "mine_1.csv": "mine_1.csv", "hans up, mnli down": "hans up, mnli down",
    3: 3, None: None}  # fmt: skip
PRINTED = {
    "subset-add-human-cad": "subset + Human-CAD", "wanli-add-disco": "WANLI + DISCO",
    "snli-own-split": "SNLI own split", "easy-multinli-deberta": "easy MultiNLI DeBERTa",
    "seq-z-matched": "Seq-Z matched", "out-of-domain": "out of domain", "snli-hard-sd": "SNLI-hard standard deviation",
    "mnli-hard-mm": "MultiNLI hard mismatched", "li-li": "LI-LI", "": ""}  # fmt: skip


def test_a_name_is_that_of_the_prose_and_a_row_of_a_papers_table_is_in_words():
    assert {name: name_of(name) for name in NAMED} == NAMED and {key: printed_name(key) for key in PRINTED} == PRINTED


def test_what_differs_is_shown_differently():
    for table in ("Table 1", "Table 3", "Table 4"):
        rows = paper_table("difficulty", table).index
        assert len({printed_name(row) for row in rows}) == len(rows)
    encoders = [*OFFLINE_MODELS, *HUB_MODELS]
    assert not {name_of(key) for key in encoders} & set(encoders), "every encoder has a name of its own"
    table = pd.DataFrame({"title": ["snli test", "hans"], "condition": ["minilm", "aum"], "accuracy": [0.5, 0.6]})
    texts = {text.get_text() for text in interval_plot(table).findobj(mpl.text.Text)}
    assert {"SNLI test", "HANS", "MiniLM", "AUM"} <= texts
