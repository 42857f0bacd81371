"""The page that reports a batch, in a browser: on a phone, light and dark, with pictures in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.batch import BatchReport, Job, JobResult, write_report
from cellwright.batch.jobs import ChangedOutputs

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A page with all that is long in it."""
    long = "x" * 400
    changed = ChangedOutputs(long, 1, f"-{long}", [("image/png", PIXEL)], [("image/png", PIXEL)])
    job = Job(f"{long}.ipynb", {"year": long}, f"out/{long}.ipynb")
    bad = JobResult(job, "error", cells=2, ran=1, cell=long, index=0, message=long)
    bad.traceback, bad.notes, bad.changed = [long], [f"Attempt 1: {long}"], [changed]
    path = tmp_path / "report.html"
    path.write_text(write_report(BatchReport([bad], began=0, seconds=1), "html"), "utf-8")
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_a_phone_and_follows_its_colours(
    browser: Browser, address: str, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    try:
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        one, two = (picture.bounding_box() for picture in page.locator("img").all())
        assert one is not None
        assert two is not None
        assert (one["y"], one["x"] < two["x"]) == (two["y"], True), "side by side"
        canvas = page.evaluate(
            "() => { const c = document.createElement('div'); c.style.color = 'CanvasText';"
            " document.body.append(c); return getComputedStyle(c).color }"
        )
        assert canvas == {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}[scheme]
    finally:
        page.close()
