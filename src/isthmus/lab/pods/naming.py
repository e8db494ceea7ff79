"""How a pod resolves names: its own resolv.conf and hosts file."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from isthmus.lab.pods.api import Document
from isthmus.lab.pods.sources import Where
from isthmus.model.document import items, mapping, strings, text


class Naming(msgspec.Struct, frozen=True):
    """What a cluster's pods can resolve: by its name server, and the lab's hosts by file."""

    server: str
    """Address of the name server; "" where there is none."""
    domain: str
    hosts: Mapping[str, str]
    """Addresses of machines outside, by name."""

    def files(self, pod: Document, where: Where) -> dict[str, str]:
        """The files of /etc for a pod."""
        return {"resolv.conf": self._resolv(pod), "hosts": self._hosts(pod, where)}

    def _resolv(self, pod: Document) -> str:
        """Rules: "DNS for Services and Pods", dnsPolicy and dnsConfig."""
        own = mapping(pod, "spec.dnsConfig")
        servers = strings(own, "nameservers")
        search = strings(own, "searches")
        options = {text(each, "name"): text(each, "value") for each in items(own, "options")}
        policy = text(pod, "spec.dnsPolicy") or "ClusterFirst"
        if self.server and policy.startswith("ClusterFirst"):
            namespace = text(pod, "metadata.namespace")
            inside = f"svc.{self.domain}"
            servers = [self.server, *servers]
            search = [f"{namespace}.{inside}", inside, self.domain, *search]
            options = {"ndots": "5"} | options
        lines = [f"nameserver {each}" for each in dict.fromkeys(servers)]
        if search:
            lines.append(f"search {' '.join(dict.fromkeys(search))}")
        if options:
            shown = [f"{name}:{value}" if value else name for name, value in options.items()]
            lines.append(f"options {' '.join(shown)}")
        return "".join(f"{line}\n" for line in lines)

    def _hosts(self, pod: Document, where: Where) -> str:
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        name = text(pod, "spec.hostname") or text(pod, "metadata.name")
        subdomain = text(pod, "spec.subdomain")
        full = f"{name}.{subdomain}.{text(pod, 'metadata.namespace')}.svc.{self.domain} "
        lines.append(f"{where.pod_ip} {full if subdomain else ''}{name}")
        lines += [f"{ip} {host}" for host, ip in self.hosts.items()]
        for alias in items(pod, "spec.hostAliases"):
            lines.append(f"{text(alias, 'ip')} {' '.join(strings(alias, 'hostnames'))}")
        return "".join(f"{line}\n" for line in lines)
