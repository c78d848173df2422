#!/usr/bin/env python3
"""Reads the history of a directory, as docs/history-format.md describes it.

It was written from that page and shares nothing with writ. It prints a JSON object a
line: one for each frame, then one for each of its items. With damage it prints the reason
to stderr and exits 1.

    read_history.py DIRECTORY [SECRET]

With the secret, in hex, it also compares the tables with the segments.
"""

import base64
import hashlib
import json
import os
import re
import struct
import sys
import uuid
from datetime import datetime, timedelta, timezone


class Damaged(Exception):
    pass


# Segments and frames.

CRC_TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    CRC_TABLE.append(n)


def checksum(data):
    c = 0xFFFFFFFF
    for b in data:
        c = CRC_TABLE[(c ^ b) & 0xFF] ^ c >> 8
    return c ^ 0xFFFFFFFF


MAGIC = b"writ segment 1\n\0"


class Segment:
    def __init__(self, data, number):
        self.data = data
        if len(data) < 64 or data[:16] != MAGIC or le(data[60:64]) != checksum(data[:60]):
            raise Damaged("segment %d: no header" % number)
        self.log = data[16:32]
        self.number, self.first = le(data[32:40]), le(data[40:48])
        if self.number != number:
            raise Damaged("segment %d is in the place of %d" % (self.number, number))
        self.offsets = self.trailer()

    def trailer(self):
        """Returns the offsets of the frames, or None if the segment is not sealed."""
        end = self.data[-16:]
        if len(self.data) < 80 or end[:4] != b"wend":
            return None
        n, self.end = le(end[8:12]), le(end[12:16])
        start = len(self.data) - 16 - 4 * n
        if start < 64:
            return None
        table = self.data[start:-16]
        if checksum(table + end[8:]) != le(end[4:8]):
            return None
        return [le(table[i : i + 4]) for i in range(0, len(table), 4)]

    def frame(self, at, number):
        """Returns the head, the items and the end of the frame at an offset, or None if no
        whole frame of that number, or of any if it is None, is there."""
        d = self.data
        if d[at : at + 4] != b"wfrm" or at + 32 > len(d):
            return None
        length, items, n = le(d[at + 8 : at + 12]), le(d[at + 12 : at + 16]), le(d[at + 16 : at + 24])
        end = (at + 32 + length + 7) // 8 * 8
        if end > len(d) or number not in (n, None) or checksum(self.log + d[at + 8 : end]) != le(d[at + 4 : at + 8]):
            return None
        body = Reader(d[at + 32 : at + 32 + length])
        head = body.bytes(body.uvarint())
        found = [body.bytes(body.uvarint()) for _ in range(items)]
        body.done()
        return n, head, found, end, le(d[at + 24 : at + 32])

    def frames(self):
        at, number = 64, self.first
        if self.offsets is not None:
            for offset in self.offsets:
                f = self.frame(offset, number)
                if f is None or offset != at:
                    raise Damaged("segment %d: frame %d is not whole" % (self.number, number))
                yield number, f[1], f[2]
                at, number = f[3], number + 1
            if at != self.end:
                raise Damaged("segment %d: its end is not that of its last frame" % self.number)
            return
        while True:
            f = self.frame(at, number)
            if f is None:
                break
            yield number, f[1], f[2]
            at, number = f[3], number + 1
        later = self.data.find(b"wfrm", at)
        while later >= 0:
            f = self.frame(later, None) if later % 8 == 0 else None
            if f is not None and f[0] > number and f[4] >= number:
                raise Damaged("frame %d is not whole, and frame %d is" % (number, f[0]))
            later = self.data.find(b"wfrm", later + 1)


def le(b):
    return int.from_bytes(b, "little")


