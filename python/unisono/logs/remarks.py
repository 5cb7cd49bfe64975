"""Finds settings, transports and mistakes in the lines of a log that explain slow collectives.

Settings are read from command lines and from the lines that NCCL prints with ``NCCL_DEBUG=INFO``.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["CONNECT", "Remark", "hosts", "remarks"]

#: The advice for processes that are not connected with each other.
CONNECT = "build nccl-tests again with 'make clean' and 'make MPI=1', and start them with mpirun of the same MPI"


#: The functions to which NCCL applies NCCL_ALGO and NCCL_PROTO (``ncclFuncStr`` of init.cc of NVIDIA/nccl).
_FUNCTIONS = frozenset(("allgather", "allreduce", "broadcast", "reduce", "reducescatter"))


@dataclass(frozen=True)
class Remark:
    """A cause that the lines of a log show."""

    words: str
    advice: str
    #: The variable of a setting, NCCL_ALGO or NCCL_PROTO, and its lists in lower case. Each list is a pair of a
    #: function and its names; an empty function means all functions. If several lists apply, the last one is used.
    variable: str = ""
    lists: tuple[tuple[str, str], ...] = ()
    #: True if the processes were not connected.
    is_apart: bool = False

    def concerns(self, collective: str) -> bool:
        """Returns whether this cause can explain slow calls of a collective."""
        return not self.lists or self._list(collective) is not None

    def permits(self, collective: str, name: str) -> bool:
        """Returns whether a setting permits an algorithm or a protocol for a collective.

        A list after ^ excludes its names.
        """
        found = self._list(collective)
        return found is None or (name in found.removeprefix("^").split(",")) != found.startswith("^")

    def _list(self, collective: str) -> str | None:
        own = collective.replace("-", "")
        found = [names for function, names in self.lists if function == own or not function]
        return found[-1] if found and own in _FUNCTIONS else None


def _setting(name: str, value: str) -> str:
    """Returns the pattern of an environment variable on a command line or in a line of NCCL."""
    return rf"\b{name}(?:=| set by environment to )['\"]?({value})"


#: Four texts for each remark: the pattern of a line; a pattern that cancels the remark if it occurs anywhere in the
#: log; and the words and the advice, in which ``{}`` is the first matched group.
_LINES: tuple[tuple[str, str, str, str], ...] = (
    (
        r"Using network (Socket)\b|\[send\] via NET/(Socket)",
        r"Using network IB|via NET/IB",
        "NCCL sends over TCP sockets",
        "let it find InfiniBand or RoCE (libibverbs, NCCL_IB_HCA) or its plugin for the network, unless there is none",
    ),
    (
        r"(GPU Direct RDMA Disabled|GDR disabled)",
        r"GPU Direct RDMA Enabled|via NET/\S+/GDRDMA",
        "NCCL sends without GPUDirect RDMA",
        "load nvidia-peermem (or use dma-buf), and switch ACS of the PCIe bridges off",
    ),
    (
        r"via (SHM)/",
        r"via P2P/",
        "GPUs of a box exchange data through host memory",
        "check 'nvidia-smi topo -m' and 'p2pBandwidthLatencyTest', and switch ACS and the IOMMU off",
    ),
    (r"Failed to open (libibverbs\.so)", "", "libibverbs is missing", "install it, so that NCCL finds InfiniBand"),
    (
        _setting("NCCL_IB_DISABLE", "1"),
        "",
        "NCCL_IB_DISABLE=1 switches InfiniBand and RoCE off",
        "unset NCCL_IB_DISABLE",
    ),
    (_setting("NCCL_P2P_DISABLE", "1"), "", "NCCL_P2P_DISABLE=1 switches NVLink off", "unset NCCL_P2P_DISABLE"),
    (_setting("NCCL_SHM_DISABLE", "1"), "", "NCCL_SHM_DISABLE=1 switches host memory off", "unset NCCL_SHM_DISABLE"),
    (_setting("NCCL_NVLS_ENABLE", "0"), "", "NCCL_NVLS_ENABLE=0 switches NVLink SHARP off", "unset NCCL_NVLS_ENABLE"),
    (
        _setting("NCCL_NET_GDR_LEVEL", "0|LOC"),
        "",
        "NCCL_NET_GDR_LEVEL={} switches GPUDirect RDMA off",
        "unset NCCL_NET_GDR_LEVEL",
    ),
    (_setting("NCCL_MAX_NCHANNELS", r"\d{1,3}"), "", "NCCL_MAX_NCHANNELS={} limits channels", "unset it"),
    (_setting("NCCL_MAX_CTAS", r"\d{1,3}"), "", "NCCL_MAX_CTAS={} limits channels", "unset it"),
    (
        r"Missing \"(iommu=pt)\"",
        "",
        "the kernel was started without iommu=pt, as RCCL warns",
        "add it to the command line of the kernel",
    ),
    (
        r"mca coll_tuned_(\w+_algorithm \d+)",
        "",
        "coll_tuned_{} fixes one algorithm of Open MPI for all sizes",
        "replace it by rules by size: 'unisono tune --for openmpi-rules'",
    ),
)
#: Lists for all functions and for single ones, as in ``ring;allreduce:tree,nvls;broadcast:^tree`` (``parseList`` of
#: tuning.cc of NVIDIA/nccl).
_NAMES = r"\^?\w{1,20}(?:,\w{1,20}){0,9}"
_CHOICE = re.compile(
    _setting("NCCL_(?:ALGO|PROTO)", rf"(?:[A-Za-z]{{1,20}}:)?{_NAMES}(?:;[A-Za-z]{{1,20}}:{_NAMES}){{0,9}}")
)
_ROW = re.compile(r"^[ \t]*\d+[ \t]+\d+[ \t]+\w+\s", re.MULTILINE)
_RANK = re.compile(r"^#?[ \t]+Rank[ \t]+(\d{1,9})[ \t].*?\bPid[ \t]+(\d{1,9})[ \t]+on[ \t]+(\S+)", re.MULTILINE)


def remarks(text: str, collectives: Collection[str] = ()) -> list[Remark]:
    """Returns the remarks on the text of a log of collectives, without duplicates.

    Settings that concern none of the collectives are left out, unless ``collectives`` is empty.
    """
    found = []
    if _is_apart(text):
        found.append(
            Remark(
                "processes ran the test each for themselves, since a rank is listed twice",
                CONNECT,
                is_apart=True,
            )
        )
    for pattern, excuse, words, advice in _LINES:
        if (line := re.search(pattern, text)) and not (excuse and re.search(excuse, text)):
            found.append(Remark(words.format(next(group for group in line.groups() if group)), advice))
    for setting in {match[0]: match for match in _CHOICE.finditer(text)}.values():
        lists = tuple(
            (function, names) for function, _, names in (one.rpartition(":") for one in setting[1].lower().split(";"))
        )
        name, kind = ("NCCL_ALGO", "algorithms") if "NCCL_ALGO" in setting[0] else ("NCCL_PROTO", "protocols")
        is_whole = len(lists) == 1 and not lists[0][0] and "^" not in setting[1]
        does = f"leaves NCCL no other {kind}" if is_whole else f"restricts NCCL's {kind}"
        found.append(Remark(f"{name}={setting[1]} {does}", f"unset {name}", name, lists))
    return [of for of in dict.fromkeys(found) if not collectives or any(map(of.concerns, collectives))]


def hosts(text: str) -> frozenset[str]:
    """Returns the names of the hosts in lines about ranks."""
    return frozenset(host for _, _, host in _RANK.findall(text))


def _is_apart(text: str) -> bool:
    """Returns whether a rank is listed twice before the first row, which shows that the processes are not connected."""
    row = _ROW.search(text)
    ranks = _RANK.findall(text[: row.start()] if row else text)
    return len({rank for rank, _, _ in ranks}) < len(set(ranks))
