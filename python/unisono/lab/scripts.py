"""The shell programs that set up and enter the hosts of a lab.

`setup NAME` runs in the namespaces of a host and keeps these alive. `enter HOST FOLDER COMMAND...` runs a command on a
host. MPI launchers start `agent HOST COMMAND` in place of ssh; like ssh, `agent` passes no environment.
"""

import os
import shlex
import sys
from pathlib import Path

from unisono.lab.scaling import Network

__all__ = ["NEEDED", "write"]

#: The programs that a lab needs, and the Debian packages that contain them.
NEEDED = dict.fromkeys(("unshare", "nsenter", "setpriv", "flock"), "util-linux") | {"ip": "iproute2", "tc": "iproute2"}

#: The script of `setup`. A TUN device drops packets that its reader does not take immediately, so each host limits its
#: own rate (tbf) to one percent below that of its cables. Each host has its own shared memory, temporary files and host
#: names.
_SETUP = """#!/bin/sh
set -e
name=$1
case $name in
{cases}
esac
hostname "$name"
ip link set lo up
ip link set eth0 mtu 9000 txqueuelen 1000
ip address add "$address/24" dev eth0
ip link set eth0 up
tc qdisc replace dev eth0 root tbf rate "$rate" burst 10000 limit 4000000
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs {folder}/tmp
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/loadavg /proc/loadavg
# Programs list network devices in /sys; the other settings may be missing in a kernel.
mount -t sysfs sysfs /sys 2>/dev/null || true
cd /proc/sys/net
{{ echo cubic > ipv4/tcp_congestion_control; }} 2>/dev/null || true
{{ echo 0 > ipv4/tcp_slow_start_after_idle; }} 2>/dev/null || true
{{ echo 0 2147483647 > ipv4/ping_group_range; }} 2>/dev/null || true
{{ echo 1 > ipv6/conf/all/disable_ipv6; }} 2>/dev/null || true
cd /
echo $$ > {folder}/pids/"$name"
echo ready
exec sleep infinity
"""
_ENTER = """#!/bin/sh
pid=$(cat {folder}/pids/"$1") || exit 255
at=$2
shift 2
exec nsenter --target "$pid" --net --uts --ipc --mount sh -c 'cd "$0" 2>/dev/null; exec "$@"' "$at" "$@"
"""
_AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do [ "$1" = -l ] && shift; shift; done
host=$1
shift
exec env -i HOME={home} USER={user} SHELL=/bin/sh PATH={path} TMPDIR={folder}/tmp HOSTNAME="$host" \\
    sh {folder}/enter "$host" {home} sh -c "$*"
"""


def write(folder: Path, network: Network) -> None:
    """Writes the scripts of a lab, and the file of its host names."""
    cases = [
        f"{host}) address={_address(at)} rate={max(network.mbit_of(host) * 990_000, 8):.0f}bit ;;"
        for at, host in enumerate(network.hosts)
    ]
    values = {
        "folder": shlex.quote(str(folder)),
        "cases": "\n".join(cases),
        "home": shlex.quote(os.environ.get("HOME", "/")),
        "user": shlex.quote(os.environ.get("USER", "root")),
        # The search path begins with the folder of this Python, for ranks that are Python programs.
        "path": shlex.quote(f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
    }
    for name, text in (("setup", _SETUP), ("enter", _ENTER), ("agent", _AGENT)):
        (folder / name).write_text(text.format(**values))
        (folder / name).chmod(0o700)
    names = "".join(f"{_address(at)} {host}\n" for at, host in enumerate(network.hosts))
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
    (folder / "loadavg").write_text("0.10 0.10 0.10 1/100 4711\n")
    (folder / "topology").write_text(network.text())
    for name in ("pids", "tmp"):
        (folder / name).mkdir()


def _address(at: int) -> str:
    return f"10.77.0.{at + 1}"
