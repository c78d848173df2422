"""Compares the types that are written by hand with those that openapi.yaml leads to."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import writ
from writ import _api

#: Members of an intent that are not sent in it: the id's source, and a member beside the intent.
BESIDE = {"key", "session_id"}
#: What only describes a problem, and the bytes of a refused decision. They stay in the answer.
LEFT = {"type", "title", "instance", "ok", "decision_id", "reasons", "audit_digest", "receipt"}


@pytest.mark.parametrize(
    ("own", "schema", "more"),
    [
        (writ.Intent, _api.ActionIntent, BESIDE),
        (writ.Cost, _api.Cost, set()),
        (writ.Receipt, _api.Receipt, set()),
        (writ.FieldError, _api.FieldError, set()),
    ],
)
def test_members(own: Any, schema: Any, more: set[str]) -> None:
    assert {f.name for f in fields(own)} - more == set(schema.__annotations__)


def test_members_of_a_problem() -> None:
    problem = writ.Problem(503)
    assert {name for name in vars(problem) if name[0] != "_"} == set(_api.Problem.__annotations__) - LEFT
