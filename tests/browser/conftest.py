"""One browser for all of these tests; without one they are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.browser.devtools import Page, browser

# What hack/browser found, or else is on PATH; a test has a PATH of its own.
_NAMES = (os.environ.get("BROWSER_UNDER_TEST") or "chromium", "chromium-browser", "google-chrome")
_FOUND = next(filter(None, map(shutil.which, _NAMES)), None)


@pytest.fixture(scope="session")
def program() -> str:
    if _FOUND is None:
        pytest.skip("Chromium is missing; hack/browser prints how to install it.")
    return _FOUND


@pytest.fixture(scope="session")
def opened(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """A page; after the test it is seen whether anything went wrong in it, or out of it."""
    opened.events.clear()
    opened.media()
    yield opened
    assert opened.complaints() == []
    assert [url for url in opened.requests() if not url.startswith("file:")] == []
