"""Machines from graphs in memory, such as those of networkx."""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from unisono._core import InputError, Machine, import_network
from unisono.base.inputs import GraphLike
from unisono.base.messages import shown

__all__ = ["is_graph", "of_graph"]

#: The data of an edge that describe a cable, named as in a list of cables.
_WORDS = ("gbps", "measured", "ns", "count")


def is_graph(value: object) -> TypeGuard[GraphLike]:
    """Returns whether a value has the interface of a networkx graph."""
    return all(hasattr(value, name) for name in ("nodes", "edges", "is_directed"))


def of_graph(graph: GraphLike) -> Machine:
    """Makes the network with the nodes and cables of a graph.

    A node is a switch if its data has ``switch=True``, else an accelerator; accelerators are ranks in the order of the
    graph. If all nodes are words that begin with a letter, these are the names of the nodes. The data of an edge may
    have ``gbps`` (of one direction), ``measured`` (the rate that programs reach), ``ns`` (latency) and ``count`` (equal
    cables); missing values have the defaults of an imported list of cables. The machine's notes name other data.

    Raises:
        InputError: the graph is directed, has no accelerator, or data that are not numbers.

    """
    if graph.is_directed():
        raise InputError("the graph has directed edges; cables go both ways, so that accepted are undirected graphs")
    nodes = list(graph.nodes(data=True))
    kinds = {node: _is_switch(node, data) for node, data in nodes}
    accelerators = [node for node, is_switch in kinds.items() if not is_switch]
    switches = [node for node, is_switch in kinds.items() if is_switch]
    number = {node: at for at, node in enumerate([*accelerators, *switches])}
    if not accelerators:
        raise InputError("the graph has no accelerator: all its nodes are switches")
    named = all(map(_is_name, number))
    shown_as = {node: node if named else at for node, at in number.items()}
    lines = [f"{shown_as[a]} {shown_as[b]}{_words(a, b, data)}" for a, b, data in graph.edges(data=True)]
    # networkx keeps the name of a graph in the dictionary `graph`.
    about = getattr(graph, "graph", None)
    name = str(about.get("name") or "graph") if isinstance(about, Mapping) else "graph"
    # Switches after the last one with a cable are omitted, because a list of cables cannot state them.
    used = max([len(accelerators), *(1 + number[end] for edge in graph.edges(data=True) for end in edge[:2])])
    names = list(number)[:used] if named else None
    text = "\n".join(lines) + "\n"
    return import_network(text, "the graph", "edges", name, 1, len(accelerators), names, _unread(graph))


def _unread(graph: GraphLike) -> list[str]:
    """Returns a note on data of edges that no cable has, if there are any."""
    keys = sorted({str(key) for _, _, data in graph.edges(data=True) for key in data} - set(_WORDS))
    if not keys:
        return []
    listed = ", ".join(map(shown, keys[:4])) + (", ..." if len(keys) > 4 else "")
    return [f"data of edges that are not read: {listed}; read are {', '.join(_WORDS)}"]


def _is_switch(node: object, data: Mapping[str, Any]) -> bool:
    value = data.get("switch", False)
    # NumPy booleans equal Python booleans, but are not instances of bool.
    if isinstance(value, str) or value not in (None, True, False):
        raise InputError(f"node {shown(node)} has switch={shown(value)}; accepted are the booleans true and false")
    return bool(value)


def _is_name(node: object) -> bool:
    """Returns whether a machine file accepts a node as a node's name."""
    return isinstance(node, str) and re.fullmatch(r"[^\W\d_][^\s#]*", node) is not None


def _words(a: object, b: object, data: Mapping[str, Any]) -> str:
    found = []
    for word in _WORDS:
        value = data.get(word)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"the edge between {shown(a)} and {shown(b)} has {word}={shown(value)}, which is no number"
            )
        found.append(f" {word}={value}")
    return "".join(found)
