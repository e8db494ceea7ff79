"""The names that certificates of one mesh carry: made from parsed parts, and read back into them.

A workload is its ServiceAccount: `<sa>.<ns>.serviceaccount.identity.<control plane>.<td>` as
Linkerd writes it, and `spiffe://<td>/ns/<ns>/sa/<sa>`. Hosts and control planes have SPIFFE ids of
their own under `/isthmus/`, where no ServiceAccount can ever be.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from isthmus.ir.identity import account, parse_identity
from isthmus.ir.names import Spiffe
from isthmus.model.names import label_problems, subdomain_problems

AUDIENCE: Final = "identity.l5d.io"
"""Of the tokens that may be shown for a certificate (Linkerd)."""

OURS: Final = "isthmus"
HOST: Final = "host"
CONTROL_PLANE: Final = "control-plane"


class Account(NamedTuple):
    """A ServiceAccount."""

    namespace: str
    name: str

    @property
    def fits(self) -> bool:
        """Whether it can stand in an identity: both parts are single DNS labels."""
        return not (label_problems(self.namespace) or label_problems(self.name))


class Realm(NamedTuple):
    """The two settings that all identities of a cluster end in."""

    trust_domain: str
    control_plane_namespace: str

    def name(self, of: Account) -> str:
        """The DNS identity of a ServiceAccount, as Linkerd makes it."""
        return account(
            of.name, of.namespace,
            control_plane=self.control_plane_namespace, trust_domain=self.trust_domain,
        ).name  # fmt: skip

    def uri(self, of: Account) -> str:
        """The SPIFFE id of a ServiceAccount."""
        return Spiffe(self.trust_domain, ("ns", of.namespace, "sa", of.name)).uri

    def account(self, name: str) -> Account | None:
        """The ServiceAccount of a DNS identity of this realm; None for any other text."""
        labels = name.split(".")
        if len(labels) < 2:
            return None
        found = Account(labels[1], labels[0])
        return found if found.fits and self.name(found) == name else None

    def host_uri(self, host: str) -> str:
        """The SPIFFE id of a host's agent."""
        return Spiffe(self.trust_domain, (OURS, HOST, host)).uri

    def host(self, uri: str) -> str | None:
        """The host of such an id; None for any other text."""
        match parse_identity(uri):
            case Spiffe(domain, (first, second, host)) if (
                domain == self.trust_domain
                and (first, second) == (OURS, HOST)
                and not subdomain_problems(host)
            ):
                return host
        return None

    @property
    def server_name(self) -> str:
        """The DNS name in the certificates of control planes: no ServiceAccount's name has it."""
        return f"{CONTROL_PLANE}.{self.issuer_name}"

    def server_uri(self, cluster: str) -> str:
        """The SPIFFE id of one cluster's control plane."""
        return Spiffe(self.trust_domain, (OURS, CONTROL_PLANE, cluster)).uri

    @property
    def issuer_name(self) -> str:
        """What Linkerd calls the issuer of a realm."""
        return f"identity.{self.control_plane_namespace}.{self.trust_domain}"
