"""The stream of one client, as a conversation: what is true, what is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.serve.linkerd import Stream

Held = frozenset[str]


def steps(held: Held | None, now: Held) -> tuple[bytes, ...]:
    """New members in one message, then those that went; a first message in any case."""
    old = held or frozenset()
    added, gone = sorted(now - old), sorted(old - now)
    messages = [("+" + ",".join(added)).encode()] if added or held is None else []
    return (*messages, ("-" + ",".join(gone)).encode()) if gone else tuple(messages)


def make() -> Stream[Held]:
    return Stream(steps)


def drain(stream: Stream[Held]) -> list[bytes]:
    written = []
    while (message := stream.next()) is not None:
        written.append(message)
    return written


def test_nothing_is_written_before_anything_is_known() -> None:
    assert make().next() is None


def test_the_first_message_is_written_even_if_nobody_is_there() -> None:
    stream = make()
    stream.learn(frozenset())
    assert drain(stream) == [b"+"]


def test_a_change_is_written_once() -> None:
    stream = make()
    stream.learn(frozenset("ab"))
    assert drain(stream) == [b"+a,b"]
    stream.learn(frozenset("bc"))
    assert drain(stream) == [b"+c", b"-a"]
    assert drain(stream) == []


def test_an_equal_value_is_silent() -> None:
    stream = make()
    stream.learn(frozenset("a"))
    drain(stream)
    stream.learn(frozenset(list("a")))
    assert drain(stream) == []


def test_what_a_client_did_not_take_is_skipped() -> None:
    stream = make()
    stream.learn(frozenset("a"))
    drain(stream)
    for each in "bcdef":
        stream.learn(frozenset(each))
    assert drain(stream) == [b"+f", b"-a"]


def test_there_and_back_while_a_client_does_not_read_is_silent() -> None:
    stream = make()
    first = frozenset("a")
    stream.learn(first)
    drain(stream)
    stream.learn(frozenset("b"))
    stream.learn(first)
    assert drain(stream) == []


def test_a_step_that_has_begun_is_finished_first() -> None:
    stream = make()
    stream.learn(frozenset("a"))
    drain(stream)
    stream.learn(frozenset("b"))
    assert stream.next() == b"+b"
    stream.learn(frozenset("a"))
    assert drain(stream) == [b"-a", b"+a", b"-b"]


def test_a_value_that_says_nothing_changes_nothing() -> None:
    stream = make()
    stream.learn(None)
    assert drain(stream) == []
    stream.learn(frozenset("a"))
    stream.learn(None)  # before the client took the former
    assert drain(stream) == []
    stream.learn(frozenset("a"))
    assert drain(stream) == [b"+a"]
    stream.learn(None)
    assert drain(stream) == []


def test_nothing_is_written_after_the_end() -> None:
    stream = make()
    stream.learn(frozenset("a"))
    drain(stream)
    stream.learn(frozenset("b"))
    assert stream.next() == b"+b"
    stream.end()
    assert stream.over
    assert drain(stream) == []
    stream.learn(frozenset("c"))
    assert drain(stream) == []


@given(st.lists(st.tuples(st.frozensets(st.sampled_from("abcd")), st.integers(0, 3))))
def test_a_client_that_folds_what_it_gets_arrives_at_the_truth(
    history: list[tuple[Held, int]],
) -> None:
    """Whatever becomes true, and however slowly the client takes it."""
    stream, held, last = make(), set[str](), frozenset[str]()

    def take(most: int) -> None:
        for _ in range(most):
            message = stream.next()
            if message is None:
                return
            sign, names = message[:1], [n for n in message[1:].decode().split(",") if n]
            (held.update if sign == b"+" else held.difference_update)(names)

    for last, reads in history:
        stream.learn(last)
        take(reads)
    take(100)
    assert held == last
