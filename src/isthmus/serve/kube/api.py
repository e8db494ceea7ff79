"""From a request to its answer: who, may they, which handler. No sockets, no aiohttp.

Every request passes through `authenticate` and `respond` once, and what came of it through
`observe`: the one place where an audit log, metrics or a test may listen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cached_property
from typing import Any, Protocol

from isthmus.aio import Clock
from isthmus.ca.tokens import Keyring
from isthmus.errors import MethodNotAllowed, NotFound
from isthmus.model.apiextensions import GROUP as DEFINITIONS
from isthmus.model.kind import Kind, Version
from isthmus.model.rbac import GROUP as RBAC
from isthmus.model.registry import Kinds
from isthmus.serve.kube import auth
from isthmus.serve.kube.answer import Answer, Asked, Response, Stream
from isthmus.serve.kube.auth import ANONYMOUS, Attributes, Authorizer, TokenVerifier, User
from isthmus.serve.kube.delete import Deleter
from isthmus.serve.kube.documents import Documents
from isthmus.serve.kube.escalation import ASKER
from isthmus.serve.kube.hub import Hub
from isthmus.serve.kube.impersonation import impersonate
from isthmus.serve.kube.limits import DEFAULT_LIMITS, Limits
from isthmus.serve.kube.openid import OpenId
from isthmus.serve.kube.options import is_watch
from isthmus.serve.kube.query import Query, parse_query
from isthmus.serve.kube.read import Reader
from isthmus.serve.kube.reviews import Reviews
from isthmus.serve.kube.routes import FOR_NODES, PASSED_ON, Plain, Route, Target, parse, verb
from isthmus.serve.kube.show import Showings, deprecation
from isthmus.serve.kube.watch import Watching
from isthmus.serve.kube.write import Editor
from isthmus.store.contract import Store
from isthmus.store.objects import Writer


class Call:
    """A request as it came. `headers` has lower-case names; `path` still holds the query."""

    def __init__(  # noqa: PLR0913  # the parts of a request
        self,
        *,
        id: str,  # noqa: A002
        method: str,
        path: str,
        headers: Mapping[str, str],
        impersonation: tuple[tuple[str, str], ...] = (),
        certificate: Mapping[str, Any] | None = None,
        address: str = "",
        body: Callable[[], Awaitable[bytes]],
        greet: Callable[[], None] = lambda: None,
    ) -> None:
        """`greet` is called as soon as the sender is known to be somebody."""
        self.id = id
        self.method = method
        self.path = path
        self.headers = headers
        self.impersonation = impersonation
        self.certificate = certificate
        self.address = address
        self.body = body
        self.greet = greet

    @cached_property
    def query(self) -> Query:
        """The parameters; BadRequest when there are too many."""
        return parse_query(self.path.partition("?")[2])

    @cached_property
    def route(self) -> Route:
        """What the path names; BadRequest or NotFound when nothing can be meant by it."""
        return parse(self.path.partition("?")[0])

    @cached_property
    def watching(self) -> bool:
        """Whether it is a watch: answered for as long as the client likes."""
        return self.verb == "watch"

    @cached_property
    def lasting(self) -> bool:
        """Whether it may last as long as the client likes: a watch, a followed log, an exec."""
        route = self.route
        if self.watching or isinstance(route, Plain):
            return self.watching
        followed = route.subresource == "log" and "follow" in self.query
        return route.resource == "pods" and (route.subresource in FOR_NODES or followed)

    @cached_property
    def verb(self) -> str:
        """The verb in the words of RBAC; of paths without a resource, the method."""
        if isinstance(self.route, Plain):
            return self.method.lower()
        asks_watch = self.method == "GET" and is_watch(self.query)
        return verb(self.method, self.route, watching=asks_watch)


class Verdict:
    """What became of one request. `code` is 0 until something was answered."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.user: User | None = None
        """Whom the request counts as."""
        self.by: User | None = None
        """Who sent it; differs from `user` when impersonating."""
        self.asked: Attributes | None = None
        self.reason = ""
        """Which rule allowed it."""
        self.code = 0
        self.seconds = 0.0
        self.error: Exception | None = None

    @property
    def client(self) -> str:
        """Whose share of the server it takes: the sender, or the address of somebody unknown."""
        if self.by is None or self.by == ANONYMOUS:
            return f"address {self.call.address}"
        return f"user {self.by.name!r}"


