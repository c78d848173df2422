"""Reads and verifies receipts offline, with the public keys that the caller trusts.

The format is described in the package storage/receipt of writ.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .errors import WritError

ALLOW = "allow"
DENY = "deny"
APPROVAL_REQUIRED = "approval_required"

_MAX_SAFE = 2**53 - 1


class ReceiptError(WritError):
    """A receipt that must not be relied on."""


class Malformed(ReceiptError):
    """The input is not a receipt."""


class UnknownKey(ReceiptError):
    """No trusted key has the kid."""


class BadSignature(ReceiptError):
    """The key did not sign this content. The content was forged or changed."""


class Expired(ReceiptError):
    """The receipt is genuine but expired."""


@dataclass(frozen=True)
class Receipt:
    """The signed outcome of a decision."""

    decision: str
    decision_id: str
    digest: str
    exp: int  # unix seconds
    sig: str
    kid: str

    def leaf(self) -> bytes:
        """Returns the canonical JSON that the server signs."""
        members: dict[str, Any] = {
            "decision": self.decision,
            "decision_id": self.decision_id,
            "digest": self.digest,
            "exp": self.exp,
            "kid": self.kid,
        }
        return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def parse(data: str | bytes) -> Receipt:
    """Reads a receipt. It must have exactly its six members, each once."""
    return receipt_of(strict_json(data))


def receipt_of(value: Any) -> Receipt:
    """Reads a receipt from JSON that ``strict_json`` has read."""
    if not isinstance(value, dict):
        raise Malformed("the receipt is not an object")
    names = {"decision", "decision_id", "digest", "exp", "sig", "kid"}
    if set(value) != names:
        raise Malformed(f"the receipt has other members than {', '.join(sorted(names))}")
    texts = [value[n] for n in names - {"exp"}]
    if not all(isinstance(t, str) for t in texts) or type(value["exp"]) is not int:
        raise Malformed("a member of the receipt has another type")
    receipt = Receipt(**value)
    _check(receipt)
    return receipt


def _check(r: Receipt) -> None:
    hexadecimal = r.digest.removeprefix("sha256:")
    if r.decision not in (ALLOW, DENY, APPROVAL_REQUIRED):
        raise Malformed("the receipt has an unknown decision")
    if not r.decision_id:
        raise Malformed("the receipt has no decision_id")
    if len(hexadecimal) != 64 or len(r.digest) != 71 or hexadecimal.strip("0123456789abcdef"):
        raise Malformed("the digest is not sha256: and 64 lower-case hex digits")
    if not 0 <= r.exp <= _MAX_SAFE:
        raise Malformed("exp is out of range")
    if not 1 <= len(r.kid.encode()) <= 256:
        raise Malformed("kid is empty or too long")


def canonical(value: Any) -> str:
    """Returns the canonical JSON (RFC 8785) of texts, integers, lists and objects."""
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: str(name).encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(n)}:{canonical(value[n])}" for n in names) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


#: The highest version of a policy that a receipt is tried with. An answer does not say its version.
_MAX_VERSION = 10_000


def version_of(r: Receipt, intent: Mapping[str, Any], payload: Mapping[str, Any], known: int = 1) -> int:
    """Returns the version of the policy under which ``r`` is the receipt of an intent, or 0 if it is of another one.

    ``intent`` has the members as they were sent, with UUIDs in lower case. ``payload`` has the members of the
    payload that the receipt and the intent lack. ``known`` is a version that is tried first.
    """
    digest = "sha256:" + hashlib.sha256(canonical(intent).encode()).hexdigest()
    whole = {
        **{name: value for name, value in payload.items() if value},
        "decision": r.decision,
        "decision_id": r.decision_id,
        "exp": r.exp,
        "intent_digest": digest,
        "intent_id": intent["intent_id"],
        "policy_id": intent["policy_id"],
    }
    reasons = canonical(whole.pop("reasons", ()))
    head = hashlib.sha256(f'{canonical(whole)[:-1]},"policy_version":'.encode())
    tail = f',"reasons":{reasons}}}'.encode()
    for version in chain(range(known, _MAX_VERSION + 1), range(1, known)):
        tried = head.copy()
        tried.update(str(version).encode() + tail)
        if r.digest == "sha256:" + tried.hexdigest():
            return version
    return 0


class Keys:
    """A set of trusted public keys, by key id."""

    def __init__(self, by_id: Mapping[str, Ed25519PublicKey]) -> None:
        self._by_id = dict(by_id)

    def __contains__(self, kid: object) -> bool:
        return kid in self._by_id

    @classmethod
    def parse(cls, jwks: str | bytes) -> Keys:
        """Reads a JSON Web Key Set. It takes the Ed25519 keys that may verify and ignores others."""
        doc = strict_json(jwks)
        keys = doc.get("keys") if isinstance(doc, dict) else None
        if not isinstance(keys, list):
            raise Malformed("the key set has no array keys")
        by_id: dict[str, Ed25519PublicKey] = {}
        for jwk in keys:
            _add_key(by_id, jwk)
        if not by_id:
            raise Malformed("the key set has no Ed25519 key to verify with")
        return cls(by_id)

    def verify(self, r: Receipt, now: float | None = None) -> None:
        """Raises unless the key that ``r`` names has signed ``r``, and ``r`` is in force at ``now``."""
        _check(r)
        sig = _decode(r.sig, "sig")
        if len(sig) < 137 or (len(sig) - 137) % 32 or sig[0] != 1:
            raise Malformed("sig has another length or version")
        size, index = int.from_bytes(sig[25:29], "big"), int.from_bytes(sig[133:137], "big")
        proof = [sig[at : at + 32] for at in range(137, len(sig), 32)]
        root = _root(hashlib.sha256(b"\0" + r.leaf()).digest(), index, size, proof)
        key = self._by_id.get(r.kid)
        if key is None:
            raise UnknownKey("no trusted key has the receipt's kid")
        try:
            key.verify(sig[69:133], b"writ/head/v1\n" + sig[1:69] + root)
        except InvalidSignature:
            raise BadSignature("the receipt's signature does not verify") from None
        if (time.time() if now is None else now) >= r.exp:
            raise Expired("the receipt has expired")


#: The y coordinates of the points of small order, with which anybody can sign.
_SMALL_ORDER = frozenset(
    {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    }
)


def _add_key(by_id: dict[str, Ed25519PublicKey], jwk: Any) -> None:
    if not isinstance(jwk, dict):
        raise Malformed("a key of the key set is not an object")
    if "d" in jwk:
        raise Malformed("the key set has a private key (member d)")
    ops = jwk.get("key_ops", ["verify"])
    verifies = isinstance(ops, list) and "verify" in ops and jwk.get("use", "sig") == "sig"
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not verifies:
        return
    kid, x = jwk.get("kid"), jwk.get("x")
    if jwk.get("alg", "EdDSA") not in ("EdDSA", "Ed25519"):
        raise Malformed("an Ed25519 key has another alg")
    if not isinstance(kid, str) or not 1 <= len(kid.encode()) <= 256 or kid in by_id:
        raise Malformed("a key has no kid, or the kid of another key")
    public = _decode(x, "x") if isinstance(x, str) else b""
    y = public[:31] + bytes([public[31] & 0x7F]) if len(public) == 32 else b""
    if not y or y.hex() in _SMALL_ORDER:
        raise Malformed("a public key has another length or small order")
    by_id[kid] = Ed25519PublicKey.from_public_bytes(public)


def _decode(text: str, name: str) -> bytes:
    """Decodes base64url without padding. It accepts one spelling alone."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise Malformed(f"{name} is not base64url") from None
    if base64.urlsafe_b64encode(data).rstrip(b"=") != text.encode():
        raise Malformed(f"{name} is not canonical base64url without padding")
    return data


