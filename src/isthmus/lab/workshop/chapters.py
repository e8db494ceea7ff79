"""The story, as data: federated services over three clusters, policy, and egress.

The commands are those that people type in the workshop; what must be seen is what they are told to
look for, at the page or in what commands print. Where the workshop changes nothing to make a point
(a policy in the wrong cluster), that nothing happens is a sight too.
"""

from __future__ import annotations

from typing import Final

from isthmus.lab.workshop.sights import Differs, Faces, Prints
from isthmus.lab.workshop.walk import Chapter, Step

FACE: Final = "k3d-face"
SMILEYS: Final = ("1", "2", "3")
MIX: Final = ("Grinning", "HeartEyes", "RollingEyes")
FEW: Final = (0.0, 0.06)
"""Share of failed smileys that is none: with retries, one in a hundred still fails."""

ENDPOINTS: Final = (
    "linkerd --context k3d-face diagnostics endpoints \\\n"
    "    smiley-federated.faces.svc.cluster.local:80"
)
IDENTITY: Final = "linkerd identity --context k3d-face -n faces -l service=face \\\n    | grep CN"
STATS: Final = "watch linkerd --context k3d-face viz stat-outbound -n faces deploy/face"
METRICS: Final = (
    "linkerd --context k3d-face diagnostics proxy-metrics -n faces deploy/face \\\n"
    "    | grep _route_request_statuses_total \\\n"
    "    | grep egress"
)
LINES: Final = METRICS + " \\\n    | sed -e 's/\\([,{}]\\)/\\1\\n/g'"
RETRIES: Final = (
    "kubectl --context k3d-face annotate -n faces \\\n"
    "    service smiley-federated \\\n"
    "        retry.linkerd.io/http=5xx \\\n"
    "        retry.linkerd.io/limit=3"
)
ACCOUNT: Final = (
    "kubectl --context k3d-face -n faces \\\n    set serviceaccount deployment/face face"
)
ENFORCED: Final = (
    "kubectl --context k3d-face -n faces get authorizationpolicy smiley-authz \\\n"
    """    -o jsonpath='{.status.conditions[?(@.type=="Enforced")].message}'"""
)
COLOR: Final = (
    "docker run --network egress --detach --rm --name color \\\n"
    "       -e FACES_SERVICE=color \\\n"
    "       -e USER_HEADER_NAME=X-Faces-User \\\n"
    "       ghcr.io/buoyantio/faces-color:2.0.0-rc.2"
)
RESULTS: Final = Prints(says="all is well, says the check", line="Status check results are √")


def _get(context: str) -> str:
    return f"kubectl --context {context} get pods,svc -n faces"


def _install(context: str) -> str:
    return (
        f"linkerd --context={context} multicluster install --gateway=false \\\n"
        f"  | kubectl --context={context} apply -f -"
    )


def _check(context: str) -> str:
    return f"linkerd --context={context} multicluster check --wait 30s"


def _link(number: str) -> str:
    return (
        f"linkerd multicluster --context=kind-smiley-{number} link \\\n"
        "    --gateway=false \\\n"
        f"    --cluster-name=smiley-{number} \\\n"
        "    | kubectl --context k3d-face apply -f -"
    )


def _label(number: str) -> str:
    return (
        f"kubectl --context kind-smiley-{number} -n faces label svc/smiley \\\n"
        "        mirror.linkerd.io/federated=member"
    )


def _env(number: str, pair: str) -> str:
    return (
        f"kubectl --context kind-smiley-{number} -n faces \\\n    set env deployment/smiley {pair}"
    )


def _scale(replicas: int) -> str:
    return (
        "kubectl --context kind-smiley-1 -n faces \\\n"
        f"    scale deployment/smiley --replicas={replicas}"
    )


def _apply(context: str, name: str) -> str:
    return f"kubectl --context {context} apply -f k8s/{name}.yaml"


