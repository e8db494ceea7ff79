"""The admin surface: is it alive, is it ready, what does it count. Plain HTTP on loopback.

What it is: a few paths that say nothing secret and change nothing. What it is not: it takes no
orders, serves no other site (no CORS), and believes no name in the Host header but its own.

    /          the dashboard: a page for people, filled from /overview
    /live      200 while the process turns
    /ready     200, or 503 with the reasons, as JSON
    /metrics   Prometheus' text format
    /...       pages of other surfaces, as JSON: what proxies were told, ...
"""

from isthmus.serve.admin.metrics import Reading, registry
from isthmus.serve.admin.server import Admin, Page

__all__ = ["Admin", "Page", "Reading", "registry"]
