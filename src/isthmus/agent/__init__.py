"""The agent: one per host. It holds workloads' keys, and runs their proxies beside them.

What it is: for each workload a directory in memory with its key, its certificate and what to trust;
an Envoy in the workload's network namespace that reads them; the rules that lead its traffic
through the Envoy; a pipe to the control plane that shows the workload's certificate, open to that
Envoy alone; metrics and readiness on port 4191. What it is not: it knows no mesh and no objects. It
never tells the control plane who a workload is; certificates do.

Words:
    Place       where a workload lives: its network namespace, a folder in memory
    Wires       how a control plane is reached
    Credential  a certificate that is kept fresh
    Tunnel      a local listener whose connections go on through TLS
    Workload    everything beside one workload, from before its start until after its end
    Agent       all workloads of a host
"""

from isthmus.agent.agent import Agent
from isthmus.agent.contract import Namespace, Place, Seat, Standing, Wires
from isthmus.agent.workload import Workload

__all__ = ["Agent", "Namespace", "Place", "Seat", "Standing", "Wires", "Workload"]
