"""A notebook with one of everything that `show` can show, and pictures to put in it."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

FRAME = """<div>
<style scoped>
    .dataframe tbody tr th { vertical-align: top; }
</style>
<table border="1" class="dataframe">
  <thead>
    <tr style="text-align: right;">
      <th></th><th>region</th><th>units</th><th>revenue</th><th>share</th><th>note</th>
    </tr>
  </thead>
  <tbody>
    <tr><th>0</th><td>North</td><td>1204</td><td>18,060.00</td><td>0.31</td><td>steady</td></tr>
    <tr><th>1</th><td>South</td><td>987</td><td>14,805.00</td><td>0.26</td><td>new depot &amp; crew</td></tr>
    <tr><th>2</th><td>East</td><td>NaN</td><td>9,120.50</td><td>0.16</td><td></td></tr>
    <tr><th>3</th><td>東京</td><td>1044</td><td>15,660.00</td><td>0.27</td><td>🚀 up 12 %</td></tr>
  </tbody>
</table>
<p>4 rows × 5 columns</p>
</div>"""

WIDE = (
    "<table><thead><tr><th></th>"
    + "".join(f"<th>feature_{number:02}</th>" for number in range(24))
    + "</tr></thead><tbody>"
    + "".join(
        f"<tr><th>{row}</th>"
        + "".join(f"<td>{(row * 31 + column * 7) % 100 / 10:.1f}</td>" for column in range(24))
        + "</tr>"
        for row in range(3)
    )
    + "</tbody></table>"
)

INTRO = """# Sales by region

