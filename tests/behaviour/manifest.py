"""Everything that was promised, one row each: kept and by which test, or not yet and by what work.

The promises of the five documents (S0 to S4) have the documents' line numbers; the design's own
(D) have its section. `./dev promises` prints the tally. To mark a row done, replace its status by
`Done("tests/…/test_x.py::test_name")`; `test_manifest.py` holds that the test exists, ran and
passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour import _design, _design_document, _s0, _s1, _s2, _s3, _s4

if TYPE_CHECKING:
    from tests.behaviour.promise import Promise

PROMISES: tuple[Promise, ...] = (
    *_s0.ROWS,
    *_s1.ROWS,
    *_s2.ROWS,
    *_s3.ROWS,
    *_s4.ROWS,
    *_design_document.ROWS,
    *_design.ROWS,
)
