"""The starts of accesses: the invariant part of their addresses, cut into digits, and pointers to the fields there."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.layoutalgebra.derive.structure import Axis, FieldMap, Relayout
from layout_advise.mockup.emit.c_text import among, integer
from layout_advise.mockup.emit.writer_state import Text
from layout_advise.mockup.ir.lifted import Linear, Val
from layout_advise.mockup.remap.entered_indices import Entered
from layout_advise.mockup.remap.indices.row_steps import Given
from layout_advise.mockup.remap.moved_arrays import moves_as_one
from layout_advise.mockup.remap.sites import Site


class SiteIndices(Text):
    """The indices at sites."""

    def site(self, site: Site) -> None:
        """Cut the invariant part of some addresses into digits."""
        alike = self.alike(site)
        start = self.known(site) if alike is None else None
        beside = self.beside(site) if start is None and alike is None else None
        self.sites_written.add(site.number)
        if alike is not None:
            self.check_alike(site, alike)
        elif beside is None:
            self.divide(site, start)
        else:
            other, digits = beside
            for k, digit in enumerate(digits):
                apart_by = f" {'+' if digit > 0 else '-'} {abs(digit)}" if digit else ""
                self.put(f"const int64_t {self.digit(site.number, k)} = {self.digit(other.number, k)}{apart_by};")
        if (alike or beside) and site.number in self.context.entered:
            self.enter_inside(self.context.entered[site.number])
        if site.inside:
            self.put(f"const int64_t {self.rest_in_field(site)} = {self.linear(site.offset)} - {self.element_at(site)};")
        element = self.element_there(site) if (alike, beside, start) == (None,) * 3 else None
        maps = {self.pointer(site.relayout, mapped): mapped for mapped in self.maps_at(site)}
        at = {name: self.pointer_at(site.relayout, mapped, site.number) for name, mapped in maps.items()}
        atoms = {term.atom for place in self.plan.places.values() if place.site is site for term in place.terms}
        gathered = bool(self.context.counters) and not atoms <= self.context.counters
        for name, mapped in maps.items():
            if at[name] in self.pointers_written:
                continue
            self.pointers_written.add(at[name])
            if element is not None:
                _, _, begin = self.context.pointers.starts[name]
                self.put(f"uint8_t *const {at[name]} = (uint8_t *){element}{f' + {begin}' if begin else ''};")
                continue
            moved = self.moved_by(site.relayout, mapped) if (alike, beside, start) == (None,) * 3 else None
            if moved is not None and site.number not in self.context.entered and not self.reloads(site):
                old = Linear((site.offset.const + site.relayout.structure.base) % (1 << 64), site.offset.terms)
                self.put(f"uint8_t *const {at[name]} = (uint8_t *)({self.linear(old)} + {moved});")
                continue
            terms = " + ".join(f"{a.stride} * {self.digit(site.number, a.dim)}" for a in whole_axes(mapped))
            if terms and (alike, beside, start) == (None,) * 3 and self.reloads(site):
                once = self.kept_digits(site)
                made = " + ".join(f"{a.stride} * {once[a.dim]}" for a in whole_axes(mapped))
                self.put(f"uint8_t *const {at[name]} = (uint8_t *){self.keep(f'(int64_t)({name} + {made})')};")
                continue
            hidden = f" + {self.hide(site)}" if self.plan.chosen_at_run_time(site.relayout) else ""
            apart = gathered and len(maps) > 1 and terms and start is None and not hidden
            kind = "uint8_t *" if apart else "uint8_t *const "
            self.put(f"{kind}{at[name]} = {name}{' + ' + terms if terms else ''}{hidden};")
            if apart:  # else what all of them have in common is added at each access: gcc takes it out of the loop's index
                self.put(f"LA_UNKNOWN({at[name]});")

    def element_there(self, site: Site) -> str | None:
        """The new address of the element at a site, where the call brings it along or a link is that."""
        structure = site.relayout.structure
        if structure.id not in self.context.pieces:
            return None
        if site.number in self.context.entered:
            return self.entered_name(self.context.entered[site.number].slot)
        if site.number in self.context.links.sites:
            (atom, _), *_ = site.offset.terms
            return self.code(atom, structure, self.context.links.shifts.get(atom, 0))
        return None

    def moved_by(self, relayout: Relayout, mapped: FieldMap) -> str | None:
        """The name of the distance between the new and the old place of each byte of a plain array that moves as one; None
        of other layouts, and where pointers have to be made of the new array's own (`restrict`)."""
        if not moves_as_one(relayout) or relayout.structure.id not in self.context.pieces:
            return None
        name, made = self.pointer(relayout, mapped), self.given.of(("moved", relayout.structure.id), "moved")
        text = f"const int64_t {made} = (int64_t){name} - {integer(relayout.structure.base, 'i64')};"
        if text not in self.before:
            self.before.append(text)
        return made

    def rest_in_field(self, site: Site) -> str:
        """The name of how far into its field the address at a site leads."""
        return self.given.of(("in", site.number), f"in{site.number}")

    def element_at(self, site: Site) -> str:
        """The place of the element at a site in the old layout: from where that begins, or its address."""
        structure = site.relayout.structure
        digits = [self.digit(site.number, k) for k in range(len(structure.dims))]
        if structure.blocks:
            return f"la_element({among(structure)}, {structure.element_bytes}, {digits[0]})"
        return f"({' + '.join(f'{dim.stride} * {digit}' for dim, digit in zip(structure.dims, digits, strict=True))})"

    def alike(self, site: Site) -> Site | None:
        """A site written at the same item with the same index into records that the two structures share. In a source there
        is one index, and one pointer to the record; a compiler does not see that of two divisions."""
        here = next(sites for sites in self.plan.sites.values() if site in sites)
        found = (other for other in here if other.number in self.sites_written and self.plan.alike(site, other))
        return next((other for other in found if other.given == site.given), None)

    def check_alike(self, site: Site, other: Site) -> None:
        """Tells that the index at ``site`` is that at ``other``, after a check."""
        structure = site.relayout.structure
        rest = self.given.of(("rest", site.number), f"rest{site.number}")
        self.put(f"int64_t {rest} = {self.linear(site.offset)}; /* from {structure.name}: the same index */")
        self.same_site[site.number] = self.same_site.get(other.number, other.number)
        for k, dim in enumerate(structure.dims):
            self.put(f"if ({rest} / {dim.stride} != {self.digit(site.number, k)}) __builtin_trap();")
            if k + 1 < len(structure.dims):
                self.put(f"{rest} %= {dim.stride};")

    def divide(self, site: Site, start: int | None) -> None:
        """The digits at ``site``; ``start`` is what the compiler is told that they make up."""
        structure = site.relayout.structure
        element = self.element_there(site) if start is None else None
        if element is not None:
            self.take_for_granted(site)
            apart = f"LA_PIECES({element} - {self.first_piece(structure)}, {self.context.pieces[structure.id].step})"
            self.put(f"const int64_t {self.digit(site.number, 0)} = {apart};")
            if site.number in self.context.entered:
                self.enter_inside(self.context.entered[site.number])
            return
        if start is None and site.number in self.context.entered:
            self.enter(self.context.entered[site.number])
            return
        if start is None and site.number in self.context.links.sites:
            (atom, _), *_ = site.offset.terms
            self.take_for_granted(site)
            links = self.context.links
            step, code = links.step(structure), f"{self.code(atom, structure, links.shifts.get(atom, 0))} - 1"
            number = f"LA_PIECES({code}, {step})" if step > 1 else code
            self.put(f"const int64_t {self.digit(site.number, 0)} = {number};")
            return
        if start is None and site.number in self.context.kept:
            self.take_for_granted(site)
            for k, name in enumerate(self.kept_digits(site)):
                loaded = self.keep(name) if self.reloads(site) else name
                self.put(f"const int64_t {self.digit(site.number, k)} = {loaded};")
            return
        if structure.blocks:
            self.take_for_granted(site)
            number = f"la_number({among(structure)}, {structure.element_bytes}, {self.linear(site.offset)})"
            self.put(f"const int64_t {self.digit(site.number, 0)} = {number}; /* from {structure.name} */")
            return
        rest = self.given.of(("rest", site.number), f"rest{site.number}")
        single, ahead = len(structure.dims) == 1, site.ahead or (0,) * len(structure.dims)
        further = sum(by * dim.stride for by, dim in zip(ahead, structure.dims, strict=True))
        offset = self.linear(Linear(site.offset.const + further, site.offset.terms))
        self.put(f"{'const ' if single else ''}int64_t {rest} = {offset}; /* from {structure.name} */")
        self.take_for_granted(site)
        if start is not None:
            self.put(f"if ({rest} != {start}) __builtin_trap(); /* where the traced call starts: known to the compiler */")
        # what no term is added to is an element's own place, and not before the first: half the instructions
        whole = not any(place.terms for place in self.plan.places.values() if place.site is site)
        cut, close = (f"(int64_t)((uint64_t){rest}", ")") if whole else (rest, "")
        for k, dim in enumerate(structure.dims):
            back = f" - {ahead[k]}" if ahead[k] > 0 else f" + {-ahead[k]}" if ahead[k] else ""
            self.put(f"const int64_t {self.digit(site.number, k)} = {cut} / {dim.stride}{close}{back};")
            if k + 1 < len(structure.dims):
                self.put(f"{rest} %= {dim.stride};")

    def reloads(self, site: Site) -> bool:
        """Tells whether what is made once a call is loaded again where the old pointer is: not where the compiler is told
        that arrays do not overlap, or iterations not depend on each other, as it need not load it then."""
        return site.number in self.context.kept and bool(self.context.counters)

    def keep(self, value: str) -> str:
        """The place that a value which was made once in the call is loaded from."""
        if value not in self.kept:
            self.kept[value] = f"kept[{len(self.kept)}]"
            self.before.append(f"{self.kept[value]} = {value};")
        return self.kept[value]

    def kept_digits(self, site: Site) -> Sequence[str]:
        """The names of the digits at a site that starts from a pointer that stays where it is, made once in a call."""
        structure = site.relayout.structure
        place = self.pointer_text(self.context.kept[site.number])
        key = (structure.id, place, site.offset.const, site.ahead)
        if key not in self.starts:
            start = self.given.new("start")
            self.starts[key] = [self.given.new(f"{start}_{k}") for k in range(len(structure.dims))]
            ahead = site.ahead or (0,) * len(structure.dims)
            further = sum(by * dim.stride for by, dim in zip(ahead, structure.dims, strict=True))
            offset = self.linear(Linear(site.offset.const + further, ()))
            self.before.append(f"int64_t {start} = la_kept({place}) + {offset}; /* from {structure.name} */")
            for name, dim, by in zip(self.starts[key], structure.dims, ahead, strict=True):
                found = f"{start} / {dim.stride}"
                if structure.blocks:
                    found = f"la_number({among(structure)}, {structure.element_bytes}, {start})"
                back = f" - {by}" if by > 0 else f" + {-by}" if by else ""
                self.before += [f"const int64_t {name} = {found}{back};", f"{start} %= {dim.stride};"]
        return self.starts[key]

    def take_for_granted(self, site: Site) -> None:
        """Ends the process where what the digits at ``site`` rest on is not so."""
        self.ask(site.given)

    def ask(self, assumed: Sequence[Given]) -> None:
        """Ends the process where one of these is not so."""
        for given in assumed:
            asked = given.operand
            value = f"({self.linear(asked)})" if isinstance(asked, Linear) else self.text(asked)
            beyond = f"(uint64_t){value} >" if given.most else f"{value} !="
            self.put(f"if ({beyond} {given.value}) __builtin_trap(); /* as in the traced call */")

    def enter(self, entered: Entered) -> None:
        """The digits at a site that the call brings along."""
        self.take_for_granted(entered.site)
        for k in range(len(entered.site.relayout.structure.dims)):
            self.put(f"const int64_t {self.digit(entered.site.number, k)} = {self.entered_name(entered.slot + k)};")
        self.enter_inside(entered)

    def enter_inside(self, entered: Entered) -> None:
        """Tells whether the pointer is one into the structure, which the call brings along where it is not sure."""
        if entered.inside is not None:
            self.put(f"const int {self.inside(entered.site)} = (int){self.entered_name(entered.inside)};")

    def inside(self, site: Site) -> str:
        """The name of whether the pointer that a site starts from is one into the structure."""
        return self.given.of(("inside", site.number), f"inside{site.number}")

    def beside(self, site: Site) -> tuple[Site, tuple[int, ...]] | None:
        """A site written at the same item that lies whole elements away, whatever the values, and how many by dimension.

        In a source a stencil's neighbours are a constant apart, which a compiler does not see of two divisions. That this
        leads over no border of the dimensions later in the call is left to the check build, as for all digits.
        """
        structure = site.relayout.structure
        if self.context.unrelated and structure.kind == "global" and self.plan.chosen_at_run_time(site.relayout):
            return None
        here = next(sites for sites in self.plan.sites.values() if site in sites)
        for other in here:
            alike = (other.relayout, other.offset.terms, other.given) == (site.relayout, site.offset.terms, site.given)
            alike = alike and other.tested == site.tested
            if alike and site.offset.terms and other.number in self.sites_written:
                distance = (site.offset.const - other.offset.const + (1 << 63)) % (1 << 64) - (1 << 63)
                digits = self.plan.apart(site, other, distance)
                if digits is not None:
                    return other, digits
        return None

    def hide(self, site: Site) -> str:
        """A zero that the compiler does not know, one for each set of values that sites start from."""
        if site.choice not in self.hidden:
            self.hidden[site.choice] = self.given.new(f"unknown{len(self.hidden)}")
        return self.hidden[site.choice]

    def known(self, site: Site) -> int | None:
        """The offset at ``site`` in the traced call, where dimensions are split and only registers at the entry decide it.
        A program in the new layout would start from places in it; to cut every index anew is the mock-up's own cost."""
        if (
            site.tested
            or site.relayout.structure.blocks
            or all(axis.part == "whole" for mapped in self.maps_at(site) for axis in mapped.axes)
        ):
            return None
        values = [(self.context.registers.get(a.number) if isinstance(a, Val) else None, c) for a, c in site.offset.terms]
        start = site.offset.const
        for value, coef in values:
            if value is None:
                return None
            start += coef * value
        start %= 1 << 64
        return start if start < site.relayout.structure.bytes else None

    def maps_at(self, site: Site) -> list[FieldMap]:
        """The fields that are accessed relative to ``site``, those with the deliberately wrong map left out."""
        found: dict[int, FieldMap] = {}
        for number, place in self.plan.places.items():
            if place.site is site and number not in self.context.wrong:
                found.update({p.map.field: p.map for p in place.pieces})
        return [found[k] for k in sorted(found)]

    def pointer(self, relayout: Relayout, mapped: FieldMap) -> str:
        """The name of the pointer to a field in its new buffer."""
        return self.context.pointers.names[relayout.structure.id, mapped.field]

    def pointer_at(self, relayout: Relayout, mapped: FieldMap, site: int) -> str:
        """The name of the pointer to where a field starts at a site."""
        pointer = self.pointer(relayout, mapped)
        site = self.same_site.get(site, site)
        return self.given.of(("pointer", pointer, site), f"{pointer}_{site}")


def whole_axes(mapped: FieldMap) -> list[Axis]:
    """The dimensions that are not split: what does not move in a loop is added to the pointer before it."""
    return [axis for axis in mapped.axes if axis.part == "whole" and axis.stride]
