"""The daemon. Deliberately empty but for its version, so that pursersctl can import pursersd.api cheaply."""

__version__ = "0.1.0"
