"""linkerd2-proxy-api: destination, inbound, outbound, identity, tap."""
