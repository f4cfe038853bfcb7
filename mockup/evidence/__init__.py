"""Evidence: facts about the lifted form that the trace of one call proves.

In come a lifted region, its trace and the structures, out come facts that passes and layouts rely on. ``binding`` ties
each access to a structure, ``evidence`` is the frozen value with all of it that passes take, ``streams`` asks folded
streams, ``independence`` says whether two accesses can meet, ``pointer_tables`` finds arrays of pointers and
``gather_objects`` takes the objects behind them for one array, ``find_pools`` finds blocks with elements of one kind
and ``pools`` takes these for one array, ``untaken_accesses`` finds the fields of accesses that
the call did not come to, ``prefetched`` where prefetches go, ``kept_calls`` the calls that stay calls and the ways that
end, ``kept_members`` those of which only such calls make use. ``touch_nest`` puts the
streams together again for a replay; ``check_records`` compares what a check build did with the trace.
"""
