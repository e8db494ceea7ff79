"""The figures that `make bench` prints. Nothing here is a gate: a machine is slow when it is busy.

Each module of this package has a `figures()` that yields `bench.table.Figure`s, the most telling
ones as ratios against a reference that ran in the same process. `python -m bench engine store`
runs only those.
"""
