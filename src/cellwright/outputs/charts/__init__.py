"""Charts that only a page can draw: read from their data, described in words, drawn as pictures.

`reading` finds the title, the axes and the series of a Plotly, Vega, Vega-Lite or Bokeh display, and
of an SVG. `drawing` makes a picture, if the extra `charts` is installed.
"""
