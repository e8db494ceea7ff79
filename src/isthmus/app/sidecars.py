"""What an agent starts its Envoys with, in the dialect's words."""

from __future__ import annotations

from isthmus.agent import Seat
from isthmus.agent.contract import Bootstrap
from isthmus.agent.files import ADMIN, ADS
from isthmus.dialects import envoy


def envoy_bootstrap(mark: int = 0) -> Bootstrap:
    """The bootstrap of a workload's Envoy. `mark`: how its connections are known, if not by user.

    Its id is `NAMESPACE/NAME`, which no name of an object can imitate; the control plane believes
    none of it that the certificate does not say.
    """

    def make(seat: Seat) -> bytes:
        said = envoy.Bootstrap(
            id=f"{seat.namespace}/{seat.name}",
            workload=seat.account or seat.name,
            ads=ADS,
            admin=ADMIN,
            zone=seat.zone,
            mark=mark,
            metadata={"cluster": seat.cluster, "namespace": seat.namespace, "pod": seat.name},
        )
        return envoy.bootstrap(said).encode()

    return make
