"""The documents an editor holds open, as its notifications describe them.

Owns their text and versions. pygls's own mirror is not used: it splits lines where no editor does
(form feed, NEL, U+2028), after which incremental changes corrupt it. Knows nothing of requests.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from agentls.lsp.positions import Encoding, Range, document_lines, replace_range

_log = logging.getLogger(__name__)

LONE_CR = "it holds a carriage return inside a line, which this editor counts otherwise"

_LONE_CR = re.compile(r"\r(?!\n)")

Change = tuple[Range | None, str]
"""A new text for a range; for the whole document where the range is None."""

Listener = Callable[["Document | None"], None]
"""Called after each change of one document, with None once it is closed."""


@dataclass(slots=True)
class Document:
    """One open document.

    `path` is where its URI points, links included, None for a document that is no file. `broken`
    says why the text can no longer be trusted; it is empty as long as it can. `has_lone_cr` is
    whether a carriage return came in that no line feed follows.
    """

    uri: str
    path: Path | None
    version: int
    lines: list[str]
    saved_version: int
    broken: str = ""
    has_lone_cr: bool = False
    _text: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The whole text."""
        if self._text is None:
            self._text = "".join(self.lines)
        return self._text

    @property
    def unsaved(self) -> bool:
        """Whether it changed since it was opened or saved."""
        return self.version != self.saved_version

    def _apply(self, changes: Sequence[Change], encoding: Encoding) -> None:
        self._text = None
        for where, text in changes:
            came_in = _LONE_CR.search(text) is not None
            self.has_lone_cr = came_in or (self.has_lone_cr and where is not None)
            if where is None:
                self.lines = document_lines(text)
            else:
                replace_range(self.lines, where, text, encoding)


class Mirror:
    """All open documents, by URI."""

    def __init__(self, to_path: Callable[[str], Path | None]) -> None:
        """`to_path` turns a URI into a path, or None when it does not name a file.

        `encoding` and `splits_at_cr` are how the editor counts positions (`lsp/client.py`).
        """
        self.encoding: Encoding = "utf-16"
        self.splits_at_cr = True
        self._to_path = to_path
        self._documents: dict[str, Document] = {}
        self._listeners: dict[str, list[Listener]] = {}

    def get(self, uri: str) -> Document | None:
        """An open document by the URI the editor opened it with."""
        return self._documents.get(_key(uri))

    def text_of(self, uri: str) -> str | None:
        """The text of an open document; None when it is not open, or not known."""
        document = self.get(uri)
        return None if document is None or document.broken else document.text

    def counts_otherwise(self, document: Document) -> bool:
        """Whether the editor's positions in a document mean something else than ours."""
        return document.has_lone_cr and not self.splits_at_cr

    def at(self, path: Path) -> tuple[Document, ...]:
        """The open documents of a file: more than one when it is open through a link as well.

        `path` is absolute and free of links. Where a document's own path leads is looked up anew
        each time, since links may have changed since it was opened.
        """
        return tuple(
            document
            for document in self._documents.values()
            if document.path is not None
            and (document.path == path or document.path.resolve() == path)
        )

    def open(self, uri: str, version: int, text: str) -> None:
        """Take in a document; one that is open already is replaced."""
        document = Document(
            uri,
            self._to_path(uri),
            version,
            document_lines(text),
            saved_version=version,
            has_lone_cr=_LONE_CR.search(text) is not None,
        )
        self._documents[_key(uri)] = document
        self._tell(uri, document)

    def change(self, uri: str, version: int, changes: Sequence[Change]) -> None:
        """Apply changes, in order.

        A version that is not newer means that notifications were lost or came out of order: the
        text is then not trusted until a newer change brings the whole of it, or a reopening.
        """
        document = self.get(uri)
        if document is None:
            _log.warning("a change of a document that is not open was ignored")
            return
        if version <= document.version:
            self.distrust(uri, f"version {version} came after version {document.version}")
            return
        document.version = version
        if document.broken:
            if all(where is not None for where, _ in changes):
                return
            document.broken = ""
        document._apply(changes, self.encoding)
        if self.counts_otherwise(document) and any(where is not None for where, _ in changes):
            self.distrust(uri, LONE_CR)
            return
        self._tell(uri, document)

    def save(self, uri: str) -> None:
        """Note that the text is on disk."""
        if document := self.get(uri):
            document.saved_version = document.version

    def close(self, uri: str) -> None:
        """Forget a document."""
        if self._documents.pop(_key(uri), None) is not None:
            self._tell(uri, None)

    def distrust(self, uri: str, reason: str) -> None:
        """Mark a document whose text can no longer be known."""
        if document := self.get(uri):
            _log.warning("an open document is no longer in step with the editor: %s", reason)
            document.broken = reason
            self._tell(uri, document)

    @contextmanager
    def listening(self, uri: str, listener: Listener) -> Iterator[None]:
        """Have `listener` called for each change of a document while the block runs."""
        key = _key(uri)
        self._listeners.setdefault(key, []).append(listener)
        try:
            yield
        finally:
            self._listeners[key].remove(listener)
            if not self._listeners[key]:
                del self._listeners[key]

    def _tell(self, uri: str, document: Document | None) -> None:
        for listener in tuple(self._listeners.get(_key(uri), ())):
            listener(document)


def _key(uri: str) -> str:
    """The same for all spellings of a URI: an editor may escape more in one message than before."""
    return unquote(uri, errors="surrogateescape")
