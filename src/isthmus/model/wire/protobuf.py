"""Protobuf bodies."""
