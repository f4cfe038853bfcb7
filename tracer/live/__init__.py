"""A layout tried in the running program: its calls as the original and as a mock-up, in one process.

In come a mock-up, the memory of the structures that it re-lays and the registers that it was made for (``orders``); ``run``
starts the program with them, and out comes what each call took and how the program ended (``outcome``). ``output`` compares
what two runs printed.
"""
