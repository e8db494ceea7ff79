"""Schemas of matches, filters and rules of HTTPRoutes, of both groups that have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from isthmus.model.gateway.parts import (
    API_GROUP,
    DURATION,
    HEADER_NAME,
    HOSTNAMES,
    NEEDS_PORT,
    PRECISE_HOSTNAME,
    RULE_NAME,
    TARGET_FIELDS,
    WEIGHT,
    parent_refs,
    route_status,
)
from isthmus.model.references import local_reference
from isthmus.model.schema import Schema
from isthmus.model.shapes import (
    BOOLEAN,
    PORT,
    about,
    choice,
    listed,
    resource,
    rule,
    ruled,
    structure,
    text,
    whole,
)

METHODS: Final = (
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
)  # fmt: skip
EVERYTHING: Final = [{"path": {"type": "PathPrefix", "value": "/"}}]
"""The match that a rule gets when it has none."""

HEADER_VALUE: Final = text(min_length=1, max_length=4096)

_HEADER: Final = structure(
    {"name": HEADER_NAME, "value": about(HEADER_VALUE, "Its value.")}, required=("name", "value")
)
_CHANGES: Final[Mapping[str, str]] = {
    "ReplaceFullPath": "replaceFullPath",
    "ReplacePrefixMatch": "replacePrefixMatch",
}


def _change_rules(kind: str, name: str) -> Iterator[Mapping[str, str]]:
    given, mine = f"has(self.{name})", f"self.type == '{kind}'"
    says = f"{name} must be specified when type is set to '{kind}'"
    yield rule(f"!({mine}) || {given}", says)
    yield rule(f"!{given} || {mine}", f"type must be '{kind}' when {name} is set")
    path = f"self.?{name}.orValue('')"
    says = "must be an absolute path and start with '/'"
    yield rule(f"{path} == '' || {path}.startsWith('/')", says, field=f".{name}")


HEADER_MODIFIER: Final = structure(
    {
        "set": about(listed(_HEADER, keys=("name",), max_items=16), "Headers to overwrite."),
        "add": about(listed(_HEADER, keys=("name",), max_items=16), "Headers to append to."),
        "remove": about(
            listed(text(), unique=True, max_items=16), "Names of headers to take away."
        ),
    }
)
PATH_MODIFIER: Final = ruled(
    structure(
        {
            "type": about(choice("ReplaceFullPath", "ReplacePrefixMatch"), "What is replaced."),
            "replaceFullPath": about(text(max_length=1024), "The new path."),
            "replacePrefixMatch": about(
                text(max_length=1024), "What stands in place of the prefix that matched."
            ),
        },
        required=("type",),
    ),
    *(each for change in _CHANGES.items() for each in _change_rules(*change)),
)


def redirect(*codes: int) -> Schema:
    """A requestRedirect that may answer with these status codes (told by the checks)."""
    said = ", ".join(map(str, codes))
    return structure(
        {
            "scheme": about(choice("http", "https"), "Scheme; the request's if left out."),
            "hostname": about(PRECISE_HOSTNAME, "Host; the request's if left out."),
            "path": about(PATH_MODIFIER, "Change of the path."),
            "port": about(PORT, "Port; the scheme's own or the request's if left out."),
            "statusCode": about(whole(default=302), f"Status of the answer: {said}."),
        }
    )


_FRACTION: Final = rule(
    "self.numerator <= self.?denominator.orValue(100)",
    "numerator must be less than or equal to denominator",
)
MIRROR: Final = ruled(
    structure(
        {
            "backendRef": about(
                ruled(structure(TARGET_FIELDS, required=("name",)), NEEDS_PORT), "Where copies go."
            ),
            "percent": about(whole(minimum=0, maximum=100), "Share of requests that are copied."),
            "fraction": about(
                ruled(
                    structure(
                        {
                            "numerator": about(whole(minimum=0), "Of the denominator."),
                            "denominator": about(whole(minimum=1, default=100), "The whole."),
                        },
                        required=("numerator",),
                    ),
                    _FRACTION,
                ),
                "Share of requests, more finely.",
            ),
        },
        required=("backendRef",),
    ),
    rule(
        "!(has(self.percent) && has(self.fraction))",
        "Only one of percent or fraction may be specified in HTTPRequestMirrorFilter",
    ),
)


def _alone(name: str, items: Schema, most: int) -> Schema:
    """A set in which `*` stands for everything, and so by itself."""
    says = f"{name} cannot contain '*' alongside other values"
    kept = listed(items, unique=True, max_items=most)
    return ruled(kept, rule("!('*' in self && self.size() > 1)", says))


_ORIGIN: Final = text(min_length=1, max_length=253)
CORS: Final = structure(
    {
        "allowOrigins": about(_alone("allowOrigins", _ORIGIN, 64), "Who may ask."),
        "allowMethods": about(
            _alone("allowMethods", choice(*METHODS, "*"), 9), "Methods that may be used."
        ),
        "allowHeaders": about(_alone("allowHeaders", HEADER_NAME, 64), "Headers that may be sent."),
        "exposeHeaders": about(
            listed(HEADER_NAME, unique=True, max_items=64), "Headers that may be read."
        ),
        "allowCredentials": about(BOOLEAN, "Whether credentials may be sent."),
        "maxAge": about(whole(minimum=1, default=5), "Seconds that an answer may be kept."),
    }
)

FILTER_FIELDS: Final[Mapping[str, str]] = {
    "RequestHeaderModifier": "requestHeaderModifier",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "RequestMirror": "requestMirror",
    "RequestRedirect": "requestRedirect",
    "URLRewrite": "urlRewrite",
    "ExtensionRef": "extensionRef",
    "CORS": "cors",
}
"""The field that belongs to each type of filter."""

_BODIES: Final[Mapping[str, Schema]] = {
    "RequestHeaderModifier": about(HEADER_MODIFIER, "Changes of the request's headers."),
    "ResponseHeaderModifier": about(HEADER_MODIFIER, "Changes of the response's headers."),
    "RequestMirror": about(MIRROR, "Copies requests; answers to copies are dropped."),
    "RequestRedirect": about(redirect(301, 302, 303, 307, 308), "Answers with a redirection."),
    "URLRewrite": about(
        structure(
            {
                "hostname": about(PRECISE_HOSTNAME, "The new host."),
                "path": about(PATH_MODIFIER, "The new path."),
            }
        ),
        "Changes host and path on the way to the backend.",
    ),
    "ExtensionRef": local_reference(
        "A filter of somebody's own.", required=("group", "kind", "name")
    ),
    "CORS": about(CORS, "Answers browsers that ask whether they may."),
}


HTTP_ONCE: Final = (
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestRedirect",
    "URLRewrite",
    "CORS",
)
GRPC_ONCE: Final = ("RequestHeaderModifier", "ResponseHeaderModifier")
"""Types that may stand only once in a list."""

_BOTH: Final = rule(
    "!(self.exists(f, f.type == 'RequestRedirect') && self.exists(f, f.type == 'URLRewrite'))",
    "May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite,"
    " but not both",
)


def _body_rules(kind: str) -> Iterator[Mapping[str, str]]:
    """Exactly the object of the filter's own type is there."""
    name = FILTER_FIELDS[kind]
    says = f"filter.{name} must be nil if the filter.type is not {kind}"
    yield rule(f"!has(self.{name}) || self.type == '{kind}'", says)
    says = f"filter.{name} must be specified for {kind} filter.type"
    yield rule(f"has(self.{name}) || self.type != '{kind}'", says)


