"""The composition root: the only room that knows every other and wires them.

What it is: `serve(config)`, one cluster's control plane from its lock to its last goodbye. What it
is not: it decides nothing about meshes or objects, and only `lab` and `cli` import it.

    server      serve(): the order in which things start and stop.
    parts       what a server is made of, built from a ServerConfig.
    readiness   when it is ready, what stands in the way.
    means       time, chance, a log: what every part is given.
    listeners   sockets, bound before anything else can fail.
    dns         the sockets of cluster DNS, and the operator's own names.
    figures     what /metrics tells.
    stores      the store that --store names.
    announce    endpoints.json, kubeconfig and the ConfigMap by which others find us.
    meshconfig  the ConfigMap linkerd-config: what the cluster tells of its mesh.
    certificates  the server's own certificate and the admin's, renewed in time.
    lock        one server per data directory.
    logs        events with fields, for a terminal or as JSON.
    limits      file descriptors, garbage collection.
"""

from isthmus.app.server import serve

__all__ = ["serve"]
