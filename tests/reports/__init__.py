"""The report's data, words and pages, against snapshots."""
