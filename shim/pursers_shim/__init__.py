"""The stdio relay that a host starts for each conversation. Standard library only."""

__version__ = "0.1.0"
