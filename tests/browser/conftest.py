"""One browser for all of these tests; without one they are skipped, except in CI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.browser.devtools import Page, browser


@pytest.fixture(scope="session")
def program() -> str:
    """What hack/browser found, or else is on PATH."""
    names = (os.environ.get("BROWSER_UNDER_TEST") or "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        if os.environ.get("CI", "").lower() in {"true", "1"}:
            pytest.fail("CI must test the page; hack/browser provides what that needs.")
        pytest.skip("No Chromium here; hack/browser says how to get one.")
    return found


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