def segments(directory):
    numbers = sorted(int(n[:10]) for n in os.listdir(directory) if re.fullmatch(r"\d{10}\.segment", n))
    log, first = None, 1
    for i, number in enumerate(numbers):
        if number != i + 1:
            raise Damaged("segment %d is missing" % (i + 1))
        with open(os.path.join(directory, "%010d.segment" % number), "rb") as f:
            data = f.read()
        last = i == len(numbers) - 1
        if last and (len(data) < 64 or not any(data[:64])):
            return
        s = Segment(data, number)
        check_table(directory, s)
        if log not in (None, s.log) or s.first != first:
            raise Damaged("segment %d does not follow the one before" % number)
        if s.offsets is None and not last:
            raise Damaged("segment %d is not sealed" % number)
        log = s.log
        for frame in s.frames():
            first = frame[0] + 1
            yield frame


# Tables.

SECRET = bytes.fromhex(sys.argv[2]) if len(sys.argv) > 2 else None
TABLE_MAGIC = b"writ table 1\n\0\0\0"
KEYED, ROWS, SETTLED, ENTRIES = range(4)


def hash_of(org, key):
    org, key = org.encode("utf-8"), key.encode("utf-8")
    sum = hashlib.sha256(SECRET + struct.pack(">H", len(org)) + org + key).digest()
    return int.from_bytes(sum[:8], "big")


def list_of(org, kind, kept_in):
    return hash_of(org, "") & ~0xFF | (kind & 63) << 2 | kept_in


def table_entries(frame, items):
    """Yields name, at and item for the entries of a frame's items, which count their frame from 0."""
    for i, data in enumerate(items):
        r = Reader(data)
        kind = chr(r.byte())
        if kind == "x":
            continue
        org = r.text()
        if kind == "e":
            of = r.bytes(1)
            r.byte()
            yield hash_of(org, of.decode() + r.text()) & ~3, 0, i
            yield list_of(org, of[0], ENTRIES), frame, i
            continue
        at = int.from_bytes(r.bytes(16)[:8], "big")
        if kind in "sa":
            yield list_of(org, 0, SETTLED), at, i
        if kind == "s":
            continue
        if kind == "r":
            r.byte()
            decision = r.byte()
            r.time()
            for _ in range(3):
                r.text()
            for list_kind in (0, decision):
                yield list_of(org, list_kind, ROWS), at, i
        yield hash_of(org, r.text().split("\0")[0]) & ~3, 0, i


def uvarint(n):
    b = b""
    while n >= 0x80:
        b, n = b + bytes([n & 0x7F | 0x80]), n >> 7
    return b + bytes([n])


def check_table(directory, s):
    name = os.path.join(directory, "%010d.index" % s.number)
    if SECRET is None or not os.path.exists(name):
        return
    with open(name, "rb") as f:
        data = f.read()
    entries, last = [], b""
    for number, head, items in s.frames():
        last = head
        entries += [(name, at, number - s.first, i) for name, at, i in table_entries(number, items)]
    entries.sort()
    numbers = struct.pack(">QQQQQ", s.number, s.first, len(s.offsets), s.end, le(s.data[-12:-8]))
    content = hashlib.sha256(SECRET + numbers).digest()[:8]
    spans = [[2**64 - 1, 0] for _ in range(4)]
    firsts, blocks = b"", []
    for e in entries:
        span = spans[e[0] & 3]
        span[:] = min(span[0], e[1]), max(span[1], e[1])
        if not blocks or len(blocks[-1][1]) + 30 > 4092 - 2:
            firsts += struct.pack("<QQ", e[0], e[1])
            blocks.append([0, b""])
            before = (0, 0, 0, 0)
        block = uvarint(e[0] - before[0])
        if e[0] == before[0]:
            d = e[2] - before[2]
            block += uvarint(e[1] - before[1]) + uvarint(d << 1 if d >= 0 else (-d << 1) - 1)
        else:
            block += uvarint(e[1]) + uvarint(e[2])
        blocks[-1][0] += 1
        blocks[-1][1] += block + uvarint(e[3])
        before = e
    head = hashlib.sha256(SECRET + numbers + last).digest()[:8] if s.offsets else bytes(8)
    want = TABLE_MAGIC + content + head + struct.pack("<II", len(entries), len(blocks))
    want += b"".join(struct.pack("<QQ", *span) for span in spans) + firsts
    want += struct.pack("<I", checksum(want))
    for i, (n, block) in enumerate(blocks):
        block = (struct.pack("<H", n) + block).ljust(4092, b"\0")
        want += block + struct.pack("<I", checksum(content + struct.pack("<I", i) + block))
    if data != want:
        raise Damaged("table %d is not that of its segment" % s.number)


