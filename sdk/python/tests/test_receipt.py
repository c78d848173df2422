"""Verifies the vectors of package storage/receipt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from writ.receipt import BadSignature, Expired, Keys, Malformed, UnknownKey, parse

VECTORS = json.loads((Path(__file__).parents[3] / "storage/receipt/testdata/vectors.json").read_text())
KEYS = Keys.parse(json.dumps(VECTORS["keys"]))
CLASSES = {"malformed": Malformed, "unknown_key": UnknownKey, "signature": BadSignature, "expired": Expired}


def test_vectors_verify() -> None:
    receipts = [r for batch in VECTORS["chain"] for r in batch["receipts"]]
    assert len(receipts) == 22
    for vector in receipts:
        receipt = parse(vector["receipt"])
        assert receipt.leaf().decode() == vector["leaf"]
        KEYS.verify(receipt, VECTORS["now"])


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda v: v["name"])
def test_vectors_are_refused(vector: dict[str, Any]) -> None:
    text = vector["receipt"]
    with pytest.raises(CLASSES[vector["error"]]):
        KEYS.verify(parse(text if isinstance(text, str) else json.dumps(text)), vector["now"])


def test_mutants_are_refused() -> None:
    """Changes each character of a receipt in two ways: no mutant verifies."""
    text = VECTORS["chain"][3]["receipts"][3]["receipt"]
    n = 0
    for at in range(len(text)):
        for mutant in (text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :], text[:at] + text[at + 1 :]):
            n += 1
            with pytest.raises((Malformed, UnknownKey, BadSignature)):
                KEYS.verify(parse(mutant), VECTORS["now"])
    assert n >= 300


@pytest.mark.parametrize(
    "jwks",
    [
        "[]",
        '{"keys":[]}',
        '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":""}]}',
        '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","d":"x","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}]}',
        '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}',
        '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}]}',
    ],
)
def test_keys_are_refused(jwks: str) -> None:
    with pytest.raises(Malformed):
        Keys.parse(jwks)
