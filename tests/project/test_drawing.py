"""The drawing of the rooms in docs/architecture.md."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.support.draw_rooms import bands, svg
from tests.support.house import PRODUCT, product_modules, room_graph


def test_each_room_is_drawn_once() -> None:
    texts = [element.text for element in ElementTree.fromstring(svg()).iter() if element.tag.endswith("}text")]
    rooms = [f"{room}/" for top in PRODUCT for room in room_graph(top)]
    assert sorted(text for text in texts if text and text.endswith("/")) == sorted([*rooms, *(f"{top}/" for top in PRODUCT)])
    assert {module.room for module in product_modules() if module.room} == {room.removesuffix("/") for room in rooms}


def test_arrows_point_to_rooms_further_left() -> None:
    """All but those between rooms that import each other."""
    for band in bands():
        assert {room for arrow in band.arrows for room in arrow} <= band.places.keys()
        for source, target in band.arrows:
            assert band.places[target][0] <= band.places[source][0]


def test_a_folder_stands_above_what_it_imports() -> None:
    order = [band.top for band in bands()]
    assert order[0] == "layout_advise"
    assert order[-1] == "layoutalgebra"


def test_it_depends_on_the_code_alone() -> None:
    assert svg() == svg()
