"""A program parked at one call, and copies of it.

``park`` starts the program and stops it there; ``agent_process`` is the stopped program, commanded through its agent
(``agent_client``; ``block_table`` reads its heap blocks). ``snapshots`` makes copies, by forks or by ``criu`` (found
and installed by ``criu_install``, from a ``private_apt``), whose dump ``dump_folder`` keeps; ``open_files``
puts back what a restore loses. ``compare`` says whether two runs left the same bytes, ``changed_lines``
what one changed, ``recorded_calls`` keeps the registers of consecutive calls,
``between`` what the program writes between them. ``pages/`` looks at the pages of other processes.
"""