def _once(kind: str) -> Mapping[str, str]:
    few = f"self.filter(f, f.type == '{kind}').size() < 2"
    return rule(few, f"{kind} filter cannot be repeated")


def filters(*types: str, once: Collection[str] = (), limited_redirect: bool = False) -> Schema:
    """A list of filters of these types, of which those `once` may not be repeated."""
    fields = {FILTER_FIELDS[name]: _BODIES[name] for name in types}
    if limited_redirect:
        fields["requestRedirect"] = about(redirect(301, 302), "Answers with a redirection.")
    each = structure({"type": about(choice(*types), "Which filter."), **fields}, required=("type",))
    each = ruled(each, *(said for kind in types for said in _body_rules(kind)))
    whole_list = ruled(listed(each, max_items=16), *map(_once, once))
    if {"RequestRedirect", "URLRewrite"}.issubset(types):
        whole_list = ruled(whole_list, _BOTH)
    return about(whole_list, "What happens to requests, in order.")


def value_match(name: Schema, value: Schema) -> Schema:
    """A match of a header or a query parameter."""
    return structure(
        {
            "type": about(
                choice("Exact", "RegularExpression", default="Exact"), "How the value is compared."
            ),
            "name": name,
            "value": about(value, "The value, or a regular expression (RE2) for all of it."),
        },
        required=("name", "value"),
    )


