"""What the compact model writes: rewrites that keep to the evidence, by a writer that is the one in torch."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_compact import VOCABULARY, exported, scored, tiny_writer
from whichsense.lab.compact.scorer_fitting import fit_within
from whichsense.models.compact import writer as writer_module
from whichsense.models.compact.encoder import END, Floats, Tokenizer
from whichsense.models.compact.rewrite_support import Support, locate, support
from whichsense.models.compact.rewriting import rewrites, windows, written
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer import linear
from whichsense.models.compact.scorer_features import (
    REWRITE_FEATURES,
    Option,
    Rewrite,
    of_rewrites,
    together,
)
from whichsense.models.compact.writer import (
    BETWEEN,
    LONGEST,
    REWRITE,
    Edit,
    Ints,
    Prompt,
    Surfaces,
    Window,
    Writer,
    WriterState,
    answering,
    applied,
    changes,
    rewriting,
)
from whichsense.testing import passage_hit
from whichsense.text.words import NEUTRAL_WORDS, SMALL_WORDS, porter_stem, words
from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE, Candidate

for needed in ("onnx", "onnxruntime", "torch"):
    pytest.importorskip(needed)

HITS = [
    passage_hit("The film Dune of 1984 was directed by David Lynch.", "Dune (1984 film)"),
    passage_hit(
        "Dune is a novel by Frank Herbert. It was made a film in 1984 and in 2021.", "Dune (novel)"
    ),
    passage_hit("The film of 2021 was directed by Denis Villeneuve.", "Dune (2021 film)"),
    passage_hit("Everest was first climbed by Edmund Hillary in 1953.", "Everest"),
]
QUESTION = "Who directed the film Dune?"
TOKENIZER = Tokenizer({word: number for number, word in enumerate(VOCABULARY)})


@pytest.fixture(scope="module")
def compact(tmp_path_factory: pytest.TempPathFactory) -> Compact:
    return Compact(scored(exported(tmp_path_factory.mktemp("compact"))), keep=3)


@pytest.fixture(scope="module")
def scene(compact: Compact) -> Scene:
    return compact.over(None, keep=3).read_search(QUESTION, HITS)


def test_edits_make_the_question() -> None:
    asked = "Who directed the film Dune".split()
    edits = changes(
        [TOKENIZER.ids(word) for word in asked],
        TOKENIZER.ids("who directed novel dune in 1984"),
        VOCABULARY,
    )
    assert edits == [
        Edit(2, 2, tuple(TOKENIZER.ids("novel"))),
        Edit(5, 0, tuple(TOKENIZER.ids("in 1984"))),
    ]
    surfaces = Surfaces(
        [(hit.passage.text, TOKENIZER.pieces(hit.passage.text)) for hit in HITS], VOCABULARY
    )
    assert (
        applied(asked, [(edit, surfaces.written(edit.inserted)) for edit in edits])
        == "Who directed novel Dune in 1984?"
    )


@pytest.mark.parametrize(
    ("inserted", "written"),
    [
        ("by david lynch", "by David Lynch"),  # as the evidence writes it
        ("the film", "the film"),  # not as it stands at the beginning of a sentence
        (
            "edmund hillary ' s",
            "Edmund Hillary's",
        ),  # what the evidence does not hold is put together by rule
        ("in winter", "in winter"),
        ("everest", "Everest"),
    ],
)
def test_words_are_written_as_in_the_evidence(inserted: str, written: str) -> None:
    surfaces = Surfaces(
        [(hit.passage.text, TOKENIZER.pieces(hit.passage.text)) for hit in HITS], VOCABULARY
    )
    assert surfaces.written(TOKENIZER.ids(inserted)) == written


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(104, 112), min_size=1, max_size=3), max_size=8), st.data())
def test_edits_of_anything_make_what_was_written(
    question: list[list[int]], data: st.DataObject
) -> None:
    flat = [piece for pieces in question for piece in pieces]
    written = data.draw(
        st.lists(st.integers(104, 112), max_size=12) | st.permutations(flat).map(list)
    )
    made, at = [], 0
    for edit in (edits := changes(question, written, VOCABULARY)):
        made += [piece for pieces in question[at : edit.gap] for piece in pieces] + list(
            edit.inserted
        )
        at = edit.gap + edit.deleted
        assert edit.deleted or edit.inserted
    assert made + [piece for pieces in question[at:] for piece in pieces] == written
    assert all(one.gap + one.deleted <= two.gap for one, two in pairwise(edits))
    assert not changes(question, flat, VOCABULARY)


def test_a_word_that_goes_on_is_another_word() -> None:
    asked = [TOKENIZER.ids("who"), TOKENIZER.ids("played")]
    longer = [*TOKENIZER.ids("who played"), VOCABULARY.index("##s")]
    assert changes(asked, longer, VOCABULARY) == [Edit(1, 1, tuple(longer[1:]))]


def test_what_is_inserted_must_stand_in_the_evidence() -> None:
    known = frozenset(["1984", "film", "david", "lynch", "play"])
    numbers = frozenset(["1984"])
    lynch, year = (
        Support(answer, known, np.array([]), numbers=numbers)
        for answer in ("David Lynch", "in 1984")
    )
    assert lynch.holds("plays") and lynch.holds("in the 1984 film") and lynch.holds("")
    assert not lynch.holds("in the 2021 film")  # says what the evidence does not say
    assert not lynch.holds("whered the film")  # small words have no other forms
    assert not lynch.holds("by David Lynch")  # gives the answer away
    names = ("Lynch, Kentucky", "May 5, 1984")
    place, date = (Support(answer, known, np.array([]), numbers=numbers) for answer in names)
    # Of a place the first name is enough; of a date the year is not.
    assert not place.holds("in Lynch") and year.holds("in Lynch") and date.holds("in the 1984 film")
    assert not year.holds("1984")


def test_names_stand_side_by_side_as_in_the_evidence() -> None:
    told = "South Korea and New Zealand of Sir Edmund Hillary in 1984".lower().split()
    stems = frozenset(map(porter_stem, told))
    known = Support("x", stems, np.array([]), frozenset(pairwise(map(porter_stem, told))))
    for good in (
        "in New Zealand",
        "of Edmund Hillary",
        "zealand south",
        "in Korea",
        "Zealand in South Korea",
    ):
        assert known.holds(good), good
    for bad in ("in South Zealand", "New Korea", "of Sir Hillary", "Hillary Edmund"):
        assert not known.holds(bad), bad
        assert known.holds(bad.lower())  # no names, as far as one sees


def test_numbers_are_said_as_they_stand(compact: Compact) -> None:
    hits = [
        passage_hit(
            "The film by David Lynch made 2,022,044 of 1990's dollars, at 7:30 of 14 days.", "Dune"
        )
    ]
    scene = compact.over(None, keep=1).read_search("Who made the 1984 film?", hits)
    lynch = support(scene, locate(scene, Candidate("David Lynch", 1.0)), policy=FOR_PEOPLE)
    for good in ("of 2,022,044", "in 1990", "at 7:30", "in 14 days", "of 1984"):
        assert lynch.holds(good), good
    for bad in ("until 044", "of 2,022", "of 2", "in 7", "at 30", "of 1990,14"):
        assert not lynch.holds(bad), bad


def test_names_of_the_question_and_of_the_evidence_may_be_inserted(compact: Compact) -> None:
    hits = [
        passage_hit(
            "The film of New York was directed by David Lynch in South Korea.", "Dune (1984 film)"
        ),
        passage_hit("The novel of North Dakota was made by Frank Herbert.", "Dune (novel)"),
    ]
    scene = compact.over(None, keep=2).read_search("Who made Blue Velvet?", hits)
    lynch = support(scene, locate(scene, Candidate("David Lynch", 1.0)), policy=FOR_PEOPLE)
    for good in ("in New York", "of South Korea", "of Blue Velvet"):
        assert lynch.holds(good), good
    for bad in (
        "in South York",
        "in New Korea",
        "in North Dakota",
    ):  # the last one is said of another answer
        assert not lynch.holds(bad), bad


def test_only_what_is_said_of_the_answer_supports_its_rewrite(compact: Compact) -> None:
    scene = compact.over(None, keep=4).read_search("Who made the film Dune?", HITS)
    lynch, herbert, nobody = (
        support(scene, locate(scene, Candidate(answer, 1.0)), policy=FOR_PEOPLE)
        for answer in ("David Lynch", "Frank Herbert", "nobody")
    )
    assert lynch.holds("the 1984 film") and not lynch.holds("of 2021")
    assert herbert.holds("the novel") and not herbert.holds(
        "in 1984"
    )  # stands in the next sentence
    assert nobody.holds("of 2021") and nobody.holds("in 1984")  # no evidence of its own: all of it
    assert lynch.tells_apart("Who directed the film of 1984?", [herbert])
    assert not lynch.tells_apart("Who directed the film of 1984?", [herbert, nobody])
    pieces = {VOCABULARY[number] for number in lynch.pieces}
    assert "1984" in pieces and "2021" not in pieces


def test_rewrites_are_chosen_together() -> None:
    one, two, three = (
        Rewrite(text, score) for text, score in (("A?", -1.0), ("B?", -1.2), ("C?", -9.0))
    )
    assert together([[one, two], [one, three]]) == [two, one]
    assert together([[one], [one]]) in ([one, None], [None, one])
    assert together([[], [one]]) == [None, one]
    many = together([[Rewrite(f"{n}?", -n) for n in range(10)]] * 8)
    assert len({rewrite.question for rewrite in many if rewrite}) == 8
    assert together([[one], [Rewrite("a", -1)]]).count(None) == 1  # the same words


def test_rewrites_keep_to_the_evidence(scene: Scene) -> None:
    targets = [
        locate(scene, Candidate(answer, 1.0)) for answer in ("David Lynch", "Denis Villeneuve")
    ]
    assert [sorted(one.marked) for one in targets] != [[], []]
    found = rewrites(
        scene, targets, [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
    )
    assert any(found)
    told = {word for hit in HITS for word in words(f"{hit.passage.title} {hit.passage.text}")}
    for answer, some in zip(targets, found, strict=True):
        for one in some:
            new = set(words(one.question)) - set(words(QUESTION))
            assert one.question.endswith("?") and one.question != QUESTION
            assert {porter_stem(word) for word in new - SMALL_WORDS} <= {
                porter_stem(word) for word in told | NEUTRAL_WORDS
            }
            assert " ".join(words(answer.answer)) not in " ".join(words(one.question))


def prompts_of(scene: Scene, *answers: str) -> list[Prompt]:
    targets = [locate(scene, Candidate(answer, 1.0)) for answer in answers]
    return [
        rewriting(TOKENIZER.ids(QUESTION), TOKENIZER.ids(one.answer), [], windows(scene, one))
        for one in targets
    ]


def test_draws_come_again_and_keep_to_what_may_be_written(scene: Scene) -> None:
    """The score of an output is what scoring that output gives."""
    writer, (prompt,) = scene.compact.writer, prompts_of(scene, "David Lynch")
    pieces = support(scene, locate(scene, Candidate("David Lynch", 1.0)), policy=FOR_PEOPLE).pieces
    found = writer_module.drawn(writer, [prompt, prompt], [pieces, pieces], 8)
    assert found == writer_module.drawn(writer, [prompt, prompt], [pieces, pieces], 8)
    assert len({one.tokens for some in found for one in some}) > 3
    assert all(set(one.tokens) <= set(pieces.tolist()) for some in found for one in some)
    known = [token for token in prompt.ids if token not in pieces]
    outputs = [one.tokens for one in found[0]]
    begun = writer.begin([prompt], writer.writable(pieces.tolist()))
    for one in found[0]:
        _, after = writer.extend(begun, np.array([one.tokens]), every=True)
        every = np.concatenate([begun.following[:, None], after], axis=1)[0]
        columns = begun.writable.columns([*one.tokens, END])
        score = sum(every[place, column] for place, column in enumerate(columns))
        assert one.each == pytest.approx(score / len(columns), abs=2e-2)
    assert known and all(
        score < 0 for score in writer_module.likelihoods(writer, [prompt], outputs)[0]
    )


def test_draws_that_are_alike_so_far_are_read_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call of the writer has the same tokens after the same prompt in two rows."""
    extend, rows = Writer.extend, list[int]()

    def watched(
        writer: Writer, old: WriterState, tokens: Ints, **options: bool
    ) -> tuple[WriterState, Floats]:
        seen = [
            mask.tobytes() + past.tobytes()
            for mask, past in zip(old.mask, old.past["keys_0"], strict=True)
        ]
        assert len(set(zip(seen, tokens.ravel().tolist(), strict=True))) == len(tokens)
        rows.append(len(tokens))
        return extend(writer, old, tokens, **options)

    monkeypatch.setattr(Writer, "extend", watched)
    prompts = prompts_of(scene, "David Lynch", "Denis Villeneuve")
    pieces = support(scene, locate(scene, Candidate("David Lynch", 1.0)), policy=FOR_PEOPLE).pieces
    writer_module.drawn(scene.compact.writer, prompts, [pieces, pieces], 30)
    assert rows[0] == 2 and max(rows) > 2  # the prompts, and then what was written


