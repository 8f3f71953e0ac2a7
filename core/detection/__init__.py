"""Detecting manipulation, piece by piece: questions, votes, tactic, quote, tables.

`core.tasks.manipulation` puts them together.
"""
