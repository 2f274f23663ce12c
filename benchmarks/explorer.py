"""What moves 100,000 points: jupyter-scatter against plotly's FigureWidget, in JupyterLab in headless Chromium.

    python benchmarks/explorer.py [--points 100000] [--rounds 3]

For each: seconds from running the cell to drawn points, milliseconds a frame while the pointer moves over points and
while the wheel zooms, seconds from letting go of the lasso to the kernel's answer, megabytes sent to the page. Both
draw by WebGL, which Chromium computes on the processor where there is no graphics card: the ratio counts.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import TimeoutError, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from conftest import WEBGL, chromium  # noqa: E402
from lab import serving  # noqa: E402

DATA = """
import time, numpy as np, pandas as pd
from pathlib import Path
random = np.random.default_rng(0)
confidence = random.beta(4, 2, {points})
table = pd.DataFrame({{"variability": random.random({points}) * np.sqrt(confidence * (1 - confidence)),
                      "confidence": confidence, "label": random.integers(0, 3, {points})}})
def answered(rows):
    if len(rows):
        with Path("answers.txt").open("a") as file:
            file.write(f"{{time.time()}} {{len(rows)}}\\n")
"""
DRAW = {
    "jupyter-scatter": """
import jscatter
table["label"] = table["label"].map(dict(enumerate("ENC"))).astype("category")
scatter = jscatter.Scatter(data=table, x="variability", y="confidence", color_by="label", height=480, width=640)
scatter.widget.observe(lambda change: answered(change["new"]), names="selection")
scatter.widget.mouse_mode = "lasso"
scatter.widget
""",
    "plotly": """
from plotly import graph_objects as go
traces = [
    go.Scattergl(x=part["variability"].to_numpy(), y=part["confidence"].to_numpy(), mode="markers", marker={"size": 3})
    for _, part in table.groupby("label")
]
figure = go.FigureWidget(traces, layout={"height": 480, "width": 640, "dragmode": "lasso"})
for trace in figure.data:
    trace.on_selection(lambda trace, points, selector: answered(points.point_inds))
figure
""",
}
CANVAS = {"jupyter-scatter": ".jp-OutputArea-output canvas", "plotly": ".jp-OutputArea-output .nsewdrag"}
FRAMES = """() => {
  window.frames_ = [];
  window.counting_ = true;
  let last = performance.now();
  const step = (now) => {
    window.frames_.push(now - last);
    last = now;
    if (window.counting_) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}"""


def milliseconds(page, act):
    """Mean and worst time of a frame while `act` runs."""
    page.evaluate(FRAMES)
    act()
    page.wait_for_timeout(300)
    frames = page.evaluate("() => { window.counting_ = false; return window.frames_; }")
    return float(np.mean(frames)), float(np.max(frames))


def measure(name, points, folder, playwright):
    cells = [new_code_cell(DATA.format(points=points)), new_code_cell(DRAW[name])]
    path = folder / "explore.ipynb"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    with serving(folder, path.name) as address:
        browser = chromium(playwright, *WEBGL)
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        sent = []
        page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sent.append(len(data))))
        page.on("console", lambda said: said.type == "error" and print("  page:", said.text[:200]))
        page.goto(address)
        page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel", timeout=120_000
        )
        page.locator(".jp-Notebook .jp-Cell").last.wait_for()
        started = time.time()
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        canvas = page.locator(CANVAS[name]).first
        canvas.wait_for(timeout=240_000)
        if name == "plotly":  # an empty figure comes first, its axis from -1 to 6
            page.wait_for_function(
                "!['−1', ''].includes(document.querySelector('.xtick text')?.textContent ?? '')", timeout=120_000
            )
        drawn = time.time() - started
        canvas.scroll_into_view_if_needed()
        page.wait_for_timeout(2_000)
        box = canvas.bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        def hover():
            for at in np.linspace(-0.3, 0.3, 30):
                page.mouse.move(middle[0] + at * box["width"], middle[1] + at * box["height"] / 2)

        def lasso():
            angles = np.linspace(0, 1.9 * np.pi, 24)  # let go where it began, it would be a click
            ring = [(middle[0] + 120 * np.cos(a), middle[1] + 100 * np.sin(a)) for a in angles]
            page.mouse.move(*ring[0])
            page.mouse.down()
            for place in ring:
                page.mouse.move(*place)
            page.mouse.up()

        def zoom():
            for turn in range(20):
                page.mouse.wheel(0, -40 if turn < 10 else 40)

        row = {"library": name, "drawn": drawn, "MB": sum(sent) / 1e6}
        row["hover"], row["hover, worst"] = milliseconds(page, hover)
        answers = folder / "answers.txt"
        lasso()
        let_go = time.time()
        for _ in range(600):
            if answers.exists() and answers.read_text().endswith("\n"):
                break
            time.sleep(0.05)
        told = [line.split() for line in answers.read_text().splitlines()] if answers.exists() else []
        row["lasso"] = float(told[-1][0]) - let_go if told else np.nan
        row["points"] = sum(int(count) for _, count in told)
        page.mouse.move(*middle)
        row["zoom"], row["zoom, worst"] = milliseconds(page, zoom)
        browser.close()
    return row


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--points", type=int, default=100_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", nargs="*", choices=DRAW)
    given = arguments.parse_args()
    rows = []
    with sync_playwright() as playwright:
        for number in range(given.rounds):
            for name in given.only or DRAW:
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        found = measure(name, given.points, Path(folder), playwright)
                    except TimeoutError as error:
                        found = {"library": name, "drawn": np.nan}
                        print(f"{name}: not drawn: {str(error).splitlines()[0]}")
                    rows.append(found | {"round": number})
                    print(rows[-1], flush=True)
    table = pd.DataFrame(rows).groupby("library").median(numeric_only=True).drop(columns="round")
    print(table.round(3).T.to_string())


if __name__ == "__main__":
    main()
