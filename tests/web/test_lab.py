"""The page of Faces in a real lab: kubectl scales, rolls and breaks workloads, and it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.lab import LabProcess

SMILEYS = "{range .items[*]}{.metadata.name} {end}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    """One cluster, every hop mutually authenticated."""
    with LabProcess(tmp_path_factory.mktemp("web") / "state", "faces") as running:
        for name in ("faces-gui", "face", "smiley", "color"):
            rolled(running, name)
        yield running


def rolled(lab: LabProcess, name: str) -> None:
    lab.kubectl("-n", "faces", "rollout", "status", f"deploy/{name}", "--timeout=60s")


def address(lab: LabProcess) -> str:
    published = lab.status["clusters"][0]["published"]
    [at] = [each["host"] for each in published if each["service"] == "faces/faces-gui"]
    return f"http://{at}/"


def cells(page: Page, key: str, count: int) -> None:
    """Wait until so many cells show what the line `key` of the key says."""
    expect(page.locator(f'.cell[data-keys~="{key}"]')).to_have_count(count, timeout=40_000)


def test_all_is_well(lab: LabProcess, page: Page) -> None:
    page.goto(address(lab))
    cells(page, "fine", 16)
    expect(page.locator("#summary")).to_have_text("16 of 16 well")
    page.get_by_role("gridcell").nth(5).hover()
    for name in ("face", "smiley", "color"):
        expect(page.locator("#details")).to_contain_text(f"{name}-")


def test_a_workload_that_grows_answers_with_all_its_pods(lab: LabProcess, page: Page) -> None:
    page.goto(address(lab))
    cells(page, "fine", 16)
    page.get_by_role("button", name="Pods").click()
    lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=3")
    rolled(lab, "smiley")
    told = lab.kubectl(
        "-n", "faces", "get", "pods", "-l", "service=smiley", "-o", f"jsonpath={SMILEYS}"
    )
    names = told.split()
    assert len(names) == 3
    for name in names:
        expect(page.locator("#shares")).to_contain_text(name, timeout=40_000)
    cells(page, "fine", 16)


def test_what_is_broken_is_seen_and_so_is_its_repair(lab: LabProcess, page: Page) -> None:
    page.goto(address(lab))
    cells(page, "fine", 16)
    lab.kubectl("-n", "faces", "set", "env", "deploy/smiley", "ERROR_FRACTION=100")
    cells(page, "smiley", 16)
    lab.kubectl("-n", "faces", "scale", "deploy/color", "--replicas=0")
    cells(page, "color", 16)
    lab.kubectl("-n", "faces", "set", "env", "deploy/smiley", "ERROR_FRACTION-")
    lab.kubectl("-n", "faces", "scale", "deploy/color", "--replicas=1")
    cells(page, "fine", 16)
