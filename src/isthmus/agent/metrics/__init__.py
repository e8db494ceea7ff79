"""An Envoy's statistics as Linkerd's metrics: pure, text to text.

The Envoy counts with one label, since each costs time on every request; what it holds is told in
`isthmus.dialects.envoy.stats`. Here it is taken apart again, milliseconds become seconds, and names
become those that Linkerd's dashboards ask for, with labels in Linkerd's order. No value holds a
comma, an equals sign or a quote. Lines that cannot be read are left out: a proxy's own page must
not break a scrape.
"""

from isthmus.agent.metrics.export import export
from isthmus.agent.metrics.page import Sample, read

__all__ = ["Sample", "export", "read"]
