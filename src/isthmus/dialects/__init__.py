"""The IR told in one proxy's words: a package per wire, all of it pure.

A dialect reads the cells of `isthmus.mesh.queries` and makes bytes; what it cannot say it lists as
faults, which become conditions. It never sees the objects that people wrote, nor another dialect.

So far: `linkerd` (linkerd2-proxy). Envoy and proxyless gRPC each bring their package.
"""
