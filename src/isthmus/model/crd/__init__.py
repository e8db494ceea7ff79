"""CustomResourceDefinitions: kinds that users define, with the schemas and rules they write.

What it is: the reading of a definition (`structural`: is the schema structural; `rules`: do its CEL
rules compile, and what may they cost), the checking of objects against it (`values`, `rules`), and
the Kind record that comes of it (`kinds`). What it is not: who serves the kind, or when
(`mesh.definitions` decides which definitions have their names; `board.kinds` has the registry).

Its words: a *node* is one place of a structural schema; a *rule* is one of
x-kubernetes-validations; a *survey* is a version's schema read, compiled and found fault with. A
*definition* is the CustomResourceDefinition.
"""

from isthmus.model.crd.definition import Surveyed, faults, survey
from isthmus.model.crd.kinds import Unusable, kind_of

__all__ = ["Surveyed", "Unusable", "faults", "kind_of", "survey"]
