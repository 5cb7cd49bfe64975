"""Adds the measured costs of messages to a network machine, from a calibration of its ranks.

Rank i is on accelerator i. The machine gets four values: the fraction of the cables' rates that long messages reach
despite headers and protocols; the bytes of the headers of a message; the time in which a host begins or ends a message;
and the rest of the latency, as the signal of a message's end. The rates and latencies of its data sheet are not
changed; bounds use them.

Short messages to several peers follow each other after the time of their bytes on the sender's cable, with headers, or
of the sender's work, whichever is longer. Both occupy the sender, but only headers occupy cables that hosts share.

If several ranks share each node, accelerators are hosts: the leaders of the nodes measure the network, and the ranks of
the first node the messages inside a host. The machine then also has the number of ranks of a host.
"""

import math
from dataclasses import dataclass
from typing import Any

from unisono import _core
from unisono._core import InputError, Machine
from unisono.logs.link_calibration import with_latency, with_share
from unisono.machines.descriptions import machine as described
from unisono.machines.hosts import with_ranks, without_ranks
from unisono.tuning.calibration import Calibration, Levels, disturbances

__all__ = ["MessageCosts", "check_network", "message_costs", "ranks_costs"]

#: The values that the file has from each line of measurements.
_OF_LINES = {
    "beta": "share of rates",
    "multicast-non-blocking": "host_overhead_ns and header_bytes",
    "gamma": "gamma_ns_per_byte",
}
#: A measured rate contradicts the data sheet if it exceeds this fraction of the data sheet's rate.
_EXACT = 1.02
#: The bytes of the two messages whose predicted times give the latency of a path and the time of a byte on it.
_SHORT, _LONG = 8, 1 << 20
#: The maximum number of bytes of headers of a short message: of Ethernet 14, of IP 20 or 40, of TCP 32, and of the MPI
#: library up to 40. If messages follow each other more slowly, hosts take the time.
_MOST_HEADER = 128


@dataclass(frozen=True)
class MessageCosts:
    """A network machine with measured costs of messages."""

    machine: Machine
    #: The rate of a long message divided by the data sheet's rate.
    share: float
    #: Rows (bytes, measured ns, predicted ns) of messages from rank 0 to the first rank of the next host.
    messages: list[tuple[int, float, float]]
    notes: list[str]

    @property
    def residuals(self) -> dict[str, float]:
        """Returns the relative errors of predicted times, predicted / measured - 1, by bytes."""
        return {str(size): predicted / measured - 1 for size, measured, predicted in self.messages}


def check_network(machine: Machine, nodes: list[list[int]]) -> None:
    """Refuses a machine on which the ranks of node i, given in ``nodes``, cannot be on accelerator i.

    Raises:
        InputError: the machine is not a network, has fewer accelerators than there are nodes; or several ranks share a
            node, and the nodes have different numbers of ranks, are not filled in order, or are only one.

    """
    facts = machine.topology
    if facts is None:
        raise InputError(f"{machine.name} is of kind {machine.kind}; a calibration fills a network, or no machine")
    most = max(map(len, nodes))
    hosts = without_ranks(machine).topology
    assert hosts is not None
    what = "ranks" if most == 1 else "hosts"
    if len(nodes) > hosts["accelerators"]:
        raise InputError(
            f"{len(nodes)} {what} are more than the {hosts['accelerators']} accelerators of {machine.name}"
        )
    if most == 1:
        return
    if len(nodes) < 2:
        raise InputError(
            f"all {most} ranks share one node, and a network is calibrated between nodes: start ranks on two or more, "
            "or calibrate without --machine"
        )
    in_order = [list(range(most * at, most * (at + 1))) for at in range(len(nodes))]
    if sorted(nodes) != in_order:
        raise InputError(
            f"the nodes have {min(map(len, nodes))} to {most} ranks, the first one {nodes[0]}; a network is calibrated "
            "by equally many on each node, which follow each other, as with --map-by slot"
        )


