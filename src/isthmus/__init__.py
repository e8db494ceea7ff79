"""Isthmus: one service mesh over many clusters and datacenters."""

__version__ = "0.1.0"
