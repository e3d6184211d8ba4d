"""Files in which rosbag2 keeps a bag in a database (sqlite3), whole or cut."""

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import quote

import apsw

from softcr_runtime.bags.mcap_files import RawMessage
from softcr_runtime.bags.unpacking import LARGEST_MESSAGE, Allowance, Damaged, unpacked_message

_TABLES = "topics", "messages"
_BLOB_AND_MORE = LARGEST_MESSAGE + (1 << 20)  # of a row [byte]


class SqliteFile:
    """What can be read of a database.

    Attributes:
        counts: messages by topic and type.
        first, last: time of the first and of the last message [ns].
        seen: how many messages were found.
        told: 0: a database does not say how many messages it holds.
        damage: what is wrong, each in words that go on from the file's name.
        checked: whether checksums cover what was found: a database has none.
    """

    told = 0
    checked = False

    def __init__(self, path: Path):
        """Look a file through.

        Raises:
            OSError: it cannot be read.
        """
        self._path = path
        self.counts: Counter[tuple[str, str]] = Counter()
        self.damage: list[str] = []
        self.first = self.last = 0
        for message in self._read(self.damage, None):
            self.counts[message.topic, message.type] += 1
            self.first = min(self.first or message.time, message.time)
            self.last = max(self.last, message.time)
        self.seen = self.counts.total()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[RawMessage]:
        """The messages of some topics, or of all, in the order they were written.

        Raises:
            OSError: the file cannot be read.
        """
        yield from self._read([], topics)

    def _read(self, damage: list[str], topics: Collection[str] | None) -> Iterator[RawMessage]:
        self._path.open("rb").close()  # sqlite would not say why
        allowance = Allowance(self._path.stat().st_size)
        problem, unknown, packed = "cannot be read", 0, dict[str, None]()
        try:
            database = _opened(self._path)
            named = {
                number: (name, type_)
                for number, name, type_ in database.execute("SELECT id, name, type FROM topics")
                if isinstance(name, str) and isinstance(type_, str)
            }
            problem = "was not finished"
            rows = database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY id")
            for number, time, payload in rows:
                name, type_ = named.get(number, (None, ""))
                if name is None or not isinstance(time, int) or not isinstance(payload, bytes):
                    unknown += 1
                elif topics is None or name in topics:
                    try:
                        plain = unpacked_message(payload, allowance)
                    except Damaged as damaged:
                        packed[str(damaged)] = None
                        continue
                    yield RawMessage(name, type_, time, plain)
        except Damaged as damaged:
            damage.append(str(damaged))
        except apsw.Error as error:
            damage.append(f"{problem} ({error})")
        damage += packed
        if unknown:
            damage.append(f"does not say what {unknown} of its messages are")


def _opened(path: Path) -> apsw.Connection:
    """A connection that reads tables and runs nothing that the file brings along.

    Raises:
        Damaged: what should be a table is a view, or is computed.
        apsw.Error: it is no database.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    if path.with_name(f"{path.name}-wal").exists():
        # what a killed recorder left in a write-ahead log is read with the file
        database = apsw.Connection(f"file:{quote(str(path))}?mode=ro", flags=flags)
    else:
        # on a read-only disk a file opens only when it is declared immutable
        uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
        database = apsw.Connection(uri, flags=flags, vfs=_WHOLE_PAGES)
    database.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    database.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    database.limit(apsw.SQLITE_LIMIT_LENGTH, _BLOB_AND_MORE)
    # otherwise sqlite refuses a whole file because its end is missing
    database.execute("PRAGMA writable_schema = ON")
    for table in _TABLES:
        _refuse_what_is_no_table(database, table)
    return database


def _refuse_what_is_no_table(database: apsw.Connection, table: str) -> None:
    rows = database.execute("SELECT type, sql FROM sqlite_master WHERE lower(name) = ?", (table,))
    for kind, sql in rows:
        if kind != "table" or not str(sql).lstrip().upper().startswith("CREATE TABLE"):
            raise Damaged(f"cannot be read ({table} is not a table)")
    columns = database.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))
    if any(hidden for _, hidden in columns):
        raise Damaged(f"cannot be read ({table} has computed columns)")


class _WholePagesFile(apsw.VFSFile):
    """A file without the part of a page at its end, which sqlite would fill up with zeros."""

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]):
        super().__init__("", name, flags)

    def xFileSize(self) -> int:
        size = super().xFileSize()
        (page,) = struct.unpack(">H", self.xRead(2, 16)) if size >= 18 else (1,)
        page = 65536 if page == 1 else page  # file format 2, section 1.3.2
        return size - size % page if page else size


class _WholePages(apsw.VFS):
    def __init__(self, name: str):
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _WholePagesFile(name, flags)


_WHOLE_PAGES = "softcr_whole_pages"
_VFS = _WholePages(_WHOLE_PAGES)  # sqlite knows it as long as it lives