def message_costs(machine: Machine, measured: Calibration, scale: float = 1.0) -> MessageCosts:
    """Returns the machine with the message costs of a calibration, whose times are ``scale`` times the machine's.

    Raises:
        InputError: the calibration gives no machine; see :meth:`Calibration.machine`.

    """
    bare = _with_hosts(with_share(machine, None), 0.0, 0.0, 0.0, header=0)
    short, long = (_message_ns(bare, size) for size in (_SHORT, _LONG))
    made = measured.machine(machine.name, by_length=False)
    byte_ns = made["beta_ns_per_byte"] / scale
    notes = disturbances(made)
    share = (long - short) / (_LONG - _SHORT) / byte_ns
    if share > _EXACT:
        notes.append(
            f"a byte took {byte_ns:.4g} ns, {1 / share:.2f} of its time by the data sheet of {machine.name}: its rates "
            "are too low, and bounds by them do not hold"
        )
    if made["alpha_ns"] / scale < short:
        less = short - made["alpha_ns"] / scale
        notes.append(f"a message took {less:.4g} ns less than the latency by the data sheet of {machine.name}")
    gap, issue = measured.gap_and_issue(made)
    # Planes share the bytes of a message, and each has its own header.
    header = round((gap / made["beta_ns_per_byte"] - _SHORT) / machine.describe()["planes"])
    header = max(min(header, _MOST_HEADER), 0)
    kept = _with_hosts(with_share(machine, min(share, 1.0)), 0.0, 0.0, made["gamma_ns_per_byte"] / scale, header=header)
    # A host begins a message in `begin`; begin, end and signal together take the latency minus that of links.
    begin = issue if header < _MOST_HEADER else max(gap, issue)
    rest = max(made["alpha_ns"] / scale - _message_ns(kept, _SHORT), 0.0)
    host = min(begin / scale, rest / 2)
    filled = _with_hosts(kept, host, rest - 2 * host, made["gamma_ns_per_byte"] / scale)
    rows = [(size, mid / scale, _message_ns(filled, size)) for size, mid, _ in measured.ping_pong if size]
    poor = [value for line, value in _OF_LINES.items() if line in made["fit"]["poor"]]
    if poor:
        notes.append(
            f"the measurements of {', '.join(poor)} do not lie on a line; measure on a quiet machine, or with more "
            "rounds"
        )
    return MessageCosts(filled, share, rows, notes)


def ranks_costs(machine: Machine, measured: Levels, scale: float = 1.0) -> MessageCosts:
    """Returns the costs of :func:`message_costs` for a machine whose accelerators are hosts with several ranks each.

    The last level is the network, and the level before it a node. Between two ranks of a host, latency and rate are
    those of the node. The additional time of a message between hosts is attributed to the cables of the hosts.

    Raises:
        InputError: the machine is not a list of cables.

    """
    network = message_costs(without_ranks(machine), measured.measured[-1], scale)
    inside = measured.measured[-2].machine(machine.name, by_length=False)
    if not inside["beta_ns_per_byte"] > 0:
        raise InputError("long messages in a node took no longer than short ones; measure on a quiet machine")
    table = network.machine.describe()
    outer, signal = table.get("host_overhead_ns", 0.0), table.get("signal_ns", 0.0)
    # Inside a host, the bytes of headers take very little time, which is subtracted.
    own = max(inside["alpha_ns"] - table.get("header_bytes", 0) * inside["beta_ns_per_byte"], 0.0) / scale
    begin = min(outer, own / 2)
    kept = min(signal, own - 2 * begin)
    card = 2 * outer + signal - 2 * begin - kept
    # Latencies change only if a card adds time. Otherwise, cables without their own latency get none.
    hosts = with_latency(network.machine, card / 2) if card > 0 else network.machine
    hosts = _with_hosts(hosts, begin, kept, table.get("gamma_ns_per_byte", 0.0))
    per_host = math.prod(level.size for level in measured.found[:-1])
    made = with_ranks(hosts, per_host, 8 * scale / inside["beta_ns_per_byte"], (own - 2 * begin - kept) / 2)
    notes = [
        *network.notes,
        f"{per_host} ranks share a host: the cables of hosts include {card:.4g} ns that a message between hosts takes "
        "longer than one inside, and bounds take the measured rate inside hosts",
    ]
    rows = [(of, mid, _message_ns(made, of, per_host)) for of, mid, _ in network.messages]
    return MessageCosts(made, network.share, rows, notes)


def _with_hosts(
    machine: Machine, host_ns: float, signal_ns: float, gamma: float, *, header: int | None = None
) -> Machine:
    found: dict[str, Any] = machine.describe() | ({} if header is None else {"header_bytes": header})
    values = {"host_overhead_ns": host_ns, "signal_ns": signal_ns, "gamma_ns_per_byte": gamma, "launch_ns": 0.0}
    return described(found | {key: float(f"{value:.6g}") for key, value in values.items()})


def _message_ns(machine: Machine, size: int, to: int = 1) -> float:
    """Returns the time of one message from accelerator 0 to accelerator ``to``."""
    return float(_core.simulate_messages(machine, [(0, to, size)]).seconds) * 1e9
