"""Dataset builders: where each kind of source becomes the rows of a manifest."""
