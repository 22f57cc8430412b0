"""The words of errors and warnings are those of tests/messages.txt, which a person has read."""

import re

import pytest
from messages import message_of, namespace, read_entries

ENTRIES = read_entries()


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    return namespace(tmp_path_factory.mktemp("messages"))


@pytest.mark.parametrize(("call", "said"), ENTRIES, ids=[entry.call for entry in ENTRIES])
def test_a_bad_call_says_what_the_file_has(names, call, said):
    assert message_of(call, names) == said


def test_every_message_is_a_sentence_of_an_error_or_warning_of_one_kind():
    for _, said in ENTRIES:
        assert re.match(r"    \w*(Error|Warning): \S", said)
        assert "\n\n" not in said


REMEDY = re.compile(
    r"[;:] (use|give|pass|choose|reduce|set|remove|call|mark|label|pick|read|drop|keep|increase|omit)\b"
)


@pytest.mark.parametrize("said", [entry.said for entry in ENTRIES])
def test_a_message_says_what_is_wrong_and_then_what_to_do_in_sentences(said):
    assert said[-1] in ".?"
    assert not re.search(r"\w\.\.$", said)
    wrong = said.partition(": ")[2].split(". ")[0]
    assert not REMEDY.search(wrong), "the remedy is a sentence of its own"
