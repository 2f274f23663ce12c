"""Figures hold the numbers they were given. Fast, any machine: pytest tests/test_plot.py"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from nli_lib import plots
from nli_lib.claims import RECORD, ledger, read_claims
from nli_lib.corpora.corpus import LABELS
from nli_lib.ledger import own_claims, verdict_bars
from nli_lib.plots import COLOURS, GREY, STYLE, drawing, palette

mpl.use("Agg")
COLOURS_SHARED = ("not_entailment", "non_contradiction")  # two-class names share the colour of what they hold


def drawn_texts(figure):
    return [text for text in figure.findobj(mpl.text.Text) if text.get_text() and text.get_visible()]


def written(figure):
    return " ".join(text.get_text().replace("\n", " ") for text in drawn_texts(figure))


def offsets(axes):
    return [np.asarray(c.get_offsets()) for c in axes.collections if isinstance(c, mpl.collections.PathCollection)]


@pytest.mark.parametrize("key", STYLE)
def test_every_style_key_is_accepted_by_matplotlib(key):
    with plt.rc_context({key: STYLE[key]}):
        assert key in mpl.rcParams


def test_colours_differ_in_greyscale():
    grey = sorted(np.dot(mpl.colors.to_rgb(COLOURS[label]), (0.2126, 0.7152, 0.0722)) for label in LABELS)
    assert min(np.diff(grey)) > 0.12


@pytest.fixture(scope="module")
def words():
    n = np.array([10, 200, 3000])
    rows = [
        (f"{name} {i}", label, n[i], 0.2 + 0.1 * i) for i in range(3) for name, label in zip("abc", LABELS, strict=True)
    ]
    return pd.DataFrame(rows, columns=["feature", "label", "n", "p"])


@pytest.fixture(scope="module")
def figures(words):
    generator = np.random.default_rng(0)
    share = generator.integers(0, 5, 60) / 4
    suite = pd.DataFrame(
        [(t, c, 0.6, 0.55, 0.65) for t in ("SNLI test", "HANS") for c in ("pair", "random twin")],
        columns=["title", "condition", "accuracy", "low", "high"],
    )
    partial = pd.DataFrame(
        [("WANLI", "hypothesis", 0.42, 0.4, 0.44)], columns=["corpus", "view", "accuracy", "low", "high"]
    )
    return {
        "data_map": plots.data_map(share / 2, 1 - share / 3, share, epochs=4, overlay=share == 0, title="A map"),
        "competency": plots.competency(words, title="words"),
        "suite": plots.interval_plot(suite, reference={"HANS": 0.5}, paper={"SNLI test": 0.9}),
        "partial": plots.interval_plot(
            partial,
            y="view",
            hue="corpus",
            paper={("hypothesis", "WANLI"): 0.416},
            reference=1 / 3,
            reference_label="chance",
        ),
    }


def test_no_text_is_smaller_than_eleven_points_at_seven_inches(figures):
    for name, figure in figures.items():
        assert figure.get_size_inches()[0] == 7, name
        assert min(text.get_fontsize() for text in drawn_texts(figure)) >= 11, name


def test_drawing_changes_no_global_state_and_leaves_no_open_figure(words):
    before = dict(mpl.rcParams)
    plots.competency(words)
    assert dict(mpl.rcParams) == before
    assert not plt.get_fignums()


def test_data_map_draws_every_pair_and_three_histograms():
    v, c, share = np.array([0.1, 0.4, 0.2]), np.array([0.9, 0.5, 0.1]), np.array([1, 0.5, 0])
    figure = plots.data_map(v, c, share, epochs=4, overlay=np.array([False, True, False]))
    points, ring = offsets(figure.axes[0])
    assert np.allclose(points, np.column_stack([v, c]))
    assert np.allclose(ring, [[0.4, 0.5]])
    assert np.allclose(figure.axes[0].collections[0].get_array(), share)
    assert [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes[1:4]] == [3, 3, 3]
    assert all(word in written(figure) for word in ("easy to learn", "ambiguous", "hard to learn"))
    assert figure.axes[0].collections[0].get_rasterized()


def test_data_map_turns_to_hexagons_when_dense():
    values = np.linspace(0, 0.5, 50)
    figure = plots.data_map(values, values, values, epochs=5, dense=10)
    assert isinstance(figure.axes[0].collections[0], mpl.collections.PolyCollection)


def test_data_map_refuses_counts():
    with pytest.raises(ValueError, match="share from 0 to 1, not 0 to 4"):
        plots.data_map([0.1, 0.2], [0.1, 0.2], [0, 4], epochs=4)


def test_competency_draws_every_feature_and_the_lines_of_significance(words):
    figure = plots.competency(words, named=1, tests=9)
    everything, ringed = offsets(figure.axes[0])
    assert sorted(map(tuple, everything)) == sorted(zip(words["n"], words["p"], strict=True))
    assert len(ringed) == 3
    lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].get_lines()}
    for label, z in (("α = 0.01", 2.326348), ("α = 0.01, Bonferroni", norm.isf(0.01 / 9))):
        n, p = lines[label][200]
        assert (p - 1 / 3) / np.sqrt(2 / 9 / n) == pytest.approx(z, rel=1e-5)


def test_competency_names_do_not_overlap():
    generator = np.random.default_rng(0)
    rows = [(f"word number {i}", LABELS[i % 3], 500 + i, 0.7 + 0.01 * generator.random()) for i in range(30)]
    figure = plots.competency(pd.DataFrame(rows, columns=["feature", "label", "n", "p"]), named=10)
    axes = figure.axes[0]
    with plt.rc_context(STYLE):
        boxes = [t.get_window_extent() for t in axes.texts if t.get_text().startswith("word")]
    assert 2 <= len(boxes) < 30
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_competency_panels_share_their_axes(words):
    figure = plots.competency(pd.concat([words.assign(panel="one"), words[words["n"] < 100].assign(panel="two")]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_suite_marks(figures):
    axes = figures["suite"].axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["SNLI test", "HANS"]
    assert np.allclose(offsets(axes)[-1], [[0.9, 0]])
    twin = next(c for c in axes.containers if c.get_label() == "random twin")
    assert mpl.colors.to_hex(twin.lines[0].get_color()) == COLOURS["random twin"]
    assert np.allclose(twin.lines[0].get_xdata(), 0.6)
    assert {"majority label", "the paper", "pair", "random twin"} <= {
        t.get_text() for t in drawn_texts(figures["suite"])
    }


def test_the_papers_value_of_one_condition_and_a_line_for_all(figures):
    assert "chance 0.333" in written(figures["partial"])
    assert np.allclose(offsets(figures["partial"].axes[0])[-1], [[0.416, 0]])


def test_intervals_take_any_columns_leave_gaps_out_and_stay_within_what_is_possible():
    table = pd.DataFrame({"score": ["a", "b", "c"], "area": [0.9, np.nan, 0.4], "low": [0.7, 0.1, np.nan], "high": 1.2})
    figure = plots.interval_plot(table, value="area", y="score", hue=None, within=(0, 1))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "c"]
    ends = [segment[:, 0] for segment in axes.containers[0].lines[2][0].get_segments()]
    assert np.allclose(ends, [[0.7, 1], [0.4, 1]])
    assert not figure.legends


@pytest.mark.parametrize("hue", [None, "label"])
def test_a_column_called_condition_can_be_the_lines(hue):
    table = pd.DataFrame({"condition": ["a", "b"], "label": ["x", "x"], "accuracy": [0.2, 0.4]})
    axes = plots.interval_plot(table, y="condition", hue=hue).figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_a_thing_has_one_colour_in_every_figure():
    colours = palette(["easy", "SNLI", "a new thing", "random twin of the third", "neutral"])
    assert colours["neutral"] == COLOURS["neutral"]
    assert colours["easy"] == COLOURS["easy"]
    assert colours["SNLI"] == COLOURS["snli"]
    assert colours["random twin of the third"] == GREY
    own = {name: colour for name, colour in COLOURS.items() if name not in ("multinli", *COLOURS_SHARED)}
    assert len(set(own.values())) == len(own)
    assert colours["a new thing"] not in own.values()


def test_a_drawing_of_ones_own_has_the_style_and_is_not_left_open():
    with drawing(1, 2, height=3) as (figure, panels):
        panels[0].plot([0, 1])
    assert figure.get_size_inches().tolist() == [7, 3]
    assert not plt.get_fignums()


def test_verdict_bars_count_the_claims_of_each_paper():
    claims = read_claims()
    table = ledger(claims, pd.DataFrame(columns=RECORD), "small")
    own = table.index[own_claims(table)]
    table.loc[own[:2], "verdict"] = "held"
    figure = verdict_bars(table)
    held, untested = figure.axes[0].containers[0], figure.axes[0].containers[3]
    assert sum(bar.get_width() for bar in held) == 2
    assert sum(bar.get_width() for bar in untested) == len(own) - 2 < len(claims) - 2, "ours stand apart"
    assert "WANLI" in written(figure) and "zfilter" not in written(figure)


def test_labels_keep_their_colours_as_conditions():
    rows = [{"title": "hard", "condition": label, "accuracy": 0.3, "low": 0.2, "high": 0.4} for label in sorted(LABELS)]
    figure = plots.interval_plot(pd.DataFrame(rows))
    drawn = {bars.get_label(): bars.lines[0].get_color() for bars in figure.axes[0].containers}
    assert drawn == {label: COLOURS[label] for label in LABELS}


def test_a_reference_of_zero_needs_no_number():
    rows = [{"title": "hard", "condition": "z-filter", "accuracy": 0.3, "low": 0.2, "high": 0.4}]
    told = [written(plots.interval_plot(pd.DataFrame(rows), reference=at, reference_label="by chance"))
            for at in (0.0, 0.5)]  # fmt: skip
    assert "by chance" in told[0] and "by chance 0" not in told[0] and "by chance 0.5" in told[1]


def test_a_table_without_values_says_so():
    empty = pd.DataFrame({"title": ["a"], "condition": ["b"], "accuracy": [np.nan]})
    assert "Nothing to show" in written(plots.interval_plot(empty, title="Wrong labels"))
    assert "Nothing to show" in written(plots.interval_plot(empty[:0]))


def test_z_by_rank_draws_three_curves_a_label():
    sets, ranks = {"before": 9.0, "after": 2.0, "random twin": 5.0}, range(1, 4)
    rows = [{"label": label, "rank": rank, "z": z - rank, "pairs": name, "line": 4.2}
            for label in LABELS[:2] for name, z in sets.items() for rank in ranks]  # fmt: skip
    figure = plots.z_by_rank(pd.DataFrame(rows), title="flat")
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(LABELS[:2])
    for axes in figure.axes:
        lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
        assert lines["all pairs"] == [8, 7, 6] and lines["kept"] == [1, 0, -1] and [4.2, 4.2] in lines.values()
