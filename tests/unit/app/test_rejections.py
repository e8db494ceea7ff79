"""From what streams reject to rows by the object to blame."""

from __future__ import annotations

from isthmus.app.rejections import guilty_of, rows, words
from isthmus.ir.names import Default, Origin, Ref
from isthmus.mesh.census import CensusKey
from isthmus.mesh.rejections import Rejection
from isthmus.model.registry import BUILT_IN
from isthmus.proto.xds import CLUSTER, LISTENER
from isthmus.serve.xds import Nacked

CART = Origin(Ref("east", "", "Service", "shop", "cart"), port=80)
KEY = CensusKey("east", "services", "shop", "cart")


def nacked(proxy: str, url: str, name: str, origin: object = CART, message: str = "bad") -> Nacked:
    return Nacked(proxy, url, name, "1", message, 0.0, origin)


def test_one_row_per_object_one_rejection_per_resource() -> None:
    told = [
        nacked("b.shop", CLUSTER, "c"),
        nacked("a.shop", CLUSTER, "c", message="worse"),
        nacked("a.shop", LISTENER, "l"),
    ]
    assert rows(told, BUILT_IN) == {
        KEY: (
            Rejection("Cluster", "c", "worse", ("a.shop", "b.shop")),
            Rejection("Listener", "l", "bad", ("a.shop",)),
        )
    }


def test_the_word_of_a_program_counts_in_its_own_namespace() -> None:
    def told(dialect: str, proxy: str) -> bool:
        one = nacked(proxy, CLUSTER, "c")._replace(dialect=dialect)
        return KEY in rows([one], BUILT_IN)

    assert told("grpc", "a.b.shop")
    assert not told("grpc", "a.shop.pay")
    assert told("envoy", "a.pay")


def test_what_no_object_wrote_is_nobody_s_fault() -> None:
    told = [nacked("a", CLUSTER, "app", origin) for origin in (None, Default("http"), "text")]
    assert rows(told, BUILT_IN) == {}


def test_objects_of_any_kind_with_a_status() -> None:
    server = Origin(Ref("east", "policy.linkerd.io", "Server", "shop", "web"))
    assert guilty_of(server, BUILT_IN) == CensusKey(
        "east", "servers.policy.linkerd.io", "shop", "web"
    )
    account = Origin(Ref("east", "", "ServiceAccount", "shop", "web"))
    unknown = Origin(Ref("east", "example.org", "Toy", "shop", "web"))
    assert guilty_of(account, BUILT_IN) is None
    assert guilty_of(unknown, BUILT_IN) is None


def test_words_are_the_same_each_time() -> None:
    said = "goo.gle/debugonly=a8Fk2 Proto constraint\n  failed"
    assert words(said) == "Proto constraint failed"
    assert len(words("x" * 5_000)) == 512
