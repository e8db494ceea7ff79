"""The functions that expressions may call: CEL's own and Kubernetes' (its "CEL libraries").

Each is written down once, with its types, by `table.function`; importing this package fills the
table. A function that is not in it is refused by name when a rule is compiled.
"""

from isthmus.model.crd.cel.library import core, net, texts
from isthmus.model.crd.cel.library.core import CONSTANTS
from isthmus.model.crd.cel.library.table import FUNCTIONS, Overload, Work

__all__ = ["CONSTANTS", "FUNCTIONS", "Overload", "Work", "core", "net", "texts"]
