"""The API's certificate and the admin's, from the cluster's CA, renewed while the server runs."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

from isthmus import ca
from isthmus.aio import Clock, Log
from isthmus.app import addresses
from isthmus.app.means import Means
from isthmus.ca.kubeconfig import ADMIN, MASTERS
from isthmus.config import Network, ServerConfig
from isthmus.errors import UserFault

PERIOD = timedelta(days=1).total_seconds()
"""Seconds between two looks at the certificates' ages."""
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""Who the server is to nodes; kubeadm's name for it."""
RENEW_BELOW = 1 / 3
"""Share of the lifetime that is left when a certificate is replaced."""


class Certificates:
    """Holds the server's TLS context. Renewal changes it in place: new handshakes see it."""

    def __init__(
        self, authority: ca.Authority, names: Iterable[str], home: Path, clock: Clock
    ) -> None:
        self.authority = authority
        self._names = tuple(names)
        self._home = home
        self._clock = clock
        self._to_kubelets: ssl.SSLContext | None = None
        self._server = self._issue()
        self.context = self._make_context()

    def admin(self) -> ca.Leaf:
        """A fresh client certificate that may everything (group system:masters)."""
        return self.authority.issue_client(ADMIN, [MASTERS], now=self._clock.utc())

    def to_kubelets(self) -> ssl.SSLContext:
        """TLS as the client of nodes: they trust this cluster's CA and its masters alone."""
        held = self._to_kubelets
        if held is None:
            leaf = self.authority.issue_client(KUBELET_CLIENT, [MASTERS], now=self._clock.utc())
            path = self._home / "kubelet-client.pem"
            ca.write_atomic(path, leaf.certificate + leaf.key)
            held = ssl.create_default_context(cadata=self.authority.bundle.decode())
            held.load_cert_chain(path)
            self._to_kubelets = held
        return held

    def secret(self, purpose: str) -> bytes:
        """A secret of this cluster, the same after a restart, another for each purpose."""
        return hmac.digest(self.authority.key_pem, purpose.encode(), "sha256")

    async def run(self, renewed: Callable[[], None], log: Log) -> None:
        """Renew until cancelled; `renewed` rewrites what holds certificates of ours."""
        while True:
            await self._clock.sleep(PERIOD)
            if self._old():
                self._server = self._issue()
                self.context.load_cert_chain(self._path)
                self._to_kubelets = None
                renewed()
                log.info("certificates renewed", until=self._server.not_after.isoformat())

    @property
    def _path(self) -> Path:
        return self._home / "server.pem"

    def _old(self) -> bool:
        left = self._server.not_after - self._clock.utc()
        return left < ca.authority.LEAF_LIFETIME * RENEW_BELOW

    def _issue(self) -> ca.Leaf:
        """A new leaf, also in a file: OpenSSL loads keys from files alone."""
        leaf = self.authority.issue_server(self._names, now=self._clock.utc())
        ca.write_atomic(self._path, leaf.certificate + leaf.key)
        return leaf

    def _make_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._path)
        context.load_verify_locations(cadata=self.authority.bundle.decode())
        context.verify_mode = ssl.CERT_OPTIONAL  # a token will do, too
        context.set_alpn_protocols(["http/1.1"])  # kubectl takes h2 if it is offered
        return context


def server_names(config: ServerConfig, hosts: Iterable[str] = ()) -> tuple[str, ...]:
    """What the API's certificate must answer to: addresses, and Kubernetes' names for its API."""
    service = "kubernetes.default.svc"
    at = config.listener("kube")
    here = () if at is None else addresses.own() if addresses.everywhere(at.host) else (at.host,)
    return (
        *hosts, *here, "127.0.0.1", "::1", "localhost",
        "kubernetes", "kubernetes.default", service, f"{service}.{config.cluster_domain}",
        first_address(config.service_cidr),
    )  # fmt: skip


def first_address(cidr: Network) -> str:
    """The ClusterIP of the API's own Service: the first of the range (Kubernetes)."""
    return str(cidr.network_address + 1)


def issuer(config: ServerConfig) -> str:
    """Who signs ServiceAccount tokens: the API's name inside the cluster (Kubernetes' default)."""
    return f"https://kubernetes.default.svc.{config.cluster_domain}"


def load(
    config: ServerConfig, clock: Clock, *, hosts: Iterable[str] = ()
) -> tuple[Certificates, ca.Keyring]:
    """The cluster's CA and keys from the data directory, made there the first time.

    `hosts` are further addresses that the API's certificate answers to.
    """
    home = _home(config)
    try:
        authority = ca.load_or_make(home, f"isthmus {config.cluster}", now=clock.utc())
        keyring = ca.load_keyring(home, issuer(config))
        names = server_names(config, hosts)
        return Certificates(authority, names, home, clock), keyring
    except OSError as fault:
        raise UserFault(f"cannot keep certificates in {home}: {fault.strerror}") from fault


def rotation(config: ServerConfig, keyring: ca.Keyring, means: Means) -> ca.Rotation:
    """What replaces the keys of tokens while the server runs."""
    return ca.Rotation(_home(config), keyring, means.clock, means.log)


def _home(config: ServerConfig) -> Path:
    return config.data_dir / "ca"
