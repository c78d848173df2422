"""A writ server for tests. WRIT is the path of the program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

WRIT = os.environ.get("WRIT", "")
POLICY = "0c0ffee0-0000-4000-8000-000000000001"  # of the demo's refunds
SERVES = re.compile(r"writ serves on (\S+); metrics and readiness on (\S+)")


class Server:
    """A writ server with the demo's policies, on an embedded store: refunds above 500.00 are denied, those above 250.00 held.

    It takes free addresses, and has the same ones when it is started again.
    """

    def __init__(self, data: Path, *flags: str) -> None:
        self.data, self.flags = data, flags
        self.url = self.admin = "http://127.0.0.1:0"
        self.start()
        self.token = self.token_of()

    def start(self) -> None:
        addresses = ["--addr", self.url.removeprefix("http://"), "--admin-addr", self.admin.removeprefix("http://")]
        self.process = subprocess.Popen(
            [WRIT, "serve", "--demo", "--data", str(self.data), *addresses, *self.flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout
        for line in self.process.stdout:
            if found := SERVES.match(line):
                self.url, self.admin = found.groups()
                return
        raise AssertionError(f"the server has ended with {self.process.wait()}")

    def token_of(self, *flags: str) -> str:
        """Returns an operator's token."""
        args = [WRIT, "token", "operator", "--org", "demo", "--data", str(self.data), *flags]
        return subprocess.check_output(args, text=True).strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
