"""What the papers say where the released code does otherwise, and the smaller metrics."""

from __future__ import annotations

import pytest

from whichsense.lab.evaluation.results import bootstrap_intervals, ratio_of
from whichsense.lab.metrics import ambignq
from whichsense.lab.metrics.asqa import (
    Disambiguation,
    dr,
    read_all,
    rouge_l,
    rouge_l_better_average,
    sentences,
)
from whichsense.lab.metrics.cambignq import option_overlap, parse_released
from whichsense.lab.metrics.exact_match import answer_ranks
from whichsense.lab.metrics.statistics import kappa, middle, paired_tests
from whichsense.text.clarification import parse_clarification
from whichsense.text.overlap import corpus_bleu, tokens_13a
from whichsense.text.words import porter_stem

PAIR = ambignq.Annotation((("ann",), ("bo",)), ("Who wrote it?", "Who made the film?"))


def test_paper_formula_lets_a_duplicate_count() -> None:
    assert ambignq.f1_answers([["ann"]], ["ann", "ann"], "released") == pytest.approx(2 / 3)
    assert ambignq.f1_answers([["ann"]], ["ann", "ann"], "paper") == pytest.approx(4 / 3)


def test_in_order_takes_the_first_prediction_not_the_best() -> None:
    prediction = ambignq.Prediction(("ann", "ann"), ("What is it?", "Who wrote it?"))
    released = ambignq.score_question("Who did it?", [PAIR], prediction, "released")
    in_order = ambignq.score_question("Who did it?", [PAIR], prediction, "in_order")
    assert released["f1_bleu1"] == pytest.approx(0.5)
    assert in_order["f1_bleu1"] < released["f1_bleu1"]
    assert in_order["f1_ans"] == released["f1_ans"]


def test_a_single_answer_annotation_gives_every_metric_f1() -> None:
    single = ambignq.Annotation((("ann", "Ann Lee"),))
    scores = ambignq.score_question(
        "Who?", [single], ambignq.Prediction(("ann lee", "bo"), ("x", "y"))
    )
    assert scores == dict.fromkeys(ambignq.METRICS, pytest.approx(2 / 3))


def test_the_best_annotation_counts_for_each_metric() -> None:
    other = ambignq.Annotation((("cy",), ("di",)), ("Who is cy?", "Who is di?"))
    prediction = ambignq.Prediction(("cy",), ("Who is cy?",))
    alone = ambignq.score_question("Who is it?", [other], prediction)
    assert ambignq.score_question("Who is it?", [PAIR, other], prediction) == alone


def test_one_assignment_is_never_better() -> None:
    gold, predicted = ["ab", "abcdef"], ["abcdefgh", "ab"]
    two, one = (
        option_overlap(gold, predicted),
        option_overlap(gold, predicted, one_assignment=True),
    )
    assert one.precision_sum + one.recall_sum <= two.precision_sum + two.recall_sum


@pytest.mark.parametrize(
    ("question", "released", "ours"),
    [
        ("Which one: film or book?", ["film or book"], ("film", "book")),
        ("Which fruit: kiwi, orange?", ["kiwi", "ange"], ("kiwi", "orange")),
        ("Which day: July 4, 1776?", ["July 4", "1776"], ("July 4, 1776",)),
        ("Which one: a, b or c?", ["a", "b or c"], ("a", "b", "c")),
        ("Which sum: 1,000 or 2,000?", ["1", "000 or 2", "000"], ("1,000", "2,000")),
        (
            'Which song: "Hello, You", or "Help"?',
            ['"Hello', 'You"', '"Help"'],
            ('"Hello, You"', '"Help"'),
        ),
    ],
)
def test_parsers(question: str, released: list[str], ours: tuple[str, ...]) -> None:
    assert parse_released(question)[1] == released
    parsed = parse_clarification(question)
    assert parsed is not None
    assert parsed.options == ours


def test_no_options() -> None:
    assert parse_clarification("Could you be more specific?") is None
    assert parse_released("Could you be more specific?") == ("invalid form", ["invalid form"])