# Items.


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, n):
        b = self.data[self.at : self.at + n]
        if len(b) != n:
            raise Damaged("%d bytes are expected and %d are there" % (n, len(b)))
        self.at += n
        return b

    def byte(self):
        return self.bytes(1)[0]

    def uvarint(self):
        n = shift = 0
        while True:
            b = self.byte()
            n |= (b & 0x7F) << shift
            if b < 0x80:
                if n >= 1 << 64:
                    raise Damaged("a number beyond 64 bits")
                return n
            shift += 7

    def int(self):
        n = self.uvarint()
        return n >> 1 ^ -(n & 1)

    def text(self):
        return self.bytes(self.uvarint()).decode("utf-8")

    def texts(self):
        n = self.uvarint()
        return None if n == 0 else [self.text() for _ in range(n - 1)]

    def digest(self):
        form = self.byte()
        if form == 0:
            return ""
        if form == 1:
            return "sha256:" + self.bytes(32).hex()
        if form == 2:
            return self.text()
        raise Damaged("a digest of form %d" % form)

    def flag(self):
        b = self.byte()
        if b > 1:
            raise Damaged("a flag of %d" % b)
        return b == 1

    def id(self):
        return str(uuid.UUID(bytes=self.bytes(16)))

    def time(self):
        seconds, nanoseconds = self.int(), self.uvarint()
        t = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
        fraction = (".%09d" % nanoseconds).rstrip("0") if nanoseconds else ""
        return t.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + fraction + "Z"

    def done(self):
        if self.at != len(self.data):
            raise Damaged("%d bytes too many" % (len(self.data) - self.at))


DECISIONS = {1: "allow", 2: "approval_required", 3: "deny"}
NAMES = {b"by": "credential", b"wr": "writer", b"se": "session_id", b"ap": "approval_id",
         b"sa": "agent_id", b"si": "issued_at", b"sr": "resource"}
KINDS = {"v": "verdict", "r": "retention", "c": "change", "i": "import", "a": "abandoned"}


def settlement(r):
    s = {"outcome": r.text()}
    if r.flag():
        s["amount_minor"] = r.int()
    s["currency"], s["external_ref"], s["recorded_at"] = r.text(), r.text(), r.time()
    s["releases"] = r.flag()
    return s


def row(r, org, decision_id, kid):
    version = r.byte()
    if version != 9:
        raise Damaged("a row of version %d" % version)
    d = {"organization_id": org, "decision_id": decision_id}
    d["decision"] = DECISIONS[r.byte()]
    d["decided_at"] = r.time()
    for name in ("policy_id", "agent_id", "action_type", "intent_id"):
        d[name] = r.text()
    d["intent_digest"] = r.digest()
    d["policy_version"], d["resource"] = r.int(), r.text()
    if r.flag():
        d["cost"] = {"amount_minor": r.int(), "currency": r.text()}
    d["metadata_keys"] = r.texts()
    if r.flag():
        d["metadata"] = {}
        for _ in range(r.uvarint()):
            key = r.text()
            d["metadata"][key] = r.text()
    d["reasons"] = r.texts()
    d["receipt"] = {
        "decision": r.text() or d["decision"], "decision_id": r.text() or decision_id,
        "digest": r.digest(), "exp": r.int(), "sig": r.text(), "kid": r.text() or kid,
    }
    d["issued_at"] = r.text()
    d["audit_digest"] = r.digest()
    if r.flag():
        for name in ("policy_revision", "rules_revision", "agent_revision"):
            d[name] = r.int()
    d["details_digest"] = r.digest()
    packed = {}
    for _ in range(r.uvarint()):
        short = r.bytes(2)
        if short in (b"fi", b"lo"):
            packed[short] = r.bytes(r.uvarint())
            continue
        name = NAMES[short]
        (d.setdefault("sent", {}) if short.startswith(b"s") and short != b"se" else d)[name] = r.text()
    d["findings"] = findings(Reader(packed.get(b"fi", b"")), d["reasons"] or []) or None
    d["left_out"] = left_out(packed.get(b"lo", b""), d) or None
    return d


