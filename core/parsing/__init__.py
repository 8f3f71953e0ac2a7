"""From a model's words to an answer, or to a status that says why there is none.

`rating` reads a distress level 1-5 (`reversed_rating` where the scale was turned round),
`letter` an A or B, `yes_no` a yes or no, and `verdict` either of the last two. None of them
ever guesses: words that could mean two answers, or none, are `unparsed`.
"""

from core.parsing.answer import Parsed
from core.parsing.binary import letter, verdict, yes_no
from core.parsing.rating import rating, reversed_rating

__all__ = ["Parsed", "letter", "rating", "reversed_rating", "verdict", "yes_no"]
