"""The inference entrypoint that runs inside every model's container, and in none.

Imports `core.protocol`, numpy and soundfile; the model's own packages are
imported by its adapter alone.
"""
