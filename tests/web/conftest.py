"""A page in Debian's Chromium. When a test fails, what was seen is kept in .cache/screens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent.parent
SCREENS = ROOT / ".cache" / "screens"
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.excinfo is not None and call.when == "call":
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "browser.py")],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=["--no-sandbox"]
        )
        yield made
        made.close()


SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """An empty page, whose scripts must not fail. `shifts` in it is how far things jumped."""
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    made = context.new_page()
    made.set_default_timeout(30_000)
    made.add_init_script(SHIFTS)
    faults: list[str] = []
    made.on("pageerror", lambda fault: faults.append(str(fault)))
    yield made
    if request.node.stash.get(FAILED, False):
        SCREENS.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", request.node.name)
        made.screenshot(path=SCREENS / f"{name}.png", full_page=True)
    context.close()
    assert faults == []
