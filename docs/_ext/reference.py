"""What Sphinx adds to the pages: tables of the schemas, the help of every command, and the gallery of reports.

On a page they are fenced blocks: ``{file-schemas}``, ``{command-help}``, ``{report-gallery}``. A renderer that does not
know them shows an empty block; the sentence above it says what to type instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode


class FileSchemas(SphinxDirective):
    """The JSON Schemas of all files as tables."""

    def run(self) -> list[nodes.Node]:
        """Parse the tables as Markdown."""
        from schemas import markdown

        return self.parse_text_to_nodes(markdown(), allow_section_headings=True)


class CommandHelp(SphinxDirective):
    """The help of every command, as ``certile COMMAND --help`` prints it on 80 columns."""

    def run(self) -> list[nodes.Node]:
        """Ask every command for its help."""
        parts = []
        for name in commands():
            parts += [f"## certile {name}", f"```text\n{help_of(name)}\n```"]
        return self.parse_text_to_nodes("\n\n".join(parts), allow_section_headings=True)


class ReportGallery(SphinxDirective):
    """Reports of some plans, made by the command line."""

    def run(self) -> list[nodes.Node]:
        """Make them beside the pages, unless ``-D certile_gallery=0`` says that they are not wanted."""
        from gallery import CASES, markdown

        cases = CASES if self.config.certile_gallery else ()
        text = markdown(Path(self.env.app.outdir) / "reports", commands(), cases)
        return self.parse_text_to_nodes(text or "Left out of this build.", allow_section_headings=True)


def commands() -> list[str]:
    """Return the names of all commands, in the order of ``certile --help``."""
    import typer

    from solver.cli.main import app

    group: Any = typer.main.get_command(app)
    return list(group.commands)


def help_of(*args: str) -> str:
    """Return what ``certile ARGS --help`` prints."""
    from solver.cli.main import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), patch.dict(os.environ, COLUMNS="80"):
        main([*args, "--help"])
    return said.getvalue().strip("\n")


#: Pages that show a file of the root; links to the file lead there.
_SHOWN = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog", "README.md": "index"}


class TitlesOfPages(SphinxPostTransform):
    """Shows the title of a page where a link says only its file, as a reader on disk wants it."""

    default_priority = 100

    def run(self, **kwargs: Any) -> None:
        """Replace the text of each such link."""
        for link in self.document.findall(nodes.reference):
            found = re.fullmatch(r"(?:docs/)?(\w+)\.md", link.astext())
            page = found.group(1) if found else ""
            if link.get("internal") and page in self.env.titles:
                link.clear()
                link += nodes.inline("", self.env.titles[page].astext())


class LinksToRootFiles(SphinxPostTransform):
    """Leads links to a Markdown file of the root to the page that shows it, before MyST misses the file."""

    default_priority = 8

    def run(self, **kwargs: Any) -> None:
        """Replace each of them."""
        for node in list(self.document.findall(pending_xref)):
            page = _SHOWN.get(str(node.get("reftarget", "")))
            if page is not None:
                node.replace_self(make_refnode(self.app.builder, self.env.docname, page, "", node[0].deepcopy()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    app.add_directive("file-schemas", FileSchemas)
    app.add_directive("command-help", CommandHelp)
    app.add_directive("report-gallery", ReportGallery)
    app.add_config_value("certile_gallery", default=True, rebuild="env", types=(bool,))
    app.add_post_transform(LinksToRootFiles)
    app.add_post_transform(TitlesOfPages)
    return {"parallel_read_safe": True}
