"""Reads and changes the rates of cables in the machine file of a network."""

import re
from typing import Any

from unisono._core import InputError, Machine, plane
from unisono.base.inputs import finite
from unisono.machines.descriptions import machine

__all__ = ["same_cables", "stated_rates", "with_rate"]

_RATE = r"(?<=\bgbps=)[^\s#]+"
_MEASURED = r"(?<=\bmeasured=)[^\s#]+"


def same_cables(one: Machine, other: Machine) -> bool:
    """Returns whether two networks have equal lists of cables: nodes, rates and latencies; False for other machines."""
    if "links" not in one.offers or "links" not in other.offers:
        return False
    cables = plane(one), plane(other)
    return all(cables[0][key].tolist() == cables[1][key].tolist() for key in ("a", "b", "gbps", "latency_ns"))


def stated_rates(network: Machine) -> list[str]:
    """Returns the distinct rates that the machine file states for cables, as written there."""
    return list(dict.fromkeys(rate for text in _texts(network).values() for rate in re.findall(_RATE, text)))


def with_rate(network: Machine, old: str, new: str) -> Machine:
    """Returns the network with rate ``new`` for cables of rate ``old``, in Gb/s per direction.

    Raises:
        InputError: no cable has the rate ``old``, or a rate is not a number.

    """
    before, after = _number(old), _number(new)
    rates = stated_rates(network)
    if before not in map(float, rates):
        known = f"those of {network.name} state {', '.join(rates)}" if rates else f"none of {network.name} states one"
        raise InputError(f"no cable states gbps={old}; {known}")

    def changed(line: str) -> str:
        stated = re.search(_RATE, line)
        if stated is None or float(stated[0]) != before:
            return line
        # The measured rate of a cable changes in proportion to the stated rate.
        rated = re.sub(_RATE, repr(after), line)
        return re.sub(_MEASURED, lambda found: repr(float(found[0]) / before * after), rated)

    table = _table(network)
    texts = {key: "\n".join(map(changed, text.split("\n"))) for key, text in _texts(network).items()}
    table["topology"] |= texts
    return machine(table)


def _texts(network: Machine) -> dict[str, str]:
    """Returns the texts of the topology that state rates of cables, by key."""
    topology = _table(network).get("topology", {})
    return {key: value for key, value in topology.items() if isinstance(value, str) and "gbps=" in value}


def _table(network: Machine) -> dict[str, Any]:
    # Imported late, because the TOML reader takes longer to import than this package.
    import tomllib

    return tomllib.loads(network.to_toml())


def _number(text: str) -> float:
    try:
        return finite("a rate of cables", float(text))
    except ValueError:
        raise InputError(f"'{text}' is no rate of cables; accepted are numbers, in Gb/s") from None
