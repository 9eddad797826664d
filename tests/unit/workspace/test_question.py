from __future__ import annotations

from agentls.workspace.question import stem, terms


def weights(question: str) -> dict[str, float]:
    return {term.text: term.weight for term in terms(question) if not term.parts}


def test_identifiers_and_quotes_count_most_then_their_parts_then_plain_words() -> None:
    assert weights("Where does getUserName call `read it` in app.main?") == {
        "getusername": 3.0,
        "read it": 3.0,
        "app.main": 3.0,
        "main": 2.0,
        "app": 2.0,
        "user": 1.0,
        "read": 1.0,
        "name": 1.0,
        "call": 0.6,
    }


def test_neighbours_are_also_looked_for_as_one_name() -> None:
    found = terms("Where is the iteration limit?")
    joined = {term.text: term.parts for term in found if term.parts}
    assert joined == {
        "iteration_limit": ("iter", "limit"),
        "iterationlimit": ("iter", "limit"),
        "iteration limit": ("iter", "limit"),
    }


def test_other_forms_of_a_word_share_its_stem() -> None:
    assert {stem(word) for word in ("apply", "applies", "applied", "applying")} == {"appl"}
    assert {stem(word) for word in ("migration", "migrations", "migrate")} == {"migr", "migrat"}
    assert {stem(word) for word in ("cache", "caches", "cached", "caching")} == {"cach"}
    assert stem("swapped") == "swap"
    assert stem("class") == "clas"


def test_stop_words_alone_ask_for_nothing() -> None:
    assert terms("What is this, and why is it so?") == ()
    assert terms("") == ()


def test_what_cannot_be_searched_for_is_left_out() -> None:
    assert weights("`a\0b c\ud800` " + "x" * 5000 + " y\ud800zzz") == {"a b c": 3.0, "zzz": 1.0}


def test_very_long_questions_are_bounded() -> None:
    assert len(terms(" ".join(f"word{number}" for number in range(1000)))) == 40
