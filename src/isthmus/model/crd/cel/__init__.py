"""CEL, the Common Expression Language, as Kubernetes uses it in validation rules.

What it is: a parser, a checker of types that knows the fields of the object, and an evaluator whose
every step is paid for from a budget, so that no rule can stall the server. Its functions are CEL's
own, its optional types, the `strings`, `lists` and `sets` extensions, two-variable macros, and
Kubernetes' libraries (regular expressions by RE2, URLs, addresses, quantities, versions, formats).
What it is not: protocol buffers, enums, user-defined functions.

Its words: a *program* is one compiled expression; its *cost* is an estimate made before it runs, in
*units* of one small step; a *budget* holds units and runs out.
"""

from isthmus.model.crd.cel.program import CelError, Program, SyntaxFault, TypeFault
from isthmus.model.crd.cel.types import CelType
from isthmus.model.crd.cel.values import Budget, Optional, Spent

__all__ = [
    "Budget",
    "CelError",
    "CelType",
    "Optional",
    "Program",
    "Spent",
    "SyntaxFault",
    "TypeFault",
]
