"""What operators ask of the shapes that they read."""

from __future__ import annotations

from collections.abc import Sequence

from instances.workload import room_of

Shape = tuple[int, ...]


def check_arity(inputs: Sequence[Shape], least: int, most: int | None) -> None:
    """Raise ValueError if an operator has too few or too many inputs (None: as many as one likes)."""
    if len(inputs) < least or (most is not None and len(inputs) > most):
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"has {len(inputs)} inputs, needs {wanted}")


def feature_map(shape: Shape) -> Shape:
    """Return the shape of a feature map; raises ValueError for others."""
    if len(shape) != 4:
        raise ValueError(f"needs a feature map (batch, channels, rows, columns), its input has shape {shape}")
    return shape


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the NumPy broadcast of shapes; raises ValueError if they do not fit together."""
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    out = tuple(max(axis) for axis in zip(*padded, strict=True))
    for shape in padded:
        if any(x not in (1, y) for x, y in zip(shape, out, strict=True)):
            raise ValueError(f"shapes {' and '.join(str(tuple(s)) for s in shapes)} do not fit together")
    return out


def count_windows(size: int, kernel: int, stride: int, dilation: int, before: int, after: int, *, ceil: bool) -> int:
    """Return how many windows of a pooling an axis has; raises ValueError if none fits."""
    room = room_of("window", size, kernel, dilation, before, after)
    if not ceil:
        return room // stride + 1
    out = -(-room // stride) + 1
    # A window that would start in the padding behind the map is dropped (the rule of every framework).
    return out - 1 if (out - 1) * stride >= size + before else out
