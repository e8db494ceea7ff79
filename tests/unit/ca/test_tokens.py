"""ServiceAccount tokens: what is signed verifies, everything else is Unauthenticated."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from isthmus import ca
from isthmus.ca.tokens import thumbprint
from isthmus.errors import Unauthenticated

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ISSUER = "https://kubernetes.default.svc.cluster.local"
KEY = ec.generate_private_key(ec.SECP256R1())
RING = ca.Keyring(ISSUER, KEY)
ACCOUNT = ca.Bound("serviceaccounts", "faces", "face", "u-1")
TOKEN = RING.sign(ACCOUNT, now=NOW, lifetime=HOUR)


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def claims_of(token: str) -> dict[str, object]:
    middle = token.split(".")[1]
    read = json.loads(base64.urlsafe_b64decode(middle + "=="))
    assert isinstance(read, dict)
    return read


def test_a_token_says_whose_it_is() -> None:
    claims = RING.verify(TOKEN, now=NOW)
    assert claims.user == "system:serviceaccount:faces:face"
    assert claims.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:faces",
        "system:authenticated",
    )
    assert claims.audiences == (ISSUER,)
    assert claims.bound == (ACCOUNT,)
    assert claims.expires - claims.issued == 3600


def test_the_claims_are_those_of_kubernetes() -> None:
    pod = ca.Bound("pods", "faces", "face-1", "u-2")
    said = claims_of(RING.sign(ACCOUNT, now=NOW, lifetime=HOUR, audiences=["x"], bound=pod))
    assert set(said) == {"aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"}
    assert said["aud"] == ["x"]
    assert said["kubernetes.io"] == {
        "namespace": "faces",
        "serviceaccount": {"name": "face", "uid": "u-1"},
        "pod": {"name": "face-1", "uid": "u-2"},
    }


@pytest.mark.parametrize(
    ("resource", "namespace"), [("pods", "faces"), ("secrets", "faces"), ("nodes", "")]
)
def test_a_bound_object_comes_back(resource: str, namespace: str) -> None:
    bound = ca.Bound(resource, namespace, "it", "u-9")
    token = RING.sign(ACCOUNT, now=NOW, lifetime=HOUR, bound=bound)
    assert RING.verify(token, now=NOW).bound == (ACCOUNT, bound)


def test_each_token_has_its_own_id() -> None:
    assert claims_of(TOKEN)["jti"] != claims_of(RING.sign(ACCOUNT, now=NOW, lifetime=HOUR))["jti"]


def test_only_an_audience_asked_for_is_granted() -> None:
    token = RING.sign(ACCOUNT, now=NOW, lifetime=HOUR, audiences=["mesh", "vault"])
    assert RING.verify(token, now=NOW, audiences=["mesh"]).audiences == ("mesh",)
    with pytest.raises(Unauthenticated, match="another audience"):
        RING.verify(token, now=NOW)


@pytest.mark.parametrize(
    ("at", "message"),
    [(NOW + HOUR, "expired"), (NOW - timedelta(minutes=2), "not valid yet")],
)
def test_out_of_its_time(at: datetime, message: str) -> None:
    with pytest.raises(Unauthenticated, match=message):
        RING.verify(TOKEN, now=at)


def test_a_clock_a_little_behind_is_forgiven() -> None:
    assert RING.verify(TOKEN, now=NOW - timedelta(seconds=50))


def test_an_old_key_verifies_after_rotation_and_not_for_ever() -> None:
    fresh = ec.generate_private_key(ec.SECP256R1())
    rotated = ca.Keyring(ISSUER, fresh, [KEY.public_key()])
    assert rotated.verify(TOKEN, now=NOW)
    assert rotated.verify(rotated.sign(ACCOUNT, now=NOW, lifetime=HOUR), now=NOW)
    with pytest.raises(Unauthenticated, match="not known here"):
        ca.Keyring(ISSUER, fresh).verify(TOKEN, now=NOW)


def test_another_issuer_is_another_issuer() -> None:
    with pytest.raises(Unauthenticated, match="somebody else"):
        ca.Keyring("https://elsewhere", KEY).verify(TOKEN, now=NOW)


GOOD = {"alg": "ES256", "kid": thumbprint(KEY.public_key())}


@pytest.mark.parametrize(
    "header",
    [
        {**GOOD, "alg": "none"},
        {**GOOD, "alg": "HS256"},
        {**GOOD, "alg": ["ES256"]},
        {**GOOD, "kid": 7},
        {**GOOD, "kid": None},
        {**GOOD, "kid": "../../etc/passwd"},
        {**GOOD, "crit": ["exp"]},
        {"alg": "ES256"},
        {},
        [],
        None,
        "ES256",
    ],
)
def test_a_hostile_header(header: object) -> None:
    _, payload, signature = TOKEN.split(".")
    with pytest.raises(Unauthenticated):
        RING.verify(f"{part(header)}.{payload}.{signature}", now=NOW)


def signed(header: object, payload: str) -> str:
    """A token whose signature holds, whatever it says."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import utils  # noqa: PLC0415

    text = f"{part(header)}.{payload}"
    r, s = utils.decode_dss_signature(KEY.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    raw = r.to_bytes(32) + s.to_bytes(32)
    return f"{text}.{base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"


def test_alg_and_crit_are_refused_even_when_the_signature_holds() -> None:
    payload = TOKEN.split(".")[1]
    assert RING.verify(signed(GOOD, payload), now=NOW)
    for header in ({**GOOD, "alg": "none"}, {**GOOD, "crit": ["x"]}):
        with pytest.raises(Unauthenticated, match="ES256"):
            RING.verify(signed(header, payload), now=NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": -5},
        {"exp": 2**70},
        {"exp": "soon"},
        {"exp": 1.5},
        {"exp": None},
        {"aud": 7},
        {"aud": []},
        {"sub": "system:serviceaccount:faces:admin"},
        {"kubernetes.io": {}},
        {"kubernetes.io": {"namespace": "faces", "serviceaccount": {"name": "face", "uid": ""}}},
        {"kubernetes.io": {"namespace": "kube", "serviceaccount": {"name": "face", "uid": "u"}}},
    ],
    ids=repr,
)
def test_hostile_claims_with_a_good_signature(change: dict[str, object]) -> None:
    with pytest.raises(Unauthenticated):
        RING.verify(signed(GOOD, part({**claims_of(TOKEN), **change})), now=NOW)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "..",
        "a.b",
        "a.b.c.d",
        "x" * 9000,
        "ü.b.c",
        TOKEN + "=",
        TOKEN[:-2],
        TOKEN + "A" * 8,
        f"{part(GOOD)}.{base64.urlsafe_b64encode(b'[' * 4000).decode()}.AAAA",
        f"{base64.urlsafe_b64encode(b'[' * 4000).decode().rstrip('=')}.e30.AAAA",
        f"{part(GOOD)}.e30.{base64.urlsafe_b64encode(bytes(64)).decode().rstrip('=')}",
    ],
    ids=lambda t: t[:20],
)
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(Unauthenticated):
        RING.verify(token, now=NOW)


