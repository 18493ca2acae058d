"""The real pursers-wait-bridge and our shim with its daemon play the same scripts; their answers are compared as data."""
