"""Reads one JSON string a line and answers how Python's parsers read it: one
JSON array a line of [reader, scheme, host, port, path].

The first line that it writes lists the libraries it asks: urllib3, requests and
libcurl where they can be loaded. A path is given as it would be sent and as a
server unquotes and normalises it. What is no URL has an empty scheme and host;
a path on Windows has the scheme "windows" and is in lower case with slashes; an
address has the scheme "mailto", "sms" or "tel" and is its path. Each reading is
given once, under the first reader that has it. Answers may wait until an empty
line is read, which has none itself.
"""
import ctypes
import email.utils
import ipaddress
import json
import ntpath
import posixpath
import re
import socket
import sys
import unicodedata
import urllib.parse
import urllib.request

try:
    import urllib3.util
except ImportError:
    urllib3 = None
try:
    import requests
except ImportError:
    requests = None

ADDRESSES = ("mailto", "sms", "tel")
WEB = ("http", "https", "ws", "wss", "ftp")


def load_curl():
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"):
        try:
            lib = ctypes.CDLL(name)
            lib.curl_url.restype = ctypes.c_void_p
            return lib
        except (OSError, AttributeError):
            pass
    return None


CURL = load_curl()
CURL_SCHEME, CURL_HOST, CURL_PORT, CURL_PATH = 1, 5, 6, 7
CURL_NON_SUPPORT_SCHEME, CURL_ALLOW_SPACE = 1 << 3, 1 << 11


class Readings:
    """Collects what the readers make of one text."""

    def __init__(self):
        self.found = {}

    def path(self, reader, path, scheme="", host="", port=""):
        self.found.setdefault((scheme, host, port, path), reader)
        if scheme not in ADDRESSES and ("%" in path or "/" in path):
            once = urllib.parse.unquote(path)
            served = posixpath.normpath(once)
            self.found.setdefault((scheme, host, port, served), reader + ">unquote")

    def url(self, reader, scheme, host, port, path):
        scheme, host = scheme.lower(), (host or "").lower()
        port = "" if port is None else str(port)
        self.path(reader, path, scheme, host, port)
        address = resolve(host)
        if address and address != host:
            self.path(reader + ">resolve", path, scheme, address, port)
        elif not host.isascii():
            try:
                self.path(reader + ">idna", path, scheme, dns_name(host.encode("idna").decode()), port)
            except ValueError:
                pass

    def final(self, reader, path, scheme="", host="", port=""):
        """A path that has been decoded: it is only normalised."""
        port = "" if port is None else str(port)
        self.found.setdefault((scheme.lower(), (host or "").lower(), port, posixpath.normpath(path)), reader)

    def windows(self, reader, path):
        self.found.setdefault(("windows", "", "", ntpath.normcase(ntpath.normpath(path)).replace("\\", "/")), reader)

    def address(self, scheme, address):
        if address:
            self.found.setdefault((scheme, "", "", idna_domain(address).lower()), "py.addresses")


def dns_name(host):
    if not re.fullmatch(r"[\w.-]+", host):
        raise ValueError("no name of a host")
    return host


