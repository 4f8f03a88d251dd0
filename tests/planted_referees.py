"""Faults of `tests.planted` in referees: by file the tests that should fail, and what becomes of which place."""

from __future__ import annotations

#: (file, tests, [(name, old, new), ...])
REFEREES: list[tuple[str, str, list[tuple[str, str, str]]]] = [
    ("hwmodels/nest/replay/walk.py", "tests/hwmodels/test_replay_walk.py", [
        ("walk: no store at a seam", "max(self.pending, int(load[0]), self.stored)", "max(self.pending, int(load[0]))"),
        ("walk: blocks begin anew", "changed[0] = visits[0] != last", "changed[0] = True"),
        ("walk: snakes turn the same way", "odd = (odd + offset) % 2", "odd = odd % 2"),
        ("walk: stores hold nothing up", "np.maximum(compute[:-1], load[1:]), store[:-2])",
         "np.maximum(compute[:-1], load[1:]), 0)"),
        ("walk: the last store is free", "return self.time + max(self.pending, self.stored) + last_store",
         "return self.time + max(self.pending, self.stored)"),
        ("walk: sums come back for nothing", "back = (before > 0) | self.first_read", "back = before >= 0"),
        ("walk: a tile stays over a block", "self.stayed += len(tiles)", "self.stayed += 0"),
        ("walk: one buffer beside the other", "int(moved.load[1].sum()) + int(moved.store[1].sum())",
         "int(moved.load[1].sum())"),
        ("walk: never finished", 'for wrong, what in ((finals == 0, "never', 'for wrong, what in ((finals < 0, "never'),
        ("walk: finished twice", '(finals > 1, "finished', '(finals > 9, "finished'),
    ]),
    ("hwmodels/nest/replay/referee.py", "tests/hwmodels/test_replay.py", [
        ("referee: executed with other transfers", " + _call_faults(layer, machine, runs, result)", ""),
    ]),
    ("hwmodels/timeline/replay.py", "tests/hwmodels/test_timeline.py", [
        ("timeline replay: a queue moves two at a time", "if waiting and queue not in self.busy:", "if waiting:"),
        ("timeline replay: loads take no room", "self.beside |= {number} if isinstance(one, Load)",
         "self.beside |= set() if isinstance(one, Load)"),
        ("timeline replay: stores are gone at their begin", "self.beside |= {*self.released[number]}",
         "self.beside |= set()"),
    ]),
    ("hwmodels/placement/replay.py", "tests/hwmodels/test_placement_replay.py", [
        ("placement replay: beyond the memory", "address + buffer.size > memory.bytes:", "address > memory.bytes:"),
        ("placement replay: not aligned", "if address % buffer.alignment:", "if False:"),
        ("placement replay: one byte is shared", "part.first < highest.after:", "part.first + 1 < highest.after:"),
        ("placement replay: gaps take all", "if gap.lower <= time < gap.upper:", "if False:"),
        ("placement replay: spills are free", "moved += buffer.spill or 0", "moved += 0"),
        ("placement replay: banks are shared", "if {part.buffer, other.buffer} in foes", "if False"),
        ("placement replay: a bank ends too early", "(part.after - 1) // size + 1", "(part.after - 1) // size"),
        ("placement replay: preferences", "displaced += buffer.size", "displaced += 1"),
        ("placement replay: a gap has no end", "yield from (gap.lower, gap.upper)", "yield gap.lower"),
        ("placement replay: twice", "if len(places) < len(schedule.places):", "if False:"),
    ]),
    ("hwmodels/selection/replay.py", "tests/formulations/test_selection.py", [
        ("selection replay: converted again", "if wanted in made.types:\n            return",
         "if False:\n            return"),
        ("selection replay: types are not looked at", "elif wanted not in found.types:", "elif False:"),
        ("selection replay: no receiver", "self.spend(option.stage, rule.receive_ns * 1000)", "pass"),
        ("selection replay: no sender", "self.spend(stage, rule.send_ns * 1000 + ", "self.spend(stage, "),
        ("selection replay: serial as parallel", "if board.thread(name) == board.thread(reader):", "if False:"),
        ("selection replay: memory without buffers", "+ sum(pipeline.buffers.values())", ""),
        ("selection replay: no budget", "if used > budget.most:", "if False:"),
        ("selection replay: full memory", "memory > platform.memory_bytes:", "memory > 1 + platform.memory_bytes:"),
        ("selection replay: no base power", "drawn = board.frequency, period * board.frequency.power_mw",
         "drawn = board.frequency, 0 * board.frequency.power_mw"),
        ("selection replay: the frequency's scale", "self.frequency.scale.get(stage, 1.0)", "1.0"),
        ("selection replay: no accuracy is left", "if accuracy < 1:", "if accuracy < 0:"),
    ]),
    ("hwmodels/partial_engine/replay.py", "tests/formulations/test_partial_engine.py", [
        ("partial replay: places beyond a bank", "if end > self.engine.bank_bytes:", "if False:"),
        ("partial replay: a group that is nowhere", 'if self._find("in", i) is None:', "if False:"),
        ("partial replay: a second sum", "if o in self.done or o in self.dram or there is not None:", "if False:"),
        ("partial replay: a sum that is not whole", " or held[2] != frozenset(range(len(self.ins)))", ""),
        ("partial replay: added twice", " or fresh[2] & held[2]:", ":"),
        ("partial replay: a taken fresh place", "if held is not None:\n                self._fault",
         "if False:\n                self._fault"),
    ]),
    ("hwmodels/joint/replay.py", "tests/formulations/test_in_place.py", [
        ("joint replay: a map that gave its place stays", "(0, ()) if s in run.in_place.values() else ", ""),
        ("joint replay: a place of which rows are read again", '"recompute" in (run.rows.halo, run.columns.halo)',
         '"recompute" == run.columns.halo'),
        ("joint replay: a place that somebody reads later", "if u >= layers.start] != [t]", "if u == t] != [t]"),
        ("joint replay: a place of which a store may be under way", "if old.results:", "if False:"),
        ("joint replay: a place in other banks", "run.residents[made][1] != run.residents[place][1]", "False"),
    ]),
    ("hwmodels/fusion/replay/execute.py", "tests/formulations/test_in_place.py", [
        ("fusion execution: a place of its own for every result",
         "self.stay[stores.index(made)] = self.stay[stores.index(place)]", "pass"),
    ]),
    ("hwmodels/joint/replay.py", "tests/formulations/test_joint.py::test_an_account_by_hand", [
        ("joint replay: banks in any order", "was.banks[: len(banks)] != banks:", "not set(banks) <= set(was.banks):"),
    ]),
    ("hwmodels/board/replay.py", "tests/formulations/test_mapping.py::test_a_simulation_finds_what_is_wrong", [
        ("board replay: one more buffer", "old = inference - self.buffers[e]", "old = inference - self.buffers[e] - 1"),
    ]),
    ("hwmodels/hybrid/replay.py", "tests/formulations/test_hybrid.py::test_replay_finds_too_few_pieces", [
        ("hybrid replay: pieces of other kinds", "counts != list(pieces.values()):",
         "sum(counts) != sum(pieces.values()):"),
    ]),
    ("hwmodels/fusion/replay/count.py", "tests/formulations/test_fusion_profile.py", [
        ("fusion replay: measured layers take no time",
         "return -(-layer.cycles * pixels // (turns * layer.r * layer.c))", "return 0"),
    ]),
    ("hwmodels/fusion/replay/count.py", "tests/hwmodels/test_fusion_replay.py", [
        ("fusion replay: filters come for nothing", "self.moving += self._streamed(k)", "self.moving += 0"),
    ]),
    ("hwmodels/fusion/replay/execute.py", "tests/hwmodels/test_fusion_memory.py", [
        ("fusion memory: more than there is", "if count > self._left:", "if False:"),
    ]),
]  # fmt: skip
