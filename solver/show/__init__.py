"""Pages: a plan, a front, a benchmark or a sweep as one HTML file, and its figures for papers.

`data` has what is drawn, as plain frozen data that knows neither HTML nor a plotting library; problems make it in their
own folders (`Problem.pictures`). `interactive` and `printed` draw it, by plotly and by matplotlib; `page` lays out and
writes.
"""
