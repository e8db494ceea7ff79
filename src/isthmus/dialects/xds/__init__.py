"""What Envoy and gRPC read alike: matches of requests, virtual hosts, access rules.

It is no dialect: Envoy's and gRPC's both use it, and neither knows the other.
"""
