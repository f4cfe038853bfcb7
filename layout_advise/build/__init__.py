"""Fourth stage: from candidates to compiled mock-ups.

In come the lifted region and the candidates, out come shared objects with their check builds. In order: ``recipes``
lists which mock-ups are made (the identity in its forms, each candidate in its variants, one with a wrong index map),
``compile_flags`` chooses the compiler's flags, ``mockups`` emits and compiles them, ``code_places`` makes copies whose
code lies elsewhere in memory. ``build_and_compare`` runs this and hands the results to the comparison with the
original.
"""
