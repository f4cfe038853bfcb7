"""Which mock-ups are made, with which flags, and at which places of memory."""