def _root(node: bytes, index: int, size: int, proof: Iterable[bytes]) -> bytes:
    """Folds a leaf's hash with its inclusion proof (RFC 9162, 2.1.3)."""
    if index >= size:
        raise Malformed("the index is not below the size")
    rest = list(proof)
    width = size
    while width > 1:
        if index ^ 1 < width:
            if not rest:
                raise Malformed("the proof is too short")
            pair = rest.pop(0) + node if index & 1 else node + rest.pop(0)
            node = hashlib.sha256(b"\1" + pair).digest()
        index, width = index // 2, (width + 1) // 2
    if rest:
        raise Malformed("the proof is too long")
    return node


def strict_json(data: str | bytes) -> Any:
    """Reads one I-JSON value (RFC 7493). It refuses what two readers could read in two ways."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        text.encode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_members, parse_int=_integer, parse_constant=_refuse
        )
        _refuse_surrogates(value)
    except (ValueError, RecursionError) as e:
        raise Malformed(f"it is not JSON that can be read in one way: {type(e).__name__}") from None
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


def _integer(text: str) -> int:
    if text == "-0" or len(text) > 20:
        raise ValueError("an integer with another spelling")
    return int(text)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _refuse_surrogates(value: Any) -> None:
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict):
        for name, member in value.items():
            name.encode("utf-8")
            _refuse_surrogates(member)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)
