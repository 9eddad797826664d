"""Turns a question into the words to search for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_TERMS = 24
_MIN_CHARS = 3

_QUOTED = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|'([^'\n]{2,80})'(?!\w)")
_WORD = re.compile(r"\w+(?:[.:/-]\w+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_IDENTIFIER = re.compile(r".*[a-z][A-Z].*|.*\w[_./:]\w.*|[A-Z]{2,}[a-z]+\w*|.*[a-zA-Z]\d.*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP_WORDS = _words(
    """
    a about above add after again all also although always am an and another any anything are
    as ask at back be because been before being below between both but by call called can
    cannot check code come comes could decide decides define defined determine did do does
    doing done down during each either every everything explain file files find for from
    function functions get gets give given go goes had handle handled handles happen happens
    has have having he help her here him his how however i if implement implemented
    implementation in inside into involved is it its itself just know let like line lines list
    located location look made make makes many may me mean means might more most much must my
    need needed needs no nor not now of off on once one only or other our out over own part
    place please project program repo repository responsible run same say see set she should
    show shows so some something source such sure take tell than that the their them then
    there these they thing this those through to too two under until up us use used uses using
    very want was way we well were what when where whether which while who whole whose why
    will with within without work works would write you your der die das und oder ist sind wie
    wo was wird werden ein eine einen einer im in den dem des von zu mit welche welcher
    welches datei le la les un une des est sont où comment dans el los las una es son cómo
    dónde en
    """
)
_WEAK = _words(
    """
    code file files function functions inside line lines list project run set source call
    check
    """
)
"""Stop words that come back when nothing else is left."""


@dataclass(frozen=True, slots=True)
class Term:
    """Lower-case text to look for, and how much it tells: 1 for a plain word."""

    text: str
    weight: float


def terms(question: str) -> tuple[Term, ...]:
    """What to search for: quoted text and identifiers first, then their parts and plain words.

    Plain words are cut to a stem, so that `applied` also finds `apply` and `application`.
    """
    found: dict[str, float] = {}

    def add(text: str, weight: float) -> None:
        text = text.strip().lower()
        if len(text) >= _MIN_CHARS or (len(text) == 2 and weight > 1):
            found[text] = max(found.get(text, 0.0), weight)

    for match in _QUOTED.finditer(question):
        add(next(filter(None, match.groups())), 3.0)
    words = [match[0] for match in _WORD.finditer(question)]
    for word in words:
        if _IDENTIFIER.fullmatch(word):
            add(word, 3.0)
            for piece in re.split(r"[.:/-]+", word):
                if piece.lower() not in _STOP_WORDS:
                    add(piece, 2.0)
    for word in words:
        for part in _PART.findall(word):
            if part.lower() not in _STOP_WORDS:
                add(stem(part), 1.0)
    if not found:
        for word in words:
            if word.lower() in _WEAK:
                add(stem(word), 1.0)
    ranked = sorted(found.items(), key=lambda item: (-item[1], -len(item[0])))[:_MAX_TERMS]
    return tuple(Term(text, weight) for text, weight in ranked)


def stem(word: str) -> str:
    """The part of an English word that its other forms share."""
    word = word.lower()
    for ending, shortest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            word = word[: -len(ending)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word


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
    ("e", 4),
    ("y", 4),
)
