"""A layout tried in the running program: calls of a region, or of several, as the original and as mock-ups, in one process.

In come mock-ups, the memory of the structures that they re-lay and the registers that they were made for (``orders``);
``run`` starts the program with them, and out comes what each call took and how the program ended (``outcome``). ``output``
compares what two runs printed.
"""
