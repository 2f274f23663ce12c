"""A real browser, headless. Debian: apt-get install chromium; without one these tests are skipped and say so."""

import shutil

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WEBGL = (*(flag for flag in FLAGS if flag != "--disable-gpu"), "--use-angle=swiftshader", "--enable-unsafe-swiftshader")


def chromium(running, flags=FLAGS):
    """Chromium with a fresh profile, headless, by a playwright that runs; `WEBGL` draws without a graphics card."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser on this machine: apt-get install chromium")
    return running.chromium.launch(executable_path=found, args=list(flags))


@pytest.fixture(scope="module")
def browser():
    """Closed after each file: playwright keeps an event loop running."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: test)")
    with playwright.sync_playwright() as running:
        started = chromium(running)
        yield started
        started.close()


@pytest.fixture(scope="module")
def webgl():
    """A browser that draws points by WebGL."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: test)")
    with playwright.sync_playwright() as running:
        started = chromium(running, WEBGL)
        yield started
        started.close()
