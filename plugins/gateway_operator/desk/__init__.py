"""Operators' queries and actions, without HTTP or click.

Functions take a `Desk`, and an `Actor` if they act, and return attrs classes, which pages, API and
commands render.
"""
