"""Fourth stage: from candidates to compiled mock-ups.

In come the source of one call's code and the candidates, out come shared objects with their check builds. ``stage`` makes
them, for the first time, for another call, and for the winner again; ``compile_flags`` chooses the compiler's flags,
``mockups`` emits and compiles, ``code_places`` makes copies whose code lies elsewhere in memory, ``machine_code`` puts the
original's on other layouts; ``policy`` has the limits.
"""
