"""Which maps give their place to a result, told from the operators of a network: independent of layers' windows."""

from __future__ import annotations

from math import prod

from instances.network.network import Network
from instances.network.operators import Eltwise, Pool
from instances.network.stores import Stores, inputs_of


def places(network: Network, found: Stores, t: int) -> list[int]:
    """The stores whose elements a layer reads one by one, the last to do so, where its result is a map of its own.

    Element by element: a sum or product of maps of its own shape, or a pool of single elements.
    """
    layer, made = found.layers[t], found.stores[found.writes[t]]
    operator = network.operator(layer.name)
    single = isinstance(operator, Pool) and operator.kernel == operator.stride == (1, 1) and not any(operator.pad)
    if not (isinstance(operator, Eltwise) or single) or made.whole or len(made.parts) > 1:
        return []
    read = list(zip(inputs_of(network, operator, layer), found.reads[t], strict=True))
    free = []
    for s in dict.fromkeys(found.reads[t]):
        store, shapes = found.stores[s], {network.operator(name).shape for name, at in read if at == s}
        whole = shapes == {operator.shape} and store.rows * store.row_elements == prod(operator.shape)
        if whole and not (store.whole or store.results) and store.parts and max(store.readers) == t:
            free.append(s)
    return free


def taken(given: list[tuple[int, list[int]]]) -> dict[int, int]:
    """Results with maps whose place they take, as many as there are: no map gives its place twice."""
    found: dict[int, int] = {}

    def ask(made: int, tried: set[int]) -> bool:
        for place in dict(given)[made]:
            if place not in tried:
                tried.add(place)
                owner = next((one for one, at in found.items() if at == place), None)
                if owner is None or ask(owner, tried):
                    found[made] = place
                    return True
        return False

    for made, _ in given:
        ask(made, set())
    return found
