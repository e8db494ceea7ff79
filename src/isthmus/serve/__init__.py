"""What others connect to: a package per surface, none of which knows another.

A surface is a protocol machine or a set of pure functions, and a thin asyncio shell around them.
It reads the store, the board and the CA; `isthmus.app` hands it whatever else it needs.
"""
