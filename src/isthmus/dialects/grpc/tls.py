"""Mesh TLS in gRPC's words: keys and trust by the process's own provider of certificates.

gRPC knows no secrets by name and one transport for a whole cluster, so only what is all behind our
own sidecars is called by mesh TLS. It does so for channels that were made with xDS credentials;
others speak plaintext, whatever they are told. The name that it asks for is the cluster's, as with
sidecars, and what it offers in ALPN is HTTP/2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from envoy.config.core.v3 import base_pb2 as base
from envoy.extensions.transport_sockets.tls.v3 import common_pb2 as common
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as tls
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf.wrappers_pb2 import BoolValue

from isthmus.dialects.xds.identity import in_order, text
from isthmus.ir.names import Identity
from isthmus.ir.target import Target
from isthmus.ir.target import Tls as Mode
from isthmus.proto.xds import packed

PROVIDER: Final = "default"
"""The instance of `certificate_providers` in the process's bootstrap: the agent's files."""

NOBODY: Final = "nobody.invalid"
"""An identity that no certificate has: an empty list would let everybody answer."""

_OWN: Final = common.CertificateProviderPluginInstance(instance_name=PROVIDER)


def joins(found: Target) -> bool:
    """Whether calls to a target are mesh TLS."""
    return found.tls is Mode.MESH and found.native and not found.foreign


def upstream(sni: str, peers: Iterable[Identity]) -> base.TransportSocket:
    """Towards a mesh peer that must prove one of `peers`."""
    return _socket(tls.UpstreamTlsContext(sni=sni, common_tls_context=_context(peers)))


def downstream() -> base.TransportSocket:
    """From a mesh peer."""
    required = BoolValue(value=True)
    return _socket(
        tls.DownstreamTlsContext(
            common_tls_context=_context(None), require_client_certificate=required
        )
    )


def _context(peers: Iterable[Identity] | None) -> tls.CommonTlsContext:
    """Keys, trust, and who may answer; None: whoever is trusted."""
    validation = common.CertificateValidationContext(ca_certificate_provider_instance=_OWN)
    if peers is not None:
        names = [text(each) for each in in_order(peers)] or [NOBODY]
        validation.match_subject_alt_names.extend(
            string.StringMatcher(exact=each) for each in names
        )
    return tls.CommonTlsContext(
        tls_certificate_provider_instance=_OWN, validation_context=validation
    )


def _socket(context: tls.UpstreamTlsContext | tls.DownstreamTlsContext) -> base.TransportSocket:
    return base.TransportSocket(name="envoy.transport_sockets.tls", typed_config=packed(context))
