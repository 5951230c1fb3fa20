"""Rehearsals: `gateway serve --play` and `gateway plugins dev`, on an embedded chain."""

from gateway_demo.rehearsal.rehearse import rehearse

__all__ = ["rehearse"]
