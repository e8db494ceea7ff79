"""What goes wrong with writes, as table cells: for reports of those whose object it is.

No plan may depend on it but one that tells people: trouble is of this process, and of now.
"""

from __future__ import annotations

from isthmus.engine import Table
from isthmus.model.key import ObjectKey

TROUBLE: Table[tuple[str, ObjectKey], str] = Table("trouble")
"""By the controller's name and its key: the last refusal. No store holds it."""
