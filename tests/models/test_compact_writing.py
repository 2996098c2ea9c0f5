"""What the compact model writes: edits that keep to their grammar, rewrites that keep to the evidence."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_compact import VOCABULARY, exported, scored
from whichsense.metrics.porter import stem
from whichsense.models.compact import search
from whichsense.models.compact.choosing import REWRITE_FEATURES, Option, Rewrite, of_rewrites, together
from whichsense.models.compact.decoding import View
from whichsense.models.compact.edits import NEUTRAL_WORDS, SMALL_WORDS, Edit, Surfaces, applied, following, parsed
from whichsense.models.compact.inputs import DELETE, GAP, answer_prefix, rewrite_prefix
from whichsense.models.compact.resolving import target
from whichsense.models.compact.rewriting import rewrites, written
from whichsense.models.compact.scorer import linear
from whichsense.models.compact.support import Support, support
from whichsense.models.compact.system import Compact, Scene, Settings
from whichsense.models.compact.tokens import END, Tokenizer
from whichsense.testing import passage_hit
from whichsense.text import words
from whichsense.train.compact_scorer import fit_within
from whichsense.types import Candidate

for needed in ("onnx", "onnxruntime", "torch"):
    pytest.importorskip(needed)

HITS = [
    passage_hit("The film Dune of 1984 was directed by David Lynch.", "Dune (1984 film)"),
    passage_hit("Dune is a novel by Frank Herbert. It was made a film in 1984 and in 2021.", "Dune (novel)"),
    passage_hit("The film of 2021 was directed by Denis Villeneuve.", "Dune (2021 film)"),
    passage_hit("Everest was first climbed by Edmund Hillary in 1953.", "Everest"),
]
QUESTION = "Who directed the film Dune?"
TOKENIZER = Tokenizer({word: number for number, word in enumerate(VOCABULARY)})


@pytest.fixture(scope="module")
def compact(tmp_path_factory: pytest.TempPathFactory) -> Compact:
    return Compact(scored(exported(tmp_path_factory.mktemp("compact"))), settings=Settings(keep=3))


@pytest.fixture(scope="module")
def scene(compact: Compact) -> Scene:
    return compact.scene(QUESTION, HITS, keep=3)


def test_edits_make_the_question() -> None:
    asked = "Who directed the film Dune".split()
    tokens = [GAP + 2, DELETE + 2, *TOKENIZER.ids("novel"), GAP + 5, *TOKENIZER.ids("in 1984"), END]
    edits = parsed(tokens)
    assert edits == [Edit(2, 2, tuple(TOKENIZER.ids("novel"))), Edit(5, 0, tuple(TOKENIZER.ids("in 1984")))]
    surfaces = Surfaces([(hit.passage.text, TOKENIZER.pieces(hit.passage.text)) for hit in HITS], VOCABULARY)
    assert (
        applied(asked, [(edit, surfaces.written(edit.inserted)) for edit in edits])
        == "Who directed novel Dune in 1984?"
    )


@pytest.mark.parametrize(
    ("inserted", "written"),
    [
        ("by david lynch", "by David Lynch"),  # as the evidence writes it
        ("the film", "the film"),  # not as it stands at the beginning of a sentence
        ("edmund hillary ' s", "Edmund Hillary's"),  # what the evidence does not hold is put together by rule
        ("in winter", "in winter"),
        ("everest", "Everest"),
    ],
)
def test_words_are_written_as_in_the_evidence(inserted: str, written: str) -> None:
    surfaces = Surfaces([(hit.passage.text, TOKENIZER.pieces(hit.passage.text)) for hit in HITS], VOCABULARY)
    assert surfaces.written(TOKENIZER.ids(inserted)) == written


def allowed(tokens: list[int], count: int) -> list[int]:
    may = following(tokens, count)
    gaps = [] if may.gap is None else list(range(GAP + may.gap, GAP + count + 1))
    deletes = [DELETE + n for n in range(1, may.deletable + 1)]
    return [*gaps, *deletes, *([110, 120] if may.pieces else []), *([END] if may.end else [])]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 20), st.data())
def test_any_row_of_signs_that_is_allowed_is_a_rewrite(count: int, data: st.DataObject) -> None:
    tokens: list[int] = []
    while (not tokens or tokens[-1] != END) and len(tokens) < 30:
        tokens.append(data.draw(st.sampled_from(allowed(tokens, count))))
    edits = parsed(tokens)
    assert edits and all(one.gap + one.deleted <= count for one in edits)
    assert all(one.gap + max(one.deleted, 1) <= two.gap for one, two in pairwise(edits))
    if tokens[-1] == END:
        assert all(one.deleted or one.inserted for one in edits)
    question = [f"w{place}" for place in range(count)]
    made = applied(question, [(one, "x" if one.inserted else "") for one in edits]).rstrip("?").lower().split()
    deleted = {place for one in edits for place in range(one.gap, one.gap + one.deleted)}
    assert [word for word in made if word != "x"] == [w for place, w in enumerate(question) if place not in deleted]


def test_what_is_inserted_must_stand_in_the_evidence() -> None:
    known = frozenset(["in", "the", "1984", "film", "david", "lynch", "play"])
    lynch, year = (Support(answer, known, np.array([])) for answer in ("David Lynch", "in 1984"))
    assert lynch.holds("plays") and lynch.holds("in the 1984 film") and lynch.holds("")
    assert not lynch.holds("in the 2021 film")  # says what the evidence does not say
    assert not lynch.holds("by David Lynch")  # gives the answer away
    assert not year.holds("1984")


def test_names_stand_side_by_side_as_in_the_evidence() -> None:
    told = "South Korea and New Zealand of Sir Edmund Hillary in 1984".lower().split()
    stems = frozenset(map(stem, told))
    known = Support("x", stems, np.array([]), frozenset(pairwise(map(stem, told))))
    for good in ("in New Zealand", "of Edmund Hillary", "zealand south", "in Korea", "Zealand in South Korea"):
        assert known.holds(good), good
    for bad in ("in South Zealand", "New Korea", "of Sir Hillary", "Hillary Edmund"):
        assert not known.holds(bad), bad
        assert known.holds(bad.lower())  # no names, as far as one sees


def test_names_of_the_question_and_of_the_evidence_may_be_inserted(compact: Compact) -> None:
    hits = [
        passage_hit("The film of New York was directed by David Lynch in South Korea.", "Dune (1984 film)"),
        passage_hit("The novel of North Dakota was made by Frank Herbert.", "Dune (novel)"),
    ]
    scene = compact.scene("Who made Blue Velvet?", hits, keep=2)
    lynch = support(scene, target(scene, Candidate("David Lynch", 1.0)))
    for good in ("in New York", "of South Korea", "of Blue Velvet"):
        assert lynch.holds(good), good
    for bad in ("in South York", "in New Korea", "in North Dakota"):  # the last one is said of another answer
        assert not lynch.holds(bad), bad


def test_only_what_is_said_of_the_answer_supports_its_rewrite(compact: Compact) -> None:
    scene = compact.scene("Who made the film Dune?", HITS, keep=4)
    lynch, herbert, nobody = (
        support(scene, target(scene, Candidate(answer, 1.0))) for answer in ("David Lynch", "Frank Herbert", "nobody")
    )
    assert lynch.holds("the 1984 film") and not lynch.holds("of 2021")
    assert herbert.holds("the novel") and not herbert.holds("in 1984")  # stands in the next sentence
    assert nobody.holds("of 2021") and nobody.holds("in 1984")  # no evidence of its own: all of it
    assert lynch.tells_apart("Who directed the film of 1984?", [herbert])
    assert not lynch.tells_apart("Who directed the film of 1984?", [herbert, nobody])
    pieces = {VOCABULARY[number] for number in lynch.pieces}
    assert "1984" in pieces and "2021" not in pieces


def test_rewrites_are_chosen_together() -> None:
    one, two, three = (Rewrite(text, score) for text, score in (("A?", -1.0), ("B?", -1.2), ("C?", -9.0)))
    assert together([[one, two], [one, three]]) == [two, one]
    assert together([[one], [one]]) in ([one, None], [None, one])
    assert together([[], [one]]) == [None, one]
    many = together([[Rewrite(f"{n}?", -n) for n in range(10)]] * 8)
    assert len({rewrite.question for rewrite in many if rewrite}) == 8
    assert together([[one], [Rewrite("a", -1)]]).count(None) == 1  # the same words


def test_rewrites_keep_to_the_evidence(scene: Scene) -> None:
    targets = [target(scene, Candidate(answer, 1.0)) for answer in ("David Lynch", "Denis Villeneuve")]
    assert [sorted(one.marked) for one in targets] != [[], []]
    found = rewrites(scene, targets, [support(scene, one) for one in targets], beams=6)
    assert any(found)
    told = {word for hit in HITS for word in words(f"{hit.passage.title} {hit.passage.text}")}
    for answer, some in zip(targets, found, strict=True):
        for one in some:
            new = set(words(one.question)) - set(words(QUESTION))
            assert one.question.endswith("?") and one.question != QUESTION
            assert new <= told | SMALL_WORDS | NEUTRAL_WORDS
            assert " ".join(words(answer.answer)) not in " ".join(words(one.question))


def test_beams_are_as_good_as_their_scores_say(scene: Scene) -> None:
    """The score of an output is what scoring that output gives."""
    prefix = rewrite_prefix(TOKENIZER, QUESTION, "David Lynch", ["Denis Villeneuve"])
    assert prefix is not None
    prompt = search.Prompt(prefix, View.whole(scene.memory), words=5)
    (found,) = search.edits(scene.compact.decoder, scene.memory, [prompt], beams=3)
    (alone,) = search.edits(scene.compact.decoder, scene.memory, [prompt, prompt], beams=3)[:1]
    assert found and [one.tokens for one in found] == [one.tokens for one in alone]
    outputs = [one.tokens[:-1] for one in found]
    (scores,) = search.likelihoods(scene.compact.decoder, scene.memory, [prompt], outputs)
    np.testing.assert_allclose(scores, [one.score for one in found], atol=1e-3)
    assert [one.each for one in found] == sorted((one.each for one in found), reverse=True)


def test_draws_come_again_and_keep_to_the_grammar(scene: Scene) -> None:
    prefix = rewrite_prefix(TOKENIZER, QUESTION, "David Lynch", ["Denis Villeneuve"])
    assert prefix is not None
    pieces = support(scene, target(scene, Candidate("David Lynch", 1.0))).pieces
    prompt = search.Prompt(prefix, View.whole(scene.memory), words=5, pieces=pieces)
    found = search.drawn(scene.compact.decoder, scene.memory, [prompt, prompt], 8, longest=60)
    again = search.drawn(scene.compact.decoder, scene.memory, [prompt, prompt], 8, longest=60)
    assert found == again and len({one.tokens for some in found for one in some}) > 3
    for one in (one for some in found for one in some):
        assert all(token in allowed_after(one.tokens[:at], pieces) for at, token in enumerate(one.tokens))
    outputs = [one.tokens[:-1] for one in found[0]]
    (scores,) = search.likelihoods(scene.compact.decoder, scene.memory, [prompt], outputs)
    np.testing.assert_allclose(scores, [one.score for one in found[0]], atol=1e-3)


def allowed_after(tokens: tuple[int, ...], pieces: np.ndarray) -> set[int]:
    may = following(tokens, 5)
    return {token for token in allowed(list(tokens), 5) if token not in (110, 120)} | (
        set(pieces.tolist()) if may.pieces else set()
    )


def test_answers_are_scored_together_as_alone(scene: Scene) -> None:
    view = View.whole(scene.memory)
    prompts = [search.Prompt(answer_prefix(TOKENIZER, text), view) for text in (QUESTION, "Who wrote the novel?")]
    outputs = [TOKENIZER.ids(text) for text in ("David Lynch", "1984", "")]
    together_ = search.likelihoods(scene.compact.decoder, scene.memory, prompts, outputs)
    for row, prompt in enumerate(prompts):
        for column, output in enumerate(outputs):
            ((alone,),) = search.likelihoods(scene.compact.decoder, scene.memory, [prompt], [output])
            assert together_[row][column] == pytest.approx(alone, abs=1e-3)
    assert all(score < 0 for row in together_ for score in row)


def test_answers_are_marked_wherever_they_stand(scene: Scene) -> None:
    found = target(scene, Candidate("The film", 1.0))
    for place, pair in enumerate(scene.evidence.pairs):
        passage = scene.evidence.passages[place]
        surfaces = []
        for first, last in found.marked.get(place, []):
            text = passage.title if first < pair.title[1] else passage.text
            surfaces.append(text[pair.starts[first] : pair.ends[last - 1]])
        assert len(surfaces) >= words(f"{passage.title} {passage.text}").count("film")
        assert all("film" in surface for surface in surfaces)
    assert target(scene, Candidate("nowhere at all", 1.0)).marked == {}


def test_a_part_of_the_memory_is_what_it_would_be_alone(scene: Scene) -> None:
    decoder, places = scene.compact.decoder, scene.places([1])
    part = scene.memory.part(places)
    alone = decoder.remember(scene.evidence.read[1].states, scene.evidence.pairs[1].ids, scene.memory.words.tolist())
    prefix = [answer_prefix(TOKENIZER, QUESTION)]
    one, other = (decoder.begin(memory, prefix, [View.whole(memory)]).following for memory in (part, alone))
    np.testing.assert_allclose(one, other, atol=1e-4)
    hidden = np.isin(np.arange(len(scene.memory.ids)), places).astype(np.float32)
    view = View(hidden, np.zeros_like(hidden))
    np.testing.assert_allclose(decoder.begin(scene.memory, prefix, [view]).following, one, atol=1e-4)


def test_a_choice_prefers_what_was_drawn_often_and_what_the_net_says(compact: Compact) -> None:
    drawn = ["Who made the 1984 film?", "Who made the 1984 film?", "Who made it first?"]
    rows = of_rewrites("Who made it?", [Option("Who made the 1984 film?"), Option("Who made it first?")], drawn)
    assert set(rows[0]) == set(REWRITE_FEATURES) and rows[0]["drawn"] == pytest.approx(2 / 3)
    agreeing, plain = linear(edits=1.0).values(rows), linear(inserted=-1.0).values(rows)
    assert agreeing[0] > agreeing[1] and plain[0] < plain[1]
    values = [0.9, 0.1, 0.2, 0.8]
    told = [
        {"good": 1.0, "group": 0.0},
        {"good": 0.0, "group": 0.0},
        {"good": 3.0, "group": 1.0},
        {"good": 5.0, "group": 1.0},
    ]
    net = fit_within(told * 20, values * 20, [0, 0, 1, 1] * 20)
    assert net.values([{"good": 2.0, "group": 0.0}]) > net.values([{"good": 1.0, "group": 0.0}])
    assert net.weights[1] == pytest.approx(0, abs=1e-6)  # what does not differ within a group says nothing


def test_a_question_too_long_for_the_decoder_gets_phrases_of_the_evidence(compact: Compact) -> None:
    assert rewrite_prefix(TOKENIZER, "who " * 60, "x", []) is None
    scene = compact.scene("who " * 60 + "?", HITS, keep=3)
    targets = [target(scene, Candidate(year, 1.0)) for year in ("1984", "2021")]
    for some in written(scene, targets, [support(scene, one) for one in targets]):
        assert not some.drawn and all(option.phrase for option in some.options)
