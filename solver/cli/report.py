"""The command `certile report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from instances.errors import InputError
from solver.ask import options
from solver.plan.figures import Figure
from solver.show.console import emit, write
from solver.show.page import to_html
from solver.show.printed import image
from solver.show.style import slugs
from solver.uses.report.kinds import page_of
from solver.uses.report.plan_page import COMPARED_S


def report(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A plan, a front (pareto -o), a benchmark (bench -o), a sweep: plan.json"),
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="The page, or a .svg or .png: -o report.html")
    ] = None,
    compare: Annotated[
        str, typer.Option("--compare", metavar="E,..", help="Draw other engines beside the plan: greedy,naive")
    ] = "",
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="S", help="Seconds for each engine of --compare: 10")
    ] = COMPARED_S,
    figure: Annotated[
        str | None, typer.Option("--figure", metavar="NAME", help="One figure, to -o x.svg or x.png: roofline")
    ] = None,
    svg: Annotated[
        str | None, typer.Option("--svg", metavar="DIR", help="Every figure as SVG, for papers: --svg figures")
    ] = None,
    png: Annotated[
        str | None, typer.Option("--png", metavar="DIR", help="Every figure as PNG, for slides: --png figures")
    ] = None,
) -> int:
    """Write one HTML page that needs no network: proof, tables that sort, and figures of what was decided.

    Without -o, --svg and --png the figures are listed. A figure's NAME is the one of the list.
    """
    options.check_writable(out)
    _agree(out, figure)
    engines = [name.strip() for name in compare.split(",") if name.strip()]
    page = page_of(file, engines, time_limit)
    named = dict(zip(slugs(one.key for one in page.figures), page.figures, strict=True))
    if out is not None and figure is None:
        write(out, to_html(page))
        emit(f"written to {out}: {len(named)} figures, {Path(out).stat().st_size / 1e6:.1f} MB")
    if out is not None and figure is not None:
        if figure not in named:
            raise options.unknown("figure", figure, named)
        _write_image(named[figure], Path(out))
        emit(f"written to {out}")
    kinds: tuple[tuple[str | None, Literal["svg", "png"]], ...] = ((svg, "svg"), (png, "png"))
    for folder, kind in kinds:
        if folder is not None:
            emit(f"written to {folder}: {_write_images(named, folder, kind)} files")
    if out is None and svg is None and png is None:
        emit("\n".join(f"{name}: {one.title}" for name, one in named.items()) or "no figures")
    return 0


def _agree(out: str | None, figure: str | None) -> None:
    """Refuse an ending that does not go with what is asked."""
    ending = "" if out is None else Path(out).suffix.lower()
    if figure is not None and ending not in (".svg", ".png"):
        raise InputError("--figure: needs -o with a name that ends in .svg or .png")
    if figure is None and ending in (".svg", ".png"):
        raise InputError(f"-o {out}: a page has many figures, name one (--figure roofline), or give --svg DIR")


def _write_image(figure: Figure, path: Path) -> None:
    kind: Literal["svg", "png"] = "svg" if path.suffix.lower() == ".svg" else "png"
    write(str(path), image(figure, kind))


def _write_images(named: dict[str, Figure], folder: str, kind: Literal["svg", "png"]) -> int:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"folder {folder}: {error.strerror}") from None
    for name, figure in named.items():
        _write_image(figure, Path(folder) / f"{name}.{kind}")
    return len(named)
