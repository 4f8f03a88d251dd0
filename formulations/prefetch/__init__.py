"""Prefetch: when the transfers of a network begin, and in which order, so that the least time goes by.

`guards` states the problem, makes guards and limits for an order, orders, and bounds; `forward` finds another order,
`mending` changes the best one; `cp_sat` is exact.
Times are those of `hwmodels.timeline`.
"""
