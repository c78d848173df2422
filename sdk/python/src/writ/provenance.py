"""Where the values of a call's arguments come from."""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# The user's words are never dropped: later ones are not kept. Of results the oldest are dropped. A list of sources
# that is longer than a fact is unknown.
_MAX_WORDS = 64 << 10
_MAX_RESULTS = 4 << 20
_MAX_FACT = 1024

# Stands between the texts of a result. No text has it, because a lone surrogate is replaced.
_BETWEEN = "\ud800"

_SPACE = " \t\r\n"
# An address behind a display name.
_ADDRESSED = re.compile(
    r'(?:"[^"@,;<>()\\]*"[\t\n\f\r ]*|[^"@,;<>()]*)<([^<>"()\t\n\f\r @]+@[^<>"()\t\n\f\r @]+)>'
)


# Has each character that does not join, and some that do.
_APART = re.compile(r"[^\w.@/+%:~#?=&-]")


@dataclass(frozen=True)
class _Result:
    text: str
    named: bool  # it is from a place that the user named
    records: tuple[str, ...]
    size: int


class Provenance:
    """Keeps the user's words and what tools returned in a session, and says of each argument where its values come from.

    A value is ``user`` (it stands in the user's words), ``record`` (it equals a field that ``records`` names), ``text``
    (it stands in what a tool returned), ``named`` (only in what a tool returned from a place that the user named),
    ``model`` (it stands nowhere) or ``unknown`` (nowhere that is still kept). The user's words are kept up to 64 KiB,
    results up to 4 MiB.

    A value is compared whole, without case. It stands in a text only if neither neighbour could belong to it: letters,
    digits and ``._-@/+%:~#?=&`` could, but for a full stop or a colon that ends a sentence. A paraphrase stands nowhere.
    So let only values decide that must be exact: addresses, accounts, paths.

    ``records`` has by tool the paths of the fields of its results that are yours, such as ``contacts.*.email``. A star
    is each element or member, and the empty path the whole result. Methods may be called from several threads.
    """

    def __init__(self, records: Mapping[str, Sequence[str]] | None = None) -> None:
        self._paths = {tool: tuple(paths) for tool, paths in (records or {}).items()}
        self._lock = threading.Lock()
        self._spoken = 0
        self._words: list[str] = []
        self._kept = 0
        self._results: deque[_Result] = deque()
        self._records: Counter[str] = Counter()
        self._dropped = False

    def user(self, text: str) -> None:
        """Keeps words of the user."""
        size = _size(text)
        with self._lock:
            if self._spoken + size > _MAX_WORDS:
                self._dropped = True
                return
            self._spoken += size
            self._words.append(_fold(text))

    def result(self, tool: str, value: Any, place: str = "") -> None:
        """Keeps what a tool returned: a text, or what ``json.dumps`` takes, without NaN.

        ``place`` is the file, address or id that it is from.
        """
        value = _plain(value)
        leaves = list(_leaves(value))
        if isinstance(value, str):
            try:
                value = _decode(value)
            except (ValueError, RecursionError):
                pass
            else:
                leaves += _leaves(value)
        fields = [f for path in self._paths.get(tool, ()) for f in _at(value, path.split(".") if path else [])]
        text, size = _BETWEEN.join(map(_fold, leaves)), sum(map(_size, leaves))
        with self._lock:
            named = _stand(self._words, _fold(place.strip(_SPACE)))
            self._results.append(_Result(text, named, tuple(map(_fold, fields)), size))
            self._records.update(self._results[-1].records)
            self._kept += size
            while self._kept > _MAX_RESULTS:
                oldest = self._results.popleft()
                self._kept -= oldest.size
                self._records.subtract(oldest.records)
                self._records = +self._records
                self._dropped = True

    def facts(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Returns the metadata ``fact.source.NAME`` of each argument that has values: their sources between commas."""
        facts = {}
        for name, argument in arguments.items():
            values = _values(_plain(argument))
            said = ",".join(map(self._source, values))
            if said:
                facts["fact.source." + name] = said if len(said) <= _MAX_FACT else "unknown"
        return facts

    def _source(self, value: str) -> str:
        value = _fold(value)
        with self._lock:
            if _stand(self._words, value):
                return "user"
            if self._records[value] > 0:
                return "record"
            if self._dropped:
                return "unknown"
            if _stand((r.text for r in self._results if not r.named), value):
                return "text"
            if _stand((r.text for r in self._results if r.named), value):
                return "text" if _is_digits(value) else "named"
            return "model"


def _stand(texts: Iterable[str], value: str) -> bool:
    """Reports whether a folded value stands in one of the folded texts."""
    for text in texts:
        start = text.find(value) if value else -1
        while start >= 0:
            if not _joins(text[start - 1 : start]) and _ends(text, start + len(value)):
                return True
            # It can stand only behind a character that does not join.
            apart = _APART.search(text, start)
            start = text.find(value, apart.end()) if apart else -1
    return False


def _ends(text: str, at: int) -> bool:
    """Reports whether a value can end at a place of a text."""
    following = text[at : at + 1]
    return not _joins(following) or (following in ".:" and not _joins(text[at + 1 : at + 2]))


def _joins(c: str) -> bool:
    """Reports whether a character could belong to a value beside it."""
    if not c:
        return False
    category = unicodedata.category(c)
    return category[0] in "LMN" or category == "Cf" or c in "._-@/+%:~#?=&"


def _is_digits(value: str) -> bool:
    """Reports whether a value is a number, an amount, a date or the like, which stand in many texts by chance."""
    return any(c.isdecimal() for c in value) and all(c.isdecimal() or c in " .,-+/:" for c in value)


def _well_formed(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _size(text: str) -> int:
    return len(_well_formed(text).encode())


def _fold(text: str) -> str:
    """Returns a text in lower case, character by character. İ stays, because it would become an i."""
    text = _well_formed(text).replace("Σ", "σ")  # at the end of a word, lower would write another letter
    return "İ".join(part.lower() for part in text.split("İ"))


def _values(argument: Any) -> list[str]:
    """Returns the values of an argument.

    A text, or the text of a JSON array of texts, is read as a list, as conditions read metadata. If it has quotes,
    comments or angle brackets of another kind than those of display names, it is one value.
    """
    if not isinstance(argument, str):
        return [value for value in map(_address, _leaves(argument)) if value]
    try:
        array = json.loads(argument)
    except (ValueError, RecursionError):
        array = None
    if isinstance(array, list) and all(isinstance(element, str) for element in array):
        return _values(array)
    values = []
    for part in re.split("[,;\r\n]", argument):
        part = part.strip(_SPACE)
        if not part:
            continue
        value = _address(part)
        if value == part and any(c in part for c in '"<>()'):
            return [argument.strip(_SPACE)]
        values.append(value)
    return values


def _address(element: str) -> str:
    """Returns the address that a display name stands before, else the element."""
    element = element.strip(_SPACE)
    match = _ADDRESSED.fullmatch(element)
    return match[1] if match else element


def _plain(value: Any) -> Any:
    """Returns a value as JSON decodes it, with numbers as texts."""
    if isinstance(value, str):
        return value
    return _decode(json.dumps(value, allow_nan=False), _number)


def _decode(text: str, number: Any = str) -> Any:
    return json.loads(text, parse_int=str, parse_float=number, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _number(text: str) -> str:
    """Writes a float as other clients write it: 500.0 is 500."""
    if 1e-6 <= abs(float(text)) < 1e21 or float(text) == 0:
        return format(Decimal(text).normalize(), "f")
    return re.sub(r"e([+-])0", r"e\1", text)


def _leaves(value: Any) -> Iterator[str]:
    """Yields the texts, the numbers and the truth values in a value. Members are in the order of their names."""
    todo = [value]
    while todo:
        v = todo.pop()
        if isinstance(v, dict):
            todo += [v[name] for name in sorted(v, reverse=True)]
        elif isinstance(v, list):
            todo += reversed(v)
        elif v is not None:
            yield _leaf(v)


def _leaf(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)  # a truth value


def _at(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Yields the fields at a path that are texts, numbers or truth values."""
    if isinstance(value, dict):
        for name, member in value.items():
            if path and path[0] in ("*", name):
                yield from _at(member, path[1:])
    elif isinstance(value, list):
        for element in value:
            if path and path[0] == "*":
                yield from _at(element, path[1:])
    elif value is not None and not path:
        yield _leaf(value)
