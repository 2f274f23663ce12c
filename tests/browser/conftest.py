"""A real browser, headless. Debian: apt-get install chromium; without one these tests are skipped and say so."""

import shutil

import pytest

QUIET = [f"--disable-{what}" for what in ("quic", "background-networking", "component-update", "sync")]
FLAGS = ["--no-sandbox", "--no-first-run", *QUIET]
WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # draws without a graphics card


def chromium(running, *flags):
    """Chromium with a fresh profile, headless, by a playwright that runs."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser on this machine: apt-get install chromium")
    return running.chromium.launch(executable_path=found, args=[*FLAGS, *flags])


@pytest.fixture(scope="module")
def running():
    """One playwright for all browsers of a file, after which it is closed: it keeps an event loop running."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: test)")
    with playwright.sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(running):
    with chromium(running, "--disable-gpu") as started:
        yield started


@pytest.fixture(scope="module")
def webgl(running):
    """A browser that draws points by WebGL."""
    with chromium(running, *WEBGL) as started:
        yield started


@pytest.fixture
def listened():
    """Opens a file in a page that is listened to: nothing may be said on its console, nor asked for but the file."""
    heard = []

    def opened(context, path, **viewport):
        page = context.new_page(**({"viewport": viewport} if viewport else {}))
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        known = (path.as_uri(), "blob:")
        page.on("request", lambda asked: None if asked.url.startswith(known) else heard.append(f"asks for {asked.url}"))
        page.goto(path.as_uri())
        return page

    yield opened
    assert heard == []
