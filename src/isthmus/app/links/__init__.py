"""Links: one watcher for each linked cluster, and what is known of every connection.

What it is: the shell around `mesh.linked`, which says what is wanted. A watcher connects with the
credentials of a Secret, keeps the cluster's objects in the tables (`store.kubernetes`, a feed of
the board), asks its data plane whether it lives, and renews its token. What it is not: it mirrors
nothing (`controllers` do, from the tables) and decides about no endpoint but by `Cluster.usable`.

Its words:
    access      how to reach a cluster's API, as its kubeconfig says
    serving     the connection whose news are shown; another takes over once it has synced
    silent      nothing was heard of the API for SILENCE seconds
    dead        silent, and the data plane does not answer either (decision 18)
"""

from isthmus.app.links.links import Links
from isthmus.app.links.report import figures_of, page_of
from isthmus.app.links.watcher import Place, remote

__all__ = ["Links", "Place", "figures_of", "page_of", "remote"]
