"""The objects people write: their kinds, schemas, grammars, and the views that the mesh reads.

What it is: a module per API group with one Kind record per kind (names, versions, columns,
defaults, checks, view), the registry over them, and the pure tools that every reader of objects
needs. What it is not: a store, an API server, or the meaning of the objects (that is `mesh`).

Its words: a *kind* is a resource kind; a *document* is a whole object as JSON, the truth; a *view*
is the frozen Struct with the facts that the mesh reads; a *check* finds faults, all of them, each
with its path; a *schema* says what a document may hold.
"""

from isthmus.model.key import Key, ObjectKey
from isthmus.model.kind import Column, Document, Kind, Scale, Version
from isthmus.model.schema import Schema

__all__ = ["Column", "Document", "Key", "Kind", "ObjectKey", "Scale", "Schema", "Version"]
