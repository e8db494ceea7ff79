"""Certify's checks, in order, each with the status that Linkerd gives; and who gets what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import ManualClock
from isthmus.ca import Account, Issued, Keyring, chains, join, request, trust
from isthmus.ca.request import make_key
from isthmus.calls import Refused
from isthmus.errors import Unavailable
from isthmus.model.core.config import CONFIG_MAP, SECRET
from isthmus.model.core.node import NODE
from isthmus.model.workload import EXTERNAL_WORKLOAD
from isthmus.serve.identity import Caller
from isthmus.serve.identity.certify import key_hash
from isthmus.serve.identity.contract import NOBODY
from tests.support.csr import csr
from tests.support.identities import ISSUER, REALM, Plane

FACE = REALM.name(Account("faces", "face"))
OTHER = REALM.name(Account("faces", "other"))
HOST = REALM.host_uri("vm-1")


@pytest.fixture
def plane() -> Plane:
    return Plane(ManualClock())


async def ask(
    plane: Plane,
    token: bytes,
    identity: str = FACE,
    signing: bytes | None = None,
    caller: Caller = NOBODY,
) -> Issued:
    made = signing if signing is not None else request.make(make_key(), identity)
    return await plane.certifier.certify(identity, token, made, caller)


async def refusal(
    plane: Plane,
    token: bytes,
    identity: str = FACE,
    signing: bytes | None = None,
    caller: Caller = NOBODY,
) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        await ask(plane, token, identity, signing, caller)
    return caught.value.refusal


async def test_an_account_gets_both_its_names(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    made = await ask(plane, plane.token(face))
    assert chains.dns_names(made.leaf) == (FACE,)
    assert chains.uris(made.leaf) == ("spiffe://cluster.local/ns/faces/sa/face",)
    assert made.leaf.subject.rfc4514_string() == f"CN={FACE}"
    held = await plane.keeper.trust()
    assert chains.path((made.leaf, *made.intermediates), held.anchors, plane.clock.utc())


async def test_the_ca_is_made_at_the_first_certify_and_kept(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    assert not await plane.stands(SECRET, "linkerd", trust.ISSUER_SECRET)
    first = await ask(plane, plane.token(face))
    assert await plane.stands(SECRET, "linkerd", trust.ISSUER_SECRET)
    assert await plane.stands(CONFIG_MAP, "linkerd", trust.ROOTS_CONFIG_MAP)
    again = Plane(plane.clock)
    again.shelf._store = plane.store  # noqa: SLF001  # the same objects after a restart
    await again.keeper.load()
    held = again.keeper.now.value
    assert held is not None
    assert held.issuer.subject == first.leaf.issuer


@pytest.mark.parametrize(
    ("identity", "token", "signing", "says"),
    [
        ("", b"a.b.c", b"x", "missing identity"),
        (FACE, b"", b"x", "missing token"),
        (FACE, b"a.b.c", b"", "missing CSR"),
        (FACE, b"a.b.c", b"x", "cannot be read"),
        (FACE, b"\xff.b.c", b"x", "not text"),
        (FACE, b"a" * 9000, b"x", "too long"),
        ("a" * 3000, b"a.b.c", b"x", "too long"),
        (FACE, b"pod/faces/face", None, "no JSON Web Token"),
        (FACE, b"isthmus-join.rubbish", None, "no join token"),
    ],
)
async def test_what_cannot_be_read(
    plane: Plane, identity: str, token: bytes, signing: bytes | None, says: str
) -> None:
    status, text = await refusal(plane, token, identity, signing)
    assert status == "INVALID_ARGUMENT"
    assert says in text


@pytest.mark.parametrize(
    "signing",
    [
        csr([FACE, OTHER]),
        csr([FACE], ["spiffe://cluster.local/ns/faces/sa/other"]),
        csr([], ["spiffe://cluster.local/ns/faces/sa/face"]),
        csr([FACE], cn="admin"),
        csr([FACE], extensions=[x509.BasicConstraints(ca=True, path_length=None)]),
        csr([OTHER]),
    ],
    ids=["two names", "a URI beside", "a URI", "other CN", "CA bit", "other name"],
)
async def test_a_request_for_more_than_the_token(plane: Plane, signing: bytes) -> None:
    face = await plane.account("faces", "face")
    status, _ = await refusal(plane, plane.token(face), FACE, signing)
    assert status == "FAILED_PRECONDITION"


async def test_a_token_of_another_account(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    status, text = await refusal(plane, plane.token(face), OTHER)
    assert status == "FAILED_PRECONDITION"
    assert text == (
        f"requested identity did not match provided token: requested={OTHER}; found={FACE}"
    )


async def test_an_account_with_dots_is_nobody(plane: Plane) -> None:
    """`a.b` in `shop` must not become `a` in a namespace `b`."""
    dotted = await plane.account("serviceaccount", "a.shop")
    status, _ = await refusal(plane, plane.token(dotted), REALM.name(Account("shop", "a")))
    assert status == "FAILED_PRECONDITION"


async def test_a_token_for_the_api_is_not_for_us(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    status, text = await refusal(plane, plane.token(face, audience=ISSUER))
    assert (status, text) == ("FAILED_PRECONDITION", "the token is meant for another audience")


async def test_a_token_without_an_end_is_not_for_us(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    kept = plane.keyring.sign_kept(face, "s").encode()
    assert (await refusal(plane, kept))[0] == "FAILED_PRECONDITION"


async def test_an_expired_token() -> None:
    clock = ManualClock()
    plane = Plane(clock)
    token = plane.token(await plane.account("faces", "face"), lifetime=timedelta(minutes=10))
    clock.advance(601)
    assert await refusal(plane, token) == ("FAILED_PRECONDITION", "the token has expired")


async def test_a_foreign_clusters_token(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    foreign = Keyring(ISSUER, ec.generate_private_key(ec.SECP256R1()))
    token = foreign.sign(
        face, now=plane.clock.utc(), lifetime=timedelta(hours=1), audiences=("identity.l5d.io",)
    )
    status, text = await refusal(plane, token.encode())
    assert status == "FAILED_PRECONDITION"
    assert "not known here" in text


async def test_a_token_replayed_after_its_pod_is_gone(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    pod = await plane.pod("faces", "face-1", "face")
    token = plane.token(face, pod)
    await ask(plane, token)
    await plane.gone(pod)
    status, text = await refusal(plane, token)
    assert status == "FAILED_PRECONDITION"
    assert "no longer exists" in text
    await plane.pod("faces", "face-1", "face")  # its successor of the same name is another
    assert (await refusal(plane, token))[0] == "FAILED_PRECONDITION"


async def test_an_issuer_that_cannot_be_used(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    roots = {"metadata": {"name": trust.ROOTS_CONFIG_MAP, "namespace": "linkerd"}}
    await plane.apply({"apiVersion": "v1", "kind": "ConfigMap", **roots, "data": {}})
    with pytest.raises(Unavailable, match="there is no Secret linkerd/linkerd-identity-issuer"):
        await ask(plane, plane.token(face))


async def test_the_log_tells_who_and_holds_no_secret(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    token = plane.token(face)
    made = await ask(plane, token)
    issued = next(line for line in plane.log.lines if line.event == "certificate issued")
    assert issued.fields["identity"] == FACE
    assert issued.fields["hash"] == chains.fingerprint(made.leaf)
    assert token.decode() not in str(plane.log.lines)
    assert "PRIVATE" not in str(plane.log.lines)


# ------------------------------------------------------------------------------------------- hosts


async def joined(plane: Plane, host: str = "vm-1") -> tuple[Caller, ec.EllipticCurvePrivateKey]:
    """A host that has redeemed an invitation."""
    invitation = await plane.invite(host)
    mine = make_key()
    uri = REALM.host_uri(host)
    await ask(plane, invitation.token.encode(), uri, request.make(mine, uri))
    return Caller(host, key_hash(mine.public_key())), mine


async def test_an_invitation_is_good_once(plane: Plane) -> None:
    invitation = await plane.invite("vm-1")
    made = await ask(plane, invitation.token.encode(), HOST)
    assert (chains.dns_names(made.leaf), chains.uris(made.leaf)) == ((), (HOST,))
    status, text = await refusal(plane, invitation.token.encode(), HOST)
    assert status == "FAILED_PRECONDITION"
    assert "spent" in text


async def test_an_invitation_ends_after_an_hour(plane: Plane) -> None:
    invitation = await plane.invite("vm-1", age=join.LIFETIME.total_seconds())
    status, text = await refusal(plane, invitation.token.encode(), HOST)
    assert status == "FAILED_PRECONDITION"
    assert "expired" in text


async def test_invitations_that_nobody_redeemed_do_not_stay(plane: Plane) -> None:
    old = await plane.invite("vm-1", age=join.LIFETIME.total_seconds())
    new = await plane.invite("vm-2")
    await plane.keeper.trust()  # another Secret of the namespace, which nobody may take
    assert await plane.certifier.sweep() == 1
    assert await plane.certifier.sweep() == 0
    assert not await plane.stands(SECRET, "linkerd", old.object_name)
    assert await plane.stands(SECRET, "linkerd", new.object_name)
    assert await plane.stands(SECRET, "linkerd", trust.ISSUER_SECRET)


async def test_an_invitation_for_another_host(plane: Plane) -> None:
    invitation = await plane.invite("vm-1")
    other = REALM.host_uri("vm-2")
    assert (await refusal(plane, invitation.token.encode(), other))[0] == "FAILED_PRECONDITION"
    assert (await refusal(plane, invitation.token.encode(), FACE))[0] == "FAILED_PRECONDITION"


async def test_a_forged_invitation_cannot_change_its_host(plane: Plane) -> None:
    invitation = await plane.invite("vm-1")
    other = REALM.host_uri("vm-2")
    forged = join.Invitation(
        invitation.id, invitation.secret, other, invitation.at, invitation.name, invitation.anchors
    )
    status, text = await refusal(plane, forged.token.encode(), other)
    assert (status, text) == ("FAILED_PRECONDITION", "the join token is for another host")


async def test_an_invitation_with_a_guessed_secret(plane: Plane) -> None:
    invitation = await plane.invite("vm-1")
    guessed = join.Invitation(
        invitation.id, "guess", HOST, invitation.at, invitation.name, invitation.anchors
    )
    assert "not known" in (await refusal(plane, guessed.token.encode(), HOST))[1]
    await ask(plane, invitation.token.encode(), HOST)  # and the true one is not spent


async def test_any_other_secret_is_no_invitation(plane: Plane) -> None:
    """Whoever may write Secrets of other types must not thereby invite."""
    invitation = join.Invitation.make(HOST, "a:1", "n", ())
    written = join.document(invitation, "vm-1", "linkerd", plane.clock.time() + 100)
    await plane.apply({**written, "type": "Opaque"})
    assert "not known" in (await refusal(plane, invitation.token.encode(), HOST))[1]


async def test_a_host_certifies_its_own_pods_alone(plane: Plane) -> None:
    caller, _ = await joined(plane)
    await plane.pod("faces", "here", "face", "vm-1")
    await plane.pod("faces", "there", "face", "vm-2")
    made = await ask(plane, b"pod/faces/here", FACE, caller=caller)
    assert chains.dns_names(made.leaf) == (FACE,)
    for token in (b"pod/faces/there", b"pod/faces/none"):
        status, text = await refusal(plane, token, FACE, caller=caller)
        assert (status, text) == ("PERMISSION_DENIED", "no such workload on the host 'vm-1'")
    status, _ = await refusal(plane, b"pod/faces/here", OTHER, caller=caller)
    assert status == "FAILED_PRECONDITION"


@pytest.mark.parametrize("token", [b"node//vm-1", b"pod/faces", b"pod/../x", b"pod/faces/a/b"])
async def test_a_reference_that_is_none(plane: Plane, token: bytes) -> None:
    caller, _ = await joined(plane)
    assert (await refusal(plane, token, FACE, caller=caller))[0] == "INVALID_ARGUMENT"


async def external(plane: Plane, name: str, identity: str, host: str) -> None:
    metadata = {"namespace": "faces", "name": name, "annotations": {"isthmus.dev/host": host}}
    spec = {
        "meshTLS": {"identity": identity, "serverName": "x.example"},
        "workloadIPs": [{"ip": "192.0.2.1"}],
    }
    kind = {"apiVersion": "workload.linkerd.io/v1beta1", "kind": "ExternalWorkload"}
    await plane.apply({**kind, "metadata": metadata, "spec": spec})


async def test_a_host_certifies_its_external_workloads(plane: Plane) -> None:
    caller, _ = await joined(plane)
    await external(plane, "here", "spiffe://cluster.local/ns/faces/sa/face", "vm-1")
    await external(plane, "there", FACE, "vm-2")
    await external(plane, "admin", "spiffe://cluster.local/ns/linkerd/sa/admin", "vm-1")
    assert await ask(plane, b"externalworkload/faces/here", FACE, caller=caller)
    refused = await refusal(plane, b"externalworkload/faces/there", FACE, caller=caller)
    assert refused[0] == "PERMISSION_DENIED"
    admin = REALM.name(Account("linkerd", "admin"))
    refused = await refusal(plane, b"externalworkload/faces/admin", admin, caller=caller)
    assert refused[0] == "PERMISSION_DENIED"  # one namespace's writers are nobody in another


async def leaves(plane: Plane, name: str) -> dict[str, str]:
    held = await plane.objects.get(EXTERNAL_WORKLOAD, "faces", name)
    found = {each["type"]: each for each in held.document.get("status", {}).get("conditions", [])}
    return {kind: each["status"] for kind, each in found.items()}


async def test_a_host_says_of_its_own_workloads_that_they_leave(plane: Plane) -> None:
    caller, _ = await joined(plane)
    await external(plane, "db", REALM.name(Account("faces", "db")), "vm-1")
    await external(plane, "other", REALM.name(Account("faces", "db")), "vm-2")
    await plane.certifier.tell(caller, "faces/db", leaving=False)
    assert await leaves(plane, "db") == {}  # nothing was ever said
    for leaving, status in ((True, "True"), (True, "True"), (False, "False")):
        await plane.certifier.tell(caller, "faces/db", leaving=leaving)
        assert await leaves(plane, "db") == {"isthmus.dev/Leaving": status}
    bad = [(caller, "faces/other"), (caller, "faces/none"), (caller, "x"), (NOBODY, "faces/db")]
    for who, path in (*bad, (Caller("vm-1", "another key"), "faces/db")):
        with pytest.raises(Refused):
            await plane.certifier.tell(who, path, leaving=True)
    assert await leaves(plane, "other") == {}


async def test_deleting_the_node_revokes_the_host(plane: Plane) -> None:
    caller, mine = await joined(plane)
    await plane.pod("faces", "here", "face", "vm-1")
    await plane.objects.delete(NODE, "", "vm-1")
    renewal = request.make(mine, HOST)
    for token, identity, signing in ((b"pod/faces/here", FACE, None), (b"", HOST, renewal)):
        status, _ = await refusal(plane, token, identity, signing, caller)
        assert status == "PERMISSION_DENIED"
    await plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vm-1"}})
    assert (await refusal(plane, b"pod/faces/here", FACE, caller=caller))[0] == "PERMISSION_DENIED"


async def test_a_host_renews_its_leaf_with_its_key_alone(plane: Plane) -> None:
    caller, mine = await joined(plane)
    assert await ask(plane, b"", HOST, request.make(mine, HOST), caller)
    other = request.make(make_key(), HOST)
    assert (await refusal(plane, b"", HOST, other, caller))[0] == "FAILED_PRECONDITION"
    stranger = Caller("vm-2", caller.key)
    refused = await refusal(plane, b"", HOST, request.make(mine, HOST), stranger)
    assert refused[0] == "INVALID_ARGUMENT"


async def test_who_joins_again_ends_the_agent_before(plane: Plane) -> None:
    first, mine = await joined(plane)
    second, _ = await joined(plane)
    assert first.key != second.key
    refused = await refusal(plane, b"", HOST, request.make(mine, HOST), first)
    assert refused[0] == "PERMISSION_DENIED"


async def test_an_account_is_no_host(plane: Plane) -> None:
    face = await plane.account("faces", "face")
    signing = request.make(make_key(), HOST)
    assert (await refusal(plane, plane.token(face), HOST, signing))[0] == "PERMISSION_DENIED"
