"""The loops of a nest in C, with transfers directly inside the innermost loop that fetches (docs/nest.md)."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.nest.execute import FetchPoint
from hwmodels.schedule import Hold, Item, Loop
from instances.workload import DIMS, REDUCTION, depends
from solver.emit.frame import Frame, pieces_of
from solver.emit.loads import loader
from solver.emit.text import block, call, function


@dataclass(frozen=True)
class _Piece:
    """The current piece of a dimension, as C texts."""

    lo: str
    hi: str


@dataclass(frozen=True)
class _Head:
    """A loop: what stands before it and at the begin of its body, and when it is at its first and last piece."""

    before: list[str]
    head: str
    body: list[str]
    piece: _Piece
    first: str
    last: str
    odd: str
    """Whether loops inside run backwards."""
    following: list[str]
    """Statements that find the piece after the current one, empty after the last."""


class Loops:
    """Writes the loops of one kind of core."""

    def __init__(self, frame: Frame, points: dict[str, FetchPoint]) -> None:
        self.frame, self.points, self.items = frame, points, frame.found.items
        single = len(frame.cores) == 1
        self.piece = {
            d: _Piece(*(("0", frame.hi(d)) if d not in frame.moving else (f"{d}_lo", f"{d}_hi"))) for d in DIMS
        }
        if single:
            self.piece = {d: _Piece("0", str(frame.layer.extent(d))) for d in DIMS}
        self.begin = {d: piece.lo for d, piece in self.piece.items()}
        self.numbers = dict.fromkeys(DIMS, 0)
        self.firsts: list[str] = []
        self.lasts: list[str] = []
        self.odd = "0"
        self.heads: dict[int, _Head] = {}

    def function(self, name: str) -> list[str]:
        """Return the function that runs a core."""
        body = self._body(0)
        body += block("if (held & 4)", ["close_out(out_last);"]) if self.frame.snake else []
        body += ["compute_late();"] if self.frame.late else []
        body += ["certile_dma_wait();"]
        given = (
            [] if len(self.frame.cores) == 1 else [f"int {d}_{end}" for d in self.frame.moving for end in ("lo", "hi")]
        )
        unused = [f"(void){text.removeprefix('int ')};" for text in given]
        return function(f"static void {name}", given, unused + body)

    def _ranges(self, operand: str = "", lacks: str = "") -> list[str]:
        mine = pieces_of(operand, lacks)
        chosen = [self.piece[d] for d in self.frame.moving if d in mine]
        return [text for piece in chosen for text in (piece.lo, piece.hi)]

    def _body(self, place: int) -> list[str]:
        lines: list[str] = []
        for operand, point in self.points.items():
            if operand == "IN" and self.frame.layer.broadcast:
                lines += self._fetch_parts(point, place)
            elif point.fetching == place:
                lines += self._fetch(operand, point)
        if place == len(self.items):
            lines += call("run", [self._first(), *self._ranges()])
        else:
            lines += self._item(self.items[place], place)
        if self.points["OUT"].fetching == place and not self.frame.snake:
            lines += call("close_out", [self._last()])
        return lines

    def _first(self) -> str:
        return " && ".join(self.firsts) or "1"

    def _last(self) -> str:
        return " && ".join(self.lasts) or "1"

    def _fetch_parts(self, point: FetchPoint, place: int) -> list[str]:
        """Inputs that are broadcast: each is fetched by the loops down to the innermost one that it depends on."""
        lines: list[str] = []
        for lacks in self.frame.patterns:
            mine = depends("IN", lacks)
            if place == max((at + 1 for at, d in point.cutting if d in mine), default=0):
                lines += call(loader(lacks), self._ranges("IN", lacks))
        return lines

    def _fetch(self, operand: str, point: FetchPoint) -> list[str]:
        frame, ranges = self.frame, self._ranges(operand)
        if operand == "OUT":
            given = [self._first()] if frame.cut and not frame.machine.psum_first_read else []
            given += [self._last()] if frame.snake else []
            return call("open_out", given + ranges)
        if operand == "W":
            return call("load_w", ranges)
        if frame.lines and point.outer is not None:
            outer, turns = self.heads[point.outer], self.heads[point.fetching - 1].first
            return [
                *outer.following,
                *call("load_in", [f"{turns} && {outer.first}", turns, "next", "next_end", *ranges]),
            ]
        if frame.rings and not frame.snake:
            slide = f"{self.heads[point.fetching - 1].first} ? 0 : {point.axis}" if point.axis is not None else "0"
            return call("load_in", [slide, *ranges])
        return call("load_in", ranges)

    def _item(self, item: Item, place: int) -> list[str]:
        if isinstance(item, Hold):
            return self._body(place + 1)
        assert isinstance(item, Loop)
        kept = self.piece[item.dim], self.numbers[item.dim], list(self.firsts), list(self.lasts), self.odd
        head = self.heads[place] = self._head(item)
        self.piece[item.dim], self.odd = head.piece, head.odd
        self.numbers[item.dim] += 1
        if item.dim in REDUCTION:
            self.firsts.append(head.first)
            self.lasts.append(head.last)
        lines = [*head.before, *block(head.head, [*head.body, *self._body(place + 1)])]
        self.piece[item.dim], self.numbers[item.dim], self.firsts, self.lasts, self.odd = kept
        return lines

    def _head(self, item: Loop) -> _Head:
        outer, name = self.piece[item.dim], f"{item.dim}{self.numbers[item.dim]}"
        if item.cuts:
            return self._at_places(item, outer, name)
        piece = _Piece(name, f"{name}_end")
        following = [
            f"const int next = {name}_end;",
            f"const int next_end = certile_min(next + {item.step}, {outer.hi});",
        ]
        if self.frame.snake:
            return self._to_and_fro(item, outer, name)
        head = f"for (int {name} = {outer.lo}; {name} < {outer.hi}; {name} += {item.step})"
        body = [f"const int {name}_end = certile_min({name} + {item.step}, {outer.hi});"]
        return _Head([], head, body, piece, f"{name} == {outer.lo}", f"{name}_end == {outer.hi}", self.odd, following)

    def _counted(self, name: str) -> tuple[str, str, list[str], str]:
        """A loop over the numbers of pieces: its head, the number of the piece, lines that find it, its oddness."""
        k, pieces = f"{name}_k", f"{name}_pieces"
        head = f"for (int {k} = 0; {k} < {pieces}; {k}++)"
        if not self.frame.snake:
            return head, k, [], self.odd
        number = f"{name}_number"
        turned = f"{self.odd} ? {pieces} - 1 - {k} : {k}" if self.odd != "0" else k
        odd = f"(({self.odd} + {number}) & 1)" if self.odd != "0" else f"({number} & 1)"
        return head, number, [f"const int {number} = {turned};"], odd

    def _to_and_fro(self, item: Loop, outer: _Piece, name: str) -> _Head:
        head, number, lines, odd = self._counted(name)
        before = [f"const int {name}_pieces = certile_ceil({outer.hi} - {outer.lo}, {item.step});"]
        lines += [f"const int {name} = {outer.lo} + {number} * {item.step};",
                  f"const int {name}_end = certile_min({name} + {item.step}, {outer.hi});"]  # fmt: skip
        first, last = f"{name}_k == 0", f"{name}_k == {name}_pieces - 1"
        return _Head(before, head, lines, _Piece(name, f"{name}_end"), first, last, odd, [])

    def _at_places(self, item: Loop, outer: _Piece, name: str) -> _Head:
        begin = self.begin[item.dim]
        lo, hi = (text if begin == "0" else f"{text} - {begin}" for text in (outer.lo, outer.hi))
        ask = f"certile_piece({name}_at, {len(item.cuts)}, {lo}, {hi}"
        head, number, lines, odd = self._counted(name)
        moved = [] if begin == "0" else [f"{name} += {begin};", f"{name}_end += {begin};"]
        before = [
            f"static const int {name}_at[] = {{{', '.join(map(str, item.cuts))}}};", f"int {name}, {name}_end;",
            f"const int {name}_pieces = {ask}, 0, &{name}, &{name}_end);",
        ]  # fmt: skip
        following = ["int next = 0, next_end = 0;", *block(
            f"if ({name}_k + 1 < {name}_pieces)",
            [f"{ask}, {name}_k + 1, &next, &next_end);", *(line.replace(name, "next") for line in moved)],
        )]  # fmt: skip
        first, last = f"{name}_k == 0", f"{name}_k == {name}_pieces - 1"
        lines += [f"{ask}, {number}, &{name}, &{name}_end);", *moved]
        return _Head(before, head, lines, _Piece(name, f"{name}_end"), first, last, odd, following)