Observe = Callable[[Verdict], None]

Fence = Callable[[int], Awaitable[None]]
"""Returns when the authorizer has seen a revision of the store, or will not soon."""

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def nobody_observes(verdict: Verdict) -> None:
    """Where no audit is wanted."""


FENCED = frozenset({RBAC, DEFINITIONS})
"""Groups whose writes are answered when they are in force: rights, and definitions of kinds."""


READS = frozenset({"get", "list", "watch"})


async def no_fence(revision: int) -> None:
    """Where rights come from elsewhere than from the store."""


class Answering(Protocol):
    """What answers for pods on their nodes: logs, execs, requests to the pod itself."""

    async def answer(self, asked: Asked) -> Response:
        """The response to an authorized request."""
        ...


class Dispatcher:
    """All of the API's handlers, wired."""

    def __init__(  # noqa: PLR0913  # what an API server hangs on
        self,
        *,
        store: Store,
        objects: Writer,
        kinds: Kinds,
        clock: Clock,
        authorizer: Authorizer,
        tokens: TokenVerifier,
        issuer: Keyring | None = None,
        limits: Limits = DEFAULT_LIMITS,
        secret: bytes = b"",
        ready: Callable[[], bool] = lambda: True,
        observe: Observe = nobody_observes,
        fence: Fence = no_fence,
        nodes: Answering | None = None,
    ) -> None:
        """`secret` keys continue tokens, `ready` is what /readyz says, `objects` writes."""
        self._nodes = nodes
        self._store = store
        self._fence = fence
        self._openid = OpenId(issuer) if issuer is not None else None
        self._kinds = kinds
        self._authorizer = authorizer
        self._tokens = tokens
        self._clock = clock
        self.observe = observe
        self._hub = Hub(store, clock)
        showings = Showings()
        self._reader = Reader(store, showings, clock, secret)
        self._watching = Watching(store, self._hub, self._reader, showings, clock, limits)
        self._editor = Editor(objects, self._reader, showings, clock, authorizer)
        self._deleter = Deleter(objects, self._reader, showings, clock)
        self._reviews = Reviews(kinds.now, authorizer, tokens, issuer, self._reader, clock)
        self._documents = Documents(kinds, ready)

    async def run(self) -> None:
        """Feed the watches until cancelled."""
        await self._hub.run()

    def retire(self, resources: Collection[str]) -> None:
        """End the watches of resources that are served no more, or are others now."""
        self._hub.retire(resources)

    def stop(self) -> None:
        """End all watches in good order; their clients go on elsewhere from where they are."""
        self._hub.close()

    async def authenticate(self, call: Call, verdict: Verdict) -> None:
        """Fill in who asks and what, and whether they may; Unauthenticated or Forbidden."""
        authorization = call.headers.get("authorization")
        now = self._clock.time()
        user = await auth.authenticate(call.certificate, authorization, self._tokens, now)
        verdict.by = verdict.user = user
        if user is not ANONYMOUS:
            call.greet()
        verdict.user = impersonate(call.impersonation, user, self._authorizer)
        verdict.asked = auth.attributes(call.method, call.verb, call.route, call.query)
        verdict.reason = auth.require(self._authorizer, verdict.user, verdict.asked).reason

    async def respond(self, call: Call, verdict: Verdict) -> Response:
        """The answer to an authorized call."""
        match call.route:
            case Plain(parts):
                if call.method not in {"GET", "HEAD"}:
                    raise MethodNotAllowed("only GET is served here")
                found = self._openid.answer(parts) if self._openid is not None else None
                return found or self._documents.answer(parts, call.headers)
            case Target() as target:
                if verdict.user is None:
                    raise NotFound("nobody asks")  # `authenticate` comes first; never reached
                asked = self._asked(call, verdict.user, target)
                answer = await self._by(asked, self._resource)
                if target.group in FENCED and asked.verb in WRITES:
                    # Rights that were given or taken are so when their writer hears of it.
                    await self._fence(self._store.revision)
                if isinstance(answer, Answer | Stream) and _warns(asked):
                    said = (*deprecation(asked.kind, asked.version), *answer.warnings)
                    return answer._replace(warnings=said)
                return answer

    async def _by(self, asked: Asked, handle: Callable[[Asked], Awaitable[Response]]) -> Response:
        """Handle it; meanwhile admissions know who writes."""
        before = ASKER.set(asked.user)
        try:
            return await handle(asked)
        finally:
            ASKER.reset(before)

    def _asked(self, call: Call, user: User, target: Target) -> Asked:
        kind, version = self._kind(target)
        return Asked(
            call.method, call.verb, target, kind, version, call.query, call.headers, user, call.body
        )

    def _kind(self, target: Target) -> tuple[Kind, Version]:
        kind = self._kinds.now.by_resource(target.group, target.resource)
        version = kind.version(target.version) if kind is not None else None
        if kind is None or version is None or (target.namespace and not kind.namespaced):
            raise NotFound("the server could not find the requested resource")
        return kind.seen_in(version), version

    async def _resource(self, asked: Asked) -> Response:
        kind, target = asked.kind, asked.target
        if kind.namespaced and target.name and not target.namespace:
            raise NotFound("the server could not find the requested resource")
        if not kind.persisted or target.subresource == "token":
            return await self._reviews.answer(asked)
        if target.subresource:
            return await self._subresource(asked)
        # As in Kubernetes, many objects are deleted within a namespace, never in all of them.
        unbounded = asked.verb == "deletecollection" and kind.namespaced and not target.namespace
        if asked.verb not in kind.verbs or unbounded:
            raise _not_allowed(asked.verb, kind)
        match asked.verb:
            case "get":
                return await self._reader.get(asked)
            case "list":
                return await self._reader.list(asked)
            case "watch":
                return await self._watching.open(asked)
            case "create":
                return await self._editor.create(asked)
            case "update":
                return await self._editor.update(asked)
            case "patch":
                return await self._editor.patch(asked)
            case "delete":
                return await self._deleter.delete(asked)
            case _:
                return await self._deleter.delete_many(asked)

    async def _subresource(self, asked: Asked) -> Response:
        kind, name = asked.kind, asked.target.subresource
        if self._nodes is not None and kind.resource == "pods" and name in PASSED_ON:
            return await self._nodes.answer(asked)
        known = {"status": kind.status, "scale": kind.scale is not None}
        known["finalize"] = (kind.group, kind.plural) == ("", "namespaces")
        if not known.get(name):
            raise NotFound("the server could not find the requested resource")
        match asked.verb:
            case "get" if name == "scale":
                return await self._editor.get_scale(asked)
            case "get":
                return await self._reader.get(asked)
            case "update":
                return await self._editor.update(asked)
            case "patch" if name != "finalize":
                return await self._editor.patch(asked)
            case _:
                raise _not_allowed(asked.verb, kind)


def _warns(asked: Asked) -> bool:
    """Whether it is a read of a version on its way out; writes warn by themselves."""
    return bool(asked.version.deprecated) and asked.verb in READS


def _not_allowed(verb: str, kind: Kind) -> MethodNotAllowed:
    refused = "the server does not allow this method on the requested resource"
    return MethodNotAllowed(f"{refused}: {verb} of {kind.resource}")
