"""Mesh TLS: version 1.3, mutual, keys and trust from files beside the proxy (decision 5).

Paths are relative to Envoy's working directory, which the agent makes the workload's own. So the
bytes of a cluster are the same for every sidecar. `default.yaml` holds the workload's certificate
and key, `ROOTCA.yaml` what to trust: Envoy takes one secret of one file. The agent renames them
into place; Envoy reads them again, makes new TLS contexts, and with those forgets every session and
ticket that was made under the old trust.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.core.v3 import config_source_pb2 as source
from envoy.extensions.transport_sockets.raw_buffer.v3 import raw_buffer_pb2 as raw
from envoy.extensions.transport_sockets.tls.v3 import common_pb2 as common
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2 as secret
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as tls
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from isthmus.dialects.xds.identity import in_order, text
from isthmus.ir.names import Dns, Identity, Spiffe
from isthmus.proto.xds import packed

IDENTITY_DIR: Final = "identity"
CERTIFICATE: Final = "default"
TRUST: Final = "ROOTCA"

HTTP: Final = "isthmus/http"
TCP: Final = "isthmus/tcp"
"""What one sidecar tells another in ALPN: what is inside."""

GRPC: Final = "h2"
"""What gRPC's own clients offer: they know no other word, and want it chosen."""

NOBODY: Final = "nobody.invalid"
"""An identity that no certificate has: an empty list would let everybody answer."""

SESSIONS: Final = 64
"""Kept sessions. TLS 1.3 tickets work once, so one would not do for several connections."""

CURVES: Final = ("X25519MLKEM768", "X25519", "P-256")
"""Key exchanges, the post-quantum hybrid first."""

PLAIN: Final = base.TransportSocket(
    name="envoy.transport_sockets.raw_buffer", typed_config=packed(raw.RawBuffer())
)

_NAME: Final = "envoy.transport_sockets.tls"


def _secret(name: str) -> secret.SdsSecretConfig:
    files = source.PathConfigSource(
        path=f"{IDENTITY_DIR}/{name}.yaml",
        watched_directory=base.WatchedDirectory(path=IDENTITY_DIR),
    )
    config = source.ConfigSource(path_config_source=files, resource_api_version=source.V3)
    return secret.SdsSecretConfig(name=name, sds_config=config)


def _parameters() -> common.TlsParameters:
    """Envoy's client side stops at TLS 1.2 unless told otherwise."""
    return common.TlsParameters(
        tls_minimum_protocol_version=common.TlsParameters.TLSv1_3,
        tls_maximum_protocol_version=common.TlsParameters.TLSv1_3,
        ecdh_curves=CURVES,
    )


def upstream(sni: str, peers: Iterable[Identity], alpn: str) -> base.TransportSocket:
    """Towards a mesh peer that must prove one of `peers`.

    Without `sni` each endpoint's host name is its server name. No `alpn`: none is offered.
    """
    expected = common.CertificateValidationContext(
        match_typed_subject_alt_names=list(map(_matcher, in_order(peers))) or [_nobody()]
    )
    combined = tls.CommonTlsContext.CombinedCertificateValidationContext(
        default_validation_context=expected, validation_context_sds_secret_config=_secret(TRUST)
    )
    context = tls.UpstreamTlsContext(
        sni=sni,
        auto_host_sni=not sni,
        max_session_keys=UInt32Value(value=SESSIONS),
        common_tls_context=tls.CommonTlsContext(
            tls_params=_parameters(),
            alpn_protocols=[alpn] if alpn else [],
            tls_certificate_sds_secret_configs=[_secret(CERTIFICATE)],
            combined_validation_context=combined,
        ),
    )
    return base.TransportSocket(name=_NAME, typed_config=packed(context))


def downstream(alpn: str = "") -> base.TransportSocket:
    """From a mesh peer. No ALPN is chosen for sidecars: HTTP inside is told by its first bytes."""
    context = tls.DownstreamTlsContext(
        require_client_certificate=BoolValue(value=True),
        common_tls_context=tls.CommonTlsContext(
            tls_params=_parameters(),
            alpn_protocols=[alpn] if alpn else [],
            tls_certificate_sds_secret_configs=[_secret(CERTIFICATE)],
            validation_context_sds_secret_config=_secret(TRUST),
        ),
    )
    return base.TransportSocket(name=_NAME, typed_config=packed(context))


def _matcher(identity: Identity) -> common.SubjectAltNameMatcher:
    kinds = common.SubjectAltNameMatcher
    kind = kinds.URI if isinstance(identity, Spiffe) else kinds.DNS
    return kinds(san_type=kind, matcher=string.StringMatcher(exact=text(identity)))


def _nobody() -> common.SubjectAltNameMatcher:
    return _matcher(Dns(NOBODY))