def resolve(host):
    """The address that the C library connects to, where host is one."""
    if ":" in host:
        try:
            ip = ipaddress.ip_address(host.strip("[]").partition("%")[0])
            return str(ip.ipv4_mapped or "[%s]" % ip)
        except ValueError:
            return ""
    if not re.fullmatch(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*\.?", host):
        return ""
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return ""


def read_split(text, out):
    chain = re.match(r"(?:[A-Za-z][\w+.-]*:)+(?=[A-Za-z][\w+.-]*://)", text)
    chain = chain.group() if chain else ""  # jdbc: and the like: the driver reads what follows
    u = urllib.parse.urlsplit(text[len(chain):])
    if not u.scheme or not u.netloc and "://" not in text:
        return
    scheme = chain + u.scheme
    hosts = u.netloc.rpartition("@")[2]
    if u.scheme not in WEB and ("," in hosts or ";" in hosts):  # lists of hosts, as database drivers take
        for host in re.split("[,;]", hosts):
            m = re.fullmatch(r"(.*?)(?::(\d*))?", host)
            host = urllib.parse.unquote(m.group(1))
            if re.fullmatch(r"[\w.-]+", host):
                out.url("py.hosts", scheme, host, m.group(2), u.path)
        return
    out.url("py.urlsplit", scheme, u.hostname, u.port, u.path)
    unquoted = urllib.parse.unquote(u.hostname or "")
    if "%" in hosts and re.fullmatch(r"[\w.-]+", unquoted):
        out.url("py.urlsplit>unquote host", scheme, unquoted, u.port, u.path)
    if ";" in u.path:
        out.url("py.urlparse", scheme, u.hostname, u.port, urllib.parse.urlparse(text[len(chain):]).path)
        if u.scheme in WEB:  # Tomcat and the like drop parameters before they resolve
            out.url("py.servlet", scheme, u.hostname, u.port, re.sub(";[^/]*", "", u.path))
    if "%25" in u.path:
        out.final("py.unquote twice", urllib.parse.unquote(urllib.parse.unquote(u.path)), scheme, u.hostname, u.port)
    if not text.isascii() or "%" in text:
        nfkc = unicodedata.normalize("NFKC", urllib.parse.unquote(u.path))
        out.final("py.nfkc", nfkc, scheme, u.hostname, u.port)
    if u.scheme in WEB and "/." in u.path:
        # As a reference, a path that begins with // would name a host: no program asks for that one.
        path = "/." + u.path if u.path.startswith("//") else u.path
        joined = urllib.parse.urlsplit(urllib.parse.urljoin(text, path))
        out.url("py.urljoin", scheme, joined.hostname, joined.port, joined.path)


def read_request(text, out):
    r = urllib.request.Request(text)
    if r.host and r.type in ("http", "https", "ftp"):
        host, _, port = r.host.rpartition("@")[2].rpartition(":") if re.search(r":\d*$", r.host) else (r.host, "", "")
        out.url("py.urllib.request", r.type, host, port, re.split("[?#]", r.selector)[0])


def read_file(text, out):
    u = urllib.parse.urlsplit(text)
    if u.scheme != "file":
        return
    path = urllib.request.url2pathname(u.path)
    if u.netloc in ("", "localhost"):
        out.final("py.url2pathname", path)
        out.path("py.file", posixpath.normpath(u.path))
        out.windows("py.file>windows", re.sub(r"^[\\/]+(?=[A-Za-z]:)", "", path))
    else:
        out.windows("py.file>unc", "//" + u.netloc + path)


def read_urllib3(text, out):
    if urllib3:
        u = urllib3.util.parse_url(text)
        if u.scheme and u.host:
            out.url("urllib3", u.scheme, u.host, u.port, u.path or "/")


def read_requests(text, out):
    if requests and text.lower().lstrip().startswith("http"):
        prepared = requests.PreparedRequest()
        prepared.prepare_url(text, None)
        u = urllib.parse.urlsplit(prepared.url)
        out.url("requests", u.scheme, u.hostname, u.port, u.path)


def read_curl(text, out):
    if not CURL or "\0" in text:
        return
    handle = ctypes.c_void_p(CURL.curl_url())
    try:
        flags = CURL_NON_SUPPORT_SCHEME | CURL_ALLOW_SPACE
        if CURL.curl_url_set(handle, 0, text.encode(), flags) == 0:
            part = [curl_part(handle, p) for p in (CURL_SCHEME, CURL_HOST, CURL_PORT, CURL_PATH)]
            out.url("libcurl", *part)
    finally:
        CURL.curl_url_cleanup(handle)


def curl_part(handle, part):
    value = ctypes.c_void_p()
    if CURL.curl_url_get(handle, part, ctypes.byref(value), 0):
        return ""
    try:
        return ctypes.string_at(value).decode("utf-8", "replace")
    finally:
        CURL.curl_free(value)


def read_addresses(text, out):
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if colon and scheme in ADDRESSES:
        path, _, query = rest.partition("?")
        lists = [urllib.parse.unquote(path)]
        if scheme == "mailto":
            for key, values in urllib.parse.parse_qs(query.partition("#")[0]).items():
                lists += values if key.lower() in ("to", "cc", "bcc") else []
    elif "@" in text and ":" not in text:
        scheme, lists = "mailto", [text]
    else:
        return
    for each in (part for one in lists for part in {one, one.replace(";", ",")}):
        if scheme == "mailto":
            for _, address in email.utils.getaddresses([each]):
                out.address(scheme, address)
        else:
            for number in each.split(","):
                out.address(scheme, re.sub(r"[-.() ]", "", number))


def idna_domain(address):
    local, _, domain = address.rpartition("@")
    try:
        return local + "@" + domain.encode("idna").decode() if local else address
    except UnicodeError:
        return address


def read_path(text, out):
    if re.match("(mailto|sms|tel):", text, re.I):
        return
    out.path("py.posixpath", posixpath.normpath(text))
    if "%25" in text:
        out.final("py.unquote twice", urllib.parse.unquote(urllib.parse.unquote(text)))
    if not text.isascii() or "%" in text:
        out.final("py.nfkc", unicodedata.normalize("NFKC", urllib.parse.unquote(text)))
    if "\\" in text or text.startswith("//") or re.match(r"[A-Za-z]:[\\/]", text):
        out.windows("py.ntpath", text)
        out.windows("py.win32", win32(text))


def win32(text):
    """What CreateFile opens: trailing dots and spaces and a stream's name go."""
    text = re.sub(r"^[\\/]{2}[.?][\\/](?=[A-Za-z]:)", "", text)
    text = re.sub(r"(?i)^[\\/]{2}\?[\\/]UNC[\\/]", r"\\\\", text)
    drive, rest = ntpath.splitdrive(text)
    parts = [p if p in ("", ".", "..") else p.partition(":")[0].rstrip(". ") or p for p in re.split(r"[\\/]", rest)]
    return drive + "\\".join(parts)


URL_READERS = (read_split, read_request, read_file, read_urllib3, read_requests, read_curl)


def read(text):
    out = Readings()
    for reader in (*URL_READERS, read_addresses) if "://" in text else (read_file, read_addresses, read_path):
        try:
            reader(text, out)
        except Exception:  # the parser refuses the text: it reads nothing
            continue
    return [[reader, *reading] for reading, reader in out.found.items()]


def main():
    have = ["urllib"] + ["urllib3"] * bool(urllib3) + ["requests"] * bool(requests) + ["libcurl"] * bool(CURL)
    print(json.dumps(have), flush=True)
    for line in sys.stdin:
        if line == "\n":
            sys.stdout.flush()
        else:
            print(json.dumps(read(json.loads(line))))


main()
