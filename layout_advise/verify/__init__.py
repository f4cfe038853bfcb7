"""Fifth stage: whether a mock-up leaves what the original leaves.

In come compiled mock-ups and a stopped program, out comes a finding for each: verified, close or rejected, with the reason.
``stage`` holds the findings, ``compare`` gathers them, ``verify`` goes through the mock-ups of one call, which are run in
``forks`` of the parked program, or in restored ``copies`` where a team of threads runs the region. ``overwritten`` fills
memory that a call writes without reading, so that the write can be seen; ``order_dependent_sums`` bounds the rounding of
sums that threads add in any order; ``machine_code`` builds and compares the original's code on other layouts; ``policy``
has the limits.
"""
