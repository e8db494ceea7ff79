"""Questions that are asked by POST and never stored: who am I, may I, is this token good.

SelfSubjectReview, TokenReview (authentication.k8s.io); SubjectAccessReview, its Self and Local
forms, SelfSubjectRulesReview (authorization.k8s.io); the token subresource of ServiceAccounts. The
answer is the question with its status filled in, 201 Created, as Kubernetes does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from isthmus.aio import Clock
from isthmus.ca.tokens import Bound, Keyring
from isthmus.errors import BadRequest, Cause, Invalid, MethodNotAllowed, NotFound, Unauthenticated
from isthmus.model import document as look
from isthmus.model.kind import Document, Kind
from isthmus.model.registry import Registry
from isthmus.model.reviews import TOKEN_REQUEST
from isthmus.model.times import format_time
from isthmus.serve.kube.answer import Answer, Asked, of_document
from isthmus.serve.kube.auth import (
    Attributes,
    Authorizer,
    TokenVerifier,
    User,
    require,
    user_info,
)
from isthmus.serve.kube.body import checked, of_kind, parse, place
from isthmus.serve.kube.negotiate import OBJECT_BODIES, body
from isthmus.serve.kube.options import Validation, write_options
from isthmus.serve.kube.read import Reader
from isthmus.serve.kube.status import subject
from isthmus.store.codec import document as read_document

LONGEST_TOKEN = 365 * 86400
"""Seconds that a token lives at most, whatever is asked."""

MAX_AUDIENCES = 16


class Reviews:
    """Answers the review kinds."""

    def __init__(
        self,
        kinds: Registry,
        authorizer: Authorizer,
        tokens: TokenVerifier,
        issuer: Keyring | None,
        reader: Reader,
        clock: Clock,
    ) -> None:
        """Without an issuer no tokens are made."""
        self._kinds = kinds
        self._authorizer = authorizer
        self._tokens = tokens
        self._issuer = issuer
        self._reader = reader
        self._clock = clock

    async def answer(self, asked: Asked) -> Answer:
        """The question with its answer; Invalid or BadRequest if it is none."""
        if asked.verb != "create":
            raise MethodNotAllowed(f"{asked.kind.resource} can only be created")
        if asked.target.subresource == "token":
            return await self._token(asked)
        question, warnings = await _read(asked, asked.kind)
        status = await self._status(asked, question)
        question["metadata"] = {"creationTimestamp": None}
        return of_document({**question, "status": status}, 201, warnings)

    async def _status(self, asked: Asked, question: Document) -> Document:
        spec = look.mapping(question, "spec")
        match asked.kind.name:
            case "SelfSubjectReview":
                return {"userInfo": user_info(asked.user)}
            case "TokenReview":
                return await self._token_review(spec)
            case "SelfSubjectAccessReview":
                return self._access(asked.user, spec)
            case "SubjectAccessReview":
                return self._access(_subject(spec), spec)
            case "LocalSubjectAccessReview":
                _local(spec, asked)
                return self._access(_subject(spec), spec)
            case "SelfSubjectRulesReview":
                return self._rules(asked.user, look.text(spec, "namespace"))
            case name:
                raise NotFound(f"nobody answers a {name} here")

    # -------------------------------------------------------------------------------- may I

    def _access(self, user: User, spec: Document) -> Document:
        decision = self._authorizer.decide(user, _question(spec))
        answer: Document = {"allowed": decision.allowed}
        if decision.reason:
            answer["reason"] = decision.reason
        return answer

    def _rules(self, user: User, namespace: str) -> Document:
        """What the user may there, as `kubectl auth can-i --list` shows it."""
        held = [msgspec.to_builtins(rule) for rule in self._authorizer.rights(user, namespace)]
        return {
            "resourceRules": [rule for rule in held if rule.get("resources")],
            "nonResourceRules": [rule for rule in held if rule.get("nonResourceURLs")],
            "incomplete": False,
        }

    # ------------------------------------------------------------------------------- tokens

    async def _token_review(self, spec: Document) -> Document:
        audiences = look.strings(spec, "audiences")[:MAX_AUDIENCES]
        token = look.text(spec, "token")
        try:
            user, agreed = await self._tokens.verify(token, audiences)
        except Unauthenticated as fault:
            return {"user": {}, "error": fault.message}
        answer: Document = {"authenticated": True, "user": user_info(user)}
        if agreed:
            answer["audiences"] = list(agreed)
        return answer

    async def _token(self, asked: Asked) -> Answer:
        """TokenRequest: a token for this account, perhaps bound to a pod, secret or node."""
        if self._issuer is None or (asked.kind.group, asked.kind.plural) != ("", "serviceaccounts"):
            raise NotFound("the server could not find the requested resource")
        target = asked.target
        request, warnings = await _read(asked, TOKEN_REQUEST)
        spec = look.mapping(request, "spec")
        account = await self._bound(asked.kind, target.namespace, target.name)
        bound = await self._bound_to(spec, asked)
        seconds = min(look.number(spec, "expirationSeconds"), LONGEST_TOKEN)
        now = self._clock.utc()
        lifetime = timedelta(seconds=seconds)
        token = self._issuer.sign(
            account,
            now=now,
            lifetime=lifetime,
            audiences=look.strings(spec, "audiences")[:MAX_AUDIENCES],
            bound=bound,
        )
        request["metadata"] = {"name": target.name, "namespace": target.namespace}
        request["spec"] = {**spec, "expirationSeconds": seconds}
        if not look.strings(spec, "audiences"):
            request["spec"]["audiences"] = [self._issuer.issuer]
        status = {"token": token, "expirationTimestamp": format_time(now + lifetime)}
        if write_options(asked.query).dry_run:
            status["token"] = ""
        return of_document({**request, "status": status}, 201, warnings)

    async def _bound(self, kind: Kind, namespace: str, name: str) -> Bound:
        return _reference(kind, await self._object(kind, namespace, name))

    async def _object(self, kind: Kind, namespace: str, name: str) -> Document:
        record = await self._reader.record(kind, namespace, name)
        return read_document(record.value, 0)

    async def _bound_to(self, spec: Document, asked: Asked) -> Bound | None:
        """The object that the token shall hang on.

        Only who may read it is told whether it exists; and a pod's token is its own account's.
        """
        wanted = look.mapping(spec, "boundObjectRef")
        if not wanted:
            return None
        name, uid = look.text(wanted, "name"), look.text(wanted, "uid")
        kind = self._kinds.by_kind("", look.text(wanted, "kind"))
        if kind is None or kind.plural not in {"pods", "secrets", "nodes"}:
            raise BadRequest("spec.boundObjectRef: a token is bound to a Pod, Secret or Node")
        within = asked.target.namespace if kind.namespaced else ""
        about = Attributes("get", "", "v1", kind.plural, "", within, name)
        require(self._authorizer, asked.user, about)
        found = await self._object(kind, within, name)
        bound = _reference(kind, found)
        if uid and uid != bound.uid:
            raise BadRequest(f"spec.boundObjectRef: {kind.plural} {name!r} has another uid")
        if kind.plural == "pods" and _account(found) != asked.target.name:
            raise BadRequest(
                f'cannot bind token for serviceaccount "{asked.target.name}" to pod running with '
                "different serviceaccount name."
            )
        return bound


def _reference(kind: Kind, document: Document) -> Bound:
    meta = look.mapping(document, "metadata")
    uid, name = look.text(meta, "uid"), look.text(meta, "name")
    return Bound(kind.plural, look.text(meta, "namespace"), name, uid)


def _account(pod: Document) -> str:
    return look.text(pod, "spec.serviceAccountName") or "default"


async def _read(asked: Asked, kind: Kind) -> tuple[Document, tuple[str, ...]]:
    options = write_options(asked.query)
    media = body(asked.content_type, OBJECT_BODIES)
    raw = await asked.body()
    found = parse(raw, media, strict=options.validation is not Validation.IGNORE)
    version = kind.versions[0] if kind is not asked.kind else asked.version
    of_kind(found.document, kind, version)
    if kind.namespaced and kind is asked.kind:
        place(found.document, kind, asked.target.namespace, "")
    document, said = checked(found.document, found.repeated, kind, version, options.validation)
    causes = [cause for check in kind.check for cause in check(document, None)]
    if causes:
        raise Invalid("", about=subject(kind), causes=causes)
    return document, said


def _question(spec: Document) -> Attributes:
    """What the review asks: about a resource or about a path."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(look.text(path, "verb"), path=look.text(path, "path") or "/")
    wanted = [
        look.text(resource, name)
        for name in ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    ]
    return Attributes(*wanted)


def _subject(spec: Document) -> User:
    """Whom a SubjectAccessReview asks about."""
    extra: Mapping[str, Any] = look.mapping(spec, "extra")
    held = {key: tuple(map(str, values)) for key, values in extra.items()}
    groups = tuple(look.strings(spec, "groups"))
    return User(look.text(spec, "user"), groups, look.text(spec, "uid"), held)


def _local(spec: Document, asked: Asked) -> None:
    """A LocalSubjectAccessReview asks about its own namespace."""
    namespace = look.text(spec, "resourceAttributes.namespace")
    if namespace != asked.target.namespace:
        cause = Cause("spec.resourceAttributes.namespace", "must match metadata.namespace")
        raise Invalid("", about=subject(asked.kind), causes=[cause])
