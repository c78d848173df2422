"""Reads one JSON string a line and answers whose addresses Python finds in it:
one JSON array a line of [reader, address].

The readers are those of the module email: getaddresses and parseaddr, which
smtplib asks, and the To of a message under both policies. A text that one of
them refuses has no addresses. An empty line has no answer.
"""
import email.message
import email.policy
import email.utils
import json
import sys


def header(text):
    message = email.message.EmailMessage(policy=email.policy.default)
    message["To"] = text
    return [a.addr_spec for a in message["To"].addresses]


def compat(text):
    message = email.message.Message()
    message["To"] = text
    return [address for _, address in email.utils.getaddresses(message.get_all("To"))]


READERS = {
    "email.getaddresses": lambda text: [a for _, a in email.utils.getaddresses([text])],
    "email.parseaddr": lambda text: [email.utils.parseaddr(text)[1]],
    "email.policy.default": header,
    "email.message": compat,
}

for line in sys.stdin:
    if line.strip() == "":
        sys.stdout.flush()
        continue
    found = []
    for name, read in READERS.items():
        try:
            found += [[name, address] for address in read(json.loads(line)) if address]
        except Exception:  # the reader refuses the text, or fails: it finds nothing
            pass
    print(json.dumps(found))
