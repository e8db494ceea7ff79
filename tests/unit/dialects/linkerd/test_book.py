from __future__ import annotations

from isthmus.dialects.linkerd.book import LARGEST, AddressBook, Entry, Labels, batches, delta
from isthmus.dialects.linkerd.wire import tcp_address
from isthmus.proto.linkerd import destination_pb2 as pb
from tests.support.meshworld import fold

CART: Labels = (("namespace", "shop"), ("service", "cart"))
TILL: Labels = (("namespace", "shop"), ("service", "till"))
EMPTY = AddressBook()


def entry(at: int, labels: Labels = CART, weight: int = 10_000, **own: str) -> Entry:
    wire = pb.WeightedAddr(addr=tcp_address(f"10.1.0.{at}", 80), weight=weight, metric_labels=own)
    return Entry(f"10.1.0.{at}", 80, labels, wire.SerializeToString(deterministic=True))


def book(*entries: Entry) -> AddressBook:
    return AddressBook((entries,) if entries else ())


def updates(held: AddressBook | None, now: AddressBook) -> list[pb.Update]:
    return [pb.Update.FromString(each) for each in delta(held, now)]


def kinds(held: AddressBook | None, now: AddressBook) -> list[str | None]:
    return [each.WhichOneof("update") for each in updates(held, now)]


def ports(update: pb.Update) -> list[str]:
    found = [*update.add.addrs]
    return [dict(each.metric_labels).get("pod", "") for each in found]


def test_the_first_message_has_everything() -> None:
    (update,) = updates(None, book(entry(1), entry(2)))
    assert len(update.add.addrs) == 2
    assert dict(update.add.metric_labels) == dict(CART)


def test_that_nobody_is_there_is_said_at_once_and_only_at_first() -> None:
    (update,) = updates(None, EMPTY)
    assert update.no_endpoints.exists
    assert delta(EMPTY, EMPTY) == ()
    assert delta(AddressBook(), EMPTY) == ()
    assert kinds(EMPTY, book(entry(1))) == ["add"]
    assert kinds(book(entry(1)), EMPTY) == ["remove"]


def test_only_what_is_new_or_changed_is_added() -> None:
    before = book(entry(1), entry(2), entry(3))
    now = book(entry(1), entry(2, weight=5), entry(4))
    add, remove = updates(before, now)
    assert [each.weight for each in add.add.addrs] == [5, 10_000]
    assert [each.ip.ipv4 & 0xFF for each in remove.remove.addrs] == [3]


def test_a_replacement_never_leaves_a_client_with_nobody() -> None:
    assert kinds(book(entry(1)), book(entry(2))) == ["add", "remove"]


def test_other_labels_of_the_set_are_a_change() -> None:
    (update,) = updates(book(entry(1)), book(entry(1, TILL)))
    assert dict(update.add.metric_labels) == dict(TILL)


def test_labels_that_not_all_have_in_common_go_to_the_addresses() -> None:
    now = book(entry(1, pod="a"), entry(2, TILL, pod="b"), entry(3, TILL, service="own"))
    (update,) = updates(None, now)
    assert dict(update.add.metric_labels) == {"namespace": "shop"}
    assert [dict(each.metric_labels) for each in update.add.addrs] == [
        {"pod": "a", "service": "cart"},
        {"pod": "b", "service": "till"},
        {"service": "own"},
    ]


def test_what_a_client_holds_does_not_depend_on_how_it_was_told() -> None:
    first, both = book(entry(1)), book(entry(1), entry(2, TILL))
    slowly = fold(fold({}, delta(None, first)), delta(first, both))
    assert slowly == fold({}, delta(None, both))


def test_the_bytes_are_those_of_the_message() -> None:
    for now in (book(entry(1, pod="a")), book(entry(1), entry(2, pod="b"))):
        (message,) = delta(None, now)
        parsed = pb.Update.FromString(message)
        assert parsed.SerializeToString(deterministic=True) == message


def test_a_step_is_made_once_for_all() -> None:
    held, now = book(entry(1)), book(entry(2))
    assert delta(held, now) is delta(held, now)
    assert delta(None, now) is delta(None, now)


def test_very_many_addresses_come_in_messages_that_clients_take() -> None:
    big = entry(1, text="x" * 1000)
    some = [big._replace(port=port) for port in range(3 * LARGEST // len(big.encoded))]
    runs = list(batches(some))
    assert [one for run in runs for one in run] == some
    assert all(sum(len(one.encoded) for one in run) <= LARGEST for run in runs)
    assert len(runs) > 1
    assert list(batches([])) == []
    huge = big._replace(encoded=b"x" * (LARGEST + 1))
    assert list(batches([huge, huge])) == [[huge], [huge]]