CAUSES = ["", "missing", "not_decimal", "function", "work", "broken"]
FIELDS = ["policy.status", "policy.agent_id", "policy.denied_action_types", "policy.allowed_action_types",
          "policy.blocked_resource_patterns", "policy.allowed_resource_patterns", "policy.max_cost_minor",
          "policy.currency", "session.policy_id", "session.agent_id", "session.allowed_action_types",
          "session.allowed_resource_patterns", "session.max_cost_minor", "session.status", "session.expires_at", "cost"]
MEMBERS = ["resource", "agent_id", "action_type", "issued_at", "session_id", "approval_id", "metadata"]


def findings(r, reasons):
    all = []
    while r.at < len(r.data):
        flags = r.byte()
        why = r.byte() if flags & 0x40 else 0
        f = {"outcome": DECISIONS[flags & 3], "decides": flags & 4 != 0}
        f["code"] = r.text() if flags & 8 else reasons[len(all)].split(":")[0]
        if flags & 0x10:
            f["rule_id"] = r.text() if flags & 0x20 else r.id()
            f["rule_revision"] = r.int()
        cause, field = why & 7, why >> 3
        f["cause"] = r.text() if cause == 7 else CAUSES[cause]
        if field == 1:
            f["field"] = r.text()
        elif field == 2:
            f["field"] = "metadata." + r.text()
        elif field:
            f["field"] = FIELDS[field - 3]
        all.append({k: v for k, v in f.items() if v not in ("", False)})
    return all


def left_out(data, row):
    r = Reader(data)
    members, keys = r.byte() if data else 0, []
    if members & 0x80:
        while r.at < len(data):
            keys.append(r.text())
    elif "metadata" not in row:
        keys = ["metadata." + k for k in row["metadata_keys"] or []]
    r.done()
    return sorted([m for i, m in enumerate(MEMBERS) if members >> i & 1] + keys)


def item(data, kid):
    r = Reader(data)
    kind = chr(r.byte())
    if kind == "x":
        it = {"leaf": r.bytes(32)}
    elif kind == "r":
        org = r.text()
        it = {"row": row(r, org, r.id(), kid)}
        receipt = it["row"]["receipt"]
        it["leaf"] = hashed(canonical({k: v for k, v in receipt.items() if k != "sig"}))
        it["proof"] = receipt
    elif kind == "s":
        it = {"organization_id": r.text(), "decision_id": r.id()}
        unapproved = r.flag()
        if r.byte() != 2:
            raise Damaged("a settlement of another version")
        it["settlement"] = s = settlement(r)
        s["unapproved"] = unapproved
        it["proof"] = {"sig": r.text(), "kid": r.text() or kid}
        leaf = {k: v for k, v in s.items() if v not in ("", False)}
        if "amount_minor" in s:
            leaf["amount_minor"] = s["amount_minor"]  # 0 is not left out
        leaf.update(decision_id=it["decision_id"], entry="settlement", organization_id=it["organization_id"])
        it["leaf"] = hashed(canonical(leaf))
    elif kind == "t":
        it = {"organization_id": r.text(), "decision_id": r.id(), "intent": r.text(), "leaves": []}
        while r.at < len(data):
            if r.byte() != 0 or not r.flag():
                raise Damaged("a leaf that is not imported")
            it["leaves"].append("%s %d %d %s" % (r.bytes(16).hex(), r.uvarint(), r.uvarint(), r.bytes(32).hex()))
    elif kind == "a":
        it = {"organization_id": r.text(), "decision_id": r.id(), "intent": r.text()}
    elif kind == "e":
        it = {"organization_id": r.text(), "entry": KINDS[chr(r.byte())]}
        if r.byte() != 1:
            raise Damaged("an entry of another version")
        it["key"] = r.text()
        it["proof"] = {"sig": r.text(), "kid": r.text() or kid}
        body = r.bytes(r.uvarint())
        it["leaf"], it["body"] = hashed(body), body.decode("utf-8")
    else:
        raise Damaged("an item of kind %r" % kind)
    r.done()
    it["kind"] = kind
    return it


