"""One API server, and how to prove to it who asks."""

from __future__ import annotations

import ssl
import tempfile

import msgspec

from isthmus.errors import BadRequest


class Access(msgspec.Struct, frozen=True):
    """`server` is `https://host[:port][/path]`; PEM texts and the token are "" where there is none.

    Without `authority` the machine's own roots count. `server_name` is what the server's
    certificate must bear instead of the host.
    """

    server: str
    authority: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""

    def __repr__(self) -> str:
        """Without secrets: errors and logs show values."""
        return f"Access({self.server!r})"

    def context(self) -> ssl.SSLContext:
        """TLS to this server; BadRequest if certificates or key cannot be read."""
        try:
            made = ssl.create_default_context(cadata=self.authority or None)
            if self.certificate:
                self._show(made)
        except (ssl.SSLError, ValueError) as fault:
            raise BadRequest(f"the certificates cannot be used: {fault}") from None
        return made

    def _show(self, context: ssl.SSLContext) -> None:
        with tempfile.NamedTemporaryFile() as chain:  # OpenSSL reads keys from files alone
            chain.write(f"{self.certificate}\n{self.key}".encode())
            chain.flush()
            context.load_cert_chain(chain.name, password=_no_password)


def _no_password() -> str:
    """An encrypted key would otherwise ask the terminal."""
    return ""