def test_corpus_bleu_is_sacrebleu() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    golds = ["Which one: party, leader, or faction?", "Which film: the 3.5-inch one, or the other?"]
    ours = ["Which one: party, or faction?", "Which film: the 3.5-inch one, or this?"]
    score = sacrebleu.corpus_bleu(ours, [golds], smooth_method="none", tokenize="13a").score / 100
    assert corpus_bleu(golds, ours) == pytest.approx(score, abs=1e-9)
    assert " ".join(tokens_13a(golds[1])) == sacrebleu.tokenizers.tokenizer_13a.Tokenizer13a()(
        golds[1]
    )


def test_rouge_is_rouge_score() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(
        ["rougeLsum"], use_stemmer=True
    )
    reference = (
        "the play opened in 1953. its first director was jed harris! it ran for 197 performances."
    )
    prediction = (
        "it opened in 1953 and ran for 197 performances. jed harris directed the first production."
    )
    expected = scorer.score("\n".join(sentences(reference)), "\n".join(sentences(prediction)))[
        "rougeLsum"
    ].fmeasure
    assert rouge_l(reference, prediction) == pytest.approx(expected, abs=1e-12)
    assert rouge_l("", "x") == 0.0


def test_stems() -> None:
    words = {
        "relational": "relat",
        "skies": "sky",
        "dying": "die",
        "controlled": "control",
        "happily": "happili",
    }
    assert {word: porter_stem(word) for word in words} == words


def test_sentences_of_lower_case_text() -> None:
    text = 'he met dr. no at 5 p.m. sharp. in 1962. then j. smith left! "so what?" she said. etc. (it ended.) a b.'
    assert sentences(text) == [
        "he met dr. no at 5 p.m. sharp.",
        "in 1962. then j. smith left!",
        '"so what?"',
        "she said.",
        "etc.",
        "(it ended.)",
        "a b.",
    ]
    assert sentences("") == []


def test_reader_is_asked_once_for_all() -> None:
    calls = []

    def reader(pairs: list[tuple[str, str]]) -> list[str]:
        calls.append(len(pairs))
        return ["1953" if "when" in question else "" for question, _ in pairs]

    groups = [
        [Disambiguation("when?", ("1953",)), Disambiguation("who?", ("ann lee",))],
        [Disambiguation("when?", ("x",))],
    ]
    scores = read_all(groups, ["text", "text"], reader)
    assert calls == [3]
    assert [(one.disambig_f1, one.qa_em, one.qa_hit) for one in scores] == [
        (0.5, 0.5, 0.0),
        (0.0, 0.0, 0.0),
    ]


def test_dr_and_the_older_rouge_rule() -> None:
    assert dr(0.264, 0.392) == pytest.approx(0.3217, abs=1e-4)
    assert rouge_l_better_average([(1.0, 0.0), (0.0, 0.5)]) == 0.5


def test_an_alias_counts_as_whole_words_only() -> None:
    assert answer_ranks([["art"], ["Art Lee"]], ["the party", "Art, Lee"]) == [2, 2]
    assert answer_ranks([["the"]], ["the"]) == [None]


def test_agreement() -> None:
    assert kappa("aabb", "aabb") == 1.0
    assert kappa("aaaa", "aaaa") == 1.0
    assert kappa("abab", "aabb") == 0.0


def test_bootstrap_is_seeded_and_sensible() -> None:
    scores = [0.0, 1.0] * 50
    columns = {"n": [1.0] * 100, "score": scores}
    statistics = {"x": ratio_of("score", "n")}
    low, high = bootstrap_intervals(columns, statistics)["x"]
    assert (low, high) == bootstrap_intervals(columns, statistics)["x"]
    assert 0.38 < low < 0.45 < middle(scores) < 0.55 < high < 0.62
    assert middle(scores) == middle(scores)


def test_paired_test_tells_luck_from_skill() -> None:
    a = [0.0, 1.0, 0.0, 1.0] * 25
    better = [1.0 if i % 3 else score for i, score in enumerate(a)]
    others = {"same": a[::-1], "better": better, "equal": a}
    tests = paired_tests(dict.fromkeys(others, a), others)
    assert tests["same"].p_permutation > 0.5
    assert tests["better"].p_permutation < 0.001
    assert tests["better"].low > 0
    assert tests["better"].worse == 0
    assert tests["equal"].p_permutation == 1.0