# Heads, leaves and roots.


def parse_head(data):
    if len(data) < 178 or data[:13] != b"writ/head/v1\n":
        raise Damaged("a head of %d bytes" % len(data))
    seq, size, time = struct.unpack(">QIq", data[29:49])
    return {
        "chain": data[13:29], "seq": seq, "size": size, "time": time, "prev": data[49:81], "root": data[81:113],
        "signature": data[113:177], "kid": data[177:].decode("utf-8"), "hash": hashlib.sha256(b"\2" + data[:113]).digest(),
    }


def canonical(value):
    """Members of these leaves are ASCII, so that sorting them is RFC 8785's order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode("utf-8")


def hashed(leaf):
    return hashlib.sha256(b"\0" + leaf).digest()


def split(n):
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return hashlib.sha256(b"\1" + root(leaves[:k]) + root(leaves[k:])).digest()


def proof(leaves, i):
    if len(leaves) == 1:
        return b""
    k = split(len(leaves))
    if i < k:
        return proof(leaves[:k], i) + root(leaves[k:])
    return proof(leaves[k:], i - k) + root(leaves[:k])


def sig(head, leaves, i):
    b = b"\1" + head["chain"] + struct.pack(">QIq", head["seq"], head["size"], head["time"]) + head["prev"]
    b += head["signature"] + struct.pack(">I", i) + proof(leaves, i)
    return base64.urlsafe_b64encode(b).decode().rstrip("=")


def follows(head, before):
    if before is None:
        return head["seq"] == 1 and head["prev"] == bytes(32)
    return head["chain"] == before["chain"] and head["seq"] == before["seq"] + 1 and head["prev"] == before["hash"]


def printed(o):
    json.dump({k: v.hex() if isinstance(v, bytes) else v for k, v in o.items()}, sys.stdout, ensure_ascii=False)
    print()


def main(directory):
    before, headed = None, 0
    for number, head, items in segments(directory):
        if len(head) == 8:
            if int.from_bytes(head, "big") != headed:
                raise Damaged("frame %d: it does not lead to the head before" % number)
            printed({"frame": number, "items": len(items), "import": True})
            for i, it in enumerate(items):
                it = item(it, "")
                if it["kind"] not in "rstax" or it.get("proof", {}).get("sig") == "":
                    raise Damaged("frame %d: item %d was not imported" % (number, i))
                printed({"frame": number, "item": i, **it})
            continue
        head, headed = parse_head(head), number
        if not follows(head, before):
            raise Damaged("frame %d: its head does not follow the one before" % number)
        before = head
        items = [item(i, head["kid"]) for i in items]
        if any(i["kind"] in "ta" for i in items):
            raise Damaged("frame %d: it has what was imported" % number)
        leaves = [i["leaf"] for i in items]
        if len(leaves) != head["size"] or root(leaves) != head["root"]:
            raise Damaged("frame %d: its head is of other leaves" % number)
        printed({"frame": number, "items": len(items), **head})
        for i, it in enumerate(items):
            p = it.get("proof")
            if p is not None and not p["sig"]:
                p["sig"] = sig(head, leaves, i)
            printed({"frame": number, "item": i, "seq": head["seq"], **it})


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    try:
        main(sys.argv[1])
    except (Damaged, KeyError, UnicodeDecodeError) as e:
        sys.exit("damaged: %s" % e)
