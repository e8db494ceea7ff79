"""The IR told in one proxy's words: a package per wire, all of it pure.

A dialect reads the cells of `isthmus.mesh.queries` and makes bytes; what it cannot say it lists as
faults, which become conditions. It never sees the objects that people wrote, nor another dialect.

    linkerd    linkerd2-proxy: the Destination service
    envoy      Envoy sidecars: xDS
    grpc       gRPC's own xDS clients and servers, without a proxy
    xds        no dialect: what the last two read alike
"""
