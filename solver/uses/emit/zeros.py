"""Inputs of zeros (the first state of a recurrent cell): plans of networks read them from nowhere, others do not."""

from __future__ import annotations

from dataclasses import replace

from instances.errors import InputError
from instances.network.stores import Store, Stores


def from_memory(found: Stores) -> Stores:
    """Return the maps of a network with zeros read as any other map."""
    return replace(found, stores=tuple(replace(store, zeros=False) for store in found.stores))


def no_zeros(store: Store) -> InputError:
    """The refusal of a state of zeros that a plan of groups reads from nowhere."""
    return InputError(f"{store.name}: zeros, which C of groups reads from memory and the plan from nowhere")
