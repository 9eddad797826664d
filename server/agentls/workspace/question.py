"""Turns a question into the words to search for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_MAX_TERMS = 40
_MIN_CHARS = 3
_MAX_PHRASE_CHARS = 40
_MAX_CHARS = 80
_MAX_QUESTION_CHARS = 10_000

_UNUSABLE = re.compile("[\0\ud800-\udfff]")

_QUOTED = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|'([^'\n]{2,80})'(?!\w)")
_WORD = re.compile(r"\w+(?:[.:/-]+\w+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_IDENTIFIER = re.compile(r".*[a-z][A-Z].*|.*\w[_./:]\w.*|[A-Z]{2,}[a-z]+\w*|.*[a-zA-Z]\d.*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP_WORDS = _words("""
    a about above after again all also although always am an and another any anything are as ask
    at be because been before being below between both but by can cannot come comes could did do
    does doing done during each either every everything explain for from get gets give given go
    goes had has have having he help her here him his how however i if in into is it its itself
    just know let like look made make makes many may me mean means might more most much must my
    need needed needs no nor not now of off on once one only or other our out over own please
    same say see set she should show shows so some something such sure take tell than that the
    their them then there these they thing this those through to too two under until up us use
    used uses using very want was way we well were what when where whether which while who whole
    whose why will with within without would you your
    der die das und oder ist sind wie wo was wird werden ein eine einen einer im in den dem des
    von zu mit welche welcher welches le la les un une des est sont où comment dans el los las
    una es son cómo dónde en
""")
_FAINT = _words("""
    call called check checked code decide decided decides decides define defined determine down
    file files find found function functions handle handled handles happen happens implement
    implemented implementation inside involved line lines list located location part place
    program project repo repository responsible run runs source work works write written class
    method methods module value values work
""")
"""Words that are said of any code: they count, but little."""

_ENDINGS = (
    ("ations", 4),
    ("ation", 4),
    ("ings", 4),
    ("ing", 4),
    ("ies", 3),
    ("ied", 3),
    ("ers", 4),
    ("ed", 4),
    ("es", 4),
    ("er", 5),
    ("ly", 4),
    ("s", 3),
)
"""Endings that other forms of a word lack, and how much must be left."""


@dataclass(frozen=True, slots=True)
class Term:
    """Text to look for, in lower case; how much it tells, 1 for a plain word; the whole word.

    `parts` are the texts of the terms that this one joins.
    """

    text: str
    weight: float
    word: str
    parts: tuple[str, ...] = ()


def terms(question: str) -> tuple[Term, ...]:
    """What to search for, most telling first.

    Quoted text, identifiers and their parts, plain words, and neighbouring words written as one
    name would be (`line_end`, `lineend`). Plain words are cut to a stem, so that `applied` also
    finds `apply` and `application`.
    """
    found: dict[str, Term] = {}

    def add(text: str, weight: float, *parts: str) -> None:
        text = " ".join(text.lower().split())
        short = stem(text) if weight <= 1 else text
        known = found.get(short)
        if _MIN_CHARS <= len(short) <= _MAX_CHARS and (known is None or known.weight < weight):
            found[short] = Term(short, weight, text, parts)

    question = _UNUSABLE.sub(" ", question[:_MAX_QUESTION_CHARS])
    for match in _QUOTED.finditer(question):
        add(next(filter(None, match.groups())), 3.0)
    words = [match[0] for match in _WORD.finditer(question)]
    for word in words:
        if _IDENTIFIER.fullmatch(word):
            add(word, 3.0)
            for piece in re.split(r"[.:/-]+", word):
                if piece.lower() not in _STOP_WORDS | _FAINT:
                    add(piece, 2.0)
    plain = [part.lower() for word in words for part in _PART.findall(word)]
    for word in plain:
        if word not in _STOP_WORDS:
            add(word, 0.6 if word in _FAINT else 1.0)
    for one, other in pairwise(word for word in plain if word not in _STOP_WORDS and len(word) > 1):
        if not {one, other} <= _FAINT and len(one) + len(other) <= _MAX_PHRASE_CHARS:
            for joint in ("_", "", " "):
                add(f"{one}{joint}{other}", 0.6, stem(one), stem(other))
    ranked = sorted(found.values(), key=lambda term: (-term.weight, -len(term.text)))
    return tuple(ranked[:_MAX_TERMS])


def stem(word: str) -> str:
    """The part of an English word that its other forms share."""
    for ending, shortest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            word = word[: -len(ending)]
            break
    if word.endswith(("e", "y")) and len(word) > _MIN_CHARS + 1:
        word = word[:-1]
    if len(word) > _MIN_CHARS + 1 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word
