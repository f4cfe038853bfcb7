"""First stage: which region of the program to study, and which of its calls.

In come the settings and the program, out comes a hotspot with the call to stop at. In order: ``wrapped_command`` finds the
program behind ``env`` and ``sh -c``, ``profile`` samples it and ranks functions, ``named_regions`` says what a function that
the user names stands for, ``probed_calls`` times the hotspot's calls in the running program, ``loop_regions`` takes a loop
nest where the function is entered too seldom, ``chunks`` a part of the iterations of one that makes too many accesses,
``calls`` chooses the call from the times of the first ones. Where calls are too short to be timed, ``short_calls`` says
what is studied, ``by_time`` where in the run the time is, ``batches`` plans many consecutive calls, as many as
``batch_sizes`` says. ``call_kinds`` says which calls do the same work, ``further_regions`` what to look at where the hotspot
gives no answer. ``policy`` holds the limits.
"""
