"""From flags, environment and file to a `ServerConfig`, or to all faults at once.

Two steps: `sources.gather` takes the texts of each setting from every source, with the words that
name their place; then the strongest are read here. A fault is told as `place: what is wrong`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from isthmus.config import values
from isthmus.config.server import InboundPolicy, Listener, LogFormat, ServerConfig, TransportMode
from isthmus.config.settings import ENVIRONMENT_PREFIX, LISTENERS, SETTINGS, Setting, Shape
from isthmus.config.sources import Flags, Given, Layers, gather
from isthmus.config.stores import MemoryStore, StoreConfig, store
from isthmus.config.values import HostPort
from isthmus.errors import Cause, Invalid

T = TypeVar("T")

NOWHERE = Path("/nonexistent")
"""Stands in for a path that could not be read; the fault is told, so nobody sees it."""

NOBODY: tuple[str, HostPort | None] = ("", None)
"""Stands in likewise for a listener."""


def config_file(flags: Flags, environ: Mapping[str, str]) -> Path | None:
    """The file named by `--config` or ISTHMUS_CONFIG, if any.

    Raises:
        Invalid: the name starts with `~` and HOME is not set.
    """
    flag, variable = flags.get("config"), environ.get(ENVIRONMENT_PREFIX + "CONFIG")
    named = flag or variable
    if not named:
        return None
    try:
        return values.path(str(named), environ.get("HOME"))
    except ValueError as error:
        place = "--config" if flag else ENVIRONMENT_PREFIX + "CONFIG"
        raise Invalid(f"{place}: {error}", causes=[Cause(place, str(error))]) from None


def resolve(
    flags: Flags,
    environ: Mapping[str, str],
    file: bytes | None = None,
    *,
    file_name: str = "the config file",
) -> ServerConfig:
    """Make the settings of a server.

    Args:
        flags: what stood on the command line, by `Setting.name`; None or an empty sequence means
            not given.
        environ: the environment; an empty variable counts as not set.
        file: the bytes of the TOML file, whose keys are `Setting.key`.
        file_name: what faults call the file.

    Raises:
        Invalid: with one `Cause` per fault, whose `path` is the flag, the variable or the file and
            its key; the message is all of them in one line.
    """
    faults: list[Cause] = []
    layers = gather(flags, environ, file, file_name, faults)
    config = _build(_Reader(layers, environ.get("HOME"), faults))
    if faults:
        line = "; ".join(f"{fault.path}: {fault.message}" for fault in faults)
        raise Invalid(line, causes=faults)
    return config


class _Reader:
    """Reads one setting after the other; notes each fault and goes on with a stand-in."""

    def __init__(self, layers: Layers, home: str | None, faults: list[Cause]) -> None:
        self._layers = layers
        self._faults = faults
        self._settings = {setting.name: setting for setting in SETTINGS}
        self.home = home

    def one(self, name: str, read: Callable[[str], T], stand_in: T) -> T:
        """A setting with one text; `stand_in` if there is none, or it is wrong."""
        given = self.strongest(name)
        return self._read(given.place, read, given.texts[-1], stand_in) if given.texts else stand_in

    def file(self, name: str) -> Path | None:
        """A setting that names a file."""
        return self.one(name, self._path, None)

    def many(self, name: str, read: Callable[[str], T]) -> tuple[T, ...]:
        """A setting with a list of texts, each read on its own; doubles are dropped."""
        place, texts = self.strongest(name)
        found = (self._read(place, read, text, None) for text in texts)
        return tuple(dict.fromkeys(value for value in found if value is not None))

    def strongest(self, name: str) -> Given:
        """The texts that count, be they the default's, and their place."""
        layers = self._layers[name]
        return layers[0] if layers else _default(self._settings[name])

    def fault(self, place: str, message: str) -> None:
        self._faults.append(Cause(place, message))

    def listeners(self) -> tuple[Listener, ...]:
        """Each surface on its own: the strongest source that names it decides."""
        chosen: dict[str, tuple[str, HostPort | None]] = {}
        for place, texts in (*self._layers["listen"], _default(self._settings["listen"])):
            named: dict[str, tuple[str, HostPort | None]] = {}
            for text in texts:
                name, at = self._read(place, _listener, text, NOBODY)
                named[name] = (place, at)  # within one source the last word counts
            chosen = named | chosen
        self._refuse_doubles(chosen)
        return tuple(Listener(name, at) for name in LISTENERS if (at := chosen[name][1]))

    def _refuse_doubles(self, chosen: Mapping[str, tuple[str, HostPort | None]]) -> None:
        taken: dict[HostPort, str] = {}
        for name in LISTENERS:
            place, at = chosen[name]
            if at is None or at.port == 0:
                continue
            if at in taken:
                self.fault(place, f"{taken[at]} and {name} both want {at}")
            taken[at] = name

    def _path(self, text: str) -> Path | None:
        return values.path(text, self.home)

    def _read(self, place: str, read: Callable[[str], T], text: str, stand_in: T) -> T:
        try:
            return read(text)
        except ValueError as error:
            self.fault(place, str(error))
            return stand_in


