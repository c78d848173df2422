"""Runs the cases of provenance that all clients of writ share, and compares with a search character by character."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import writ
from writ import provenance

CASES = json.loads((Path(__file__).parents[2] / "provenance.json").read_text())["cases"]


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 140


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_provenance(case: dict[str, Any]) -> None:
    p = writ.Provenance(case.get("records"))
    for step in case["session"]:
        if "tool" in step:
            p.result(step["tool"], step["result"], step.get("place", ""))
        else:
            p.user(step["user"])
    assert p.facts(case["arguments"]) == {"fact.source." + name: said for name, said in case["facts"].items()}


def naive(text: str, value: str) -> bool:
    def joins(at: int) -> bool:
        return 0 <= at < len(text) and provenance._joins(text[at])

    for start in range(len(text)):
        end = start + len(value)
        if value and text[start:end] == value and not joins(start - 1):
            if not joins(end) or (text[end] in ".:" and not joins(end + 1)):
                return True
    return False


def test_stands() -> None:
    rng = random.Random(1)
    stood = 0
    for _ in range(50_000):
        text, value = ("".join(rng.choices("ab.:, @1é\u0301\u200d_", k=rng.randint(0, n))) for n in (12, 4))
        want = naive(text, value)
        assert provenance._stand([text], value) == want, (text, value)
        stood += want
    assert stood > 300


def test_the_oldest_results_are_dropped() -> None:
    p = writ.Provenance({"contacts": ["*"]})
    p.user("write to ana@ours.example")
    p.result("contacts", ["eve@ours.example"])
    p.result("read", "first-value")
    for _ in range(4):
        p.result("read", "x " * (provenance._MAX_RESULTS // 8))
    p.result("contacts", ["bob@ours.example"])
    to = ["ana@ours.example", "bob@ours.example", "first-value", "eve@ours.example", "x"]
    assert p.facts({"to": to}) == {"fact.source.to": "user,record,unknown,unknown,unknown"}
    assert p._kept <= provenance._MAX_RESULTS and "eve@ours.example" not in p._records


def test_the_users_words_are_kept() -> None:
    p = writ.Provenance()
    p.user("ana@ours.example")
    p.user("x" * provenance._MAX_WORDS)
    for _ in range(5):
        p.result("read", "y " * (provenance._MAX_RESULTS // 4))
    assert p.facts({"to": "ana@ours.example, xyz"}) == {"fact.source.to": "user,unknown"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (500.0, "500"),
        (98.7, "98.7"),
        (1e20, "1" + "0" * 20),
        (1e21, "1e+21"),
        (0.00001, "0.00001"),
        (1.5e-7, "1.5e-7"),
        (2**70, str(2**70)),
        (True, "true"),
    ],
)
def test_numbers_are_written_alike(value: Any, text: str) -> None:
    p = writ.Provenance()
    p.user(f"it is {text} then")
    assert p.facts({"v": value}) == {"fact.source.v": "user"}


def test_what_is_no_json_is_refused() -> None:
    p = writ.Provenance()
    for value in (float("nan"), {1, 2}, b"x"):
        with pytest.raises((TypeError, ValueError)):
            p.facts({"v": value})
        with pytest.raises((TypeError, ValueError)):
            p.result("read", value)


def test_a_deep_text_of_json_is_a_text() -> None:
    p = writ.Provenance()
    p.result("read", "[" * 200_000 + ' "x-1"')
    p.result("read", "[" * 900 + '"x-2"' + "]" * 900)
    assert p.facts({"v": "x-1,x-2"}) == {"fact.source.v": "text,text"}