HEADER_MATCHES: Final = about(
    listed(value_match(HEADER_NAME, HEADER_VALUE), keys=("name",), max_items=16),
    "Headers that the request must have.",
)
_QUERY_MATCHES: Final = about(
    listed(
        value_match(HEADER_NAME, text(min_length=1, max_length=1024)),
        keys=("name",),
        max_items=16,
    ),
    "Query parameters that the request must have.",
)
_PATH: Final = structure(
    {
        "type": about(
            choice("Exact", "PathPrefix", "RegularExpression", default="PathPrefix"),
            "How the path is compared; prefixes are of whole segments.",
        ),
        "value": about(text(max_length=1024, default="/"), "The path, or its beginning."),
    },
    default=EVERYTHING[0]["path"],
)


def _path_rules() -> Iterator[Mapping[str, str]]:
    """Of paths that are compared as they are: no dot segments, no encoded slash."""
    types = "when type one of ['Exact', 'PathPrefix']"
    unless = "self.?type.orValue('') == 'RegularExpression' || !has(self.value)"

    def said(holds: str, says: str) -> Mapping[str, str]:
        return rule(f"{unless} || {holds}", f"{says} {types}", field=".value")

    yield said("self.value.startsWith('/')", "value must be an absolute path and start with '/'")
    for part in ("//", "/./", "/../", "%2f", "%2F", "#"):
        yield said(f"!self.value.contains('{part}')", f"must not contain '{part}'")
    for end in ("/..", "/."):
        yield said(f"!self.value.endsWith('{end}')", f"must not end with '{end}'")
    fits = r"""self.value.matches(r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+$")"""
    says = "must only contain valid characters (letters, digits, -/._~!$&'()*+,;=:@ and %XX)"
    yield said(fits, says)


def _match(path: Schema) -> Schema:
    return structure(
        {
            "path": about(path, "The path."),
            "headers": HEADER_MATCHES,
            "queryParams": _QUERY_MATCHES,
            "method": about(choice(*METHODS), "The method."),
        }
    )


TIMEOUTS: Final = ruled(
    structure(
        {
            "request": about(DURATION, "For the whole request, retries included; 0s is no limit."),
            "backendRequest": about(DURATION, "For each attempt."),
        }
    ),
    rule(
        "!(has(self.request) && has(self.backendRequest))"
        " || duration(self.request) == duration('0s')"
        " || duration(self.backendRequest) <= duration(self.request)",
        "backendRequest timeout cannot be longer than request timeout",
    ),
)
RETRY: Final = structure(
    {
        "codes": about(
            listed(whole(minimum=400, maximum=599), unique=True), "Statuses that are retried."
        ),
        "attempts": about(whole(minimum=1), "How often at most."),
        "backoff": about(DURATION, "Least time between attempts."),
    }
)


