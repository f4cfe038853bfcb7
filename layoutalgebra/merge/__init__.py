"""Several structures stored as one array of records.

In: structures, and which of them the hotspot accesses with one index. Out: candidates whose relayouts share buffers.
``records`` makes the layout of structures that share their records, ``merged_candidates`` says which ones are tried.
"""
