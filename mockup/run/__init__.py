"""From C to code: mock-ups compiled by the producer's compiler.

``build`` compiles, ``same_code`` says whether two builds are the same program, ``code_placement`` puts the hot loop
where the original has it. ``survey`` lifts, emits and compiles one function after another of a whole binary.
"""