def test_answers_are_scored_together_as_alone(tmp_path: Path) -> None:
    """In float: codes of eight bits have one step for all that is computed together."""
    scene = Compact(scored(exported(tmp_path, int8=False))).read_search(QUESTION, HITS)
    told = [
        window
        for answer in ("David Lynch", "1984")
        for window in windows(scene, locate(scene, Candidate(answer, 1)))
    ]
    prompts = [answering(TOKENIZER.ids(text), told) for text in (QUESTION, "Who wrote the novel?")]
    outputs = [TOKENIZER.ids(text) for text in ("David Lynch", "1984", "")]
    together_ = writer_module.likelihoods(
        scene.compact.writer, prompts, outputs, range(104, len(VOCABULARY))
    )
    for row, prompt in enumerate(prompts):
        for column, output in enumerate(outputs):
            ((alone,),) = writer_module.likelihoods(
                scene.compact.writer, [prompt], [output], range(104, len(VOCABULARY))
            )
            assert together_[row][column] == pytest.approx(alone, abs=1e-3)
    assert all(score < 0 for row in together_ for score in row)


@pytest.mark.parametrize("int8", [False, True])
def test_the_writer_is_the_torch_one(int8: bool, tmp_path: Path) -> None:
    """In one go as in torch, and token by token as in one go."""
    import torch

    from whichsense.models.compact.nets import WriterBatch

    scene = Compact(scored(exported(tmp_path, int8=int8))).read_search(QUESTION, HITS)
    words_of = torch.tensor(scene.compact.model.words.vectors(range(len(VOCABULARY))))
    net, writer = tiny_writer(words_of), scene.compact.writer
    prompts, output = (
        prompts_of(scene, "David Lynch", "1984"),
        TOKENIZER.ids("who directed the film dune in 1984"),
    )
    begun = writer.begin(prompts, writer.writable(range(104, len(VOCABULARY))))
    many, found = writer.extend(begun, np.array([output, output]), every=True)
    each = begun
    for token in output:
        each, _ = writer.extend(each, np.full((2, 1), token))
    np.testing.assert_allclose(each.following, many.following, atol=1e-4 if not int8 else 0.3)
    for row, prompt in enumerate(prompts):
        written = torch.tensor([[REWRITE, *output]])
        parts = (
            torch.tensor([prompt.ids]),
            torch.tensor([prompt.kinds]),
            torch.ones(1, len(prompt.ids), dtype=torch.bool),
        )
        with torch.no_grad():
            scores = net.scores(
                net(WriterBatch(*parts, written, written, torch.ones_like(written).float()))
            )[0]
        wanted = torch.log_softmax(scores[:, begun.writable.ids], 1)
        mine = np.concatenate([begun.following[row][None], found[row]])
        near = 1e-4 if not int8 else 0.3
        np.testing.assert_allclose(mine, wanted, atol=near)


