"""A node's own endpoint: logs, exec, port-forwarding of nothing else.

What it is: the small part of the kubelet's API that an API server asks (`/containerLogs`, `/exec`,
`/healthz`, `/pods`), on the node's address over mutual TLS, and the same on a Unix socket for
`isthmus lab`. What it is not: it serves no metrics and trusts nobody but the cluster's API server.

    server     the two listeners
    channels   the frames of `v5.channel.k8s.io`, without I/O
    session    one exec: a process and a WebSocket
"""
