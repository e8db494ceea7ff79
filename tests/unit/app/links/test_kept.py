"""The file of a view: what was written comes back, and nothing else does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.app.links import kept as files
from isthmus.app.links.kept import Found, Kept, Spoilt, path_of, read, sweep, whose, write
from isthmus.app.links.told import Told
from isthmus.model.key import Key
from isthmus.store.contract import MAX_VALUE, Record
from isthmus.store.kubernetes import Access

OWNER = whose(Access("https://east:6443", "a root"))
KEPT = Kept("east", OWNER, Told("eastern", "east.test", "east.local"), answered=True)
KEYS = [Key("services", "shop", f"web-{number}") for number in range(2 * files.PIECE + 1)]
RECORDS = [Record(key, b'{"n":%d}' % number, 7, 3) for number, key in enumerate(KEYS)]


def test_a_view_comes_back_as_it_was(tmp_path: Path) -> None:
    path = path_of(tmp_path, "east")
    write(path, KEPT, RECORDS, 1_000.5)
    held = {record.key: record.value for record in RECORDS}
    assert read(path, "east", OWNER) == Found(KEPT, held, 1_000.5)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    write(path, KEPT, [], 2_000.0)
    assert read(path, "east", OWNER) == Found(KEPT, {}, 2_000.0)


def test_where_there_is_no_file_nothing_is_found(tmp_path: Path) -> None:
    assert read(path_of(tmp_path, "east"), "east", OWNER) is None


@pytest.mark.parametrize(
    ("cluster", "access"),
    [
        ("west", Access("https://east:6443", "a root")),
        ("east", Access("https://west:6443", "a root")),
        ("east", Access("https://east:6443", "another root")),
        ("east", Access("https://east:6443", "a root", server_name="west")),
    ],
)
def test_a_view_of_another_cluster_is_not_taken(
    tmp_path: Path, cluster: str, access: Access
) -> None:
    path = path_of(tmp_path, "east")
    write(path, KEPT, RECORDS, 1.0)
    assert read(path, cluster, whose(access)) is None


def test_another_token_is_of_the_same_cluster() -> None:
    assert whose(Access("https://east:6443", "a root", token="later")) == OWNER


@given(st.data())
def test_what_is_cut_off_or_changed_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = path_of(tmp_path_factory.mktemp("links"), "east")
    write(path, KEPT, RECORDS, 1.0)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        path.write_bytes(whole[:at])
    else:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(Spoilt):
        read(path, "east", OWNER)


@pytest.mark.parametrize(
    "record",
    [
        Record(Key("secrets", "shop", "web"), b"{}", 1, 1),
        Record(KEYS[0], b"x" * (MAX_VALUE + 1), 1, 1),
    ],
)
def test_what_no_view_holds_is_not_taken(tmp_path: Path, record: Record) -> None:
    path = path_of(tmp_path, "east")
    write(path, KEPT, [*RECORDS, record], 1.0)
    with pytest.raises(Spoilt, match="too large"):
        read(path, "east", OWNER)


def test_what_is_larger_than_any_view_is_not_read(tmp_path: Path) -> None:
    path = path_of(tmp_path, "east")
    with path.open("wb") as file:
        file.truncate(files.LARGEST + 1)  # a hole, which takes no room
    with pytest.raises(Spoilt, match="at most"):
        read(path, "east", OWNER)


def test_a_link_leads_to_no_other_file(tmp_path: Path) -> None:
    elsewhere, path = tmp_path / "elsewhere", path_of(tmp_path, "east")
    write(elsewhere, KEPT, RECORDS, 1.0)
    path.symlink_to(elsewhere)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        read(path, "east", OWNER)


def test_files_of_clusters_that_are_not_linked_go(tmp_path: Path) -> None:
    for name in ("east", "west"):
        write(path_of(tmp_path, name), KEPT, RECORDS, 1.0)
    path_of(tmp_path, "east").with_suffix(".new").write_bytes(b"half")
    (tmp_path / "other.txt").write_text("not ours")
    sweep(tmp_path, ["east"])
    assert set(tmp_path.iterdir()) == {path_of(tmp_path, "east"), tmp_path / "other.txt"}
    sweep(tmp_path / "missing", ["east"])
