"""Who is who inside one control plane: its certificate authority, its tokens, its kubeconfig.

What it is: pure issuing and verifying (`authority`, `tokens`), the kubeconfig's text, and the
careful writing of files that hold keys (`files`). What it is not: it opens no socket, asks no store
whether an account still exists (the API server does, through `tokens.require_bound`), and issues no
workload certificates; those need the mesh's trust anchors, not the API's.

Words:
    Authority   a CA certificate with its key; issues leaves that never outlive it.
    Leaf        a certificate chain and its private key, both PEM.
    Keyring     the key that signs ServiceAccount tokens and all keys that verify them.
    Claims      what a verified token says; `bound` names the objects that must still exist.
"""

from isthmus.ca.authority import Authority, Leaf, load_or_make, make
from isthmus.ca.files import private_directory, write_atomic
from isthmus.ca.keys import Rotation, load_keyring
from isthmus.ca.kubeconfig import kubeconfig
from isthmus.ca.tokens import Bound, Claims, Keyring, require_bound

__all__ = [
    "Authority",
    "Bound",
    "Claims",
    "Keyring",
    "Leaf",
    "Rotation",
    "kubeconfig",
    "load_keyring",
    "load_or_make",
    "make",
    "private_directory",
    "require_bound",
    "write_atomic",
]
