"""A nest as a line of text that people can write, ``W | m 24 | c 23 c 12 r 1 | IN | OUT``, and back.

::

    mapping  = { item | "|" }                      outermost first; bars only help the eye
    item     = loop | hold
    loop     = dim size [ "@" places ]             r 4: pieces of 4 rows; r 2@2,3: cut at rows 2 and 3, largest piece 2
             | dim "@" places                      the same, the largest piece is worked out
             | dim size "/" level                  m 16/tle: pieces of 16, side by side on the units of a level
    hold     = operand { ":" ("1" | "2" | "lines") } [ "@" memory ]
                                                   IN:2:lines@flash: two buffers, in lines, from memory flash
    dim      = b | g | m | n | r | c | i | j       operand = IN | W | OUT         level = tle | tlt
    places   = integer { "," integer }

Blanks between a dimension and its size may be left out (``m24``), ``=`` may stand there, and case does not matter.
`text_of` writes every nest, and `nest_of` reads the same nest back. Operands that are not named are held inside all
loops, in the order IN, W, OUT.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hwmodels.schedule import LEVELS, Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.jsonfile import shown
from instances.network.workload import DIMS, RELEVANT, Layer

#: Longer sizes are a typing error.
_DIGITS = 9
_SIZE = rf"\s*=?\s*(?P<size>[0-9]{{1,{_DIGITS}}})"
_PLACES = r"@\s*(?P<places>[0-9]+(?:\s*,\s*[0-9]+)*)"
_LOOP = re.compile(
    rf"(?P<dim>[bgmnrcij])(?:{_SIZE}(?:\s*/\s*(?P<level>[a-z]+)|\s*{_PLACES})?|\s*{_PLACES.replace('places', 'alone')})"
    r"(?![\w/@=])",
    re.IGNORECASE,
)
_HOLD = re.compile(
    r"(?P<operand>in|w|out)(?P<how>(?:\s*:\s*(?:1|2|lines))*)(?:\s*@\s*(?P<home>[A-Za-z_][\w.-]*))?(?![\w:@])",
    re.IGNORECASE,
)
_EXAMPLE = "W | m 24 | c 23 c 12 r 1 | IN | OUT"


def text_of(nest: Nest) -> str:
    """Return the line of a nest: loops between two holds stand together, bars around every hold."""
    homes = dict(nest.homes)
    groups: list[list[str]] = [[]]
    for item in nest.items:
        if isinstance(item, Hold):
            groups += [[_hold(item, homes.get(item.operand))], []]
        else:
            groups[-1].append(_loop(item))
    return " | ".join(" ".join(group) for group in groups if group)


def _loop(item: Loop | Spatial) -> str:
    if isinstance(item, Spatial):
        return f"{item.dim} {item.step}/{item.over}"
    return f"{item.dim} {item.step}" + (f"@{','.join(map(str, item.cuts))}" if item.cuts else "")


def _hold(item: Hold, home: str | None) -> str:
    how = [str(item.buffers)] * bool(item.buffers) + ["lines"] * item.line
    return "".join([item.operand, *(f":{word}" for word in how), f"@{home}" if home else ""])


def nest_of(text: str, layer: Layer) -> Nest:
    """Read a nest for a layer.

    Raises
    ------
    InputError
        If the text is none, or the nest is not one of the layer: names the word at fault, and what is accepted.
    """
    read = parsed(text, layer)
    held, homes = {item.operand for item in read.items if isinstance(item, Hold)}, dict(read.homes)
    for operand in sorted(held - set(layer.operands)):
        raise InputError(f"mapping: layer {layer.name} has no {operand}; it holds {', '.join(layer.operands)}")
    if homes and set(homes) != set(layer.operands):
        missing = ", ".join(operand for operand in layer.operands if operand not in homes)
        raise InputError(f"mapping: memories off the chip are named of some operands, not of {missing}: name all")
    nest = Nest((*read.items, *(Hold(operand) for operand in layer.operands if operand not in held)), read.homes)
    nest.validate_for(layer)
    return nest


def parsed(text: str, layer: Layer | None = None) -> Nest:
    """Read what a text says, whatever layer it is for.

    Raises InputError if the text is none; without a layer also if the largest of free pieces is not stated.
    """
    items, homes, at = list[Item](), dict[str, str](), 0
    while at < len(text):
        if text[at].isspace() or text[at] in "|;":
            at += 1
            continue
        match = _HOLD.match(text, at) or _LOOP.match(text, at)
        if match is None:
            raise _refused(text, at)
        at = match.end()
        if match.re is _LOOP:
            items.append(_looped(match, items, layer))
            continue
        items.append(held := _held(match))
        if match["home"]:
            homes[held.operand] = match["home"]
    return Nest(tuple(items), tuple((operand, homes[operand]) for operand in RELEVANT if operand in homes))


def unnamed(text: str, layer: Layer) -> tuple[str, ...]:
    """Return the operands of a layer that a text does not hold: they are held innermost."""
    held = {match["operand"].upper() for match in _HOLD.finditer(text) if not text[: match.start()][-1:].isalnum()}
    return tuple(operand for operand in layer.operands if operand not in held)


def _held(match: re.Match[str]) -> Hold:
    """Read a hold."""
    words = [word.strip().lower() for word in match["how"].split(":")[1:]]
    buffers = [word for word in words if word != "lines"]
    if len(buffers) > 1 or len(words) > len(set(words)):
        raise InputError(f"mapping: {match[0].strip()!r}: one number of buffers, 1 or 2, and lines once")
    return Hold(match["operand"].upper(), int(buffers[0]) if buffers else None, "lines" in words)


def _looped(match: re.Match[str], before: Iterable[Item], layer: Layer | None) -> Loop | Spatial:
    """Read a loop."""
    dim, size = match["dim"].lower(), match["size"]
    if match["level"]:
        level = match["level"].lower()
        if level not in LEVELS:
            raise InputError(f"mapping: {match[0]!r}: unknown level {level!r}, expected one of {', '.join(LEVELS)}")
        return Spatial(dim, _positive(size, match), level)
    places = tuple(int(place) for place in (match["places"] or match["alone"] or "").split(",") if place.strip())
    if size is not None:
        return Loop(dim, _positive(size, match), places)
    if layer is None:
        raise InputError(f"mapping: {match[0]!r}: name the largest piece before the places: {dim} 4@{places[0]}")
    return Loop(dim, largest_piece(dim, places, before, layer), places)


def _positive(size: str, match: re.Match[str]) -> int:
    if int(size) < 1:
        raise InputError(f"mapping: {match[0]!r}: a size is 1 or more")
    return int(size)


def largest_piece(dim: str, places: tuple[int, ...], before: Iterable[Item], layer: Layer) -> int:
    """Return the largest piece that a loop which cuts at places leaves inside the loops before it."""
    mine = [item for item in before if not isinstance(item, Hold) and item.dim == dim]
    share = min([layer.extent(dim), *(item.step for item in mine if isinstance(item, Spatial))])
    pieces = [(0, share)]
    for loop in (*(item for item in mine if isinstance(item, Loop)), Loop(dim, 0, places)):
        pieces = [piece for lo, hi in pieces for piece in loop.pieces(lo, hi, 0)]
    return max(hi - lo for lo, hi in pieces)


def _refused(text: str, at: int) -> InputError:
    """Say what is wrong at a place of a text."""
    words = re.split(r"[\s|;]+", text[at:].strip(), maxsplit=2)
    word, number = words[0], re.match(r"[A-Za-z]\s*=?\s*([0-9]+)", text[at:])
    said, letter = "expected a loop (m 24) or a hold (IN, W, OUT)", word[:1].lower()
    if number and letter in DIMS:
        word = " ".join(words[: 2 if len(words) > 1 and word.lower() == letter else 1])
        long = len(number[1]) > _DIGITS
        said = f"a size has at most {_DIGITS} digits" if long else "a loop is r 4, r 4@2,6 or r 4/tle"
    elif word.lower() in DIMS:
        said = f"a loop over {word.lower()} needs the size of its pieces: {word.lower()} 4"
    elif re.fullmatch(r"[A-Za-z]=?[0-9]*", word):
        said = f"unknown dimension {letter!r}, expected one of {', '.join(DIMS)}"
    return InputError(f"mapping: {shown(word)}: {said}; for example {_EXAMPLE}")
