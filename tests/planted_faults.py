"""Faults of `tests.planted`, but for referees: by file the tests that should fail, and what becomes of which place."""

from __future__ import annotations

#: (file, tests, [(name, old, new), ...])
BY_FILE: list[tuple[str, str, list[tuple[str, str, str]]]] = [
    ("hwmodels/nest/price/limits.py", "tests/hwmodels/test_limits.py", [
        ("limits: a batch does not share weights", "repeats, layer.b * y.per_tap", "repeats, y.per_tap"),
        ("limits: reads and writes in turn", "max(moving // 2, computing)", "max(moving, computing)"),
        ("limits: wide results when begun", "min(most[2], _UNIT * sizes.out)", "_UNIT * sizes.out"),
        ("limits: more bytes at the dearest home", "least = min(machine.byte_fj_of", "least = max(machine.byte_fj_of"),
    ]),
    ("hwmodels/nest/price/boxes.py", "tests/hwmodels/test_transfer.py", [
        ("boxes: rolled by a residue less", "residue + 1, axis=1", "residue, axis=1"),
    ]),
    ("hwmodels/nest/price/tables.py", "tests/hwmodels/test_transfer.py", [
        ("tables: sums that are read as writes", 'if row in ("OUT", "PSUM_WRITE") else', 'if operand == "OUT" else'),
    ]),
    ("hwmodels/nest/price/core.py", "tests/hwmodels/test_transfer.py", [
        ("core: loops of a smaller core", "self.skeleton.full or self._smaller(operand))", "self.skeleton.full)"),
    ]),
    ("hwmodels/nest/price/overlap.py", "tests/test_dram.py", [
        ("overlap: one box for all steps", "np.arange(self.count), side", "np.zeros(self.count, int), side"),
    ]),
    ("hwmodels/nest/price/turning.py", "tests/hwmodels/test_turning.py", [
        ("turning: a walk without one of its axes", "v1 - x2 * x3 * t1, 0)", "v1 - x2 * t1, 0)"),
        ("turning: turns that keep nothing", "first, each = (x3 - 1) * (v3 - t3)", "first, each = (x3 - 1) * v3"),
        ("turning: two tiles that share no memory", "rooms[0] - np.add.outer(low, low)",
         "rooms[0] - np.add.outer(low, 2 * low)"),
    ]),
    ("hwmodels/nest/price/core.py", "tests/formulations/test_ability_plans.py", [
        ("core: lines along the last loop", "Either(last, slid, Either(whole, least, before))", "slid"),
    ]),
    ("hwmodels/nest/price/core.py", "tests/hwmodels/test_hidden.py", [
        ("core: runs by calls where channels are cut", "* (inside.dim not in unsure)", "* 0"),
    ]),
    ("instances/machine/machine.py", "tests/solver/test_fusion_plans.py", [
        ("reserved: a bank that is begun is free", "-(-self.reserved_bytes // self.bank_bytes)",
         "self.reserved_bytes // self.bank_bytes"),
    ]),
    ("formulations/levels/terms.py", "tests/formulations/test_levels_time.py", [
        ("levels: a queue is done when all is stored", "ends = self._stored(names.index(name) if name else 0)",
         "ends = self._stored()"),
        ("levels: all first loads before a queue begins", "queues[name] = Extreme.of([before for before, _, _ in ways]",
         "queues[name] = Extreme.of([before.plus(own) for before, own, _ in ways]"),
    ]),
    ("formulations/levels/chains.py", "tests/formulations/test_levels.py", [
        ("levels: the rest of a cut is a piece", "+ _count(length - whole * steps[0], inner, pairs)",
         "+ (length > whole * steps[0])"),
    ]),
    ("formulations/fusion/problem.py", "tests/solver/test_fusion_plans.py", [
        ("reserved: groups have all", "return machine.unreserved", "return machine"),
    ]),
    ("formulations/pareto.py", "tests/formulations/test_pareto.py", [
        ("pareto: cells of one slice alone", "falls = flat[here] <= mine", "falls = flat[here] < 0"),
        ("pareto: equal values in a cell below", "<= mine[inner]", "< mine[inner]"),
    ]),
    ("hwmodels/nest/price/relaxed.py", "tests/hwmodels/test_ideal.py tests/formulations/test_relaxed.py", [
        ("relaxed: windows that fetch nothing at a turn", "pieces.number - behind - (before if turning else 0), 0)",
         "pieces.number, 0)"),
        ("relaxed: segments of what may span", "np.where(self.unsure, 0, self.number - self.full(extent))",
         "self.number - self.full(extent)"),
        ("relaxed: fetches of nothing", "np.where(total > 0, np.maximum(calls, 1), 0)  #", "np.maximum(calls, 1)  #"),
        ("relaxed: overlaps at clipped places", "np.maximum(before - start, 0)",
         "np.full(len(place), max(0, window.reach - window.stride))"),
        ("relaxed: a window above the least", "least_window(lo, hi, part)[made.pieces[at]]",
         "least_window(lo, hi, window)[made.pieces[at]]"),
    ]),
    ("hwmodels/nest/price/hidden.py", "tests/hwmodels/test_hidden.py", [
        ("hidden: all pieces as large as the fewest are", "ideal=ideal, more=True)", "ideal=ideal)"),
        ("hidden: a bias in one run", "runs = 2 * runs", "runs = runs + number"),
        ("hidden: runs of small tiles by their size", "np.minimum(self.runs[op], size))",
         "np.maximum(1, size * self.runs[op] // np.maximum(self.elements[op], 1)))"),
        ("hidden: a part of the kernel that fetches nothing", "self._whole(dim) & several &", "several &"),
        ("hidden: steps beside loads of loops outside", "high if level[d] or d in KERNELS.values() else ends", "ends"),
        ("hidden: stores beside last steps", 'self._busy(of.level["OUT"], some.first_most)',
         'self._busy(of.level["OUT"])'),
    ]),
    ("hwmodels/nest/price/pieces.py", "tests/formulations/test_vectors.py", [
        ("pieces: a piece less between the ends", "np.maximum(number[1] - 2, 0)", "np.maximum(number[1] - 3, 0)"),
        ("pieces: ends whose rests are left out", "rest = (more > full)", "rest = 0 * (more > full)"),
    ]),
    ("formulations/tiling/ways.py", "tests/formulations/test_ways.py", [
        ("ways: pieces alike in windows", "self.window.trivial and len", "len"),
        ("ways: sizes that do not count", "-3 if axis.fits else None", "-3"),
    ]),
    ("hwmodels/nest/price/ranges.py", "tests/hwmodels/test_ranges.py", [
        ("ranges: the largest group beside one that it may be", "np.maximum(groups - 3, 0) + ends + largest",
         "groups - 2 + ends + largest"),
        ("ranges: the last group with what others need", "groups - 2 + ends - need", "groups - 1 + ends - need"),
        ("ranges: loops that may cut no further as those that do not", "found.most[inner] > found.fewest[outer]",
         "found.fewest[inner] > found.most[outer]"),
    ]),
    ("hwmodels/nest/price/sequences.py", "tests/hwmodels/test_sequences.py", [
        ("sequences: what slides is fetched whole", "if at == self.slide and not begin", "if False"),
        ("sequences: padding at the ends only", "key = (*key, before, behind)", "pass"),
        ("sequences: what does not move is fetched", "outside[op]], op) for", 'outside[op]], "IN") for'),
        ("sequences: pieces at the ends as others", "(b - a, a == lo, b == hi)", "(b - a,)"),
        ("sequences: partial sums come back at once", "first = not self.depth[op] or all(", "first = False and all("),
        ("sequences: pieces that begin the range as others", "a == lo, others, stored", "others, stored"),
    ]),
    ("hwmodels/nest/price/walks.py", "tests/hwmodels/test_sequences.py", [
        ("walks: one piece more", "fewest = max(self.number[0] - 1, 0) if", "fewest = self.number[0] if"),
        ("walks: what is behind stands for what is before it", "return found[first], level[which]",
         "return np.append(found[first[1:]], found[-1]), level[which]"),
    ]),
    ("formulations/tiling/settling.py", "tests/formulations/test_settling.py", [
        ("settling: bounds of smaller pieces", "bound = max(x.bound for x in found if (sizes <= x.sizes).all())",
         "bound = max(x.bound for x in found)"),
    ]),
    ("hwmodels/nest/price/cells.py", "tests/hwmodels/test_cells.py", [
        ("cells: as many elements as cells", "(more - 1) * self.size + 1)", "more * self.size)"),
        ("cells: cells that a piece fills for those that it spans", "-(-elements // self.size) if",
         "elements // self.size if"),
        ("cells: one more piece in a cell is none", "((more > 0) | (behind == 0))", "(more > 0)"),
        ("cells: the last piece from where its cell begins", "extent - (final // 2 + 1) * self.size + 1",
         "extent - final // 2 * self.size"),
        ("cells: no piece is larger than what stands for it", "return 2 * self.size - 2", "return 0"),
        ("cells: one that is first and last has one size", "((ways.size < end) &", "((size < end) &"),
    ]),
    ("formulations/tiling/splitting.py", "tests/formulations/test_splitting.py", [
        ("splitting: nests left to others with other Holds", "(op, end, hidden.buffers[op])",
         "(op, hidden.buffers[op])"),
        ("splitting: nests left to others in other segments", "for a, b in pairwise(ends))",
         "for a, b in [(0, None)])"),
        ("splitting: a value that some nest may be below is a bound", "max(least, min(found, default=middle))",
         "max(least, middle)"),
        ("splitting: rows for columns that are one run", "and innermost and channels and", "and innermost and"),
    ]),
    ("formulations/tiling/settling.py", "tests/formulations/test_splitting.py", [
        ("settling: one order alone", "for order in orders(self.hidden, one))", "for order in [None])"),
    ]),
    ("solver/uses/emit/ahead/whole.py", "tests/solver/test_emit_ahead.py", [
        ("ahead: what is stored may go at once", "(one.released, one.limit - 1)", "(one.released, one.released)"),
        ("ahead: filters of one visit stay", "last = one.due if streamed else", "last = one.due if not streamed else"),
        ("ahead: maps that are flattened have a row", "tensor.part((0, part.flat[0])", "tensor.part((0, 1)"),
    ]),
    ("solver/uses/emit/ahead/files.py", "tests/solver/test_emit_ahead.py", [
        ("ahead: filters are there when they may be loaded", "part.due <= step <= part.last",
         "part.first <= step <= part.last"),
    ]),
    ("solver/uses/emit/ahead/placing.py", "tests/solver/test_emit_ahead.py", [
        ("ahead: bytes are free a step too early", "while last[ends[gone]] < first[i]",
         "while last[ends[gone]] <= first[i]"),
    ]),
    ("solver/uses/emit/ahead/whole.py", "tests/solver/test_emit_ahead_nests.py", [
        ("ahead: sums have no place of their own beside a result that stays",
         "made.place = None if s in run.residents else self.sums[t]", "made.place = self.sums[t]"),
        ("ahead: an input that comes again has one turn", "if not any(a.meets(b) for a, b in product(mine, there))",
         "if True"),
        ("ahead: filters of a nest stay until its end", "and move.due > one.due)", "and move.due > 10**6)"),
    ]),
    ("solver/uses/emit/ahead/files.py", "tests/solver/test_emit_ahead_nests.py", [
        ("ahead: results lie as far apart as they are large", 'numbers = f"{unit}, {apart},',
         'numbers = f"{unit}, {unit},'),
        ("ahead: the window is added up as a whole in each step",
         'return ("work->top", "work->bottom") if self._sums(k)',
         "return super()._window(k) if self._sums(k)"),
        ("ahead: filters have the channels that are added", "work->wide + n - work->base",
         "work->wide + n - work->low"),
    ]),
    ("formulations/fusion/work.py", "tests/solver/test_emit_ahead_nests.py", [
        ("work: sums begin where channels do not", "low, high, before == 0,", "low, high, low == 1,"),
        ("work: a step reads its window as a whole", "if one.bottom - one.top < layer.kh:", "if False:"),
        ("work: filters with all channels", "first + filters, low, low + number)", "first + filters)"),
    ]),
    ("solver/uses/emit/ahead/whole.py", "tests/solver/test_emit_ahead_turns.py", [
        ("ahead: a map between turns is there as a whole", "            cuts |= {one.first for one in works}\n",
         "            pass\n"),
        ("ahead: what a layer makes in turns is there in the last one", "self.begins[r] + work.step\n",
         "self.begins[r] + some[-1].step\n"),
    ]),
    ("solver/uses/emit/ahead/files.py", "tests/solver/test_emit_ahead_turns.py", [
        ("ahead: the first of two layers alone has its turn", "bisect(steps, order.at))]",
         "bisect_left(steps, order.at) + 1)]"),
        ("ahead: layers that make nothing have a turn", "one in every if one.begin < one.end]", "one in every]"),
    ]),
    ("formulations/fusion/work.py", "tests/solver/test_emit_ahead_turns.py", [
        ("work: filters stay behind their turn", "streamed = int(steps.in_turns(",
         "streamed = 0 * int(steps.in_turns("),
        ("work: filters of the first layer of a step alone", "step, each = steps[t, due],",
         "step, each = next(one for one in work if one.step == due),"),
    ]),
    ("solver/uses/emit/ahead/addressed.py", "tests/solver/test_emit_ahead.py", [
        ("addresses: no less than at first is tried", "if spares[run] > size // MOST",
         "if spares[run] > size // FIRST"),
    ]),
    ("formulations/fusion/latency/timelines.py", "tests/solver/test_emit_ahead.py", [
        ("addresses: bytes to spare in all that follows", "range(begins[run] + 1, begins[run + 1] + 1), spare)",
         "range(begins[run] + 1, begins[-1] + 1), spare)"),
        ("addresses: transfers as before", "draft.keep(range(begins[run] + 1", "draft.keep(range(begins[run] + 10**6"),
    ]),
    ("solver/uses/emit/ahead/program.py", "tests/solver/test_emit_ahead.py", [
        ("ahead: the host joins inputs in its turn", "                    before.append(step)\n",
         "                    pass\n"),
    ]),
    ("solver/uses/emit/runtime/certile_ahead.c", "tests/solver/test_emit_ahead.py", [
        ("ahead: a wait for one transfer less", "before + (size_t)k", "before + (size_t)k - 1"),
    ]),
    ("solver/uses/emit/runtime/certile_near.c", "tests/solver/test_emit_near.py", [
        ("near: a row of the window too few", "axis->pad + axis->reach + 1", "axis->pad + axis->reach"),
        ("near: filters of the first tile alone", "if (s->layer->runs && nest->tile[CERTILE_W].place == k) {",
         "if (s->layer->runs && nest->tile[CERTILE_W].place == k && !s->follows) {"),
        ("near: a transfer that counts twice", "    certile_dma_end(CERTILE_SHARED);",
         "    certile_dma_end(CERTILE_SHARED), certile_dma_end(CERTILE_SHARED);"),
        ("near: tiles slide from another pass on", "if (s->follows) {", "if (s->end) {"),
        ("near: runs as far apart as may be", "if (run.to - piece.to ==", "if (k || run.to - piece.to =="),
        ("near: the nest of another end of the map", " || nest->bottom != bottom", ""),
        ("near: biases lie behind a tile's channels", "from + layer->runs * work->wide",
         "from + layer->runs * s->nest->wide"),
    ]),
    ("solver/uses/emit/ahead/near.py", "tests/solver/test_emit_near.py", [
        ("near: a ring of a row less", "inputs.extents[inputs.ring]", "inputs.extents[inputs.ring] - 1"),
        ("near: sums of the last channels alone", "s->now.lo[CERTILE_N] == 0 ?", "1 ?"),
        ("near: a nest for one step alone", "calls += one.times *", "calls +="),
        ("near: joined maps begin at the first", 'there = f"ch - {shift}" if shift else "ch"', 'there = "ch"'),
        ("near: all inputs in one tile", "size = prod(inputs.extents) * inputs.element", "size = 0"),
    ]),
    ("formulations/tiling/recut.py", "tests/formulations/test_splitting.py", [
        ("recut: loops as they are", "pairwise(cuts if member.any_order else ())", "()"),
    ]),
    ("instances/onnx/products.py", "tests/instances/test_onnx_indices.py", [
        ("attention: no past is seen", "reach = cached if causal else keys", "reach = 0 if causal else keys"),
    ]),
    ("instances/onnx/ops.py", "tests/instances/test_onnx_indices.py", [
        ("onnx: a reflection as zeros", '"mode", "constant") == "constant"', '"mode", "constant") != "edge"'),
    ]),
    ("instances/foreign/products.py", "tests/instances/test_foreign.py", [
        ("zigzag: as much padding behind as before", "+ 1 - sum(pads[d])", "+ 1 - 2 * pads[d][0]"),
    ]),
    ("instances/network/feature_maps.py", "tests/instances/test_network.py", [
        ("stages: a sum of three as of two", "[words * (len(draft.inputs) - 1)] * out_rows", "[words] * out_rows"),
    ]),
    ("instances/network/tasks.py", "tests/instances/test_network.py", [
        ("tensors: inputs from where they stand", "0 if isinstance(operator, Input) else time", "time"),
    ]),
    ("formulations/banks/bounds.py", "tests/formulations/test_bank_overtaking.py", [
        ("bank bounds: a cycle a stage more", "max(0, stage.cycles * cycle - begun)", "max(0, stage.cycles * cycle)"),
    ]),
    ("formulations/banks/network.py", "tests/formulations/test_banks.py::test_equal_stages_may_leave_other_tiles", [
        ("banks: programs of other stages", "self._free(state, source), self.stays(source, after, at),",
         "self._free(state, source),"),
    ]),
    ("formulations/selection/search.py", "tests/formulations/test_selection.py", [
        ("trellis: converted for each reader", "kinds |= {v[1]}", "kinds |= set()"),
    ]),
    ("formulations/mesh/cp_sat.py", "tests/formulations/test_mesh.py", [
        ("mesh cp-sat: buffers aside", "self._sum(cap.what, cap.limit)", "pass"),
    ]),
    ("formulations/mesh/problem.py", "tests/formulations/test_mesh.py", [
        ("mesh: layouts without padding", "taken, most = one.words", "taken, most = one.elements"),
    ]),
    ("formulations/mapping/problem.py", "tests/formulations/test_mapping.py", [
        ("mapping: bytes of the reader wait", "for (i, _), number in", "for (_, i), number in"),
    ]),
    ("formulations/selection/frame.py", "tests/formulations/test_selection.py", [
        ("selection: a score that is the limit", "score_rows(frame, limit + 1)", "score_rows(frame, limit)"),
    ]),
    ("formulations/placement/packing.py", "tests/formulations/test_placement.py", [
        ("blocks: gaps joined over a full time", "if gaps and (gaps[-1].upper, gaps[-1].window) == (time, window):",
         "if gaps and gaps[-1].window == window:"),
    ]),
    ("formulations/banks/labels.py", "tests/formulations/test_bank_time.py tests/formulations/test_banks.py", [
        ("labels: a group's bytes rounded down", "-(-(self.sizes[after.made] - self.sizes[state.made]) // groups)",
         "(self.sizes[after.made] - self.sizes[state.made]) // groups"),
    ]),
    ("formulations/tiling/cp_sat.py", "tests/formulations/test_models.py tests/formulations/test_staged.py", [
        ("tiling cp-sat: one table of a level", "for table in branch.tables(measure):",
         "for table in list(branch.tables(measure))[:1]:"),
    ]),
    ("formulations/applications/cp_sat.py", "tests/formulations/test_applications.py", [
        ("applications: no jitter of the other", "sum([response, built.responses[h]])", "sum([response])"),
    ]),
    ("formulations/rows.py", "tests/formulations/test_rows.py", [
        ("rows FLOW: as it likes", "made.add(terms, int(node == first), int(node == first))",
         "made.add(terms, None, int(node == first))"),
    ]),
    ("formulations/fusion/linear.py", "tests/formulations/test_fusion_models.py", [
        ("fusion SHRINK: turned round", "if not self.fusion.shrinks(place.arc, k)]",
         "if self.fusion.shrinks(place.arc, k)]"),
    ]),
    ("formulations/fusion/schedule.py", "tests/formulations/test_fusion_times.py", [
        ("fusion: tiles stay as small as they are found", "outcome.time_ticks < now.time_ticks", "False"),
    ]),
    ("formulations/fusion/steps.py", "tests/formulations/test_fusion_steps.py", [
        ("fusion steps: turns end with their first layer", "active[:, :, self.runs[k]] |=",
         "active[:, :, k] |= (self.runs[k] == k) &"),
    ]),
    ("formulations/fusion/latency/paths.py", "tests/formulations/test_fusion_rules.py", [
        ("fusion paths: groups by themselves overlap", "if self.apart:", "if False:"),
    ]),
    ("formulations/fusion/latency/rules.py", "tests/formulations/test_fusion_rules.py", [
        ("fusion rules: layer by layer loads across layers",
         "self.layer_by_layer(clock), self._with(Doubled, groups=0)",
         "self.layer_by_layer(clock), self._with(Doubled)"),
        ("fusion rules: the greedy has two buffers", "return draft.greedy() if", "return draft.doubled() if"),
    ]),
    ("formulations/fusion/latency/anneal.py", "tests/formulations/test_fusion_rules.py", [
        ("fusion anneal: memory does not count", "or min(draft.left(*plan)[1:-1]) < 0", "or False"),
        ("fusion anneal: whatever is worse is taken", "if price <= now[1] or self.rng.random() < exp(",
         "if price <= now[1] or self.rng.random() > exp("),
    ]),
    ("formulations/prefetch/stalls.py", "tests/formulations/test_prefetch_stalls.py", [
        ("stalls: maps are loaded before they are stored", "(early and draft.ready[k] == 1)", "early"),
        ("stalls: a store that is waited for keeps its limit", "when[k] = _after(draft, times, wait)", "pass"),
        ("stalls: transfers apart are one", "if times.transfer_end[k] < begin:", "if False:"),
    ]),
    ("solver/problems/timeline.py", "tests/formulations/test_fusion_queue.py", [
        ("timeline: loads of the group that runs are ahead", "(until := run_ends.get(one.run, 0))",
         "(until := self.latency)"),
    ]),
    ("formulations/fusion/group_time.py", "tests/formulations/test_fusion_times.py", [
        ("fusion time: filters come for nothing", "(pixels > 0) * self.streamed(k,", "0 * pixels * self.streamed(k,"),
        ("fusion time: parts of rows are whole", "if broad < width:", "if False:"),
    ]),
    ("formulations/fusion/group_time.py", "tests/formulations/test_fusion_sampled.py", [
        ("sampled: runs that adjoin are two", "np.diff(starts, prepend=-size - 1) != size",
         "np.diff(starts, prepend=-size - 1) != 0"),
        ("sampled: rows lie behind each other", "(high, pitch.down * row)", "(high, row)"),
    ]),
    ("formulations/fusion/steps.py", "tests/formulations/test_fusion_sampled.py", [
        ("sampled: a load waits for other rows", "pitch.rows, begin * pitch.down, (end - 1) * pitch.down + 1",
         "pitch.rows, begin, end"),
    ]),
    ("formulations/fusion/arcs.py", "tests/formulations/test_fusion_sampled.py", [
        ("sampled: some rows stay", "np.moveaxis(stacked, axis + 1, 0)[1] = NEVER", "pass"),
    ]),
    ("solver/uses/emit/strips.py", "tests/solver/test_emit_groups.py::test_sampled_maps", [
        ("sampled: columns are neighbours in C", '"x": pitch.across * each["c"]', '"x": each["c"]'),
    ]),
    ("formulations/fusion/part.py", "tests/formulations/test_joint.py::test_of_equal_nests_the_fastest", [
        ("fusion: nests as they were found",
         "self.layers.faster(first, run, known, clock) if isinstance(run, LayerRun) else run", "run"),
    ]),
    ("solver/calls/check.py", "tests/solver/test_prove.py", [
        ("prove: proven without an end", 'elif other.status in ("OPTIMAL", "INFEASIBLE") if claim.nothing else',
         "elif claim.nothing or"),
        ("prove: one layer is enough", "len(settled) == len(claims):\n        state", "settled:\n        state"),
    ]),
    ("solver/calls/cache.py", "tests/solver/test_cache.py", [
        ("cache: times by network", 'profile and profile.model_dump(mode="json")', "profile and profile.network"),
    ]),
    ("solver/search/driver_milp.py", "tests/solver/test_drivers.py", [
        ("cbc: stopped in time", "lp.sol_status == pulp.LpSolutionOptimal", "lp.status == pulp.LpStatusOptimal"),
    ]),
    ("solver/search/deciding.py", "tests/solver/test_knapsack.py", [
        ("front: the time ended", 'proven and said.status == "INFEASIBLE"', "proven"),
    ]),
    ("solver/search/loop.py", "tests/solver/test_knapsack.py", [
        ("search: a floor one too low", "if value and floor >= value[0]:", "if value and floor >= value[0] - 1:"),
        ("search: INFEASIBLE of a part", "return Report(None, None if made.proves else self.proven)",
         "return Report(None, None)"),
        ("search: bound of a guess", "said.bound if made.proves else None", "said.bound"),
        ("search: time is over, nothing is left", "found.append(floor)\n                continue", "continue"),
    ]),
    ("solver/search/verdict.py", "tests/solver/test_knapsack.py tests/solver/test_check.py", [
        ("verdict: figures of the price alone", "one != two:", "two is not None and one != two:"),
        ("verdict: figures of the replay alone", "if one != two:", "if one is not None and one != two:"),
    ]),
    ("solver/ask/watch.py", "tests/solver/test_clock.py", [
        ("watch: a later reason", "self.reason = self.reason or reason", "self.reason = reason"),
    ]),
    ("solver/uses/report/plan_page.py", "tests/solver/test_pages.py", [
        ("page: microseconds without the tick", "value * plan.machine_data.tick_ps / 1e6", "value / 1e6"),
        ("page: a replay that failed", "if ok is False]", "if ok is None]"),
    ]),
    ("solver/uses/sweep/store.py", "tests/solver/test_sweep_store.py", [
        ("sweep: a point keeps its old task", "excluded.generation, task = excluded.task WHERE",
         "excluded.generation WHERE"),
    ]),
    ("solver/uses/emit/fixed.py", "tests/solver/test_emit_tflite.py::test_functions_of_integers", [
        ("fixed: sigmoids that are not moved", " - ((exact(k) + exact(k + 1)) / 2 - exact(k + 0.5)) / 2 + 0.5)",
         " + 0.5)"),
        ("fixed: places that are not moved", "(rounded(here * factor) - off)", "rounded(here * factor)"),
    ]),
    ("solver/uses/emit/fixed.py",
     "tests/solver/test_emit_tflite.py::test_hard_swish_has_the_integers_of_the_interpreter", [
        ("fixed: products below 0 that are rounded down", "product // 2**15 if product >= 0 else -(-product // 2**15)",
         "product >> 15"),
    ]),
    ("solver/uses/emit/integers.py", "tests/solver/test_emit_tflite.py::test_functions_of_integers", [
        ("integers: a softmax without its factor", "exponentials(float(before.scale[0]) * beta)",
         "exponentials(float(before.scale[0]))"),
        ("integers: a number of another scale", "for value, pair in ((centred, one), (number, two))",
         "for value, pair in ((centred, one), (number, one))"),
        ("integers: a slope for all", "_ratio(before, behind, node.number(\"alpha\", 0.01))", "_ratio(before, behind)"),
    ]),
    ("solver/uses/emit/several.py", "tests/solver/test_emit_tflite.py::test_functions_of_integers", [
        ("resize: steps that are cut off", "(PARTS * one + other // 2) // other", "PARTS * one // other"),
    ]),
    ("solver/uses/emit/passing.py", "tests/solver/test_emit_tflite.py::test_functions_of_integers", [
        ("passing: the host takes floats", 'self.model.network.operators if self.elements.rule != "float" else ()',
         "()"),
    ]),
    ("solver/uses/emit/runtime/certile_rows.c", "tests/solver/test_emit_tflite.py::test_functions_of_integers", [
        ("softmax: shares of 8 bits that are cut off",
         "certile_half_away(certile_requantise_double(x, share, 0), 35 - bits)",
         "certile_requantise_double(x, share, 0) >> (35 - bits)"),
        ("softmax: shares of 16 bits that are cut off",
         "certile_half_up((int64_t)certile_get_i16(at) * share, 31 - bits)",
         "(int64_t)certile_get_i16(at) * share >> (31 - bits)"),
    ]),
    ("instances/tflite/sequences.py", "tests/instances/test_tflite.py", [
        ("lstm: cells that are not clipped", 'self._clipped(cell, "CellClip")', "cell"),
        ("lstm: an output gate that sees the cell before", "opens = self._gate(parts[_OUT], _OUT, cell)",
         "opens = self._gate(parts[_OUT], _OUT, old)"),
        ("lstm: both directions forwards", "range(steps)[:: -1 if lane.backwards else 1]", "range(steps)"),
    ]),
    ("instances/tflite/layers.py", "tests/instances/test_tflite.py", [
        ("tflite: an order for each reader", "scope.orders.setdefault(scope.source(w), flat[1] if flat else ())",
         "flat[1] if flat else ()"),
        ("tflite: a phase that sees the border alone", "not -1 < d + more <= last", "d + more < 0"),
    ]),
    ("solver/uses/emit/values.py", "tests/solver/test_emit_operators.py", [
        ("emit: a resize of unlike sides", "+ m / {over}", "+ m / {down}"),
    ]),
    ("solver/uses/emit/nest.py", "tests/solver/test_emit.py", [
        ("emit: snakes turn by one loop alone", "(({self.odd} + {number}) & 1)", "({number} & 1)"),
    ]),
    ("solver/uses/sweep/tasks.py", "tests/solver/test_sweep_store.py", [
        ("sweep: a task without its limit", 'machine.digest, "time_limit_s": limit}', "machine.digest}"),
    ]),
    ("solver/uses/calibration/rows.py", "tests/solver/test_calibrate.py", [
        ("calibrate: equal layers counted once", "total + piece.number * count", "total + count"),
    ]),
    ("solver/uses/why/again.py", "tests/solver/test_said.py", [
        ("why: not binding without a proof", "found.bound is not None and found.bound >= base.value",
         "found.value >= base.value"),
    ]),
    ("solver/uses/emit/runtime/certile_check.c", "tests/solver/test_emit.py", [
        ("check in C: not the first row", "at[3] >= a->unwritten", "at[3] > a->unwritten"),
    ]),
    ("formulations/tiling/cp_sat.py", "tests/formulations/test_models.py", [
        ("tiling cp-sat CAPACITY: anywhere", "[built.channel[q].negated(), *fitting]",
         "[built.channel[q].negated(), *built.spatial]"),
        ("tiling cp-sat COST: one table", "for table in branch.tables(objective):\n        _rows",
         "for table in list(branch.tables(objective))[:1]:\n        _rows"),
        ("tiling cp-sat LEVEL: one more", 'table, value, "LEVEL"', 'table, value + 1, "LEVEL"'),
        ("tiling cp-sat CUT: all of a row", "add_bool_or(built.spatial[s].negated(), built.channel[q].negated())",
         "add_bool_or(built.spatial[s].negated())"),
        ("tiling cp-sat FIT: one more", "column >= int(least[s])", "column >= int(least[s]) + 1"),
        ("tiling cp-sat FACTOR: at most", "column == cp_model.LinearExpr", "column <= cp_model.LinearExpr"),
        ("tiling cp-sat: at_most is left out", "min(top, at_most)", "min(top, at_most - 1)"),
    ]),
    ("formulations/tiling/milp.py", "tests/formulations/test_models.py", [
        ("tiling milp CAPACITY: anywhere", 'pulp.LpConstraintLE, 0, "CAPACITY"', 'pulp.LpConstraintLE, 1, "CAPACITY"'),
        ("tiling milp LEVEL: twice as much", 'pulp.LpConstraintLE, value, "LEVEL"',
         'pulp.LpConstraintLE, 2 * value, "LEVEL"'),
        ("tiling milp CUT: nothing", 'pulp.LpConstraintLE, 1, "CUT"', 'pulp.LpConstraintLE, 2, "CUT"'),
        ("tiling milp FACTOR: at least too much", "np.where(built.fits, row, high).min(axis=1)",
         "np.where(built.fits, row, high).max(axis=1)"),
        ("tiling milp COST: one table", "for row in _expressions(built, t) for term in row] for t in tables]",
         "for row in _expressions(built, t) for term in row] for t in tables[:1]]"),
        ("tiling milp: at_most is left out", "else at_most // built.unit", "else (at_most - 1) // built.unit"),
    ]),
    ("formulations/homes/problem.py", "tests/formulations/test_off_chip.py", [
        ("homes ROOM: a byte more", "**slack}, None, room)", "**slack}, None, room + 1)"),
        ("homes TIE: none", "rows.add(mine, 0, 0)", "rows.add(mine, None, None)"),
        ("homes TABLE: other homes", "names[place] == name}, x: -1}, 0, 0)", "names[place] == name}, x: -1}, -1, 1)"),
    ]),
    ("formulations/fusion/linear.py",
     "tests/formulations/test_fusion_models.py tests/formulations/test_fusion_weights.py", [
        ("fusion PATH: no path", "self.add(terms, 0 if inner else 1, 0 if inner else 1)",
         "self.add(terms, None if inner else 1, None if inner else 1)"),
    ]),
    ("formulations/placement/cp_sat.py", "tests/formulations/test_placement.py", [
        ("placement cp-sat ROOM: beyond the top", "self.address[b.name] + b.size <=", "self.address[b.name] <="),
        ("placement cp-sat ALIGN: anywhere", 'most // buffer.alignment, "") * buffer.alignment', 'most, "")'),
        ("placement cp-sat FIXED: anywhere", "if buffer.offset is not None:\n            return",
         "if False:\n            return"),
        ("placement cp-sat APART: on each other", "add_no_overlap_2d(times, places)", "add_no_overlap_2d([], [])"),
        ("placement cp-sat BANKS: shared", "self.address[first.name] + high <= border * bank",
         "self.address[first.name] <= border * bank"),
    ]),
    ("formulations/placement/milp.py", "tests/formulations/test_placement.py", [
        ("placement milp ONE: not at all", "chosen == 1 if b.spill is None", "chosen <= 1 if b.spill is None"),
        ("placement milp ROOM: beyond the top", "a[b.name] + b.size <= top", "a[b.name] <= top"),
        ("placement milp APART: on each other", "a[first.name] + high <= a[second.name] + low + free",
         "a[first.name] <= a[second.name] + low + free"),
        ("placement milp BANKS: shared", "(m.bank_bytes or m.bytes) if foes else 1", "1"),
    ]),
    ("formulations/placement/cp_sat.py", "tests/formulations/test_placement.py", [
        ("placement CUT: one too much", "top[cut.memory] >= cut.least)", "top[cut.memory] >= cut.least + 1)"),
        ("placement CUT: some of them", "model.add_bool_or([literal.negated() for literal in all_in])",
         "model.add_bool_and([literal.negated() for literal in all_in])"),
        ("placement master: spills are free", "(b.spill or 0) * (1 - sum", "0 * (1 - sum"),
    ]),
    ("formulations/selection/cp_sat.py", "tests/formulations/test_selection.py", [
        ("selection cp-sat: types that do not meet", "model.add_bool_or([_no(one) for one in both])", "pass"),
        ("selection cp-sat: free conversions", "model.add_bool_or([converts[v[1]], *(_no(one) for one in both)])",
         "pass"),
        ("selection cp-sat: free hand-overs", "model.add_bool_or([literal, *(_no(one) for one in both)])", "pass"),
        ("selection cp-sat: a limit and more", "(cap.most - cap.const) // scale)",
         "(cap.most - cap.const) // scale + 1)"),
        ("selection cp-sat: one row of the objective", "for column in columns:\n        model",
         "for column in columns[:1]:\n        model"),
    ]),
    ("formulations/selection/milp.py", "tests/formulations/test_selection.py", [
        ("selection milp: free conversions", "converts[n, kind] >= read", "converts[n, kind] >= 0 * read"),
        ("selection milp: flows to nobody", "for n in many) == s[j][m]", "for n in many) <= 1"),
        ("selection milp: a limit and more", "(cap.most - cap.const) // scale", "(cap.most - cap.const) // scale + 1"),
        ("selection milp: one row of the objective", "for column in columns:\n        model",
         "for column in columns[:1]:\n        model"),
    ]),
    ("formulations/compulsory.py", "tests/formulations/test_compulsory_walked.py", [
        ("compulsory: windows without dilation", "+ i * layer.dilation_h", "+ i"),
    ]),
    ("formulations/homes/problem.py", "tests/formulations/test_off_chip.py", [
        ("homes KEPT: loose by the least of all", "rows.limit(terms, most - constant)", "rows.limit(terms, most)"),
    ]),
    ("formulations/tiling/cuts.py", "tests/formulations/test_cuts.py", [
        ("cuts: complete where rows are skipped", "(cut.clipped or (inner, outer) == (2, 1))",
         "cut.clipped and (inner, outer) == (2, 1)"),
    ]),
    ("formulations/tiling/staged.py", "tests/formulations/test_tiling.py", [
        ("staged: a timeline is its bound", "if answer.done and (exact or answer.choice is None):", "if answer.done:"),
    ]),
    ("formulations/tiling/staged.py", "tests/formulations/test_staged.py", [
        ("staged: candidates are all nests", "yield from self._opened(member, measure)", "pass"),
        ("staged: classes without vectors", "yield from self._attained(member, finer, measure)", "self._leave(0)"),
    ]),
    ("formulations/tiling/classes.py", "tests/formulations/test_relaxed.py", [
        ("classes: parts of a kernel by classes", "if told or number > _EVERY:", "if True:"),
        ("classes: rows beside one way to cut the kernel", 'return _beside(rows, taps, "exact")',
         'return _beside(rows, taps[:1], "exact")'),
    ]),
    ("formulations/tiling/front.py", "tests/formulations/test_front.py", [
        ("front: its end is not known", "if pick.measures[order[1]] == end:", "if False:"),
        ("front: any least is its end", "if pick is not None and search.whole else None",
         "if pick is not None else None"),
    ]),
    ("formulations/tiling/listing.py", "tests/formulations/test_staged.py", [
        ("listing: the least room is not known", 'if set(measures) <= {"ocm"} and not', "if not measures and not"),
    ]),
    ("formulations/tiling/search.py", "tests/formulations/test_splitting.py", [
        ("search: what was bounded does not count when time is up", "known = self._split_below if split",
         "known = 0 if split"),
    ]),
    ("formulations/tiling/search.py", "tests/formulations/test_recut.py", [
        ("search: bounds take the time before all members are looked at", "            self._list(measure)\n", ""),
    ]),
    ("formulations/tiling/search.py", "tests/formulations/test_relaxed.py", [
        ("search: bounds of bytes as they are", "            self._refine(member, measure, rough)\n", ""),
    ]),
    ("formulations/fusion/steps.py", "tests/formulations/test_fusion_steps.py", [
        ("steps: nothing is loaded for nothing", "np.where(active, blocks[:, None], idle)",
         "np.where(active, blocks[:, None], 0)"),
        ("steps: weights come before they are read", "self.runs[self.owners == owner]) & ~self.idle)",
         "self.runs[self.owners == owner]))"),
        ("steps: weights of turns for nothing", "np.where(self._made(k, steps) > 0, moved, 0)", "moved"),
        ("steps: calls of turns for nothing", " & (self._made(k, steps) > 0)\n", "\n"),
        ("steps: weights that stay are always there", "np.add.at(change, last + 1,",
         "np.add.at(change, last * 0 + self.steps,"),
        ("steps: pieces come for the first layer", "reader = int(self.runs[stream.maker - self.group.first])",
         "reader = 0"),
        ("steps: weights that stay are there at once", "yield kept - before * each, first + before",
         "yield kept - before * each, first"),
        ("steps: blocks with no room for the next", "half = np.maximum(1, left // 2 // each)",
         "half = np.maximum(1, left // each)"),
        ("steps: turns with the weights of all blocks", "first, stay = self.block[steps] * channels,",
         "first, stay = 0 * channels,"),
        ("steps: weights that stay come before the first block", "[some], first[some] + block", "[some], first[some]"),
    ]),
    ("formulations/fusion/nest_steps.py", "tests/formulations/test_fusion_steps.py", [
        ("steps: tiles stored before they are made", "[store > 0 for *_, store in self.moved]",
         "[store < 0 for *_, store in self.moved]"),
    ]),
    ("formulations/fusion/steps.py", "tests/formulations/test_fusion_latency.py", [
        ("steps: what is stored is there at once", "max(step + 1, one.ready", "max(step, one.ready"),
        ("steps: channels wait for all others", " & (mine[2] < others[3]) & (others[2] < mine[3])", ""),
        ("steps: all times have the weights of the first", "np.repeat(np.arange(len(self.kept)), np.diff(self.first))",
         "np.repeat(np.arange(len(self.kept)) * 0, np.diff(self.first))"),
    ]),
    ("formulations/fusion/latency/timelines.py", "tests/formulations/test_fusion_queue.py", [
        ("queue: memory of a plan's own order is not looked at", "if most > self.room:", "if False:"),
        ("queue: a plan's own order is not read", "self._found(runs, each) if runs.queue is None else",
         "self._found(runs, each) or"),
        ("queue: sizes run by run are not read", "in queue.by_run or (", "in ("),
        ("queue: one size of transfers for all", "best = min(best, self._draft", "best = max(best, self._draft"),
    ]),
    ("formulations/fusion/orders.py", "tests/formulations/test_fusion_queue.py", [
        ("queue: stores beside steps in spite of a pin", "else one.limit > one.released + 1", "else False"),
        ("queue: transfers of any size in spite of a pin", "(min(most, weights), min(most, maps))", "(weights, maps)"),
    ]),
    ("formulations/fusion/steps.py", "tests/formulations/test_fusion_channels.py", [
        ("channels: weights have the queue of maps", "machine.channel_of(operand_of(operand)) for",
         "machine.channel_of('IN') for"),
    ]),
    ("formulations/fusion/part.py", "tests/formulations/test_fusion_channels.py", [
        ("channels: what must be moved is moved by one queue", "moving[machine.channel_of(operand)] +=",
         "moving[0] +="),
    ]),
    ("formulations/fusion/latency/channels.py", "tests/formulations/test_fusion_channels.py", [
        ("channels: the cheapest byte is ahead", "tuple(max(each) for each", "tuple(min(each) for each"),
        ("channels: one queue is two", "if apart else machine.channel_of(op)", "if True else 0"),
    ]),
    ("formulations/fusion/latency/events.py", "tests/formulations/test_fusion_channels.py", [
        ("channels: nobody knows which memory a transfer is of", "memories[one.queue] if memories", "'' if memories"),
    ]),
    ("formulations/fusion/latency/products.py", "tests/formulations/test_fusion_latency.py", [
        ("channels: in each queue as much is ahead as in the last one", "made[0] - most[c]", "made[0] - most[-1]"),
        ("channels: the engine waits for one queue alone", "made[0, c] = np.maximum(flow.load + compute",
         "made[0, c] = np.maximum(last.load + compute"),
    ]),
    ("formulations/fusion/latency/bounds.py", "tests/formulations/test_fusion_channels.py", [
        ("channels: the first step waits for one queue behind the other", "begin + loaded if both else",
         "begin + loaded if True else"),
    ]),
    ("formulations/prefetch/windows.py", "tests/formulations/test_windows.py", [
        ("windows: a transfer of another queue is behind", "max(0, waits, following.get(queue, 0))",
         "max(0, waits, *following.values())"),
        ("windows: transfers in the order of their numbers", "order = sorted(order, key=begins.__getitem__)",
         "order = sorted(order)"),
    ]),
    ("formulations/prefetch/window_cp_sat.py", "tests/formulations/test_windows.py", [
        ("windows: two queues move one transfer at a time", "if self.draft.queue[k] == queue", "if True"),
    ]),
    ("formulations/prefetch/stalls.py", "tests/formulations/test_fusion_channels.py", [
        ("stalls: bytes of another memory", "moves[k].bytes * byte_ticks[k])", "moves[k].bytes * byte_ticks[0])"),
    ]),
    ("formulations/fusion/latency/events.py", "tests/formulations/test_fusion_queue.py", [
        ("events: transfers by their number", "for k in laid.order]", "for k in sorted(laid.order)]"),
    ]),
    ("formulations/fusion/latency/products.py", "tests/formulations/test_fusion_latency.py", [
        ("latency: stores find no room beside a step", "made[0, -1] = last.load - late + compute",
         "made[0, -1] = last.load + compute"),
        ("latency: loads ahead of full steps", "np.minimum.accumulate(lifted[::-1])[::-1]", "lifted"),
        ("latency: weights ahead are those of a step as well", "loaded - flow.heavy  # f", "loaded  # f"),
        ("latency: what is stored at the end is there at once", "late: Ints = np.maximum(0,",
         "late: Ints = 0 * np.maximum(0,"),
        ("latency: the last step is left out", "range(first[way] + 1, first[way + 1])",
         "range(first[way] + 1, first[way + 1] - 1)"),
    ]),
    ("formulations/fusion/latency/options.py", "tests/formulations/test_fusion_latency.py", [
        ("latency: the buffer of a filter has no room", "fits = new & (kept.sum(axis=1) + buffer <= at.left)",
         "fits = new & (kept.sum(axis=1) <= at.left)"),
    ]),
    ("formulations/fusion/latency/options.py", "tests/formulations/test_in_place.py", [
        ("in place: two maps in one place take room twice",
         "self.bytes(maps - self.in_place(first, last, there, after).keys())", "self.bytes(maps)"),
    ]),
    ("formulations/fusion/space.py", "tests/formulations/test_in_place.py", [
        ("in place: of maps of which some rows are there", "range(count - 1 if k in arc.full else 0, count)",
         "range(count)"),
    ]),
    ("formulations/fusion/linear.py", "tests/formulations/test_in_place.py", [
        ("in place: rows of which some are there, as rows", "{taken: 1, ps[-1]: -1} if every else {taken: 1}, 0, 0",
         "{taken: 1, ps[-1]: -1} if every else {taken: 1}, 0, None"),
    ]),
    ("formulations/fusion/arcs.py", "tests/formulations/test_in_place.py", [
        ("in place: of a map that others of a group read", "if u >= first] == [t]]", "if u >= t] == [t]]"),
    ]),
    ("formulations/fusion/groups.py", "tests/formulations/test_in_place.py", [
        ("in place: of a map that somebody reads later", "read = mine.readers[-1] == step and ", "read = "),
        ("in place: of a window", "if layer.weights != \"none\" or around != (1,) * 6 or ", "if "),
    ]),
    ("formulations/fusion/latency/alone.py", "tests/formulations/test_alone.py", [
        ("alone: weights once more than they are loaded", "(times - 1) * again", "times * again"),
        ("alone: all weights of a layer in pieces in one tile", "tile = -(-layer.weights // high)",
         "tile = layer.weights"),
        ("alone: no results as one tile", "in spans(1, low) if layer.stored else ()", "in ()"),
        ("alone: inputs for every piece of the filters alone", "    if layer.inputs:\n        more",
         "    if False:\n        more"),
        ("alone: inputs of one piece of the filters in slices alone", "    if layer.inputs:\n        more",
         "    if pieces > 1 and layer.inputs:\n        more"),
        ("alone: what strides skip is no part of a tile", "own=layer.box, first", "own=layer.inputs, first"),
        ("alone: what strides skip is loaded", "for p in (1, rows.runs)", "for p in (1,)"),
        ("alone: sums off the chip with all filters of a part in one tile", "(most * high)", "most"),
        ("alone: no sums that stay for parts that are cut again", "-(-layer.sums // high), (0, 0))",
         "layer.room + 1, (0, 0))"),
        ("alone: calls for all weights, though some may be ahead", "max(0, self.weights - memory)", "self.weights"),
        ("alone: weights never as one tile", "if layer.weights <= layer.room", "if layer.weights < 0"),
        ("alone: the first tile while the engine waits", "max(0, size - left)", "size"),
        ("alone: a run of a slice counted twice", "low * fewer * layer.slices - layer.of_inputs.segment",
         "low * fewer * layer.slices"),
    ]),
    ("formulations/fusion/latency/bounds.py",
     "tests/formulations/test_fusion_latency.py tests/formulations/test_alone.py", [
        ("latency: bounds with all filters before the first step", "loaded: Ints = np.minimum(several, one + more)",
         "loaded: Ints = several + 0 * more"),
        ("latency: bounds of nests with all of the input again for a part of the kernel", "int(inputs * again)",
         "inputs"),
        ("latency: bounds of nests that wait for a map in its padding", "int(not padded and loads > own * weights)",
         "int(loads > own * weights)"),
        ("latency: bounds with nothing behind the last step", "made[:, 0] + drain[:, None]", "made[:, 0]"),
        ("latency: bounds with weights that lie ahead of their step", "np.add.at(change, first + 1, size)",
         "np.add.at(change, first, size)"),
        ("latency: bounds without the ways of the least transfers",
         "kept[np.argmin(taken, axis=1)] = True", "pass"),
        ("latency: bounds of maps on chip that are loaded",
         "-1 if k in near else 0 for k in self.groups.maps", "0 for k in self.groups.maps"),
        ("latency: bounds without room for what is ahead", "- (beside * ahead[c])[:, None]", ""),
        ("latency: bounds without room for what is yet to be stored", "matrix[:, 0, -2] - beside * channels",
         "matrix[:, 0, -2] - 0 * channels"),
        ("latency: bounds of nests with calls of what may be ahead", "[layer.bare(self.room) for layer in layers]",
         "layers"),
        ("latency: bounds with weights in every visit", "later - stay[self.way][:, None]", "later"),
        ("latency: bounds with all that stays beside every step", "(least - again)[steps.at[0]] + staying)",
         "least[steps.at[0]])"),
        ("latency: bounds in which layers with one visit keep weights", "reduceat(self.later, begin)",
         "reduceat(self.later | self.first, begin)"),
        ("latency: bounds with fewer filters at once", "most = np.clip((self.room - held) // size, 1, lanes)",
         "most = np.clip((self.room - held) // size, 1, 1)"),
    ]),
    ("formulations/fusion/latency/alone.py", "tests/adversary/test_network_time_nests.py", [
        ("alone: slices with the larger one of two tiles", "-(-min(-(-layer.weights // high), layer.inputs) // most)",
         "-(-max(-(-layer.weights // high), layer.inputs) // most)"),
        ("alone: no slices of an input", "for fewer, most in spans(2, layer.channels):", "for fewer, most in ():"),
    ]),
    ("formulations/fusion/latency/bounds.py", "tests/adversary/test_network_time_nests.py", [
        ("latency: bounds of nests behind all that is stored", "matrix[:, 0, -2] - beside * channels",
         "matrix[:, 0, -2] - 0 * channels"),
    ]),
    ("formulations/fusion/latency/bounds.py", "tests/adversary/test_network_time.py::test_turns_by_hand", [
        ("latency: bounds of turns with all channels at once", "        return (1,)\n",
         "        return (channels_of(self.net.layers[group.first]),)\n"),
    ]),
    ("formulations/fusion/near.py", "tests/formulations/test_fusion_near.py", [
        ("near: no padding behind", "np.maximum(0, high - window.size)", "0 * high"),
        ("near: a call too many in the bound", '!= "none") + 1) * self.price', '!= "none") + 2) * self.price'),
        ("near: nests of a plan that are said once", "self._bytes[key] * one.times", "self._bytes[key]"),
    ]),
    ("hwmodels/levels/near.py", "tests/formulations/test_fusion_near.py", [
        ("near: sums that come for nothing", "results * machine.psum_bytes", "0 * machine.psum_bytes"),
        ("near: tiles of any size", "cost.occupancy_bytes[one.name] > one.bytes:", "False:"),
    ]),
    ("formulations/fusion/memory.py", "tests/formulations/test_fusion_joined.py", [
        ("memory: a joined map is not there", "own[k, MADE] = stream.pixel\n", "own[k, BEFORE] = stream.pixel\n"),
    ]),
    ("hwmodels/fusion/replay/strips.py", "tests/formulations/test_fusion_joined.py", [
        ("strips: a joined map is never loaded", "u in range(t, last + 1):\n                for k in self._loads",
         "u in (t,):\n                for k in self._loads"),
    ]),
    ("solver/problems/memory.py", "tests/solver/test_memory_front.py", [
        ("memory: fronts as if all memories were solved", "complete = all(", "complete = True or all("),
        ("memory: slower plans for more memory", "if value(k) < best:", "if value(k) < inf:"),
    ]),
    ("formulations/fusion/strips.py", "tests/formulations/test_fusion_brute.py", [
        ("fusion: no broken numbers in one step", "-(-each // under) * under, each)", "each, each)"),
        ("fusion: broken numbers in the steps of a run", "walk.advance(*suiting[0])", "walk.advance(size)"),
    ]),
    ("formulations/fusion/latency/paths.py", "tests/formulations/test_fusion_latency.py", [
        ("latency: labels as if all was stored before", "if late and fresh.any():", "if False:"),
        ("latency: ways beyond a cap", "move.bytes <= cap - before - after", "move.bytes <= cap - before"),
        ("latency: labels that are best in one clock alone", "if place and down[place - 1] <= y", "if place"),
    ]),
    ("formulations/fusion/latency/whole.py", "tests/formulations/test_fusion_whole.py", [
        ("whole: calls of what is ahead take no time", "-(-one.ticks // max(1, one.bytes))",
         "min(1, one.ticks)"),
        ("whole: what is stored counts twice", "moved + stores[0].sum() * (c",
         "moved + 2 * stores[0].sum() * (c"),
        ("whole: the best way behind is left out", "rows[state] = every[undominated(every, len(every))]",
         "rows[state] = every[undominated(every, len(every))[1:] if len(every) > 1 else [0]]"),
        ("whole: maps on chip do not meet", "found[before].append(Arc(way, before, after, part, matrix))",
         "found[before].append(Arc(way, before, (after[0], frozenset()), part, matrix))"),
        ("whole: stores find no room beside a step", "loads[c, 1], ticks[1], *none)",
         "loads[c, 1], 0 * ticks[1] + room, *none)"),
        ("whole: every size has the ways of the first", "joined([arc.part for arc in entry.arcs], self.demands.groups)",
         "joined([self.arcs[0][arc.before][0].part for arc in entry.arcs], self.demands.groups)"),
    ]),
    ("formulations/fusion/latency/milp.py", "tests/formulations/test_fusion_milp.py", [
        ("milp: a way counts where it is not taken", "- span * x >= ticks - span",
         "- span * x >= ticks - span + 1"),
        ("milp: transfers are of another path", "latency >= pulp.lpSum(ticks", "most >= pulp.lpSum(ticks"),
        ("milp: clocks before a cut are those behind it", "(i if state[0] < cut else j", "(j if state[0] < cut else i"),
    ]),
    ("formulations/fusion/latency/search.py", "tests/formulations/test_fusion_latency.py", [
        ("search: strips near the bound alone", "while below < self._ticks:", "while below < 0:"),
        ("search: all strips at once", "iter(SLACK if", "iter(() if"),
    ]),
    ("formulations/fusion/latency/timelines.py", "tests/formulations/test_fusion_latency.py", [
        ("timelines: one size of transfers serves for all", "if size not in self.known:", "if not self.known:"),
    ]),
    ("formulations/fusion/latency/options.py", "tests/formulations/test_fusion_latency.py", [
        ("turns: blocks of any rounds", "if rounds[size] == fewest", "if rounds[size] >= fewest"),
        ("turns: no block of less than a round", "(*best(lanes), *best(1))", "(*best(lanes),)"),
    ]),
    ("formulations/processes.py", "tests/formulations/test_processes.py", [
        ("processes: a copy dies of an interrupt", "signal.signal(signal.SIGINT, signal.SIG_IGN)", "pass"),
        ("processes: a copy goes on by itself", "copy.kill()", "pass"),
        ("processes: what ends early has ended", "raise EOFError(", "return  # ("),
    ]),
    ("formulations/fusion/latency/paths.py", "tests/formulations/test_processes.py", [
        ("processes: ways of another cut", "stack.enter_context(elsewhere(partial(self._from, range(cut,",
         "stack.enter_context(elsewhere(partial(self._from, range(cut + number,"),
        ("processes: a copy that died is the end", "except EOFError:  # it", "except TimeoutError:  # it"),
        ("processes: all is found here", "theirs is None else {p: theirs", "True else {p: theirs"),
    ]),
    ("solver/search/workers.py", "tests/formulations/test_processes.py", [
        ("processes: each job has all", "allowed(most // max(1, len(jobs)))", "allowed(8)"),
    ]),
    ("formulations/fusion/steps.py", "tests/formulations/test_fusion_steps.py", [
        ("steps: a rest of a filter at the price of one", "rest > 0), (each, each, 1)",
         "rest > 0), (each, each, each)"),
    ]),
    ("formulations/fusion/latency/search.py", "tests/formulations/test_fusion_whole.py", [
        ("whole: what models prove counts for nothing", "return inf if told.bound is None else max(told.bound",
         "return 0 if told.bound is None else max(told.bound"),
    ]),
    ("formulations/prefetch/windows.py", "tests/formulations/test_windows.py", [
        ("windows: what is ahead counts for nothing", "least = max(least, ends[k] + tail[step])", "pass"),
        ("windows: tails without what is next in the queue", "max(0, waits, following.get(queue, 0))",
         "max(0, waits)"),
        ("windows: what lies there from before takes no room", "draft.left([*ahead, *order[high:]], when)",
         "draft.left(order[high:], when)"),
    ]),
    ("formulations/prefetch/window_cp_sat.py", "tests/formulations/test_windows.py", [
        ("windows: steps begin before their loads are there", "window.begin[t], max(most, window.begin[t])",
         "0, max(most, window.begin[t])"),
        ("windows: limits behind a window are given up", "default=self._behind(k))", "default=self.draft.last)"),
    ]),
    ("formulations/prefetch/mending.py", "tests/formulations/test_prefetch.py", [
        ("prefetch: nothing is put off", "if self.due(k) > step and", "if self.due(k) < step and"),
        ("prefetch: nothing is pulled ahead", "        if not loads:", "        if True:"),
        ("prefetch: all that is ahead runs back to back", "while at and first[mine[at]] == last[mine[at - 1]]:",
         "while at:"),
    ]),
    ("formulations/prefetch/forward.py", "tests/formulations/test_prefetch.py", [
        ("prefetch: loads ahead of maps that are stored", "draft.ready[k] > step", "False"),
        ("prefetch: loads ahead where there is no room", ".min()) < draft.bytes[k]", ".max()) < draft.bytes[k]"),
        ("prefetch: no step waits for stores", "self.left[step] >= self.draft.bytes[k]", "True"),
    ]),
    ("formulations/fusion/group_time.py", "tests/formulations/test_fusion_profile.py", [
        ("profile: shares rounded down", "return turns * -(-layer.cycles * pixels // (turns * layer.r * layer.c))",
         "return turns * (layer.cycles * pixels // (turns * layer.r * layer.c))"),
    ]),
    ("hwmodels/nest/price/overlap.py", "tests/formulations/test_fusion_profile.py", [
        ("profile: shares of tiles rounded down", "-(-whole * done // done[-1])", "whole * done // done[-1]"),
    ]),
    ("instances/measured.py", "tests/formulations/test_fusion_profile.py", [
        ("profile: missing layers", "if missing := [", "if missing := [] and ["),
        ("profile: the first fault alone", "profile: {'; '.join(wrong)}", "profile: {wrong[0]}"),
        ("profile: decimals as floats", "Fraction(str(self.times[layer.name][CORE]))",
         "Fraction(float(self.times[layer.name][CORE] or 0))"),
    ]),
    ("formulations/prefetch/guards.py", "tests/formulations/test_prefetch.py", [
        ("prefetch: loads that are ready late in any order", "elif self.ready[k] > 1 and before < self.ready[k]",
         "elif False"),
        ("prefetch: a bound without the last load in part", "sum(axis=1) + more[:, 0]", "sum(axis=1)"),
    ]),
    ("formulations/prefetch/room.py", "tests/formulations/test_prefetch.py", [
        ("prefetch: guards overtake those ahead", "max(ahead[q], ready[k], 1)", "max(ready[k], 1)"),
        ("prefetch: loads before what they load is stored", "max(ahead[q], ready[k], 1)", "max(ahead[q], 1)"),
        ("prefetch: guards a step late", "while guard > low and", "while guard > low + 1 and"),
        ("prefetch: limits beside loads that wait for them", "least = max(fixed[k], ahead[q]) + 1",
         "least = fixed[k] + 1"),
        ("prefetch: bytes of late stores not taken", "left[limit] -= size[k]\n", "pass\n"),
    ]),
    ("hwmodels/compiled.py", "tests/hwmodels/test_compiled.py", [
        ("compiled: what lists have is lost", "one[:] = row", "pass"),
        ("compiled: at once", "compiled.spent > PATIENCE", "compiled.spent >= 0"),
    ]),
    ("formulations/prefetch/cp_sat.py", "tests/formulations/test_prefetch.py", [
        ("prefetch: loads before there is room", "for t in range(one.ready + 1, one.due + 1):",
         "for t in range(one.ready + 2, one.due + 1):"),
        ("prefetch: loads ahead of their stores", "if not isinstance(stored, Load) and stored.queue",
         "if False and stored.queue"),
        ("prefetch: stores are free", "held = [beside[t] * one.bytes for one,",
         "held = [beside[t] * one.bytes * isinstance(one, Load) for one,"),
    ]),
    ("hwmodels/timeline/schedule.py", "tests/hwmodels/test_timeline.py", [
        ("timeline: loads that begin before there is room", "return 2 * one.guard + 1 if", "return 2 * one.guard if"),
    ]),
    ("hwmodels/timeline/price.py", "tests/hwmodels/test_timeline.py", [
        ("timeline: room before stores have ended", "now = max(now, late[event])",
         "now = max(now, late[event] if event % 2 else 0)"),
        ("timeline: a store's bytes in the step that waits", "else (one.released + 1, one.limit)",
         "else (one.released + 1, one.limit + 1)"),
        ("timeline: what waits for itself", "before[0] > awaits(one)", "before[0] >= awaits(one)"),
        ("timeline: queues that wait for each other", "first[k] = max(free[q], now)", "first[k] = max(*free, now)"),
    ]),
    ("formulations/fusion/part.py", "tests/formulations/test_fusion_times.py", [
        ("fusion: replay of the schedule before", "self._walked[0] != runs:", "len(self._walked[0]) != len(runs):"),
    ]),
    ("instances/network/blocks.py", "tests/instances/test_blocks.py", [
        ("blocks: the last block is cut off", "return -(-channels // block) * block",
         "return channels // block * block"),
        ("blocks: only the first map of a sum is tied", "for name in operator.inputs if _ties(operator",
         "for name in operator.inputs[:1] if _ties(operator"),
        ("blocks: images of one channel alone", "shape[_axis(shape)] < block and not operator.constant",
         "shape[_axis(shape)] < 2 and not operator.constant"),
        ("blocks: groups end where they want", "or (isinstance(operator, Conv) and operator.groups > 1 and not",
         "or (isinstance(operator, Conv) and operator.groups > 99 and not"),
        ("blocks: sums of what lies apart", "if len({number for number in read if number > 1}) > 1:", "if not read:"),
        ("blocks: a layer alone has plain filters", 'sizes = {"m": rounded(layer.m, block), "n"', 'sizes = {"n"'),
    ]),
    ("hwmodels/blocks.py", "tests/instances/test_blocks.py", [
        ("blocks, referee: whatever is made of images", "if broken and not forbidden:", "if broken and forbidden:"),
    ]),
    ("instances/machine/said.py", "tests/instances/test_audit.py", [
        ("said: a GB/s of 2**30 bytes", "_scaled(_number(n), unit, binary)[:1]",
         "_scaled(_number(n), unit, binary)[-1:]"),
        ("said: nothing stands for several", "yield from (value * k for k in self.times)", "yield from ()"),
        ("said: operations are MACs", "/ (1 if kind.startswith(\"MAC\") else 2)", "/ 1"),
    ]),
    ("instances/machine/audit.py", "tests/instances/test_audit.py", [
        ("audit: any clock will do", "elif not any(close(clock, one) or", "elif not any(True or close(clock, one) or"),
        ("audit: sources cover sections below others", "for k in range(len(parts), 0, -1)", "for k in range(1, 2)"),
        ("audit: near memories of any size", "if near.bytes and far and all(", "if near.bytes and far and any("),
        ("audit: bits are bytes", "8 * value not in text.widths", "value not in text.widths"),
    ]),
]  # fmt: skip
