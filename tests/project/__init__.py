"""The repository itself: its rooms, examples, pages, notebook and benchmark scripts."""
