from core.metrics.cpwer import cp_word_errors

TRUE = {"a": "how are you", "b": "I am tired today"}


def test_the_same_words_under_other_names_are_no_error():
    assert cp_word_errors(TRUE, {"x": "I am tired today", "y": "how are you"}) == (0, 7)


def test_a_word_given_to_the_other_speaker_is_wrong_twice():
    # "you" is missing from one and inserted in the other.
    assert cp_word_errors(TRUE, {"x": "how are", "y": "you I am tired today"}) == (2, 7)


def test_one_speaker_for_two_has_all_words_of_the_shorter_wrong_twice():
    # Against b: three words too many; a's three are nobody's.
    assert cp_word_errors(TRUE, {"x": "how are you I am tired today"}) == (6, 7)


def test_a_speaker_that_is_none_adds_its_words():
    assert cp_word_errors(TRUE, {**TRUE, "c": "thank you"}) == (2, 7)


def test_nothing_at_all():
    assert cp_word_errors({}, {}) == (0, 0)
    assert cp_word_errors(TRUE, {}) == (7, 7)
