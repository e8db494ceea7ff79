from __future__ import annotations

import pytest

from isthmus.model.annotations import (
    Accrual,
    AccrualMode,
    GrpcRetry,
    HttpRetry,
    LoadBias,
    Ports,
    Problem,
    SuccessRate,
    Timeouts,
    Upstream,
    default_inbound_policy,
    failure_accrual,
    grpc_retry,
    http_retry,
    load_bias,
    parse_duration,
    port_list,
    timeouts,
    upstreams,
)
from isthmus.model.annotations.grammar import Unfit, parse_truth
from isthmus.model.annotations.parents import parent_warnings

REQUEST = "timeout.linkerd.io/request"
RETRY = "retry.linkerd.io/"
ACCRUAL = "balancer.linkerd.io/failure-accrual"
ALPHA = "balancer.alpha.linkerd.io/"


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("10s", 10_000),
        ("500ms", 500),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        (" 3s ", 3_000),
        ("0", 0),
        ("0s", 0),
        ("0ms", 0),
        ("007s", 7_000),
    ],
)
def test_durations_are_one_number_and_one_unit(text: str, millis: int) -> None:
    assert parse_duration(text) == millis


@pytest.mark.parametrize(
    "text",
    ["5", "0.5s", "-1s", "1h30m", "", "abc", "10us", "10S", "18446744073709551615d", "٣s", "+1s"],
)
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(Unfit):
        parse_duration(text)
    found = timeouts({REQUEST: text})
    assert isinstance(found, Problem)
    assert found.key == REQUEST


def test_a_duration_of_digits_without_end_is_no_work() -> None:
    assert isinstance(timeouts({REQUEST: "9" * 100_000 + "s"}), Problem)


def test_truths() -> None:
    assert [parse_truth(word) for word in ("1", "t", "T", " true ", "TRUE", "True")] == [True] * 6
    assert [parse_truth(word) for word in ("0", "f", "F", "false", "FALSE", "False")] == [False] * 6
    for word in ("yes", "tRUE", "", "2"):
        with pytest.raises(Unfit):
            parse_truth(word)


def test_timeouts_are_three_and_one_bad_one_spoils_them() -> None:
    idle, response = "timeout.linkerd.io/idle", "timeout.linkerd.io/response"
    assert timeouts({}) == Timeouts()
    assert timeouts({REQUEST: "0s", idle: "1m"}) == Timeouts(request=0, idle=60_000)
    assert timeouts({response: "4s"}) == Timeouts(response=4_000)
    found = timeouts({REQUEST: "1s", idle: "later"})
    assert isinstance(found, Problem)
    assert found.fault.path == f"metadata.annotations[{idle}]"
    assert "later" in found.fault.message


@pytest.mark.parametrize(
    ("annotations", "retry"),
    [
        ({}, None),
        ({"grpc": "unavailable"}, None),
        ({"limit": "0"}, None),
        ({"timeout": "0s"}, None),
        ({"limit": "3"}, HttpRetry(3, None, ())),
        ({"timeout": "250ms"}, HttpRetry(1, 250, ())),
        ({"http": "5XX,429"}, HttpRetry(1, None, ((500, 599), (429, 429)))),
        ({"http": "Gateway-Error"}, HttpRetry(1, None, ((502, 504),))),
        ({"http": "500-502,404", "limit": "65535"},
         HttpRetry(65535, None, ((500, 502), (404, 404)))),
    ],
)  # fmt: skip
def test_http_retries(annotations: dict[str, str], retry: HttpRetry | None) -> None:
    assert http_retry({RETRY + key: value for key, value in annotations.items()}) == retry


@pytest.mark.parametrize(
    "annotations",
    [
        {"http": "6xx"},
        {"http": "5xx, 429"},
        {"http": "600"},
        {"http": "99"},
        {"http": "502-500"},
        {"http": ""},
        {"http": "500-"},
        {"http": "5xx,"},
        {"limit": "-1"},
        {"limit": "65536"},
        {"limit": " 3"},
        {"limit": "many"},
        {"timeout": "soon"},
    ],
)
def test_bad_http_retries(annotations: dict[str, str]) -> None:
    assert isinstance(http_retry({RETRY + k: v for k, v in annotations.items()}), Problem)


def test_grpc_retries() -> None:
    assert grpc_retry({f"{RETRY}grpc": "Unavailable,cancelled"}) == GrpcRetry(1, None, (14, 1))
    assert grpc_retry({f"{RETRY}http": "5xx"}) is None
    assert isinstance(grpc_retry({f"{RETRY}grpc": "not-found"}), Problem)
    assert isinstance(grpc_retry({f"{RETRY}grpc": "deadline_exceeded"}), Problem)