def test_windows_hold_the_answer() -> None:
    text = list(range(200, 300))
    text[130 - 100] = text[160 - 100] = 1012
    for first, end, width in (
        (0, 0, 20),
        (5, 7, 20),
        (35, 37, 20),
        (58, 60, 20),
        (95, 99, 20),
        (62, 64, 56),
    ):
        cut = Window([7, 8, 9], text, first, end).cut(2, width)
        assert cut[:3] == [7, 8, BETWEEN] and cut[-1] == END and len(cut) == width + 4
        assert all(piece in cut for piece in text[first:end])
    assert Window([7], text, 35, 37).cut(2, 20)[2] == text[31]  # from the beginning of its sentence


def test_a_prompt_never_grows_too_long() -> None:
    many = [Window([7] * 30, list(range(200, 400)), 150, 160)] * 9
    for prompt in (
        rewriting([5] * 48, [6] * 60, [[8] * 30] * 9, many),
        answering([5] * 48, many),
        answering([5] * 300, []),
    ):
        assert len(prompt.ids) <= LONGEST and len(prompt.kinds) == len(prompt.ids)


def test_answers_are_marked_wherever_they_stand(scene: Scene) -> None:
    found = locate(scene, Candidate("The film", 1.0))
    for place, pair in enumerate(scene.evidence.pairs):
        passage = scene.evidence.passages[place]
        surfaces = []
        for first, last in found.marked.get(place, []):
            text = passage.title if first < pair.title[1] else passage.text
            surfaces.append(text[pair.starts[first] : pair.ends[last - 1]])
        assert len(surfaces) >= words(f"{passage.title} {passage.text}").count("film")
        assert all("film" in surface for surface in surfaces)
    assert locate(scene, Candidate("nowhere at all", 1.0)).marked == {}


def test_a_choice_prefers_what_was_drawn_often_and_what_the_net_says(compact: Compact) -> None:
    drawn = ["Who made the 1984 film?", "Who made the 1984 film?", "Who made it first?"]
    rows = of_rewrites(
        "Who made it?", [Option("Who made the 1984 film?"), Option("Who made it first?")], drawn
    )
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
    assert net.weights[1] == pytest.approx(
        0, abs=1e-6
    )  # what does not differ within a group says nothing


def test_a_question_too_long_for_the_writer_gets_phrases_of_the_evidence(compact: Compact) -> None:
    scene = compact.over(None, keep=3).read_search("who " * 60 + "?", HITS)
    targets = [locate(scene, Candidate(year, 1.0)) for year in ("1984", "2021")]
    for some in written(
        scene, targets, [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
    ):
        assert not some.drawn and all(option.phrase for option in some.options)
