"""Schemas of matches, filters and rules of HTTPRoutes, of both groups that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.model.gateway.parts import (
    API_GROUP,
    DURATION,
    HEADER_NAME,
    HOSTNAMES,
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
HEADER_MODIFIER: Final = structure(
    {
        "set": about(listed(_HEADER, keys=("name",), max_items=16), "Headers to overwrite."),
        "add": about(listed(_HEADER, keys=("name",), max_items=16), "Headers to append to."),
        "remove": about(
            listed(text(), unique=True, max_items=16), "Names of headers to take away."
        ),
    }
)
PATH_MODIFIER: Final = structure(
    {
        "type": about(choice("ReplaceFullPath", "ReplacePrefixMatch"), "What is replaced."),
        "replaceFullPath": about(text(max_length=1024), "The new path."),
        "replacePrefixMatch": about(
            text(max_length=1024), "What stands in place of the prefix that matched."
        ),
    },
    required=("type",),
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


MIRROR: Final = structure(
    {
        "backendRef": about(structure(TARGET_FIELDS, required=("name",)), "Where copies go."),
        "percent": about(whole(minimum=0, maximum=100), "Share of requests that are copied."),
        "fraction": about(
            structure(
                {
                    "numerator": about(whole(minimum=0), "Of the denominator."),
                    "denominator": about(whole(minimum=1, default=100), "The whole."),
                },
                required=("numerator",),
            ),
            "Share of requests, more finely.",
        ),
    },
    required=("backendRef",),
)
_ORIGIN: Final = text(min_length=1, max_length=253)
CORS: Final = structure(
    {
        "allowOrigins": about(listed(_ORIGIN, unique=True, max_items=64), "Who may ask."),
        "allowMethods": about(
            listed(choice(*METHODS, "*"), unique=True, max_items=9), "Methods that may be used."
        ),
        "allowHeaders": about(
            listed(HEADER_NAME, unique=True, max_items=64), "Headers that may be sent."
        ),
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


def filters(*types: str, limited_redirect: bool = False) -> Schema:
    """A list of filters of these types."""
    fields = {FILTER_FIELDS[name]: _BODIES[name] for name in types}
    if limited_redirect:
        fields["requestRedirect"] = about(redirect(301, 302), "Answers with a redirection.")
    each = structure({"type": about(choice(*types), "Which filter."), **fields}, required=("type",))
    return about(listed(each, max_items=16), "What happens to requests, in order.")


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
_MATCH: Final = structure(
    {
        "path": about(_PATH, "The path."),
        "headers": HEADER_MATCHES,
        "queryParams": _QUERY_MATCHES,
        "method": about(choice(*METHODS), "The method."),
    }
)
TIMEOUTS: Final = structure(
    {
        "request": about(DURATION, "For the whole request, retries included; 0s is no limit."),
        "backendRequest": about(DURATION, "For each attempt."),
    }
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


def backend_refs(filter_list: Schema) -> Schema:
    """`backendRefs` of a rule."""
    fields = {**TARGET_FIELDS, "weight": WEIGHT, "filters": filter_list}
    return about(
        listed(structure(fields, required=("name",)), max_items=16), "Where the requests go."
    )


def matches(most: int) -> Schema:
    """`matches` of a rule; none means every request."""
    return about(listed(_MATCH, max_items=most), "One of these must match.", default=EVERYTHING)


def http_route(
    rule: Mapping[str, Schema], *, ref: str, least: int | None, group: str = API_GROUP
) -> Schema:
    """A whole HTTPRoute with these fields in its rules, of which there are `least` to 16."""
    rules = listed(structure(rule), min_items=least, max_items=16)
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


def standard_rule() -> dict[str, Schema]:
    """The fields of a rule of Gateway API."""
    standard = filters(*FILTER_FIELDS)
    return {
        "name": RULE_NAME,
        "matches": matches(64),
        "filters": standard,
        "backendRefs": backend_refs(standard),
        "timeouts": about(TIMEOUTS, "How long a request may take."),
        "retry": about(RETRY, "What is tried again."),
    }
