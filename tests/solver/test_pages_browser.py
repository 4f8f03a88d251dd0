"""Pages in a headless Chromium: drawn without an error and without a request, sorted by keyboard, light, dark, narrow.

The browser is the one that the environment variable CERTILE_BROWSER names, or chromium or google-chrome of the PATH;
without one these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from instances.problems import PROBLEMS
from solver.show.page import to_html
from solver.uses.report.kinds import page_of
from solver.uses.report.plan_page import plan_page
from tests.reported import plan_of

BROWSER = os.environ.get("CERTILE_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if BROWSER is None:
    pytest.skip("no browser: set CERTILE_BROWSER, or install chromium", allow_module_level=True)

#: All figures that can be seen are drawn.
DRAWN = """() => {
  const boxes = [...document.querySelectorAll('.plot')].filter((box) => box.offsetParent !== null);
  return boxes.length > 0 && boxes.every((box) => box.dataset.drawn && box.querySelector('svg.main-svg'));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@contextmanager
def opened(browser: Any, html: str, folder: Path, *, drawing: bool = True, **options: Any) -> Iterator[Any]:
    """A page, with all its figures drawn; what it complains of or asks the network for is a failure."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
    page, wrong = context.new_page(), list[str]()
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url == file.as_uri() else wrong.append(f"request {asked.url[:80]}"))
    page.goto(file.as_uri())
    if drawing:
        page.evaluate("certile.drawAll()")
        page.wait_for_function(DRAWN)
    yield page
    context.close()
    assert wrong == []


def html_of(problem: str) -> str:
    return to_html(plan_page(plan_of(problem)))


def widths(page: Any) -> tuple[int, int]:
    found = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    return found[0], found[1]


@pytest.mark.slow(3)
def test_a_page_in_use(browser: Any, tmp_path: Path) -> None:
    with opened(browser, html_of("tiling"), tmp_path) as page:
        # the first stop of the keyboard leads to the content
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        # sorted by keyboard: the head of bytes, twice
        head = page.locator("#part-table thead th").filter(has_text="bytes").first
        at = head.evaluate("th => th.cellIndex")
        cells = f"#part-table tbody tr > :nth-child({at + 1})"
        for sort, sign in (("ascending", 1), ("descending", -1)):
            head.locator("button").focus()
            page.keyboard.press("Enter")
            assert head.get_attribute("aria-sort") == sort
            found = [sign * int(text.replace(",", "")) for text in page.locator(cells).all_text_contents()]
            assert found == sorted(found)
        assert len(set(found)) > 1
        assert "descending" in page.locator("#said").text_content()
        # dark and light by the button
        before = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
        page.get_by_role("button", name="Dark").click()
        after = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
        assert before == "rgb(255, 255, 255)"
        assert after == "rgb(21, 24, 27)"
        page.wait_for_function("getComputedStyle(document.querySelector('.plot text')).fill === 'rgb(233, 235, 237)'")
        # a layer in detail is drawn when it is opened
        page.locator("details.part > summary").first.click()
        page.wait_for_function("document.querySelector('details.part[open] .plot[data-drawn]') !== null")
        assert page.locator("details.part[open] pre").first.is_visible()
        assert page.get_by_role("main").count() == 1
        assert page.get_by_role("navigation").count() == 1


@pytest.mark.slow(4)
def test_a_narrow_page(browser: Any, tmp_path: Path) -> None:
    options = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with opened(browser, html_of("tiling"), tmp_path, **options) as page:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert widths(page) == (360, 360)
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(21, 24, 27)"


@pytest.mark.slow(4)
def test_a_page_without_javascript(browser: Any, tmp_path: Path) -> None:
    with opened(browser, html_of("tiling"), tmp_path, drawing=False, java_script_enabled=False) as page:
        assert page.get_by_text("JavaScript is off").is_visible()
        assert page.locator("#part-table tbody tr").count() == 2
        page.locator("figure summary").first.click()
        assert page.locator("figure table").first.is_visible()


@pytest.mark.slow(60)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_pages_of_every_problem(problem: str, browser: Any, tmp_path: Path) -> None:
    html = html_of(problem)
    for width, scheme in ((1200, "light"), (360, "dark")):
        options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
        with opened(browser, html, tmp_path, **options) as page:
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            page.evaluate("certile.drawAll()")
            page.wait_for_function(DRAWN)
            assert widths(page) == (width, width)
            assert page.locator(".plot svg.main-svg").count() >= page.locator("figure").count()


@pytest.mark.slow(20)
def test_names_of_a_file_do_nothing(browser: Any, tmp_path: Path) -> None:
    data = {"suite": "<img src=x onerror=alert(1)>", "sections": [{"title": "t", "notes": [], "rows": [
        {"<script>alert(2)</script>": "<a href='javascript:alert(3)'>x</a>", "r": 1.5}]}]}  # fmt: skip
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(data))
    with opened(browser, to_html(page_of(file)), tmp_path) as page:
        assert page.locator("img, .plot a[href^=javascript]").count() == 0
        assert page.locator("script").count() == 3  # figures, page.js, and the library in place of its packed form
