"""gallocheck decides whether a graph allocator may be trusted with a GPU's memory."""

__version__ = "0.1.0"
