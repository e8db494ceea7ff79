"""Paths: one reading each, and nothing that could be read twice."""

from __future__ import annotations

import pytest

from isthmus.errors import BadRequest, IsthmusError, MethodNotAllowed, NotFound
from isthmus.serve.kube.routes import Plain, Target, parse, verb


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", Plain(())),
        ("/version", Plain(("version",))),
        ("/api", Plain(("api",))),
        ("/api/v1/", Plain(("api", "v1"))),
        ("/apis/apps/v1", Plain(("apis", "apps", "v1"))),
        ("/openapi/v3/apis/apps/v1", Plain(("openapi", "v3", "apis", "apps", "v1"))),
        ("/api/v1/pods", Target("", "v1", "pods")),
        ("/api/v1/namespaces", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", Target("", "v1", "namespaces", "", "a")),
        ("/api/v1/namespaces/a/status", Target("", "v1", "namespaces", "", "a", "status")),
        ("/api/v1/namespaces/a/finalize", Target("", "v1", "namespaces", "", "a", "finalize")),
        ("/api/v1/namespaces/a/pods", Target("", "v1", "pods", "a")),
        ("/api/v1/namespaces/a/pods/b/status", Target("", "v1", "pods", "a", "b", "status")),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale",
         Target("apps", "v1", "deployments", "a", "b", "scale")),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
         Target("rbac.authorization.k8s.io", "v1", "clusterroles", "", "system:node")),
    ],
)  # fmt: skip
def test_a_path_names(path: str, route: Plain | Target) -> None:
    assert parse(path) == route


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", BadRequest),
        ("http://elsewhere/api", BadRequest),
        ("//api/v1/pods", NotFound),
        ("/api/v1//pods", NotFound),
        ("/api/v1/namespaces/a/pods/b/c/d", NotFound),
        ("/api/v1/namespaces/../pods", BadRequest),
        ("/api/v1/namespaces/%2e%2e/pods", BadRequest),
        ("/api/v1/namespaces/a%2Fpods/x", BadRequest),
        ("/api/v1/pods/a%252Fb", BadRequest),
        ("/api/v1/namespaces/a/pods/b%00", BadRequest),
        ("/api/v1/namespaces/a/pods/b%0Ac", BadRequest),
        ("/api/v1/namespaces/a/pods/%ff", BadRequest),
        ("/api/v1/namespaces/a/pods/" + "x" * 513, BadRequest),
        ("/" + "x" * 5000, BadRequest),
    ],
)
def test_what_is_no_path_of_ours_is_refused(path: str, error: type[IsthmusError]) -> None:
    with pytest.raises(error):
        parse(path)


@pytest.mark.parametrize(
    ("method", "path", "watching", "wanted"),
    [
        ("GET", "/api/v1/pods", False, "list"),
        ("HEAD", "/api/v1/pods", False, "list"),
        ("GET", "/api/v1/pods", True, "watch"),
        ("POST", "/api/v1/namespaces/a/pods", False, "create"),
        ("DELETE", "/api/v1/namespaces/a/pods", False, "deletecollection"),
        ("GET", "/api/v1/namespaces/a/pods/b", False, "get"),
        ("GET", "/api/v1/namespaces/a/pods/b", True, "watch"),
        ("PUT", "/api/v1/namespaces/a/pods/b", False, "update"),
        ("PATCH", "/api/v1/namespaces/a/pods/b/status", False, "patch"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", False, "delete"),
        ("POST", "/api/v1/namespaces/a/serviceaccounts/b/token", False, "create"),
    ],
)
def test_verbs(method: str, path: str, watching: bool, wanted: str) -> None:
    target = parse(path)
    assert isinstance(target, Target)
    assert verb(method, target, watching=watching) == wanted


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/v1/pods"),
        ("POST", "/api/v1/namespaces/a/pods/b"),
        ("GET", "/api/v1/namespaces/a/serviceaccounts/b/token"),
        ("TRACE", "/api/v1/pods"),
    ],
)
def test_methods_that_mean_nothing_here(method: str, path: str) -> None:
    target = parse(path)
    assert isinstance(target, Target)
    with pytest.raises(MethodNotAllowed):
        verb(method, target, watching=False)
