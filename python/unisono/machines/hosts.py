"""Networks of hosts on which several ranks share a network card."""

from unisono._core import InputError, Machine
from unisono.machines.descriptions import machine as described

__all__ = ["per_host", "with_ranks", "without_ranks"]


def per_host(machine: Machine) -> int:
    """Returns the number of ranks of each host, as the machine states it; 1 if it states none."""
    return int(machine.describe().get("topology", {}).get("per_host", 1))


def without_ranks(machine: Machine) -> Machine:
    """Returns the network of the hosts, each one accelerator; the machine itself if it states no ranks of hosts."""
    table = machine.describe()
    if "per_host" not in table.get("topology", {}):
        return machine
    kept = {key: value for key, value in table["topology"].items() if key not in ("per_host", "host")}
    return described({**table, "topology": kept})


def with_ranks(machine: Machine, ranks: int, gbps: float, ns: float) -> Machine:
    """Returns the network with ``ranks`` ranks on each host, whose messages cross two cables of ``gbps`` and ``ns``.

    Raises:
        InputError: the network is not a list of cables, or a value is outside its limits.

    """
    table = without_ranks(machine).describe()
    topology = table.get("topology", {})
    if topology.get("name") != "graph":
        raise InputError(
            f"{machine.name} is a {topology.get('name', machine.kind)}, and only a graph, a list of cables between "
            "hosts, can state ranks that share a card; 'unisono machines import' writes one"
        )
    host = f"gbps={gbps:.6g} ns={ns:.6g}"
    return described({**table, "topology": {**topology, "per_host": ranks, "host": host}})
