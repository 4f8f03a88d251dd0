"""``python driver.py QUESTION ANSWER``: runs of the public MIDAP simulator (cap-lab/MidapSim), as JSON files.

The question has the network, the banks and a list of runs: a plan of certile, or a policy of the simulator's own
compiler. The answer has for each run the bytes that are read and written, the cycles, and the share of wrong data in
the worst layer; or why it was refused. The folder of the simulator is in CERTILE_MIDAPSIM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
warnings.filterwarnings("ignore")
sys.path[:0] = [str(HERE), os.environ["CERTILE_MIDAPSIM"]]  # orderedset.py here stands in for the package

from model import built  # noqa: E402
from program import install, translated, write_parts  # noqa: E402

POLICIES = {"MIN": "MIN_DRAM_ACCESS", "HIDE": "HIDE_DRAM_LATENCY", "DB": "DOUBLE_BUFFER"}
#: Seconds: on some networks the simulator's own compiler does not end.
LIMIT = 300


def configure(policy: str, banks: int, bank_kib: float, weight_kib: float) -> None:
    """Set up the machine `midap` with these banks."""
    import torch
    from config import cfg

    torch.set_num_threads(1)
    cfg.MIDAP.CONTROL_STRATEGY.LAYER_COMPILER = POLICIES[policy]
    cfg.MIDAP.FMEM.NUM, cfg.MIDAP.FMEM.NUM_ENTRIES = banks, int(bank_kib * 1024)
    cfg.MIDAP.WMEM.NUM, cfg.MIDAP.WMEM.NUM_ENTRIES, cfg.MIDAP.SYSTEM_WIDTH = 16, int(weight_kib * 1024), 64
    cfg.DRAM.FREQUENCY = 1.6
    dram = cfg.DRAM
    cfg.SYSTEM.BANDWIDTH = (dram.CHANNEL_SIZE * dram.FREQUENCY * dram.NUM_CHANNELS * 2) // cfg.SYSTEM.DATA_SIZE
    cfg.MIDAP.CORE_ID, cfg.MIDAP.PACKET_SIZE, cfg.DRAM.INCLUDE_DRAM_WRITE = -1, 2048, False
    cfg.LOGGING_CONFIG_DICT["root"]["level"] = "ERROR"


def run(network: dict[str, Any], level: int, plan: dict[str, Any] | None) -> dict[str, Any]:
    """One run with a plan, or with the policy that is set up."""
    import midap_software.layer_block
    from data_structure.data import SDataInfo
    from test_wrapper import TestWrapper

    channels = {one["name"]: one["shape"][1] for one in network["operators"]}  # the rest is padding
    shares: dict[str, float] = {}
    checked = SDataInfo.check_result

    def check(self: Any, offset: Any = None, shape: Any = None, name: Any = None) -> Any:
        result = checked(self, offset, shape, name)
        held = self.diff_arr[:, :, : channels.get(name, 2**30)]
        shares[str(name)] = float(held.sum()) / held.size
        return result

    midap_software.layer_block.LayerBlock.init_counter()
    wrapper = TestWrapper(level)
    wrapper.setup_from_builder(built(network))
    if plan is None:
        own = wrapper.cm.subnet_compiler.determine_path_and_stationary

        def repaired() -> None:
            own()
            write_parts(wrapper.cm.subnet_compiler.processing_order)

        wrapper.cm.subnet_compiler.determine_path_and_stationary = repaired
    else:
        install(wrapper, translated(plan))
    SDataInfo.check_result = check
    try:
        wrapper.compile()
        wrapper.simulate()
    finally:
        SDataInfo.check_result = checked
    total = wrapper.midap_simulator.stats.global_stats
    moved = int(total.READ.DRAM + total.WRITE.DRAM)
    return {
        "bytes": moved,
        "cycles": int(total.CLOCK),
        "checked": len(shares),
        "wrong": max(shares.values(), default=0),
    }


def answered(question: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """One run, or why there is none."""
    configure(wanted.get("own", "MIN"), question["banks"], question["bank_kib"], question["weight_kib"])
    signal.alarm(LIMIT)
    try:
        return run(question["network"], question["level"], wanted.get("plan"))
    except Exception as error:  # noqa: BLE001  whatever the simulator raises is its answer
        return {"refused": f"{type(error).__name__}: {error}"[:300]}
    finally:
        signal.alarm(0)


def _late(*_: object) -> None:
    raise TimeoutError(f"no end within {LIMIT} s")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _late)
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers = [answered(asked, wanted) for wanted in asked["runs"]]
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")
