"""Whatever flags, environment and file hold: settings or a list of faults, never another error."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.config import SETTINGS, ServerConfig, resolve
from isthmus.errors import Invalid

WORDS = st.sampled_from(
    ["", "on", "0", "east", "10.0.0.0/8", "::/0", "kube=off", "kube=127.0.0.1:0", "dns=[::1]:53",
     "25,26", "1-2", "sqlite:", "etcd://a:1/b", "~", "~/x", "deny", "json", "\x00", "é", "a" * 5000]
)  # fmt: skip
TEXTS = st.one_of(WORDS, st.text(max_size=30))
NAMES = st.sampled_from([setting.name for setting in SETTINGS])
KEYS = st.sampled_from([setting.key for setting in SETTINGS])
VARIABLES = st.sampled_from(["HOME", *(setting.variable for setting in SETTINGS)])
FLAGS = st.dictionaries(
    NAMES, st.one_of(st.none(), st.booleans(), TEXTS, st.lists(TEXTS, max_size=4).map(tuple))
)
TOML_VALUES = st.one_of(
    WORDS.filter(str.isprintable).map(lambda word: f'"{word}"'),
    st.sampled_from(["true", "1", "-0", "1.5", "nan", "1979-05-27", "[]", "[[1]]", "{kube='off'}",
                     "{a=[1]}", "9" * 5000, "0x" + "f" * 5000]),
)  # fmt: skip
FILES = st.one_of(
    st.none(),
    st.binary(max_size=60),
    st.dictionaries(KEYS, TOML_VALUES, max_size=5).map(
        lambda pairs: "\n".join(f"{key} = {value}" for key, value in pairs.items()).encode()
    ),
)


@given(FLAGS, st.dictionaries(VARIABLES, TEXTS), FILES)
@example({}, {"HOME": "/h"}, b"cluster = " + b"9" * 5000)
@example({}, {"HOME": "/h"}, b'"two\\nlines" = 1')
@example({}, {"HOME": "/h"}, b"cluster = 2020-13-45")
def test_settings_or_faults(
    flags: dict[str, str | bool | tuple[str, ...] | None],
    environ: dict[str, str],
    file: bytes | None,
) -> None:
    try:
        config = resolve(flags, environ, file)
    except Invalid as fault:
        assert fault.causes
        assert len(str(fault).splitlines()) == 1
        assert all(cause.path and cause.message for cause in fault.causes)
    else:
        assert isinstance(config, ServerConfig)
        assert config.cluster
        taken = [one.at for one in config.listeners if one.at.port]
        assert len(taken) == len(set(taken))
