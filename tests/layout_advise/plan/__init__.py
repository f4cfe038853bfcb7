"""The plan over all regions of a program."""
