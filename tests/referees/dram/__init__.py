"""Plans of problem fusion and joint on a cycle model of DRAM: every transfer as lines at its addresses, in its order.

`layout` gives maps, weights and partial sums addresses, `trace` has those of every transfer of a plan, `simulator` has
DRAMsim3 carry them out (`driver.cpp`), `ranks` compares orders of plans: `python -m tests.referees.dram`.
"""
