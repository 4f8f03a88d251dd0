"""Times of tasks on processors, and of copies between them.

Without threads a convolution takes ``call + mac*MACs + result*results`` on one core, with n threads ``scale_n`` times
that plus ``sync_n``; on a GPU ``call + mac*MACs + result*results + reduction*K``, where K products are summed for a
result: a work item sums alone, so long sums keep it waiting. Other tasks are one kernel of four: a quarter of the
calls, and ``move`` for every element read or written. An NPU is a number of times faster than all cores together.

Source: `heterogeneous_mapping_and_banks` 3.3.3.1 (Tables 3.14, 3.15: col2im, which writes the results, and GEMM take
the time; waiting for threads does not shrink with the layer), 3.3.3.2, 3.3.3.3. All cells of Table 3.14 within 6 %.
"""

from __future__ import annotations

from instances.machine.boards import Accelerator, Copying, Cpu, Processors
from instances.network.tasks import Task, TaskGraph

#: One core without threads ("1 core*" in Table 3.14).
ALONE = "1*"
#: Kernels of a convolution (Table 3.15).
_KERNELS = 4


def options(processors: Processors) -> tuple[str, ...]:
    """What a task may run on: cores with threads ("1", "2", ...), a core without ("1*"), every accelerator."""
    cores = (str(n) for n in range(1, processors.cpu.cores + 1))
    return (ALONE, *cores, *(one.name for one in processors.accelerators))


def estimated(graph: TaskGraph, processors: Processors) -> tuple[dict[str, float | None], ...]:
    """Return for every task its time [us] by option; None where it cannot run."""
    return tuple(_times(task, processors) for task in graph.tasks)


def _times(task: Task, processors: Processors) -> dict[str, float | None]:
    cpu, kernels = processors.cpu, _kernels(task)
    alone = _alone(task, cpu)
    found: dict[str, float | None] = {ALONE: alone}
    for n, threads in enumerate(cpu.threads, 1):
        found[str(n)] = threads.scale * alone + threads.sync_ns * kernels / _KERNELS
    together = found[str(cpu.cores)] or 0.0
    for one in processors.accelerators:
        found[one.name] = None if {task.op, *task.fused} & {*one.cannot} else _accelerated(task, one, together)
    return {name: None if time is None else time / 1000 for name, time in found.items()}


def _kernels(task: Task) -> int:
    return _KERNELS if task.macs else 1 if task.moved else 0


def _alone(task: Task, cpu: Cpu) -> float:
    call = cpu.call_ns * _kernels(task) / _KERNELS
    if task.macs:
        return call + (cpu.mac_ps * task.macs + cpu.result_ps * task.results) / 1000
    return call + cpu.move_ps * task.moved / 1000


def _accelerated(task: Task, one: Accelerator, together: float) -> float:
    if one.speedup is not None:
        return together / one.speedup
    call = one.call_ns * _kernels(task) / _KERNELS
    if task.macs:
        return call + (one.mac_ps * task.macs + one.result_ps * task.results) / 1000 + one.reduction_ns * task.reduction
    return call + one.move_ps * task.moved / 1000


def polynomial(copying: Copying, *, out: bool, into: bool) -> tuple[float, float, float]:
    """Return what copies between two processors take: constant [ns], by the byte [ps], by its square [fs].

    `out`, `into`: whether the data comes out of an accelerator, and goes into one.
    """
    square, linear, constant = copying.memcpy_us
    copies, maps, unmaps = out + into or 1, out + into, int(into)
    constant_us = copies * constant + maps * copying.map_us[1] + unmaps * copying.unmap_us[1]
    linear_us = copies * linear + maps * copying.map_us[0] + unmaps * copying.unmap_us[0]
    unit = copying.unit_bytes
    return constant_us * 1000, linear_us * 1_000_000 / unit, copies * square * 1_000_000_000 / unit**2


def copied_ps(size: int, copying: Copying, *, out: bool, into: bool) -> float:
    """Return what it takes [ps] to copy `size` bytes between two processors; `out`, `into` as of `polynomial`."""
    constant, linear, square = polynomial(copying, out=out, into=into)
    return constant * 1000 + linear * size + square * size * size / 1000
