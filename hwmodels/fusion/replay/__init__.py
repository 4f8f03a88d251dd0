"""The referee of groups of layers that run strip by strip: counted, and executed on integers."""