def _rows(number: str, count: int) -> Prints:
    many = {0: "no endpoint", 1: "one endpoint"}.get(count, f"{count} endpoints")
    return Prints(
        says=f"{many} in kind-smiley-{number}",
        line=rf"^faces\s+10\.55\.{number}\.\d+\s+8000\s+smiley-\S+\s+smiley\.faces\s+smiley-{number}$",
        times=count,
    )


FEDERATED: Final = (
    Chapter(
        "setup",
        "Where we start",
        (
            Step(
                says="Four clusters: one has the page and face, three have smiley. Color runs"
                " nowhere, and face asks a service that is not there.",
                commands=tuple(_get(c) for c in (FACE, *(f"kind-smiley-{n}" for n in SMILEYS))),
                sees=(
                    Prints(says="smiley runs", line=r"^pod/smiley-\S+\s+2/2\s+Running"),
                    Faces(
                        says="only cursing faces on grey",
                        only=("Cursing",), edge="grey", center="grey",
                    ),
                ),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "install",
        "Multicluster in every cluster",
        (
            Step(
                says="On a flat network nobody needs a gateway.",
                commands=tuple(_install(c) for c in (FACE, *(f"kind-smiley-{n}" for n in SMILEYS))),
            ),
            *(
                Step(says=f"Is {c} ready to be linked?", commands=(_check(c),), sees=(RESULTS,),
                     looks=True)
                for c in (FACE, *(f"kind-smiley-{n}" for n in SMILEYS))
            ),
        ),
    ),
    Chapter(
        "link",
        "Links from the face cluster to the smiley clusters",
        (
            Step(
                says="One direction is enough: the smiley clusters know nothing of it.",
                commands=tuple(_link(n) for n in SMILEYS),
            ),
            Step(
                says="Are the links up?",
                commands=(_check(FACE),),
                sees=(
                    RESULTS,
                    *(Prints(says=f"the link smiley-{n}", line=rf"\* smiley-{n}$")
                      for n in SMILEYS),
                ),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "mirror",
        "One service of three clusters",
        (
            Step(
                says="A label on each smiley makes it a member of smiley-federated.",
                commands=tuple(_label(n) for n in SMILEYS),
            ),
            Step(
                says="The federated service is there...",
                commands=("kubectl --context k3d-face -n faces get svc smiley-federated",),
                sees=(
                    Prints(says="a service smiley-federated",
                           line=r"^smiley-federated\s+ClusterIP\s+10\.56\.0\.\d+\s+<none>\s+80/TCP"),
                ),
                looks=True,
            ),
            Step(
                says="... and leads to the pods of the other clusters.",
                commands=(ENDPOINTS,),
                sees=tuple(_rows(n, 1) for n in SMILEYS),
                looks=True,
            ),
            Step(
                says="Now the page.",
                sees=(Faces(says="only grinning faces", only=("Grinning",), rounds=2),),
            ),
            Step(
                says="Another smiley in each cluster shows who answers.",
                commands=(_env("2", "SMILEY=HeartEyes"), _env("3", "SMILEY=RollingEyes")),
                sees=(
                    Faces(says="all three smileys, and nothing else", only=MIX, all_of=MIX,
                          rounds=2),
                ),
            ),
        ),
    ),
    Chapter(
        "scale",
        "Endpoints that come and go",
        (
            Step(says="No smiley in the first cluster any more.", commands=(_scale(0),)),
            Step(
                says="Its endpoint is gone.",
                commands=(ENDPOINTS,),
                sees=(_rows("1", 0), _rows("2", 1), _rows("3", 1)),
                looks=True,
            ),
            Step(
                says="Nobody at the page noticed more than that.",
                sees=(
                    Faces(says="smileys of the two other clusters, none that failed",
                          only=MIX[1:], all_of=MIX[1:], rounds=2),
                ),
            ),
            Step(says="Two of them.", commands=(_scale(2),)),
            Step(
                says="Both are in.",
                commands=(ENDPOINTS,),
                sees=(_rows("1", 2), _rows("2", 1), _rows("3", 1)),
                looks=True,
            ),
            Step(
                says="And at the page.",
                sees=(
                    Faces(says="all three smileys, none that failed", only=MIX, all_of=MIX,
                          rounds=2),
                ),
            ),
        ),
    ),
)  # fmt: skip

POLICY: Final = (
    Chapter(
        "errors",
        "Smileys that fail, and retries",
        (
            Step(
                says="Thirty per cent of the smileys fail, in every cluster.",
                commands=tuple(_env(n, "ERROR_FRACTION=30") for n in SMILEYS),
                sees=(
                    Faces(says="cursing faces: between 12 and 55 per cent", failing=(0.12, 0.55),
                          rounds=5),
                ),
            ),
            Step(
                says="How bad is it?",
                commands=(STATS,),
                sees=(
                    Prints(says="a success rate of smiley-federated below 100 %",
                           line=r"smiley-federated:80\s.*\s\d{1,2}\.\d\d%\s+\d+\.\d\d\s"),
                ),
                looks=True,
            ),
            Step(
                says="An annotation on the federated service: failures are tried again, whichever"
                " cluster they come from.",
                commands=(
                    RETRIES,
                ),
                sees=(
                    Faces(says="hardly any cursing face", failing=FEW, rounds=5),
                ),
            ),
            Step(
                says="And in numbers.",
                commands=(STATS,),
                sees=(
                    Prints(says="retries of smiley-federated",
                           line=r"smiley-federated:80.*\s(?!0\.00%)\d+\.\d\d%\s*$"),
                ),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "auth",
        "Who may: decided where the server is",
        (
            Step(
                says="A policy: smiley answers the ServiceAccount face, and nobody else.",
                commands=("bat k8s/smiley-sa.yaml k8s/smiley-auth.yaml",),
                sees=(Prints(says="the identity", line=r"face\.faces\.serviceaccount"),),
                looks=True,
            ),
            Step(
                says="Face runs as the ServiceAccount default.",
                commands=(IDENTITY,),
                sees=(
                    Prints(says="its identity",
                           line=r"CN=default\.faces\.serviceaccount\.identity\.linkerd\."),
                ),
                looks=True,
            ),
            Step(
                says="Applied where face is, it does nothing: no smiley runs there.",
                commands=(_apply(FACE, "smiley-sa"), _apply(FACE, "smiley-auth")),
                sees=(Faces(says="smileys as before", failing=FEW, rounds=4),),
            ),
            Step(
                says="The policy itself says why.",
                commands=(ENFORCED,),
                sees=(
                    Prints(says="that it decides nothing here", line="nothing here to decide"),
                ),
                looks=True,
            ),
            Step(
                says="In the clusters where smiley is, it bites. (The third cluster never gets it;"
                " the second gets it twice.)",
                commands=(
                    "kubectl --context k3d-face delete -f k8s/smiley-auth.yaml",
                    _apply("kind-smiley-1", "smiley-auth"),
                    _apply("kind-smiley-2", "smiley-auth"),
                    _apply("kind-smiley-2", "smiley-auth"),
                ),
                sees=(
                    Faces(says="cursing faces: more than a third", failing=(0.34, 1.0), rounds=3),
                ),
            ),
            Step(
                says="Face gets the ServiceAccount that may.",
                commands=(
                    ACCOUNT,
                ),
                sees=(Faces(says="smileys again", failing=FEW, all_of=MIX, rounds=4),),
            ),
        ),
    ),
)  # fmt: skip

EGRESS: Final = (
    Chapter(
        "color",
        "Color, outside of every cluster",
        (
            Step(
                says="A machine that no cluster knows runs color.",
                commands=(
                    COLOR,
                ),
                sees=(Faces(says="blue backgrounds", edge="blue", center="blue"),),
            ),
        ),
    ),
    Chapter(
        "metrics",
        "What leaves the cluster",
        (
            Step(
                says="The proxy of face counts what leaves the cluster.",
                commands=(METRICS,),
                sees=(
                    Prints(says="egress-fallback, and the host name color",
                           line=r"(?=.*egress-fallback)(?=.*hostname=\"color)"),
                ),
                looks=True,
            ),
            Step(
                says="The same, easier to read: HTTP it says, though color speaks gRPC.",
                commands=(LINES,),
                sees=(
                    Prints(says="a counter of HTTP routes", line=r"^outbound_http_route_request"),
                    Prints(says="egress-fallback", line=r"=\"egress-fallback\""),
                ),
                looks=True,
            ),
            Step(
                says="An EgressNetwork that allows everything changes nothing but what is known.",
                commands=("bat k8s/allow-all-egress.yaml", _apply(FACE, "allow-all-egress")),
                sees=(Faces(says="blue backgrounds", edge="blue", center="blue"),),
            ),
            Step(
                says="It counts under its own name now.",
                commands=(METRICS,),
                sees=(
                    Prints(says="all-egress, port 8000, the host name color",
                           line=r"(?=.*\"all-egress\")(?=.*=\"8000\")(?=.*hostname=\"color)"),
                    Differs(says="the count of all-egress grows",
                            number=r"\"all-egress\".*\} ([0-9.e+]+)$"),
                    Differs(says="that of egress-fallback does not",
                            number=r"\"egress-fallback\".*\} ([0-9.e+]+)$", grows=False),
                ),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "deny",
        "Nothing leaves",
        (
            Step(
                says="The same EgressNetwork, denying.",
                commands=("bat k8s/deny-all-egress.yaml", _apply(FACE, "deny-all-egress")),
                sees=(Faces(says="grey backgrounds", edge="grey", center="grey"),),
            ),
            Step(
                says="And counted.",
                commands=(METRICS,),
                sees=(
                    Prints(says="all-egress with status 403",
                           line=r"(?=.*\"all-egress\")(?=.*=\"403\")"),
                ),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "allow",
        "Color may be asked again",
        (
            Step(
                says="A GRPCRoute on the EgressNetwork lets color's calls through.",
                commands=("bat k8s/allow-color-all.yaml", _apply(FACE, "allow-color-all")),
                sees=(Faces(says="blue backgrounds", edge="blue", center="blue"),),
            ),
            Step(
                says="And counted.",
                commands=(METRICS,),
                sees=(
                    Prints(says="the route allow-color, of gRPC",
                           line=r"^outbound_grpc_route_request.*\"allow-color\""),
                ),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "edge",
        "Only the edge",
        (
            Step(
                says="The cells at the edge use another method than those in the center. Only the"
                " edge's may pass.",
                commands=("bat k8s/allow-edge.yaml", _apply(FACE, "allow-edge")),
                sees=(
                    Faces(says="blue at the edge, grey in the center", edge="blue", center="grey"),
                ),
            ),
            Step(
                says="And counted.",
                commands=(METRICS,),
                sees=(Prints(says="PERMISSION_DENIED", line="PERMISSION_DENIED"),),
                looks=True,
            ),
        ),
    ),
    Chapter(
        "user",
        "The center for one user",
        (
            Step(
                says="Whoever is called Center may ask for the center too.",
                commands=("bat k8s/allow-edge-2.yaml", _apply(FACE, "allow-edge-2")),
                sees=(
                    Faces(says="for the user Center: blue everywhere", edge="blue", center="blue",
                          user="Center"),
                    Faces(says="for the user Flynn: grey in the center", edge="blue",
                          center="grey", user="Flynn"),
                    Faces(says="for nobody in particular: grey in the center", edge="blue",
                          center="grey"),
                ),
            ),
        ),
    ),
)  # fmt: skip

CHAPTERS: Final = (*FEDERATED, *POLICY, *EGRESS)