def backend_refs(filter_list: Schema, *, ported: bool = True) -> Schema:
    """`backendRefs` of a rule; `ported`: of Services the port must be said."""
    fields = {**TARGET_FIELDS, "weight": WEIGHT, "filters": filter_list}
    each = structure(fields, required=("name",))
    each = ruled(each, NEEDS_PORT) if ported else each
    return about(listed(each, max_items=16), "Where the requests go.")


def matches(most: int, *, strict: bool = True) -> Schema:
    """`matches` of a rule; none means every request. `strict`: paths are as they may be sent."""
    each = _match(ruled(_PATH, *_path_rules()) if strict else _PATH)
    return about(listed(each, max_items=most), "One of these must match.", default=EVERYTHING)


MOST_MATCHES: Final = 128
"""Matches of all rules of a route together."""

_TOTAL: Final = "self.map(r, r.?matches.orValue([]).size()).sum()"
_TOO_MANY: Final = (
    "While 16 rules and 64 matches per rule are allowed, the total number of matches across"
    f" all rules in a route must be no more than {MOST_MATCHES}"
)
FEW_MATCHES: Final = rule(
    f"{_TOTAL} <= {MOST_MATCHES}", _TOO_MANY, words=f"'{_TOO_MANY}; there are ' + string({_TOTAL})"
)
"""Of the rules of a route."""


def http_route(each: Schema, *, ref: str, least: int | None, group: str = API_GROUP) -> Schema:
    """A whole HTTPRoute with such rules, of which there are `least` to 16."""
    rules = listed(each, min_items=least, max_items=16)
    if group == API_GROUP:
        rules = ruled(rules, FEW_MATCHES)
    spec = structure(
        {
            "parentRefs": parent_refs(group),
            "hostnames": HOSTNAMES,
            "rules": about(
                rules,
                "What happens to which requests.",
                default=[{"matches": EVERYTHING}],
            ),
        }
    )
    described = about(spec, "Parents, hosts and rules.")
    whole_route = resource(described, status=route_status(group), ref=ref)
    return about(whole_route, "Routes HTTP requests by host, path, headers, method and query.")


_ONE_PREFIX: Final = (
    "self.?matches.orValue([]).size() == 0 || (self.matches.size() == 1"
    " && self.matches[0].?path.?type.orValue('PathPrefix') == 'PathPrefix')"
)
"""Exactly one match, of a path prefix; none at all is the prefix `/`."""


def _prefix_rules(kind: str) -> Iterator[Mapping[str, str]]:
    replaces = f"f.?{FILTER_FIELDS[kind]}.?path.?type.orValue('') == 'ReplacePrefixMatch'"
    says = (
        f"hen using {kind} filter with path.replacePrefixMatch, exactly one PathPrefix match"
        " must be specified"
    )
    own = f"self.?filters.orValue([]).exists(f, {replaces})"
    yield rule(f"!{own} || {_ONE_PREFIX}", f"W{says}", field=".filters")
    inner = f"b.?filters.orValue([]).exists(f, {replaces})"
    inner = f"self.?backendRefs.orValue([]).exists(b, {inner})"
    yield rule(f"!{inner} || {_ONE_PREFIX}", f"Within backendRefs, w{says}", field=".backendRefs")


def standard_rule() -> Schema:
    """A rule of Gateway API."""
    standard = filters(*FILTER_FIELDS, once=HTTP_ONCE)
    redirects = rule(
        "self.?backendRefs.orValue([]).size() == 0"
        " || !self.?filters.orValue([]).exists(f, f.type == 'RequestRedirect')",
        "RequestRedirect filter must not be used together with backendRefs",
    )
    fields = {
        "name": RULE_NAME,
        "matches": matches(64),
        "filters": standard,
        "backendRefs": backend_refs(standard),
        "timeouts": about(TIMEOUTS, "How long a request may take."),
        "retry": about(RETRY, "What is tried again."),
    }
    kinds = ("RequestRedirect", "URLRewrite")
    return ruled(
        structure(fields), redirects, *(each for kind in kinds for each in _prefix_rules(kind))
    )
