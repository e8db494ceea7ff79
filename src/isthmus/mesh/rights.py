"""What one rule of a role allows, and whether rules cover others: pure, on values alone.

The rules of matching are Kubernetes' ("Using RBAC Authorization"): a star stands for everything, a
subresource is asked for as `pods/log` and granted as that, as `*/log` or as `*`, a URL path may end
in a star. Names and verbs are compared whole and exactly: no prefix, no pattern, no case folding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, Protocol

from isthmus.model.rbac import PolicyRule

ALL: Final = "*"

EVERYTHING: Final = (
    PolicyRule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)),
    PolicyRule(verbs=(ALL,), non_resource_urls=(ALL,)),
)
"""The rights of those who may everything."""

PATIENCE: Final = 100_000
"""Comparisons that one question of coverage may cost: some ten milliseconds.

A rule of a hundred verbs, groups and resources each means a million single rights.
"""


class Question(Protocol):
    """`verb` on a resource (and its subresource and name), or on a `path` if that is set."""

    @property
    def verb(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...


def allows(rule: PolicyRule, asked: Question) -> bool:
    """Whether the rule allows what is asked."""
    if asked.verb not in rule.verbs and ALL not in rule.verbs:
        return False
    if asked.path:
        return any(_leads_to(url, asked.path) for url in rule.non_resource_urls)
    return (
        (asked.group in rule.api_groups or ALL in rule.api_groups)
        and _names_resource(rule.resources, asked.resource, asked.subresource)
        and (not rule.resource_names or asked.name in rule.resource_names)
    )


def _names_resource(resources: Sequence[str], resource: str, subresource: str) -> bool:
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"{ALL}/{subresource}" in resources


def _leads_to(url: str, path: str) -> bool:
    """A path matches itself; one that ends in a star everything that begins with the rest."""
    return url == path or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


# ------------------------------------------------------------------------------------- coverage


class TooManyRights(Exception):
    """What is to be granted says too much to be compared."""


def missing(
    held: Iterable[PolicyRule], wanted: Iterable[PolicyRule], patience: int = PATIENCE
) -> tuple[PolicyRule, ...]:
    """The single rights in `wanted` that `held` do not cover, as rules; in order.

    A rule that one of `held` covers whole is done with at once; others are taken apart.

    Raises:
        TooManyRights: it would take more than `patience` comparisons.
    """
    owned = tuple(held)
    left = patience
    lacking: dict[PolicyRule, None] = {}
    for rule in wanted:
        left -= len(owned) + 1
        if left < 0:
            raise TooManyRights
        if any(_covers(own, rule) for own in owned):
            continue
        for single in _singles(rule):
            left -= len(owned) + 1
            if left < 0:
                raise TooManyRights
            if not any(_covers(own, single) for own in owned):
                lacking[single] = None
    return tuple(lacking)


def _singles(rule: PolicyRule) -> Iterator[PolicyRule]:
    """The rule as rules of one verb, group, resource and name each, or of one verb and path."""
    names: list[tuple[str, ...]] = [(name,) for name in rule.resource_names] or [()]
    kinds = product(rule.api_groups, rule.resources, rule.verbs, names)
    for group, resource, verb, name in kinds:
        yield PolicyRule(
            verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=name
        )
    for url, verb in product(rule.non_resource_urls, rule.verbs):
        yield PolicyRule(verbs=(verb,), non_resource_urls=(url,))


def _covers(own: PolicyRule, rule: PolicyRule) -> bool:
    """Whether everything that `rule` allows is allowed by `own` alone."""
    return (
        _contains(own.verbs, rule.verbs)
        and all(_covers_url(own.non_resource_urls, url) for url in rule.non_resource_urls)
        and _contains(own.api_groups, rule.api_groups)
        and all(_covers_resource(own.resources, name) for name in rule.resources)
        and _covers_names(own, rule)
    )


def _contains(own: Sequence[str], wanted: Sequence[str]) -> bool:
    return ALL in own or all(each in own for each in wanted)


def _covers_url(own: Sequence[str], url: str) -> bool:
    return any(_leads_to(mine, url) for mine in own)


def _covers_resource(own: Sequence[str], resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return ALL in own or resource in own or (bool(slash) and f"{ALL}/{subresource}" in own)


def _covers_names(own: PolicyRule, rule: PolicyRule) -> bool:
    if not own.resource_names:
        return True
    return bool(rule.resource_names) and _all_in(rule.resource_names, own.resource_names)


def _all_in(wanted: Sequence[str], own: Sequence[str]) -> bool:
    return all(each in own for each in wanted)
