"""The guard of a layout: its file, builds held against it, and its command."""
