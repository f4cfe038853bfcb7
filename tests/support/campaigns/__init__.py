"""Long campaigns in pieces: ``ledger`` keeps what was done."""
