"""Creates the parts of a ring and connects them, without starting anything."""

from .calls import Calls
from .founding import Founding
from .keeper import RingKeeper
from .start import Create, RingStart, Role
from .store import ReadableRing, StoredDocument
from .sync import RingSync
from .view import RingView
from .wraps import KeyWraps
from .writer import RingWriter


def create_keeper(
    view: RingView,
    calls: Calls,
    wraps: KeyWraps,
    store: ReadableRing,
    *,
    role: Role,
    create: Create,
) -> RingKeeper:
    stored = StoredDocument(view, calls, store)
    sync = RingSync(view, wraps, stored)
    writer = RingWriter(view, wraps, stored)
    founding = Founding(view, calls, stored, writer)
    start = RingStart(
        view=view,
        calls=calls,
        wraps=wraps,
        stored=stored,
        sync=sync,
        writer=writer,
        founding=founding,
        role=role,
        create=create,
    )
    return RingKeeper(view, calls, wraps, store, start, founding)
