"""Rewrite the bundled network files: ``python -m instances.zoo``."""

from __future__ import annotations

import logging
from pathlib import Path

from instances.load import dump_network
from instances.zoo import GENERATORS

logger = logging.getLogger(__name__)


def main() -> None:
    """Write ``instances/networks/NAME.json`` for every generator."""
    folder = Path(__file__).parent.parent / "networks"
    for name, generate in GENERATORS.items():
        dump_network(generate(), folder / f"{name}.json")
        logger.info("wrote %s", folder / f"{name}.json")


if __name__ == "__main__":
    main()
