"""Who is who: the API's certificate authority and tokens, and the mesh's trust.

What it is: pure issuing and verifying. `authority`, `tokens`, `kubeconfig` are of the API;
`realm`, `chains`, `trust`, `request`, `issue` are of the mesh, whose anchors are not the API's;
`join` invites hosts. `keeper` finds trust material and follows it; `files` and `tls` handle keys
with care. What it is not: it opens no socket, and asks no store: who does hands it a `Shelf`.

Words:
    Authority   a CA certificate with its key; issues leaves that never outlive it.
    Leaf        a certificate chain and its private key, both PEM.
    Keyring     the key that signs ServiceAccount tokens and all keys that verify them.
    Claims      what a verified token says; `bound` names the objects that must still exist.
    Realm       the settings that all identities of a mesh end in; makes and reads their names.
    Trust       anchors, issuer and its key: read, checked, immutable.
    Keeper      holds the Trust in use, and makes the first one where nobody brought any.
    Shelf       where trust material lies: files, or objects.
    Invitation  what a join token carries.
"""

from isthmus.ca.authority import Authority, Leaf, load_or_make, make
from isthmus.ca.files import private_directory, write_atomic
from isthmus.ca.issue import Issued, issue, server_leaf
from isthmus.ca.join import Invitation
from isthmus.ca.keeper import Files, Keeper, Shelf
from isthmus.ca.keys import Rotation, load_keyring
from isthmus.ca.kubeconfig import kubeconfig
from isthmus.ca.realm import AUDIENCE, Account, Realm
from isthmus.ca.tokens import Bound, Claims, Keyring, require_bound
from isthmus.ca.trust import Material, Trust

__all__ = [
    "AUDIENCE",
    "Account",
    "Authority",
    "Bound",
    "Claims",
    "Files",
    "Invitation",
    "Issued",
    "Keeper",
    "Keyring",
    "Leaf",
    "Material",
    "Realm",
    "Rotation",
    "Shelf",
    "Trust",
    "issue",
    "kubeconfig",
    "load_keyring",
    "load_or_make",
    "make",
    "private_directory",
    "require_bound",
    "server_leaf",
    "write_atomic",
]
