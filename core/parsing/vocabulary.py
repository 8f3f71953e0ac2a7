"""The words by which an answer is told from a number or letter that is none."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text separated by spaces."""
    return frozenset(text.split())


LINKS = words(
    "a an the is was are be been being would could should can will as at of to in into on it it's "
    "its this that that's i i'd i'll i'm my me we patient patient's patients speaker speaker's "
    "person person's her his their them they he she him you clip audio overall emotional emotion "
    "scale around about approximately roughly nearly probably likely perhaps definitely clearly "
    "certainly simply just here final equals equal by respond option letter single numerical "
    "numeric following therefore current correct best more like calm slight slightly uneasy mild "
    "moderate moderately distressed significant significantly overwhelmed"
)
"""What may stand between the word that announces an answer and the answer."""

OPENINGS = words(
    "a an about around approximately roughly probably likely definitely clearly certainly simply "
    "just it's it is this that's i'd i say would be yes okay ok sure well hmm maybe actually wait"
)
"""What may stand alone before an answer at the start of a line."""

CUE_PAIRS = frozenset({("go", "with"), ("going", "with"), ("settle", "on"), ("leaning", "towards")})
"""Two words that announce an answer together and not apart."""

NEGATIONS = words("not never cannot nor neither than instead without rather hardly unable refuse")

RATING_CUES = words(
    "rate rated rates rating ratings score scored scores scoring level answer number intensity "
    "distress say choose choosing chosen select selected selecting pick assign assigned give "
    "giving estimate estimated estimating assess assessed assessment judge judged put final "
    "overall therefore thus hence so boxed grade value result conclusion response"
)
"""What announces a level."""

CHOICE_CUES = words(
    "answer answers choose choosing chosen select selected pick choice option verdict label say "
    "final conclusion response result therefore thus hence so boxed overall prediction "
    "classification decision"
)
"""What announces a letter, a yes or a no."""

BEFORE_ONE = words("a is as be of at level rating score number intensity answer distress say")
"""Words after which "one" is a number; after others ("this one") it is a pronoun."""

RATING_KEYS = words(
    "rating rate score level answer intensity distress value result prediction label number "
    "output response"
)
"""Words in the name of a JSON field that holds the answer."""

OTHER_KEYS = words("error confidence certainty probability max min scale total out")
"""Words in the name of a JSON field that holds something else, whatever its other words."""
