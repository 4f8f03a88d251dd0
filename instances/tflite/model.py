"""What a TFLite file holds: subgraphs, operators with their options, tensors with constants and quantisation.

The schema is that of the `tflite` package. Every offset and length of a file may be wrong: what cannot be decoded is
one `InputError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
import tflite

from instances.errors import InputError

#: What stands behind the first offset of a TFLite file.
MAGIC = b"TFL3"
#: Element types of TFLite as NumPy calls them; 4-bit integers are held in bytes.
_KINDS = {
    tflite.TensorType.FLOAT32: "float32", tflite.TensorType.FLOAT16: "float16", tflite.TensorType.INT32: "int32",
    tflite.TensorType.UINT8: "uint8", tflite.TensorType.INT64: "int64", tflite.TensorType.BOOL: "bool",
    tflite.TensorType.INT16: "int16", tflite.TensorType.COMPLEX64: "complex64", tflite.TensorType.INT8: "int8",
    tflite.TensorType.FLOAT64: "float64", tflite.TensorType.COMPLEX128: "complex128",
    tflite.TensorType.UINT64: "uint64", tflite.TensorType.UINT32: "uint32", tflite.TensorType.UINT16: "uint16",
    tflite.TensorType.INT4: "int8",
}  # fmt: skip
#: What else a tensor may hold: no numbers.
_OTHERS = {
    tflite.TensorType.STRING: "string", tflite.TensorType.RESOURCE: "resource", tflite.TensorType.VARIANT: "variant",
}  # fmt: skip
#: The most axes and elements of a tensor: more would fill a memory before anything is said.
MOST_AXES, MOST_ELEMENTS = 8, 2**27
#: What decoding raises for a wrong offset, length, or table.
FAULTS = (
    struct.error, IndexError, ValueError, TypeError, KeyError, OverflowError, AttributeError, MemoryError,
    ZeroDivisionError,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a subgraph; maps of four axes are [batch, rows, columns, channels]."""

    name: str
    shape: tuple[int, ...]
    kind: str
    """NumPy's name of its element type, or ``string``, ``resource``, ``variant``."""
    data: np.ndarray | None
    """Of a constant."""
    scale: np.ndarray
    zero: np.ndarray
    """`scale`, `zero`: none, one, or one for every place along `axis`."""
    axis: int
    variable: bool
    """Whether it stays between calls."""

    @property
    def quantised(self) -> bool:
        """Whether its integers stand for real numbers."""
        return self.scale.size > 0 and self.kind in ("int8", "uint8", "int16", "int32", "int64")


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator of a subgraph."""

    name: str
    """As the schema calls it: ``CONV_2D``; of a custom operator its own name."""
    custom: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """`inputs`, `outputs`: tensors by number, -1 for an input that is not given."""
    options: Any

    def option(self, name: str, default: Any = 0) -> Any:
        """A field of its options by the name that the schema's accessors have; a default if it has no options."""
        return default if self.options is None else getattr(self.options, name)()

    def input(self, index: int) -> int:
        """The number of an input, -1 if it is not given."""
        return self.inputs[index] if index < len(self.inputs) else -1


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Tensors, and operators in the order in which they run."""

    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


class TfliteFile:
    """The bytes of a TFLite file, decoded; raises InputError if they are none, or cut off."""

    def __init__(self, data: bytes, where: str) -> None:
        self.where, self._data = where, data
        if not is_tflite(data):
            raise InputError(f"{where}: not a TFLite file: {MAGIC.decode()} is missing at byte 4")
        self._model = self._decoded("its root", lambda: tflite.Model.GetRootAs(data, 0))
        number = self._decoded("its subgraphs", self._model.SubgraphsLength)
        if number < 1:
            raise InputError(f"{where}: not a TFLite model: it holds no subgraph")

    @property
    def version(self) -> int:
        """Of the schema."""
        return int(self._decoded("its version", self._model.Version))

    @cached_property
    def subgraphs(self) -> tuple[Subgraph, ...]:
        """All of them; the first one is the model's."""
        number = self._decoded("its subgraphs", self._model.SubgraphsLength)
        return tuple(self._decoded(f"subgraph {k}", partial(self._subgraph, k)) for k in range(number))

    def _decoded(self, what: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except InputError:
            raise
        except FAULTS as error:
            raise InputError(
                f"{self.where}: not a TFLite file, or cut off: {what} cannot be decoded ({str(error)[:80]})"
            ) from None

    def _subgraph(self, number: int) -> Subgraph:
        graph = self._model.Subgraphs(number)
        tensors = tuple(self._tensor(graph.Tensors(k)) for k in range(graph.TensorsLength()))
        operators = tuple(self._operator(graph.Operators(k)) for k in range(graph.OperatorsLength()))
        ends = _numbers(graph.InputsAsNumpy()), _numbers(graph.OutputsAsNumpy())
        made = Subgraph(_text(graph.Name()), tensors, *ends, operators)
        for name, used, least in _used(made):
            if wrong := [k for k in used if not least <= k < len(tensors)]:
                raise InputError(f"{self.where}: {name} names tensor {wrong[0]} of {len(tensors)}")
        return made

    def _operator(self, made: Any) -> Operator:
        if made.OpcodeIndex() >= (number := self._model.OperatorCodesLength()):
            raise InputError(f"{self.where}: an operator names code {made.OpcodeIndex()} of {number}")
        code = self._model.OperatorCodes(made.OpcodeIndex())
        # The first field has room for 127 operators; newer files write a larger number into the other one alone.
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        custom = number == tflite.BuiltinOperator.CUSTOM
        names = tflite.utils.BUILTIN_OPCODE2NAME
        name = _text(code.CustomCode()) if custom else names.get(number, f"operator {number}")
        ends = _numbers(made.InputsAsNumpy()), _numbers(made.OutputsAsNumpy())
        return Operator(name, custom, *ends, _options(made))

    def _tensor(self, made: Any) -> Tensor:
        name, kind = _text(made.Name()), _KINDS.get(made.Type(), _OTHERS.get(made.Type(), ""))
        where = f"{self.where}: tensor {name!r}"
        if not kind:
            raise InputError(f"{where} has element type {made.Type()}, which is not known")
        shape = _numbers(made.ShapeAsNumpy())
        if any(size < 0 for size in shape):
            raise InputError(f"{where} has a negative size in its shape {shape[:MOST_AXES]}")
        if len(shape) > MOST_AXES or prod(shape) > MOST_ELEMENTS:
            most = f"{MOST_AXES} axes and {MOST_ELEMENTS:,} elements are read"
            raise InputError(f"{where} has {len(shape)} axes and {prod(shape):.3g} elements: at most {most}")
        scale, zero, axis = np.zeros(0, np.float32), np.zeros(0, np.int64), 0
        if (stated := made.Quantization()) is not None and stated.ScaleLength():
            scale, axis = np.array(stated.ScaleAsNumpy(), np.float32), int(stated.QuantizedDimension())
            zero = np.array(stated.ZeroPointAsNumpy(), np.int64) if stated.ZeroPointLength() else np.zeros(1, np.int64)
            zero = np.broadcast_to(zero, scale.shape) if zero.size == 1 else zero
            if scale.size > 1 and not (axis < len(shape) and shape[axis] == scale.size):
                raise InputError(f"{where} of {list(shape)} has {scale.size} scales along axis {axis}")
            if zero.shape != scale.shape or not (np.isfinite(scale).all() and (scale > 0).all()):
                raise InputError(f"{where}: scales are positive, and have a zero point each")
            limits = np.iinfo(kind) if np.dtype(kind).kind in "iu" else None
            if limits and not limits.min <= zero.min() <= zero.max() <= limits.max:
                raise InputError(f"{where} of {kind} has zero points from {zero.min()} to {zero.max()}")
        data = self._constant(made, shape, kind, where)
        return Tensor(name, shape, kind, data, scale, zero, axis, bool(made.IsVariable()))

    def _constant(self, made: Any, shape: tuple[int, ...], kind: str, where: str) -> np.ndarray | None:
        """What the buffer of a tensor holds; None for one that is computed, or fed."""
        if not (0 < made.Buffer() < self._model.BuffersLength()):
            return None
        if 0 in shape and kind in _KINDS.values() and not made.IsVariable():
            return np.zeros(shape, kind)
        buffer = self._model.Buffers(made.Buffer())
        begin, size = buffer.Offset(), buffer.Size()
        if begin > 1:  # behind the tables, in files of more than 2 GiB
            if begin + size > len(self._data):
                raise InputError(f"{where}: its data end at byte {begin + size:,} of {len(self._data):,}")
            raw = np.frombuffer(self._data, np.uint8, size, begin)
        elif buffer.DataLength():
            raw = buffer.DataAsNumpy()
        else:
            return None
        if kind not in _KINDS.values():
            return np.zeros(0, np.uint8)
        if made.Type() == tflite.TensorType.INT4:
            raw = _unpacked(raw)[: prod(shape)].view(np.uint8)
        dtype = np.dtype(kind)
        if (sparsity := made.Sparsity()) is not None:
            return _dense(raw.view(dtype), shape, sparsity)
        if raw.size != prod(shape) * dtype.itemsize:
            raise InputError(f"{where} of {list(shape)} {kind} has {raw.size:,} bytes of data")
        return np.asarray(raw.view(dtype).reshape(shape))


def is_tflite(data: bytes) -> bool:
    """Whether bytes are those of a TFLite file."""
    return data[4:8] == MAGIC


def _used(graph: Subgraph) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Tensors that are named, and the least number: -1 stands for an input of an operator that is not given."""
    yield "its inputs", graph.inputs, 0
    yield "its results", graph.outputs, 0
    for k, operator in enumerate(graph.operators):
        yield f"operator {k} ({operator.name})", operator.inputs, -1
        yield f"operator {k} ({operator.name})", operator.outputs, 0


def _options(made: Any) -> Any:
    """The table of options of an operator, as the accessors of its kind; None if it has none."""
    for number, table, kinds in (
        (made.BuiltinOptionsType(), made.BuiltinOptions(), tflite.BuiltinOptions),
        (made.BuiltinOptions2Type(), made.BuiltinOptions2(), tflite.BuiltinOptions2),
    ):
        if number and table is not None:
            name = next((name for name, value in vars(kinds).items() if value == number), "")
            if hasattr(tflite, name):
                options = getattr(tflite, name)()
                options.Init(table.Bytes, table.Pos)
                return options
    return None


def _numbers(found: Any) -> tuple[int, ...]:
    """A vector of numbers; the accessors say 0 for one that is not there."""
    return () if isinstance(found, int) else tuple(map(int, found))


def _text(found: bytes | None) -> str:
    return "" if found is None else found.decode("utf-8", "replace")


def _unpacked(raw: np.ndarray) -> np.ndarray:
    """Integers of 4 bits, of which a byte holds two, the first one in its lower half, as bytes."""
    both = np.stack([raw << 4, raw], axis=-1).view(np.int8) >> 4
    return np.ascontiguousarray(both.reshape(-1))


def _dense(values: np.ndarray, shape: tuple[int, ...], sparsity: Any) -> np.ndarray:
    """The constant that only some elements are stated of, by levels: axes in an order, then blocks of them.

    A level is dense (all places) or compressed (segments and the indices in them), as in the TACO compiler.
    """
    order, blocks = _numbers(sparsity.TraversalOrderAsNumpy()), _numbers(sparsity.BlockMapAsNumpy())
    levels = [sparsity.DimMetadata(k) for k in range(sparsity.DimMetadataLength())]
    # Parents in the level above, and the index along every level so far.
    paths = np.zeros((1, 0), np.int64)
    sizes = list[int]()
    for level in levels:
        if level.Format() == tflite.DimensionType.DENSE:
            size = level.DenseSize()
            if not 0 <= len(paths) * size <= prod(shape):
                raise ValueError(f"its levels name more elements than {list(shape)} has")
            index = np.tile(np.arange(size), len(paths))
            paths = np.column_stack([np.repeat(paths, size, axis=0), index])
        else:
            segments = _vector(level.ArraySegmentsType(), level.ArraySegments())
            index = _vector(level.ArrayIndicesType(), level.ArrayIndices())
            counts = np.diff(segments)
            if len(counts) != len(paths) or (counts < 0).any() or counts.sum() != len(index):
                raise ValueError("segments of its levels do not fit their indices")
            if len(index) and index.min() < 0:
                raise ValueError("an index of its levels is negative")
            paths = np.column_stack([np.repeat(paths, counts, axis=0), index])
            size = 0
        sizes.append(size)
    rank = len(shape)
    at = np.zeros((len(paths), rank), np.int64)
    for k, axis in enumerate(order):
        if axis < rank:
            block = next((sizes[order.index(rank + b)] for b, one in enumerate(blocks) if one == axis), 1)
            at[:, axis] += paths[:, k] * block
        else:
            at[:, blocks[axis - rank]] += paths[:, k]
    made = np.zeros(shape, values.dtype)
    made[tuple(at.T)] = values[: len(paths)]
    return made


def _vector(kind: int, table: Any) -> np.ndarray:
    """Numbers of 8, 16 or 32 bits of a level."""
    one: Any = {
        tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
        tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
        tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
    }[kind]()
    one.Init(table.Bytes, table.Pos)
    return np.array(one.ValuesAsNumpy(), np.int64)
