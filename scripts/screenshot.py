"""Makes docs/faces.png, the picture of the README: the demo's page, as Chromium shows it.

    .venv/bin/isthmus demo &                     # says where its page is
    .venv/bin/python scripts/screenshot.py http://127.55.1.1:80/

Each smiley cluster should smile in its own way before: see what the demo says to try.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "faces.png"
WIDTH, HEIGHT = 1280, 900
CELLS = 16
PATIENCE = 30_000
"""Milliseconds until every cell must show a face."""


def main(arguments: list[str]) -> int:
    """Load the page, wait until all cells are well, and keep what is seen."""
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: screenshot.py URL [FILE]\n")
        return 2
    target = Path(arguments[1]) if len(arguments) > 1 else PICTURE
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "browser.py")],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(arguments[0])
        page.get_by_role("button", name="Pods").click()
        expect(page.locator('.cell[data-keys~="fine"]')).to_have_count(CELLS, timeout=PATIENCE)
        page.get_by_role("gridcell").nth(6).hover()  # its card says who answered
        page.wait_for_timeout(3000)  # every cell has asked again: all pods are known
        page.screenshot(path=target)
        browser.close()
    sys.stdout.write(f"{target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
