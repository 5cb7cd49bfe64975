"""Adds the measured costs of messages to a network machine, from a calibration of its ranks.

Rank i is on accelerator i. The machine gets the fraction of the cables' rates that headers and protocols leave, the
time in which a host begins or ends a message, and the rest of the latency as the signal of a message's end. The rates
and latencies of its data sheet are not changed; bounds use them.
"""

from dataclasses import dataclass
from typing import Any

from unisono import _core
from unisono._core import InputError, Machine
from unisono.logs.link_calibration import with_share
from unisono.machines.descriptions import machine as described
from unisono.tuning.calibration import Calibration, disturbances

__all__ = ["MessageCosts", "check_network", "message_costs"]

#: The values that the file has from each line of measurements.
_OF_LINES = {
    "beta": "share of rates",
    "multicast-non-blocking": "host_overhead_ns",
    "gamma": "gamma_ns_per_byte",
}
#: The share of a data sheet's rate above which a measured rate contradicts it.
_EXACT = 1.02
#: The bytes of the two messages whose predicted times give the latency of a path and the time of a byte on it.
_SHORT, _LONG = 8, 1 << 20


@dataclass(frozen=True)
class MessageCosts:
    """A network machine with measured costs of messages."""

    machine: Machine
    #: The rate of a long message divided by the data sheet's rate.
    share: float
    #: Rows (bytes, measured ns, predicted ns) of messages from rank 0 to rank 1.
    messages: list[tuple[int, float, float]]
    notes: list[str]

    @property
    def residuals(self) -> dict[str, float]:
        """Returns the relative errors of predicted times, predicted / measured - 1, by bytes."""
        return {str(size): predicted / measured - 1 for size, measured, predicted in self.messages}


def check_network(machine: Machine, ranks: int, most_on_a_node: int) -> None:
    """Refuses a machine on which rank i cannot be on accelerator i.

    Raises:
        InputError: the machine is not a network, has fewer accelerators than there are ranks, or ranks share a node.

    """
    facts = machine.topology
    if facts is None:
        raise InputError(f"{machine.name} is of kind {machine.kind}; a calibration fills a network, or no machine")
    if ranks > facts["accelerators"]:
        raise InputError(f"{ranks} ranks are more than the {facts['accelerators']} accelerators of {machine.name}")
    if most_on_a_node > 1:
        raise InputError(
            f"{most_on_a_node} ranks share a node; a network is calibrated by one rank a node, rank i on accelerator i"
        )


def message_costs(machine: Machine, measured: Calibration, scale: float = 1.0) -> MessageCosts:
    """Returns the machine with the message costs of a calibration, whose times are ``scale`` times the machine's.

    Raises:
        InputError: the calibration gives no machine; see :meth:`Calibration.machine`.

    """
    bare = _with_hosts(with_share(machine, None), 0.0, 0.0, 0.0)
    short, long = (_message_ns(bare, size) for size in (_SHORT, _LONG))
    made = measured.machine(machine.name)
    byte_ns = made["beta_ns_per_byte"] / scale
    notes = disturbances(made)
    share = (long - short) / (_LONG - _SHORT) / byte_ns
    if share > _EXACT:
        notes.append(
            f"a byte took {byte_ns:.4g} ns, {1 / share:.2f} of its time by the data sheet of {machine.name}: its rates "
            "are too low, and bounds by them do not hold"
        )
    rest = made["alpha_ns"] / scale - short
    if rest < 0:
        notes.append(f"a message took {-rest:.4g} ns less than the latency by the data sheet of {machine.name}")
    # A host begins a message in alpha_r; begin, end and signal together take the latency minus that of links.
    host = max(min(made["alpha_r_ns"] / scale, rest / 2), 0.0)
    kept = with_share(machine, min(share, 1.0))
    filled = _with_hosts(kept, host, max(rest - 2 * host, 0.0), made["gamma_ns_per_byte"] / scale)
    rows = [(size, mid / scale, _message_ns(filled, size)) for size, mid, _ in measured.ping_pong if size]
    poor = [value for line, value in _OF_LINES.items() if line in made["fit"]["poor"]]
    if poor:
        notes.append(
            f"the measurements of {', '.join(poor)} do not lie on a line; measure on a quiet machine, or with more "
            "rounds"
        )
    return MessageCosts(filled, share, rows, notes)


def _with_hosts(machine: Machine, host_ns: float, signal_ns: float, gamma: float) -> Machine:
    found: dict[str, Any] = machine.describe()
    values = {"host_overhead_ns": host_ns, "signal_ns": signal_ns, "gamma_ns_per_byte": gamma, "launch_ns": 0.0}
    return described(found | {key: float(f"{value:.6g}") for key, value in values.items()})


def _message_ns(machine: Machine, size: int) -> float:
    """Returns the time of one message from accelerator 0 to 1."""
    return float(_core.simulate_messages(machine, [(0, 1, size)]).seconds) * 1e9
