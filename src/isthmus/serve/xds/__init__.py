"""xDS: what Envoys and proxyless gRPC clients are told, by delta and state-of-the-world streams."""
