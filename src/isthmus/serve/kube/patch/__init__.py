"""Patches: from a document and a patch body to the document that is wanted.

What it is: the three patch types of the Kubernetes API as pure functions, JSON patch (RFC 6902),
JSON merge patch (RFC 7386) and strategic merge patch (which knows from the schema how lists merge),
and `apply`, which chooses by content type. What it is not: server-side apply, and any judgement of
the result: unknown fields, types and rules are checked by whoever writes it.

Its words: a *document* is the object as JSON; it is never changed, and the result shares nothing
with it. A *directive* is a `$` key that says how to merge; a *merge key* is the field that tells
the items of a list apart. Every fault is BadRequest (the patch makes no sense) or Invalid (it does
not fit this document) and names the path; over a limit it is TooLarge; nothing else ever escapes.
"""

from isthmus.serve.kube.patch.front import apply
from isthmus.serve.kube.patch.json_patch import json_patch
from isthmus.serve.kube.patch.merge import merge_patch
from isthmus.serve.kube.patch.strategic import strategic_merge_patch

__all__ = ["apply", "json_patch", "merge_patch", "strategic_merge_patch"]
