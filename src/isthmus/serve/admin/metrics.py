"""What is counted, read when somebody asks.

Rooms count in their own integers; a Reading says under which name one of them is told. Nothing here
runs on the path of a request or message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Labelled = Mapping[tuple[str, ...], float]
"""Figures by the values of their labels."""


class Reading(NamedTuple):
    """One figure, or with `labels` one per combination of their values.

    A counter's name ends in `_total`. Label values come from a small set: each combination costs
    memory here and at whoever collects.
    """

    name: str
    help: str
    kind: Literal["counter", "gauge"]
    read: Callable[[], float | Labelled]
    labels: tuple[str, ...] = ()


class _Readings(Collector):
    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for name, text, kind, read, labels in self._readings:
            make = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            family = make(name, text, labels=labels)
            value = read()
            for values, figure in value.items() if isinstance(value, Mapping) else [((), value)]:
                family.add_metric(values, figure)
            yield family

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
