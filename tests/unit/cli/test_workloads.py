"""What people name, and how a workload's proxies are printed."""

from __future__ import annotations

import pytest

from isthmus.cli.commands.diagnostics_metrics import printed
from isthmus.cli.proxies import path
from isthmus.cli.workloads import read
from isthmus.errors import IsthmusError, Unavailable, UserFault


def named(*words: str) -> list[tuple[str, str]]:
    return [(each.kind.plural, each.name) for each in read(words)]


def test_workloads_are_named_as_kubectl_names_them() -> None:
    assert named("deploy/face") == [("deployments", "face")]
    assert named("po/a", "sts/b") == [("pods", "a"), ("statefulsets", "b")]
    assert named("Deployment", "a", "b") == [("deployments", "a"), ("deployments", "b")]
    assert named("ns") == [("namespaces", "")]


@pytest.mark.parametrize("words", [(), ("deploy/",), ("deploy/a/b",), ("svc/x",), ("a/b", "c")])
def test_what_is_no_workload(words: tuple[str, ...]) -> None:
    with pytest.raises(UserFault):
        read(words)


def test_where_a_proxy_is_asked() -> None:
    ports = [{"name": "linkerd-admin", "containerPort": 4191}]
    pod = {
        "metadata": {"namespace": "shop", "name": "web-1"},
        "spec": {"containers": [{"name": "web"}, {"name": "linkerd-proxy", "ports": ports}]},
    }
    assert path(pod, "metrics") == "/api/v1/namespaces/shop/pods/web-1:4191/proxy/metrics"
    with pytest.raises(UserFault, match="web-1 has no proxy"):
        path({**pod, "spec": {}}, "metrics")


def test_pods_stand_below_their_names() -> None:
    told: list[str | IsthmusError] = ["a_total 1\n", Unavailable("it does not answer")]
    assert printed(["web-1", "web-2"], told) == (
        "#\n# POD web-1 (1 of 2)\n#\na_total 1\n#\n# POD web-2 (2 of 2)\n#\n"
        "# ERROR: it does not answer\n"
    )


def test_names_can_be_hidden() -> None:
    page = 'a_total{client_id="x",host="x",authority="a\\"b"} 1\n'
    assert printed(["p"], [page], obfuscate=True).splitlines()[-1] == (
        'a_total{client_id="2d711642",host="x",authority="e87f8dfc"} 1'
    )
