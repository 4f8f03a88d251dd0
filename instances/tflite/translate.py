"""A TFLite model as an ONNX model that computes the same: one reader, one meaning, one way to C.

**Quantised tensors.** A tensor of integers with scales stands for real numbers: operators compute on what
DequantizeLinear makes of their inputs, and QuantizeLinear makes the integers of the result (QDQ). An activation that is
fused into an operator is a node behind it.

**Order of axes.** TFLite has channels last, ONNX has them behind the batch. A tensor of three axes or more is held in
one order or both: `first` says channels first. Convolutions, poolings and their like need that, element-wise operators
take the order that is there, and who asks for the other order gets a Transpose (a Reshape, where all axes between the
batch and the channels are 1, or there is one channel). Inputs and variables of four axes and more are declared channels
first.

**Variables.** What stays between calls is an input and a result of the ONNX model (`ModelFile.states`).

Operators that have no counterpart are nodes of the domain `OPAQUE`, which the reader keeps and reports.
"""

from __future__ import annotations

from onnx import helper

from instances.errors import InputError
from instances.tflite import layers, moves, pointwise, recurrent, sequences
from instances.tflite.file import ModelFile
from instances.tflite.model import FAULTS, Operator, TfliteFile
from instances.tflite.scope import OPAQUE, Scope, Untranslatable

#: The version of the operators that are made.
OPSET = 21
#: Operator -> what translates it.
CONVERTERS = {
    **layers.CONVERTERS, **moves.CONVERTERS, **pointwise.CONVERTERS, **recurrent.CONVERTERS, **sequences.CONVERTERS,
}  # fmt: skip
#: Why operators have no counterpart, where that is not plain.
_UNREAD = dict.fromkeys(("IF", "WHILE"), "its subgraphs are not read")


def translate(data: bytes, where: str) -> ModelFile:
    """Return the ONNX model of the bytes of a TFLite file.

    Raises
    ------
    InputError
        If they are no TFLite file, are cut off, or name what is not there.
    """
    file = TfliteFile(data, where)
    try:
        return _translated(file)
    except InputError:
        raise
    except (*FAULTS, Untranslatable) as error:  # a file may say anything of its inputs, results and variables
        raise InputError(f"{where}: its inputs, results or variables do not fit ({str(error)[:100]})") from None


def _translated(file: TfliteFile) -> ModelFile:
    scope = Scope(file, file.subgraphs[0])
    scope.assigned = recurrent.assigned(scope)
    if not scope.graph.operators:
        raise InputError(f"{file.where}: the graph has no operators")
    for number in scope.graph.inputs:
        if number >= 0:
            scope.feed(number)
    for operator in scope.graph.operators:
        _convert(scope, operator)
    for number in scope.graph.outputs:
        scope.give(number)
    recurrent.keep(scope)
    graph = helper.make_graph(
        scope.nodes, "main", scope.inputs, scope.outputs, scope.constants, value_info=scope.declared
    )  # fmt: skip
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(OPAQUE, 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    return ModelFile(
        model, f"TFLite schema {file.version}", scope.states, scope.begins, frozenset(scope.turned), scope.kept,
        rule="double",
    )  # fmt: skip


def _convert(scope: Scope, operator: Operator) -> None:
    if operator.custom or (converter := CONVERTERS.get(operator.name)) is None:
        scope.opaque(operator, "custom" if operator.custom else _UNREAD.get(operator.name, ""))
        return
    made = len(scope.nodes), len(scope.constants)
    try:
        converter(scope, operator)
    except Untranslatable as reason:
        scope.forget(*made)
        scope.opaque(operator, str(reason))
    except InputError:
        raise
    except FAULTS as error:  # a file may say anything of its tensors
        raise InputError(
            f"{scope.file.where}: operator {scope.label(operator)!r} ({operator.name}) does not fit its tensors or "
            f"options ({str(error)[:100]})"
        ) from None
