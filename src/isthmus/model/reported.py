"""Objects as what is reported of them, apart from what they ask for: reports change often."""

from __future__ import annotations

from isthmus.model.gateway.views import ParentRef
from isthmus.model.meta import CountedCondition, CountedMeta, View


class Conditions(View, frozen=True):
    """A status of conditions."""

    conditions: tuple[CountedCondition, ...] = ()


class Reported(View, frozen=True):
    """Any object with `status.conditions`."""

    metadata: CountedMeta = CountedMeta()
    status: Conditions = Conditions()


class TargetRef(View, frozen=True):
    """What a status is about."""

    group: str = ""
    kind: str = ""
    name: str = ""


class LimitStatus(Conditions, frozen=True):
    """The status of a rate limit; `target_ref` None: nobody wrote it."""

    target_ref: TargetRef | None = None


class ReportedLimit(Reported, frozen=True):
    """An HTTPLocalRateLimitPolicy."""

    status: LimitStatus = LimitStatus()


class RouteParent(View, frozen=True):
    """How one parent took a route, in the words of one controller."""

    parent_ref: ParentRef = ParentRef()
    controller_name: str = ""
    conditions: tuple[CountedCondition, ...] = ()


class RouteStatus(View, frozen=True):
    """The status of every route."""

    parents: tuple[RouteParent, ...] = ()


class ReportedRoute(View, frozen=True):
    """A route."""

    metadata: CountedMeta = CountedMeta()
    status: RouteStatus = RouteStatus()
