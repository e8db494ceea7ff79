"""The one task that writes the incremental database, and the async way to watch it.

What it is: the bridge between stores, which speak of bytes and revisions in their own time, and
the engine, which knows neither asyncio nor objects. What it is not: it holds no meaning (that is
`mesh`) and writes nothing back (that are controllers).

Words:
    Board         owns the Database; one Feed per cluster writes into it.
    Feed          absorbs one store: everything as ONE revision first, then its changes.
    Intake        where objects of one resource go: a table, and the maker of a row from bytes.
    Unreadable    an object whose bytes make no row; it alone is left out.
    LiveKinds     the kinds that are served now, those of users' definitions too.
    Subscription  many watched cells of one owner, awaited.
    Following     one watched cell, told by a call.

A row never says more than its object: what the store calls its revision stays with the feed.
"""

from isthmus.board.board import Board, Health
from isthmus.board.feed import Feed
from isthmus.board.following import Following
from isthmus.board.kinds import LiveKinds
from isthmus.board.subscription import Subscription
from isthmus.board.tables import MEMBERS, UNREADABLE, Intake, Intakes, Member, Unreadable

__all__ = [
    "MEMBERS",
    "UNREADABLE",
    "Board",
    "Feed",
    "Following",
    "Health",
    "Intake",
    "Intakes",
    "LiveKinds",
    "Member",
    "Subscription",
    "Unreadable",
]
