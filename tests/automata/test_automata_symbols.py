"""Symbol tables: every name has one number, and files of them are read as they were written."""

import pytest

from dotadd.automata.symbols import SymbolTable
from dotadd.errors import AutomatonError, DataError


def test_numbers_count_from_one_in_the_order_of_the_names():
    table = SymbolTable(["the", "cat", "the"])
    assert [table.number(name) for name in ("<eps>", "the", "cat")] == [0, 1, 2]
    assert [table.name(number) for number in range(3)] == ["<eps>", "the", "cat"]
    assert table.add("sat") == 3
    assert table.add("cat") == 2
    assert list(table) == ["the", "cat", "sat"]
    assert len(table) == 3
    assert "sat" in table
    assert "dog" not in table


def test_what_is_not_there_is_named():
    with pytest.raises(AutomatonError, match="no symbol 'dog' among the 1"):
        SymbolTable(["cat"]).number("dog")
    with pytest.raises(AutomatonError, match="no symbol has the number 7"):
        SymbolTable(["cat"]).name(7)
    for name in ("", "two words", "line\n"):
        with pytest.raises(AutomatonError, match="no blanks"):
            SymbolTable([name])


def test_a_file_is_read_as_it_was_written(tmp_path):
    table = SymbolTable(["b", "ä", "<unk>"], epsilon="-")
    table.save(tmp_path / "words.txt")
    assert SymbolTable.read(tmp_path / "words.txt") == table
    assert (tmp_path / "words.txt").read_text(encoding="utf-8") == "-\t0\nb\t1\nä\t2\n<unk>\t3\n"
    assert SymbolTable(["b"]) != table


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("<eps> 0\na\n", "words:2: a line has to be a symbol and its number"),
        ("<eps> 0\na b 2\n", "words:2: a line"),
        ("<eps> 0\na -1\n", "words:2: a line"),
        ("<eps> 0\na 1\na 2\n", "words:3: a 2: the symbol or its number is there already"),
        ("<eps> 0\na 1\nb 1\n", "words:3: b 1"),
        ("a 1\n", "words: has no symbol with the number 0"),
    ],
)
def test_lines_that_are_no_table_are_refused(lines, said):
    with pytest.raises(DataError, match=said):
        SymbolTable.of_lines(lines.splitlines(), "words")
