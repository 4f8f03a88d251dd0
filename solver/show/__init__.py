"""Pages: a plan, a front, a benchmark or a sweep as one HTML file, and its figures for papers.

`solver.plan.figures` has what is drawn, as plain frozen data that knows neither HTML nor a plotting library; problems
make it (`Problem.pictures`). interactive.py and printed.py draw it, by plotly and by matplotlib;
page.py lays out and writes.
"""