def _default(setting: Setting) -> Given:
    if setting.default is None:
        return Given(setting.flag, ())
    several = setting.shape in (Shape.LIST, Shape.PAIRS)
    return Given(setting.flag, tuple(setting.default.split(",")) if several else (setting.default,))


def _listener(text: str) -> tuple[str, HostPort | None]:
    name, equals, at = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is neither NAME=HOST:PORT nor NAME=off")
    if name not in LISTENERS:
        raise ValueError(f"{name!r} is not a listener ({', '.join(LISTENERS)})")
    return name, None if at == "off" else values.host_port(at)


def _build(reader: _Reader) -> ServerConfig:
    cluster = reader.one("cluster", values.cluster_name, "default")
    data_dir = _data_dir(reader, cluster)
    _check_issuer(reader)
    return ServerConfig(
        cluster=cluster,
        context_name=reader.one("context_name", values.context_name, cluster),
        data_dir=data_dir,
        store=_store(reader, cluster, data_dir),
        listeners=reader.listeners(),
        cluster_domain=reader.one("cluster_domain", values.dns_name, ""),
        dns_hosts=reader.many("dns_hosts", values.host_address),
        trust_domain=reader.one("trust_domain", values.dns_name, ""),
        control_plane_namespace=reader.one("control_plane_namespace", values.label, ""),
        cluster_networks=reader.many("cluster_networks", values.network),
        service_cidr=reader.one("service_cidr", values.network, values.NO_NETWORK),
        default_opaque_ports=reader.many("default_opaque_ports", values.port_range),
        default_inbound_policy=reader.one(
            "default_inbound_policy", partial(values.choice, InboundPolicy), InboundPolicy.DENY
        ),
        trust_anchors=reader.file("trust_anchors"),
        issuer_cert=reader.file("issuer_cert"),
        issuer_key=reader.file("issuer_key"),
        ipv6=reader.one("ipv6", values.switch, False),
        h2_upgrade=reader.one("h2_upgrade", values.switch, False),
        transport_mode=reader.one(
            "transport_mode", partial(values.choice, TransportMode), TransportMode.TRANSPARENT
        ),
        zone_weights=reader.one("zone_weights", values.switch, False),
        meshed_http2_params=reader.file("meshed_http2_params"),
        log_format=reader.one("log_format", partial(values.choice, LogFormat), LogFormat.CONSOLE),
    )


def _data_dir(reader: _Reader, cluster: str) -> Path:
    given = reader.file("data_dir")
    if given is not None or reader.strongest("data_dir").texts:
        return given or NOWHERE
    if not reader.home:
        reader.fault("--data-dir", "must be given, since HOME is not set")
        return NOWHERE
    return Path(reader.home) / ".local" / "share" / "isthmus" / cluster


def _store(reader: _Reader, cluster: str, data_dir: Path) -> StoreConfig:
    def read(text: str) -> StoreConfig:
        return store(text, cluster=cluster, data_dir=data_dir, home=reader.home)

    stand_in: StoreConfig = MemoryStore()
    return reader.one("store", read, stand_in)


def _check_issuer(reader: _Reader) -> None:
    """An issuer is a certificate with its key, under anchors that others trust."""
    names = ("trust_anchors", "issuer_cert", "issuer_key")
    anchors, cert, key = (reader.strongest(name) for name in names)
    if cert.texts and not key.texts:
        reader.fault(cert.place, f"needs {key.place} too")
    if key.texts and not cert.texts:
        reader.fault(key.place, f"needs {cert.place} too")
    if cert.texts and not anchors.texts:
        reader.fault(cert.place, f"needs {anchors.place} too")
    if anchors.texts and not (cert.texts or key.texts):
        reader.fault(anchors.place, f"needs {cert.place} and {key.place} too")
