"""The one tree of errors, and what each means on every wire.

    IsthmusError                 reason               HTTP   gRPC
    ├─ UserFault                 somebody asked for something that cannot be
    │   ├─ BadRequest            BadRequest           400    INVALID_ARGUMENT
    │   ├─ Invalid               Invalid              422    INVALID_ARGUMENT
    │   ├─ NotFound              NotFound             404    NOT_FOUND
    │   ├─ MethodNotAllowed      MethodNotAllowed     405    UNIMPLEMENTED
    │   ├─ NotAcceptable         NotAcceptable        406    INVALID_ARGUMENT
    │   ├─ Conflict              Conflict             409    ABORTED
    │   ├─ AlreadyExists         AlreadyExists        409    ALREADY_EXISTS
    │   ├─ TooLarge              RequestEntityTooLarge 413   RESOURCE_EXHAUSTED
    │   ├─ UnsupportedMediaType  UnsupportedMediaType 415    INVALID_ARGUMENT
    │   ├─ TooManyRequests       TooManyRequests      429    RESOURCE_EXHAUSTED
    │   ├─ Forbidden             Forbidden            403    PERMISSION_DENIED
    │   └─ Unauthenticated       Unauthorized         401    UNAUTHENTICATED
    ├─ PeerFault                 BadRequest           400    INVALID_ARGUMENT
    ├─ Compacted                 Expired              410    OUT_OF_RANGE
    ├─ DeadlineExceeded          Timeout              504    DEADLINE_EXCEEDED
    └─ Unavailable               ServiceUnavailable   503    UNAVAILABLE

An error carries its wire codes as class attributes, so each edge maps it by look-up, once.
An exception outside this tree is a bug: the edge logs its traceback and tells the peer
"internal error" with an id and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple


class Cause(NamedTuple):
    """One fault inside one object.

    `path` is written as Kubernetes writes it (`spec.ports[0].port`), empty for the object itself.
    `reason` is a Kubernetes cause type: FieldValueInvalid, FieldValueRequired,
    FieldValueNotSupported, FieldValueDuplicate, FieldValueForbidden, FieldValueTypeInvalid,
    FieldManagerConflict, ...
    """

    path: str
    message: str
    reason: str = "FieldValueInvalid"


class Subject(NamedTuple):
    """What an error is about: `name` of a `resource` (plural) or `kind` in `group`."""

    group: str = ""
    resource: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""

    @property
    def qualified(self) -> str:
        """`deployments.apps`, or `services` for the core group."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


NOBODY = Subject()


class IsthmusError(Exception):
    """Root of everything that Isthmus raises on purpose."""

    reason: ClassVar[str] = "InternalError"
    http: ClassVar[int] = 500
    grpc: ClassVar[str] = "INTERNAL"

    def __init__(
        self, message: str, *, about: Subject = NOBODY, causes: Iterable[Cause] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.about = about
        self.causes: tuple[Cause, ...] = tuple(causes)


class UserFault(IsthmusError):
    """The asker must change something before asking again."""


class BadRequest(UserFault):
    """The request could not be read: malformed body, query or header."""

    reason, http, grpc = "BadRequest", 400, "INVALID_ARGUMENT"


class Invalid(UserFault):
    """The object was read and breaks rules; `causes` holds all of them."""

    reason, http, grpc = "Invalid", 422, "INVALID_ARGUMENT"


class NotFound(UserFault):
    """No such object, or no such resource."""

    reason, http, grpc = "NotFound", 404, "NOT_FOUND"


class MethodNotAllowed(UserFault):
    """The resource exists and does not know this verb."""

    reason, http, grpc = "MethodNotAllowed", 405, "UNIMPLEMENTED"


class NotAcceptable(UserFault):
    """None of the media types asked for can be made."""

    reason, http, grpc = "NotAcceptable", 406, "INVALID_ARGUMENT"


class Conflict(UserFault):
    """The object changed since the asker read it, or a precondition failed."""

    reason, http, grpc = "Conflict", 409, "ABORTED"


class AlreadyExists(UserFault):
    """The name is taken."""

    reason, http, grpc = "AlreadyExists", 409, "ALREADY_EXISTS"


class TooLarge(UserFault):
    """The body is over the limit."""

    reason, http, grpc = "RequestEntityTooLarge", 413, "RESOURCE_EXHAUSTED"


class UnsupportedMediaType(UserFault):
    """The body's content type is not one this resource takes."""

    reason, http, grpc = "UnsupportedMediaType", 415, "INVALID_ARGUMENT"


class TooManyRequests(UserFault):
    """The asker is over its share; try again after `retry_after` seconds."""

    reason, http, grpc = "TooManyRequests", 429, "RESOURCE_EXHAUSTED"

    def __init__(self, message: str, *, retry_after: int = 1, about: Subject = NOBODY) -> None:
        super().__init__(message, about=about)
        self.retry_after = retry_after


class Forbidden(UserFault):
    """The asker is known and may not do this."""

    reason, http, grpc = "Forbidden", 403, "PERMISSION_DENIED"


class Unauthenticated(UserFault):
    """The asker did not prove who it is."""

    reason, http, grpc = "Unauthorized", 401, "UNAUTHENTICATED"


class PeerFault(IsthmusError):
    """A proxy, gossip peer or client broke its protocol; only its own stream suffers."""

    reason, http, grpc = "BadRequest", 400, "INVALID_ARGUMENT"


class Compacted(IsthmusError):
    """The revision asked for is no longer kept; list again."""

    reason, http, grpc = "Expired", 410, "OUT_OF_RANGE"


class DeadlineExceeded(IsthmusError):
    """It took too long; whether it happened is not known."""

    reason, http, grpc = "Timeout", 504, "DEADLINE_EXCEEDED"


class Unavailable(IsthmusError):
    """Not now; try again after `retry_after` seconds."""

    reason, http, grpc = "ServiceUnavailable", 503, "UNAVAILABLE"

    def __init__(self, message: str, *, retry_after: int = 1, about: Subject = NOBODY) -> None:
        super().__init__(message, about=about)
        self.retry_after = retry_after