def test_consecutive_failures() -> None:
    assert failure_accrual({ACCRUAL: "consecutive"}) == Accrual(AccrualMode.CONSECUTIVE)
    found = failure_accrual(
        {
            ACCRUAL: "consecutive",
            f"{ACCRUAL}-consecutive-max-failures": "3",
            f"{ACCRUAL}-consecutive-max-penalty": "10m",
            f"{ACCRUAL}-consecutive-min-penalty": "10s",
            f"{ACCRUAL}-consecutive-jitter-ratio": "1.5",
            f"{ALPHA}failure-accrual-success-rate-threshold": "nonsense",
        }
    )
    assert found == Accrual(AccrualMode.CONSECUTIVE, 3, 10_000, 600_000, 1.5)
    assert failure_accrual({f"{ACCRUAL}-consecutive-max-failures": "3"}) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max-failures", "4294967296"),
        ("max-failures", "-1"),
        ("max-penalty", "0s"),
        ("min-penalty", "2m"),
        ("jitter-ratio", "100.5"),
        ("jitter-ratio", "nan"),
        ("jitter-ratio", "-0.1"),
        ("jitter-ratio", "1e400"),
    ],
)
def test_bad_accruals(key: str, value: str) -> None:
    found = failure_accrual({ACCRUAL: "consecutive", f"{ACCRUAL}-consecutive-{key}": value})
    assert isinstance(found, Problem)
    assert found.key.endswith(key)


def test_the_mode_is_written_exactly() -> None:
    for word in ("Consecutive", "sometimes", "", " unified"):
        assert isinstance(failure_accrual({ACCRUAL: word}), Problem)


def test_unified_accruals_know_a_success_rate() -> None:
    rate = f"{ALPHA}failure-accrual-success-rate-"
    honor = f"{ALPHA}failure-accrual-honor-retry-after"
    found = failure_accrual({ACCRUAL: "unified", f"{rate}threshold": "0.5", honor: "t"})
    assert isinstance(found, Accrual)
    assert found.success_rate == SuccessRate(0.5, 10_000, 5)
    assert found.honor_retry_after
    assert isinstance(failure_accrual({ACCRUAL: "unified", f"{rate}window": "9ms"}), Problem)
    many = {ACCRUAL: "unified", f"{rate}min-requests": "1000001"}
    assert isinstance(failure_accrual(many), Problem)
    assert isinstance(failure_accrual({**many, f"{rate}threshold": "0"}), Accrual)


def test_load_bias_is_off_until_it_is_switched_on() -> None:
    assert load_bias({f"{ALPHA}load-biaser-penalty": "1s"}) is None
    assert load_bias({f"{ALPHA}penalize-failures": "true"}) == LoadBias(5_000, 300_000)
    long = {f"{ALPHA}penalize-failures": "1", f"{ALPHA}load-biaser-penalty": "4294967296ms"}
    assert isinstance(load_bias(long), Problem)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("25,3306", ((25, 25), (3306, 3306))),
        ("4000-4003", ((4000, 4003),)),
        (" 25 , 26 ,", ((25, 25), (26, 26))),
        ("", ()),
        (" 1 - 2 ", ((1, 2),)),
    ],
)
def test_port_lists(text: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert port_list(text) == Ports(ranges)


@pytest.mark.parametrize("text", ["10-5", "0", "70000", "x", "25;26", "1-2-3", "-5", "0-3", "٣"])
def test_bad_port_lists(text: str) -> None:
    assert isinstance(port_list(text), Problem)
    assert isinstance(port_list("25," + text), Problem)


def test_workloads_may_name_their_ports() -> None:
    found = port_list("http-alt, 4000-4001, mysql", names=True)
    assert isinstance(found, Ports)
    assert found == Ports(((4000, 4001),), ("http-alt", "mysql"))
    assert found.holds(4001)
    assert found.holds(80, ["mysql"])
    assert not found.holds(80, ["http"])
    assert isinstance(port_list("MYSQL", names=True), Problem)


def test_a_list_of_ports_is_bounded() -> None:
    assert isinstance(port_list("1," * 5_000), Problem)


def test_default_inbound_policies_are_six_words() -> None:
    assert default_inbound_policy("audit") == "audit"
    assert isinstance(default_inbound_policy("Deny"), Problem)


def test_upstreams() -> None:
    assert upstreams("faces/*, color/color ,*/dns") == (
        Upstream("faces", "*"),
        Upstream("color", "color"),
        Upstream("*", "dns"),
    )
    assert upstreams("") == ()
    for text in ("faces", "faces/", "/x", "Faces/*", "a/b/c", "*.a/b"):
        assert isinstance(upstreams(text), Problem), text
    assert isinstance(upstreams("a/b," * 2_000), Problem)
    assert Upstream("faces", "*").holds("faces", "smiley")
    assert not Upstream("faces", "*").holds("faces2", "smiley")


def test_parents_are_warned_of_each_group_by_itself() -> None:
    found = list(
        parent_warnings(
            {
                REQUEST: "ten",
                f"{RETRY}http": "5xx",
                ACCRUAL: "sometimes",
                "config.linkerd.io/opaque-ports": "x",
            }
        )
    )
    assert [each.split("]")[0].split("[")[1] for each in found] == [
        REQUEST,
        ACCRUAL,
        "config.linkerd.io/opaque-ports",
    ]
