"""Files that are damaged or come from somebody else: they are data, and end in an answer or in one line."""
