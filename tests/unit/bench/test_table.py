from __future__ import annotations

import pytest

from bench.__main__ import main, modules
from bench.table import Figure, table, written


def test_figures_are_aligned_under_their_head() -> None:
    text = table([Figure("change, 10,000 ÷ 100", 1.05, "x", "≤ 1.2"), Figure("cell", 365, "B")])
    assert text.splitlines() == [
        "figure                value  unit  aim",
        "----------------------------------------",
        "change, 10,000 ÷ 100   1.05  x     ≤ 1.2",
        "cell                    365  B",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (12_345_678, "12,345,678"), (99.94, "99.9"), (1.234, "1.23"), (0.5, "0.500"),
     (0.0123, "0.0123"), (0.000_123, "0.00012"), (-250, "-250")],
)  # fmt: skip
def test_three_digits_count(value: float, text: str) -> None:
    assert written(value) == text


def test_an_unknown_bench_is_refused_with_the_names_of_the_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["nonsense"]) == 2
    assert f"there are {', '.join(modules())}" in capsys.readouterr().out
