"""The list of programs: what it may say, and that each mistake is told with the program's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.errors import UsageError
from layout_advise.farm.listing import jobs_of, read_list, selected


def written(folder: Path, text: str) -> Path:
    path = folder / "list.toml"
    path.write_text(text)
    return path


def test_each_pair_of_flags_and_input_is_a_run(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [defaults]
        limit = 7
        flags = {O2 = "-O2 -g", O3 = "-O3"}
        [[program]]
        name = "a"
        run = "$BUILD/a $CASE"
        inputs = {small = "1 2", large = "100"}
        [[program]]
        name = "b"
        run = "b"
        flags = {}
        limit = 9
        """,
    )
    entries = read_list(path)
    assert [job.id for job in jobs_of(entries, tmp_path)] == ["a.small.O2", "a.small.O3", "a.large.O2", "a.large.O3", "b"]
    assert [entry.limit for entry in entries] == [7, 9]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[program]]\nname = 'a'\nrun = 'x $BIULD'", "a: unknown variable $BIULD"),
        ("[[program]]\nname = 'a'\nrun = 'x'\nlimits = 3", "a: Object contains unknown field `limits`"),
        ("[[program]]\nname = '../a'\nrun = 'x'", "'../a' cannot be the name of a folder"),
        ("[[program]]\nname = 'a'\nrun = ' '", "a: `run` is empty"),
        ("[[program]]\nname = 'a'\nrun = 'x \"y'", "a: No closing quotation"),
        ("[[program]]\nname = 'a'\nrun = 'x'\nlimit = 0", "a: limits must be positive"),
        ("[[program]]\nname = 'a'\nrun = 'x'\nfiles = ['none.c']", "a: there is no file none.c beside the list"),
        ("[[program]]\nrun = 'x'", "program 1: Object missing required field `name`"),
        ("[[program]]\nname = 'a'\nrun = 'x'\n[[program]]\nname = 'a'\nrun = 'y'", "a is there twice"),
        ("program = 3", "write [defaults] and [[program]]"),
        ("programs = 3", "unknown: programs"),
        ("", "there is no [[program]] in it"),
        ("[", "not TOML"),
    ],
)
def test_mistakes_are_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read_list(written(tmp_path, text))
    assert told in error.value.line()


def test_a_missing_list_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_list(tmp_path / "none.toml")


def test_what_a_step_depends_on_is_in_its_digest(tmp_path: Path) -> None:
    """Other flags make another build, and the same input; a changed file beside the list makes both anew."""
    (tmp_path / "driver.c").write_text("one")
    path = written(
        tmp_path,
        "[[program]]\nname = 'a'\nrun = 'x'\nbuild = 'cc'\nflags = {O2 = '-O2', O3 = '-O3'}\nfiles = ['driver.c']",
    )
    first, second = (job.step_digests() for job in jobs_of(read_list(path), tmp_path))
    assert first["build"] != second["build"]
    assert (first["fetch"], first["input"]) == (second["fetch"], second["input"])
    (tmp_path / "driver.c").write_text("two")
    changed = jobs_of(read_list(path), tmp_path)[0].step_digests()
    assert changed["fetch"] == first["fetch"]
    assert changed["build"] != first["build"]
    assert changed["input"] != first["input"]


def test_programs_are_chosen_by_name(tmp_path: Path) -> None:
    entries = read_list(written(tmp_path, "\n".join(f"[[program]]\nname = '{name}'\nrun = 'x'" for name in "abc")))
    assert [entry.name for entry in selected(entries, ["c", "a"], [])] == ["a", "c"]
    assert [entry.name for entry in selected(entries, [], ["b"])] == ["a", "c"]
    with pytest.raises(UsageError, match="no program d in the list; it has a, b, c"):
        selected(entries, ["d"], [])


def test_words_keep_their_blanks(tmp_path: Path) -> None:
    path = written(
        tmp_path, "[[program]]\nname = 'a'\nrun = \"$BUILD/a '$INPUT/my file' $CASE\"\ninputs = {one = \"-n 'x y'\"}"
    )
    job = jobs_of(read_list(path), tmp_path)[0]
    variables = {"BUILD": "/b d", "INPUT": "/i", "CASE": "-n 'x y'"}
    assert job.words(job.entry.run, variables) == ("/b d/a", "/i/my file", "-n", "x y")
