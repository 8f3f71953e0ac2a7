"""`offline=true`: a connection beyond this machine is an error, not a surprise.

Works on Python's audit events, so it also holds for libraries that open their
own sockets, and goes on in every Python process that is started from here. Native
code that calls the system itself is beyond it: a container without a network is
the stronger promise.

`python -m experiments.offline containers.runtime ...` runs a module under it.
"""

from __future__ import annotations

import ipaddress
import os
import runpy
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

# Its sitecustomize.py puts this rule on a Python that is started with it on its path.
SITE = str(Path(__file__).with_name("offline_site"))
_NAMES_OF_THIS_MACHINE = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


class OfflineError(ConnectionError):
    """Something tried to leave the machine during an offline run."""


def forbid_connections() -> None:
    """From now on refuse every look-up and connection beyond the loopback, for good, here and in
    every Python that is started from here."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    _hand_on(os.environ)
    sys.addaudithook(_refuse)


def _hand_on(environment: MutableMapping[str, str]) -> None:
    known = environment.get("PYTHONPATH", "")
    if SITE not in known.split(os.pathsep):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (SITE, known)))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        # A child is given our environment, or one of its own, which comes last.
        if isinstance(arguments[3], MutableMapping):
            _hand_on(arguments[3])
        return
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getnameinfo"):
        address = arguments[-1] if event == "socket.getnameinfo" else arguments[1]
        # A path is a socket of this machine (AF_UNIX); a tuple starts with the host.
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    if not is_this_machine(host):
        raise OfflineError(
            f"offline=true, yet something wants to reach {host!r}. Run with offline=false, or put "
            "what it looks for on this machine first."
        )


def is_this_machine(host: Any) -> bool:
    """Whether a host, by name or address, can only be this machine."""
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if not isinstance(host, str) or host == "" or host.lower() in _NAMES_OF_THIS_MACHINE:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _run_module(arguments: list[str]) -> None:
    forbid_connections()
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run_module(sys.argv[1:])
