"""Another cluster's Kubernetes API as a store that is only read.

What it is: our client (`Client`), one connection's work (`Session`: list everything, then follow
it), and what stays when connections come and go (`View`: a `Store` whose revisions we number
ourselves, because a Kubernetes API orders only within a kind). What it is not: it knows no links,
and nobody writes to another cluster through it.

The other API is believed nothing. Bodies, lines, pages and objects are bounded, every wait has an
end, redirects are not followed, credentials go to the server they were made for and nowhere else.

Its words:
    access    one server and how to prove who asks
    resource  a kind that is taken from other clusters, and whether a view can do without it
    staged    everything of all resources, listed and not shown yet
    view      what readers see; a new list becomes a difference
"""

from isthmus.store.kubernetes.access import Access
from isthmus.store.kubernetes.client import Client, Distrusted
from isthmus.store.kubernetes.objects import BOUNDS, Bounds
from isthmus.store.kubernetes.resources import MIRRORED, Resource
from isthmus.store.kubernetes.session import Means, Session, Staged, Told
from isthmus.store.kubernetes.view import View

__all__ = [
    "BOUNDS",
    "MIRRORED",
    "Access",
    "Bounds",
    "Client",
    "Distrusted",
    "Means",
    "Resource",
    "Session",
    "Staged",
    "Told",
    "View",
]
