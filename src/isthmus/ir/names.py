"""Names that mean the same in every dialect: references, origins, identities, hosts, targets."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True, gc=False):
    """Base of all IR values: frozen, compared by content."""


class Ref(Value, frozen=True):
    """One object in one cluster. `group` is "" for the core group."""

    cluster: str
    group: str
    kind: str
    namespace: str
    name: str


class Origin(Value, frozen=True, tag="object"):
    """The object that a part of the configuration comes from.

    `path` leads to the part inside the object, "" for all of it. `port` is the port the part
    speaks about (a Service parent's port), 0 if none.
    """

    ref: Ref
    path: str = ""
    port: int = 0


class Default(Value, frozen=True, tag="default"):
    """A part that no object wrote.

    `egress-fallback`, `undefined-port`, `http`, `all-unauthenticated`, ...
    """

    name: str


Source = Origin | Default
"""Stands on every route, rule, backend and authorization."""


class Spiffe(Value, frozen=True, tag="spiffe"):
    """A SPIFFE identity, compared as parsed parts: never by prefix of the text."""

    trust_domain: str
    path: tuple[str, ...]

    @property
    def uri(self) -> str:
        """`spiffe://cluster.local/ns/faces/sa/face`."""
        return "spiffe://" + "/".join((self.trust_domain, *self.path))


class Dns(Value, frozen=True, tag="dns"):
    """A DNS identity as linkerd2-proxy uses it.

    For example `face.faces.serviceaccount.identity.linkerd.cluster.local`.
    """

    name: str


Identity = Spiffe | Dns


class AnyIdentity(Value, frozen=True, tag="any"):
    """Every authenticated peer."""


class IdentitySuffix(Value, frozen=True, tag="suffix"):
    """Every DNS identity with at least one more label in front of `labels`.

    SPIFFE ones never match.
    """

    labels: tuple[str, ...]


IdentityMatch = Spiffe | Dns | IdentitySuffix | AnyIdentity


class Exact(Value, frozen=True, tag="exact"):
    """A host name, lower case, without trailing dot."""

    name: str


class Suffix(Value, frozen=True, tag="suffix"):
    """`*.a.b`: at least one more label in front. `labels` = ("a", "b")."""

    labels: tuple[str, ...]


class AnyHost(Value, frozen=True, tag="any"):
    """No host condition; ranks below every other."""


Host = Exact | Suffix | AnyHost


class TargetId(Value, frozen=True):
    """Names a target in every cluster, cluster name of Envoy and SNI alike.

    `cluster` is the cluster (datacenter) whose endpoints are meant. `port` is the service port,
    None where a service has a single one (Consul). `subset` is a named subset of its endpoints,
    `variant` tells apart targets that differ in settings only (Consul: hash of the overrides).
    SNI and key are made here and nowhere else.
    """

    cluster: str
    namespace: str
    service: str
    port: int | None = None
    subset: str = ""
    variant: str = ""

    def sni(self, trust_domain: str) -> str:
        """The server name that gateways route by (decision 16).

        One name per service port and cluster.
        """
        labels = [self.service, self.namespace, self.cluster, "internal", trust_domain]
        front = [self.subset] if self.subset else []
        port = [f"p{self.port}"] if self.port is not None else []
        return ".".join(front + port + labels)

    def key(self, trust_domain: str) -> str:
        """The name of the target in a proxy's configuration.

        The SNI, variants told apart in front.
        """
        prefix = f"{self.variant}~" if self.variant else ""
        return prefix + self.sni(trust_domain)
