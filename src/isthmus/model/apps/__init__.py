"""The apps API group, v1."""

from isthmus.model.kind import Kind, Scale, Version
from isthmus.model.meta import Object
from isthmus.model.wire.schemas import schema_of

KINDS: tuple[Kind, ...] = (
    Kind(
        group="apps",
        name="Deployment",
        plural="deployments",
        singular="deployment",
        stored="v1",
        view=Object,
        versions=(Version("v1", schema_of("apps.v1.Deployment")),),
        short_names=("deploy",),
        categories=("all",),
        custom=False,
        scale=Scale(),
    ),
)
