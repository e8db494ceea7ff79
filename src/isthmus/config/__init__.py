"""The settings of `isthmus server`: one frozen value from flags, environment and file.

Not a place that reads anything: flags, environment and the file's bytes are handed in, so the
whole room is a pure function. Not for objects that people write into a cluster.

Its words:

- `ServerConfig`: every setting, typed and checked. What the rest of the program gets.
- `Setting`: one line of the table in `SETTINGS`: name, default, meaning, how its text is read.
  The command line makes its flags from the same table.
- `resolve`: flags beat environment beat file beat default; all faults are told at once.
- `config_file`: which file to read before calling `resolve`.
"""

from isthmus.config.resolve import config_file, resolve
from isthmus.config.server import (
    InboundPolicy,
    Listener,
    LogFormat,
    ServerConfig,
    TransportMode,
)
from isthmus.config.settings import SETTINGS, Setting, Shape
from isthmus.config.stores import (
    EtcdStore,
    KubernetesStore,
    MemoryStore,
    SqliteStore,
    StoreConfig,
)
from isthmus.config.values import Network, PortRange

__all__ = [
    "SETTINGS",
    "EtcdStore",
    "InboundPolicy",
    "KubernetesStore",
    "Listener",
    "LogFormat",
    "MemoryStore",
    "Network",
    "PortRange",
    "ServerConfig",
    "Setting",
    "Shape",
    "SqliteStore",
    "StoreConfig",
    "TransportMode",
    "config_file",
    "resolve",
]
