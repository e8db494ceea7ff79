"""Server-side apply and who owns which field: pure functions on documents.

What it is: `tracked` keeps `metadata.managedFields` on every create, update and patch; `applied`
lays a configuration over a document, refuses what belongs to others, and takes out what its
applier no longer lists. What it is not: reading bodies, checking documents, defaults, storing.

Its words: a *manager* is who writes fields, by name, operation, version and subresource; what it
*holds* is a `FieldSet`, a set of paths of *steps*; a *configuration* is a document that somebody
applies. A value is *whole* when it has one owner, a *tree* when its parts have their own. Faults
are BadRequest and Conflict, and nothing else ever escapes.
"""

from isthmus.serve.kube.apply.applies import applied
from isthmus.serve.kube.apply.fields import FieldSet
from isthmus.serve.kube.apply.updates import tracked
from isthmus.serve.kube.apply.writing import Writing

__all__ = ["FieldSet", "Writing", "applied", "tracked"]
