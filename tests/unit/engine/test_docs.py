"""The code blocks of docs/engine.md run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "engine.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("caplog")
def test_the_page_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    source = blocks("python")
    assert len(source) >= 6
    exec(compile("\n".join(source), str(PAGE), "exec"), {"__name__": "docs_engine"})
    assert capsys.readouterr().out.splitlines() == blocks("text")[0].splitlines()
