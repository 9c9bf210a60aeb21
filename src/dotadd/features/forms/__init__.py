"""Forms of w: how the id of a feature, a 64-bit number, becomes a slot of the flat vector that solvers work on."""

from dotadd.features.forms.base import MISSING as MISSING
from dotadd.features.forms.base import Dense as Dense
from dotadd.features.forms.base import Form as Form
from dotadd.features.forms.base import HashedIds as HashedIds
from dotadd.features.forms.base import SortedArray as SortedArray
from dotadd.features.forms.hash_table import HashTable as HashTable
from dotadd.features.forms.trie import Trie as Trie
