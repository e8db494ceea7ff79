"""The golden fixture itself: it must be able to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import Golden


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "test_words"
    folder.mkdir()
    (folder / "held.txt").write_text("one\ntwo\n")
    return tmp_path / "test_words.py"


def test_equal_text_passes(module: Path) -> None:
    held = Golden(module, rewrite=False)
    held("held.txt", "one\ntwo\n")
    held.close()


def test_all_differences_and_missing_files_are_told_at_the_end(module: Path) -> None:
    held = Golden(module, rewrite=False)
    held("held.txt", "one\nthree\n")
    held("absent.txt", "")
    with pytest.raises(AssertionError) as caught:
        held.close()
    assert "-two\n+three" in str(caught.value)
    assert "absent.txt is missing" in str(caught.value)


def test_a_missing_line_end_is_a_difference(module: Path) -> None:
    held = Golden(module, rewrite=False)
    held("held.txt", "one\ntwo")
    with pytest.raises(AssertionError, match="only the line ends differ"):
        held.close()


def test_rewriting_makes_the_file_what_it_is_now(module: Path) -> None:
    held = Golden(module, rewrite=True)
    held("held.txt", "new\n")
    held("deep/fresh.txt", "fresh\n")
    held.close()
    assert (module.parent / "test_words" / "held.txt").read_text() == "new\n"
    assert (module.parent / "test_words" / "deep" / "fresh.txt").read_text() == "fresh\n"
