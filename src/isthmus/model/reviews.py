"""Kinds that are only questions: who is this, and may they? Nothing of them is stored.

authentication.k8s.io: TokenReview, TokenRequest (asked of a ServiceAccount), SelfSubjectReview.
authorization.k8s.io: the four access reviews.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from isthmus.errors import Cause
from isthmus.model.document import ensure, get, number, settle, text
from isthmus.model.faults import invalid, required
from isthmus.model.kind import Check, Default, Document, Kind, Version
from isthmus.model.meta import View
from isthmus.model.wire.schemas import schema_of

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"

MIN_TOKEN_SECONDS: Final = 600
MAX_TOKEN_SECONDS: Final = 1 << 32


class TokenReviewSpec(View, frozen=True):
    """The token, and whom it should be for."""

    token: str = ""
    audiences: tuple[str, ...] = ()


class TokenReview(View, frozen=True):
    """A question: whose token is this."""

    spec: TokenReviewSpec = TokenReviewSpec()


class BoundObject(View, frozen=True):
    """The object with whose life a token ends."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(View, frozen=True):
    """Whom the token is for, and how long, in seconds."""

    audiences: tuple[str, ...] = ()
    expiration_seconds: int = 3600
    bound_object_ref: BoundObject | None = None


class TokenRequest(View, frozen=True):
    """A wish: a token for a ServiceAccount."""

    spec: TokenRequestSpec = TokenRequestSpec()


class SelfSubjectReview(View, frozen=True):
    """A question: who am I."""


class ResourceAttributes(View, frozen=True):
    """A request to a resource; `*` or empty means all, empty namespace all or none."""

    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(View, frozen=True):
    """A request to a URL path."""

    path: str = ""
    verb: str = ""


class AccessSpec(View, frozen=True):
    """The request, and (except in self reviews) whose it is."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}
    uid: str = ""


class AccessReview(View, frozen=True):
    """A question: may they. SubjectAccessReview and its Self and Local forms."""

    spec: AccessSpec = AccessSpec()


class RulesSpec(View, frozen=True):
    """The namespace that is asked about."""

    namespace: str = ""


class RulesReview(View, frozen=True):
    """A question: what may I do there."""

    spec: RulesSpec = RulesSpec()


def _default_token(document: Document) -> None:
    settle(ensure(document, "spec"), "expirationSeconds", 3600)


def _token_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    path = "spec.expirationSeconds"
    seconds = number(document, path, 3600)
    if seconds < MIN_TOKEN_SECONDS:
        yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > MAX_TOKEN_SECONDS:
        yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _review_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    if not text(document, "spec.token"):
        yield required("spec.token")


def _access_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from _attributes_faults(document)
    if not text(document, "spec.user") and not get(document, "spec.groups"):
        yield invalid("spec.user", "", "at least one of user or group must be specified")


def _self_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from _attributes_faults(document)


def _attributes_faults(document: Document) -> Iterator[Cause]:
    spec = get(document, "spec") or {}
    resource = isinstance(spec.get("resourceAttributes"), dict)
    other = isinstance(spec.get("nonResourceAttributes"), dict)
    says = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    if resource and other:
        yield invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], says)
    if not resource and not other:
        yield invalid("spec.resourceAttributes", None, says)


def _kind(
    group: str,
    name: str,
    view: type[View],
    *,
    plural: str = "",
    namespaced: bool = False,
    default: tuple[Default, ...] = (),
    check: tuple[Check, ...] = (),
) -> Kind:
    return Kind(
        group=group,
        name=name,
        plural=plural or f"{name.lower()}s",
        singular=name.lower(),
        namespaced=namespaced,
        versions=(Version("v1", schema_of(f"{group.partition('.')[0]}.v1.{name}")),),
        stored="v1",
        view=view,
        status=False,
        default=default,
        check=check,
        persisted=False,
        generation=False,
        custom=False,
        verbs=("create",),
    )


TOKEN_REVIEW: Final = _kind(AUTHENTICATION, "TokenReview", TokenReview, check=(_review_faults,))
SELF_SUBJECT_REVIEW: Final = _kind(AUTHENTICATION, "SelfSubjectReview", SelfSubjectReview)
SUBJECT_ACCESS_REVIEW: Final = _kind(
    AUTHORIZATION, "SubjectAccessReview", AccessReview, check=(_access_faults,)
)
SELF_SUBJECT_ACCESS_REVIEW: Final = _kind(
    AUTHORIZATION, "SelfSubjectAccessReview", AccessReview, check=(_self_faults,)
)
LOCAL_SUBJECT_ACCESS_REVIEW: Final = _kind(
    AUTHORIZATION,
    "LocalSubjectAccessReview",
    AccessReview,
    namespaced=True,
    check=(_access_faults,),
)
SELF_SUBJECT_RULES_REVIEW: Final = _kind(AUTHORIZATION, "SelfSubjectRulesReview", RulesReview)

TOKEN_REQUEST: Final = _kind(
    AUTHENTICATION,
    "TokenRequest",
    TokenRequest,
    namespaced=True,
    default=(_default_token,),
    check=(_token_faults,),
)
"""Not a resource of its own: the subresource `token` of ServiceAccounts takes and answers it."""

KINDS: tuple[Kind, ...] = (
    TOKEN_REVIEW,
    SELF_SUBJECT_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
)