def test_a_nested_payload_with_a_good_signature_is_refused_not_a_crash() -> None:
    deep = '{"kubernetes.io":' + "[" * 3000
    payload = base64.urlsafe_b64encode(deep.encode()).rstrip(b"=").decode()
    with pytest.raises(Unauthenticated):
        RING.verify(signed(GOOD, payload), now=NOW)


@given(st.data())
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(TOKEN) - 1))
    letter = data.draw(st.characters(codec="utf-8"))
    changed = TOKEN[:at] + letter + TOKEN[at + 1 :]
    if changed != TOKEN:
        with pytest.raises(Unauthenticated):
            RING.verify(changed, now=NOW)


@given(st.text())
def test_any_text_is_answered(text: str) -> None:
    with pytest.raises(Unauthenticated):
        RING.verify(text, now=NOW)


POD = ca.Bound("pods", "faces", "face-1", "u-2")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("present", "holds"),
    [
        ({"face": "u-1", "face-1": "u-2"}, True),
        ({"face": "u-1"}, False),
        ({"face": "u-1", "face-1": "u-3"}, False),
        ({"face": "u-0", "face-1": "u-2"}, False),
    ],
)
async def test_a_token_falls_with_what_it_hangs_on(present: dict[str, str], holds: bool) -> None:
    async def uid_of(bound: ca.Bound) -> str | None:
        return present.get(bound.name)

    claims = RING.verify(RING.sign(ACCOUNT, now=NOW, lifetime=HOUR, bound=POD), now=NOW)
    if holds:
        await ca.require_bound(claims, uid_of)
    else:
        with pytest.raises(Unauthenticated, match="no longer exists"):
            await ca.require_bound(claims, uid_of)


def test_the_keyring_is_kept_and_rotated_by_renaming(tmp_path: Path) -> None:
    token = ca.load_keyring(tmp_path, ISSUER).sign(ACCOUNT, now=NOW, lifetime=HOUR)
    key = tmp_path / "service-account.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert ca.load_keyring(tmp_path, ISSUER).verify(token, now=NOW)
    key.rename(tmp_path / "service-account-2026.key")
    rotated = ca.load_keyring(tmp_path, ISSUER)
    assert rotated.verify(token, now=NOW)
    fresh = rotated.sign(ACCOUNT, now=NOW, lifetime=HOUR)
    assert fresh.split(".")[0] != token.split(".")[0]
