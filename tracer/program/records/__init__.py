"""Records of the source as a build lays them out, for comparing one build with another.

In comes a program's file and names, out comes where each member lies. ``members`` lists the members of one record
(nested ones by their paths, bit fields by their bits), ``type_text`` writes types the same way for all compilers, and
``find`` looks up records and variables by name in all units, or rather in those that ``mentions`` says may have them.
"""
