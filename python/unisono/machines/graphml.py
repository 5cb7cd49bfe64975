"""The reader of GraphML, the format that networkx, Gephi and yEd write."""

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from unisono._core import InputError

__all__ = ["GraphFile", "parse"]

_NUMBERS = {"int": int, "long": int, "float": float, "double": float}


class GraphFile:
    """The graph of a file, with those methods of a networkx graph that `of_graph` calls."""

    def __init__(self, name: str, directed: bool) -> None:
        """Makes a graph without nodes."""
        self.graph = {"name": name}
        self._directed = directed
        self._are_directed: list[bool] = []
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: list[tuple[str, str, dict[str, Any]]] = []

    def is_directed(self) -> bool:
        """Returns whether an edge is directed; without edges, the file's default (``edgedefault``)."""
        return any(self._are_directed) if self._edges else self._directed

    def nodes(self, data: bool = False) -> Iterable[Any]:
        """Returns the names of nodes in the order of the file, with their data if requested."""
        return list(self._nodes.items()) if data else list(self._nodes)

    def edges(self, data: bool = False) -> Iterable[Any]:
        """Returns the edges in the order of the file as (from, to), with their data if requested."""
        return self._edges if data else [(a, b) for a, b, _ in self._edges]

    def add_node(self, name: str, data: dict[str, Any]) -> None:
        """Adds a node; a second node of the same name is an error."""
        if name in self._nodes:
            raise InputError(f"node '{name}' stands twice")
        self._nodes[name] = data

    def add_edge(self, a: str, b: str, data: dict[str, Any], directed: str | None) -> None:
        """Adds an edge between two nodes that the graph has; ``directed`` is None for the file's default."""
        if directed not in (None, "true", "false"):
            raise InputError(f"the edge from '{a}' to '{b}' has directed='{directed}'; accepted are true and false")
        for node in (a, b):
            if node not in self._nodes:
                raise InputError(f"an edge names node '{node}', which the graph does not have")
        self._edges.append((a, b, data))
        self._are_directed.append(self._directed if directed is None else directed == "true")


def parse(text: str, name: str) -> GraphFile:
    """Reads a graph from GraphML; data have the types that the keys of the file declare.

    Raises:
        InputError: the text is not GraphML, or a value has another type than its key declares.

    """
    # Declared entities can expand to any size; GraphML does not use them.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError("it declares entities, which GraphML does not need")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"it is not XML: {error}") from None
    graphs = [child for child in root if _tag(child) == "graph"]
    if _tag(root) != "graphml" or len(graphs) != 1:
        raise InputError(f"it is no GraphML with one graph: its root is <{_tag(root)}>, with {len(graphs)} graphs")
    for element in graphs[0].iter():
        if _tag(element) == "hyperedge" or (_tag(element) == "graph" and element is not graphs[0]):
            raise InputError(f"its graph has a <{_tag(element)}>; accepted are nodes, and edges between two nodes")
    keys = {key.get("id", ""): key for key in root if _tag(key) == "key"}
    graph = GraphFile(name, graphs[0].get("edgedefault") == "directed")
    for kind in ("node", "edge"):
        defaults = {
            key.get("attr.name", ""): _value(key, default.text)
            for key in keys.values()
            if key.get("for") in (kind, "all") and (default := _child(key, "default")) is not None
        }
        for element in graphs[0]:
            if _tag(element) != kind:
                continue
            data = defaults | dict(_datum(datum, keys) for datum in element if _tag(datum) == "data")
            if kind == "node":
                graph.add_node(element.get("id", ""), data)
            else:
                ends = element.get("source", ""), element.get("target", "")
                graph.add_edge(*ends, data, element.get("directed"))
    return graph


def _tag(element: ElementTree.Element) -> str:
    """Returns the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element | None:
    return next((child for child in element if _tag(child) == tag), None)


def _datum(datum: ElementTree.Element, keys: dict[str, ElementTree.Element]) -> tuple[str, Any]:
    key = keys.get(datum.get("key", ""))
    if key is None:
        raise InputError(f"data have key '{datum.get('key', '')}', which is not declared")
    return key.get("attr.name", key.get("id", "")), _value(key, datum.text)


def _value(key: ElementTree.Element, text: str | None) -> Any:
    kind, name, value = key.get("attr.type", "string"), key.get("attr.name", ""), (text or "").strip()
    if kind == "boolean":
        if value.lower() not in ("true", "false", "1", "0"):
            raise InputError(f"{name} is '{value}'; accepted are true and false")
        return value.lower() in ("true", "1")
    if kind not in _NUMBERS:
        return value
    try:
        return _NUMBERS[kind](value)
    except ValueError:
        raise InputError(f"{name} is '{value}', and its key declares a number ({kind})") from None
