"""Tracing with Intel's Pin, where ``PIN_ROOT`` names a kit. Pin is in no package registry; see README.md here."""
