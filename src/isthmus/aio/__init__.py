"""What asyncio lacks: time one can turn by hand, cells, batches, supervision, deadlines.

Not a framework: tasks start in `asyncio.TaskGroup`, locks are asyncio's. Not for the pure rooms
(engine, model, ir, mesh, dialects), which know no loop.

Its words:

- `Clock`: where time comes from. `SystemClock` in the product, `ManualClock` in tests.
- `Latest`: a value and its watchers; a slow watcher skips straight to the newest value.
- `Batch`: a bounded buffer of events, taken many at a time; a full one holds its writer back.
- `Gate`: how many connections may be open, in all and from one address.
- `supervise`: run something again when it fails, with growing pauses.
- `race`, `together`: several tasks; the first failure ends all, and no cancellation is lost.
- `deadline`: the block must end in time, or `isthmus.errors.DeadlineExceeded` says what did not.
- `SniffingListener`: one port for TLS and plain protocols, told apart by the first byte.
"""

from isthmus.aio.batch import Batch
from isthmus.aio.clock import Alarm, Clock, SystemClock, breathe
from isthmus.aio.deadline import Deadline, deadline
from isthmus.aio.gate import Gate, Visit
from isthmus.aio.latest import Latest, Watch
from isthmus.aio.manual import ManualClock
from isthmus.aio.race import race, together
from isthmus.aio.sniff import Arrival, SniffingListener
from isthmus.aio.supervise import Backoff, Log, supervise

__all__ = [
    "Alarm",
    "Arrival",
    "Backoff",
    "Batch",
    "Clock",
    "Deadline",
    "Gate",
    "Latest",
    "Log",
    "ManualClock",
    "SniffingListener",
    "SystemClock",
    "Visit",
    "Watch",
    "breathe",
    "deadline",
    "race",
    "supervise",
    "together",
]