A short look at **four regions** of the [sales data](https://example.com/data.csv), with
`pandas` and *no* fuss. The mean is $\\bar{x}_n = \\frac{1}{n} \\sum_i x_i$.

## What follows

1. Load the data
2. Look at it
   - as a table
   - as a picture
3. Fit a model

| model  | score | remark                          |
|:-------|------:|:--------------------------------|
| linear |  0.91 | fast, and good enough           |
| forest |  0.93 | ten times slower                |

> Prices in euro, without tax.

```python
df.groupby("region")["units"].sum()
```
"""

TRACEBACK = [
    "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
    "\x1b[0;31mKeyError\x1b[0m                                  Traceback (most recent call last)",
    (
        "Cell \x1b[0;32mIn[5], line 2\x1b[0m\n"
        "\x1b[1;32m      1\x1b[0m totals \x1b[38;5;241m=\x1b[0m load()\n"
        "\x1b[0;32m----> 2\x1b[0m totals[\x1b[38;5;124m'West'\x1b[0m]\n"
    ),
    "\x1b[0;31mKeyError\x1b[0m: 'West'",
]


# Red and green above blue and white.
FOUR_PIXELS = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP4"
    "z8DA8J+BkYHh////DAAe9gT9Ce00PgAAAABJRU5ErkJggg=="
)
# Bars on white, like a figure. As bytes, since what an encoder makes of pixels changes.
CHART = (
    "iVBORw0KGgoAAAANSUhEUgAAAKAAAABQBAMAAABsc2MHAAAAG1BMVEX////dhFKTeGCBcrNktc1VqGhMcrDETlIAAA"
    "C3mRHWAAAAl0lEQVR42u3UOw0CQRQF0LN8WyQgAQlIQAISkLAlJRKQgAQkIAEJlPyh3YKGZDZZyL39nEzuvDckHU1d"
    "juqVvlv3wcG3B/oz8Dikw4ABf3CXxytw2aTDAv9h4y5T8DxmsAO2MIfVBLxO6bD1XW4gc3DfZ7Dbf5ThAtx26TDg57"
    "EZLcF1mw4DBgwYMGBHwAqsC2nnWpL8Zd6nvhEQ0PBNhwAAAABJRU5ErkJggg=="
)


def code(source: str, outputs: list[Any] | None = None, count: int | None = 1, **more: Any) -> Any:
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {},
        "outputs": outputs or [],
        "source": source,
        **more,
    }


def markdown(source: str, **more: Any) -> Any:
    return {"cell_type": "markdown", "metadata": {}, "source": source, **more}


def stream(text: str, name: str = "stdout") -> Any:
    return {"output_type": "stream", "name": name, "text": text}


def display(data: dict[str, Any]) -> Any:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def result(data: dict[str, Any], count: int = 1) -> Any:
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": count}


def error(name: str, value: str, traceback: list[str]) -> Any:
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": traceback}


def notebook(cells: list[Any], metadata: dict[str, Any] | None = None, minor: int = 5) -> bytes:
    if minor >= 5:
        cells = [
            {"id": f"cell{number:02}", **cell} if isinstance(cell, dict) else cell
            for number, cell in enumerate(cells)
        ]
    about = (
        metadata if metadata is not None else {"kernelspec": {"name": "x", "language": "python"}}
    )
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(whole, indent=1).encode()


def png(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def everything() -> bytes:
    """The notebook of the golden files."""
    cells = [
        markdown(INTRO),
        code(
            "%matplotlib inline\nimport pandas as pd\n\n"
            'DATA = "sales.csv"  # one row for each region\n\n\n'
            "@cached\ndef load(path: str = DATA) -> pd.DataFrame:\n"
            '    """Read the file, and nothing else."""\n'
            '    frame = pd.read_csv(path, parse_dates=["day"], dtype={"units": "Int64", '
            '"revenue": float, "region": "category"})\n'
            "    return frame[frame.units > 0 or True]\n\n\nload()",
            [
                stream("reading sales.csv\n"),
                stream(
                    "  0%|          | 0/4\r 50%|#####     | 2/4\r100%|##########| 4/4\n", "stderr"
                ),
                result({"text/html": FRAME, "text/plain": "  region units ..."}),
            ],
            1,
            metadata={"tags": ["load"]},
        ),
        code(
            "plot(load())",
            [display({"image/png": CHART, "text/plain": "<Figure size 160x80 with 1 Axes>"})],
            2,
        ),
        code(
            "fit(load())",
            [
                stream("".join(f"epoch {n:3}  loss {1 / n:.4f}\n" for n in range(1, 131))),
                result(
                    {
                        "application/json": {
                            "model": "linear",
                            "score": 0.914,
                            "converged": True,
                            "weights": [0.5, -1.25, 3.0],
                            "options": {"alpha": {"start": 0.1, "stop": 1}, "penalty": None},
                            "seed": 7,
                            "notes": "with an intercept",
                        },
                        "text/plain": "<IPython.core.display.JSON object>",
                    },
                    3,
                ),
            ],
            3,
        ),
        code(
            "features.describe()",
            [result({"text/html": WIDE, "text/plain": "wide"}, 4)],
            4,
        ),
        code("totals = load()\ntotals['West']", [error("KeyError", "'West'", TRACEBACK)], 5),
        code(
            '%%bash\nfor file in *.csv; do\n  wc -l "$file"\ndone',
            [
                stream("\x1b[32m4\x1b[0m sales.csv\n"),
                display({"text/html": "<p>See <a href='https://example.com'>the docs</a>.</p>"}),
                display({"image/svg+xml": "<svg>" + " " * 12_000 + "</svg>"}),
                display(
                    {
                        "application/vnd.jupyter.widget-view+json": {"model_id": "m"},
                        "text/plain": "IntSlider(value=3)",
                    }
                ),
                display({"text/latex": "$E = m c^2$", "text/plain": "<IPython.core.Latex object>"}),
                display({"text/markdown": "A **bold** claim"}),
            ],
            6,
        ),
        code("", [], None),
        code("# to be run\nsave(load(), 'out.parquet')", [], None),
        {"cell_type": "raw", "metadata": {}, "source": ".. note:: passed on as it is [bold]"},
        {"cell_type": "mystery", "metadata": {}, "source": "?"},
    ]
    about = {
        "kernelspec": {
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    }
    return notebook(cells, about)
