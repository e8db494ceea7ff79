from __future__ import annotations

from isthmus.engine import Database
from isthmus.mesh.clusters import Cluster, cluster, is_local
from isthmus.mesh.settings import MeshSettings, settings
from tests.support.meshworld import LOCAL, World


def test_without_settings_the_defaults_hold() -> None:
    assert Database().read(settings) == MeshSettings()


def test_the_local_cluster_is_known_by_the_settings() -> None:
    world = World(trust_domain="t.test", cluster_domain="d.test")
    assert world.db.read(cluster, LOCAL) == Cluster("t.test", "d.test")
    assert world.db.read(is_local, LOCAL)


def test_other_clusters_are_known_while_they_are_linked() -> None:
    world = World()
    assert world.db.read(cluster, "east") is None
    world.link("east", trust_domain="east.test", cluster_domain="d.test")
    assert world.db.read(cluster, "east") == Cluster("east.test", "d.test")
    assert not world.db.read(is_local, "east")
    world.link("east")
    assert world.db.read(cluster, "east") is None
