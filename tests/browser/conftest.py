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


@pytest.fixture(scope="module")
def browser():
    """Chromium with a fresh profile, headless. Closed after each file: playwright keeps an event loop running."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: test)")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser on this machine: apt-get install chromium")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=found, args=list(FLAGS))
        yield chromium
        chromium.close()
