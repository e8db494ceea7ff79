"""What is counted, read when somebody asks.

Rooms count in their own integers; a Reading says under which name one of them is told. Nothing here
runs on the path of a request or message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Reading(NamedTuple):
    """One figure. A counter's name ends in `_total`."""

    name: str
    help: str
    kind: Literal["counter", "gauge"]
    read: Callable[[], float]


class _Readings(Collector):
    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for name, text, kind, read in self._readings:
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            yield family(name, text, value=read())

    def describe(self) -> Iterable[Metric]:
        return ()


def registry(readings: Sequence[Reading]) -> CollectorRegistry:
    """A registry of the process's own figures and of `readings`; surfaces may add theirs."""
    made = CollectorRegistry()
    ProcessCollector(registry=made)
    PlatformCollector(registry=made)
    GCCollector(registry=made)
    made.register(_Readings(readings))
    return made
