"""Figures of the compact model that no prediction file shows.

python benchmarks/readings.py sample --every 2                     # answers over the sample, what is declined
python benchmarks/readings.py ambiguous ambignq/dev --index wiki   # what is called ambiguous
python benchmarks/readings.py answers ambignq/dev --index wiki     # the same, and answers before rewriting
python benchmarks/readings.py rewrites ambignq/val --index wiki    # rewrites with the gold answers given
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from whichsense.files import as_json, write_atomically
from whichsense.lab.compact.questions import is_trained_on
from whichsense.lab.datasets import Annotation, QAPair, Question, load_questions
from whichsense.lab.metrics.ambignq import f1_answers, question_scores
from whichsense.lab.metrics.statistics import quantile, resampled_sums
from whichsense.models.compact.people import choose_answers
from whichsense.models.compact.rewriting import rewrite_answers
from whichsense.models.compact.scene import Compact, Scene
from whichsense.pipeline import Pipeline
from whichsense.stages.providers import COMPACT
from whichsense.stages.read import CompactReader
from whichsense.systems import load
from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE, Candidate, Case, Reading

_FEW = 3  # passages


def sample(options: argparse.Namespace) -> None:
    """Answer F1 of the sample's questions, with declining; and how many of the unanswerable are declined.

    The scorer learnt from half of the topics: what counts are the others.
    """
    pipeline = load(threads=options.threads)
    asked = load_questions("sample/questions")[0][:: options.every]
    none = load_questions("sample/unanswerable")[0]
    for topics, learnt in (("not learnt from", False), ("learnt from", True)):
        _tell(topics, pipeline, [one for one in asked if is_trained_on(one.id) == learnt])
        without = [one.text for one in none if is_trained_on(one.id) == learnt]
        declined = sum(not case.readings for case in pipeline.run(without))
        print(f"  unanswerable: {declined} of {len(without)} declined", flush=True)


def _tell(topics: str, pipeline: Pipeline, asked: Sequence[Question]) -> None:
    scores, told = [], 0
    for question in asked:
        case = pipeline.ask(question.text)
        answers = [reading.answer for reading in case.readings]
        scores.append(
            max(f1_answers(gold, answers) for gold in question.answer_sets) if answers else 0.0
        )
        told += case.has_several_readings == question.is_ambiguous
    means = resampled_sums(np.array(scores)[:, None])[:, 0] / len(scores)
    low, high = quantile(means, 0.025), quantile(means, 0.975)
    print(
        f"topics {topics}: {len(scores)} questions, answer F1 {sum(scores) / len(scores):.3f} [{low:.3f}, {high:.3f}]"
    )
    print(f"  ambiguous or not: right for {told / len(scores):.2f}")


def ambiguous(options: argparse.Namespace) -> None:
    """Whether questions are rightly called ambiguous. In a large corpus the question alone is judged: a few passages
    will do, so this takes minutes. Of a small one `answers` tells it.
    """
    threads = options.threads
    pipeline = load(COMPACT, options.index, depth=_FEW, keep=_FEW, threads=threads)
    compact = _model_of(pipeline)
    asked = load_questions(options.dataset)[0][: options.limit]
    called = []
    for question in asked:
        (case,) = pipeline.retriever.retrieve([Case(question.text)], _FEW)
        scene = compact.read_given(question.text, case.hits)
        called.append(scene.is_ambiguous)
    _tell_called("called ambiguous", called, asked)


def _model_of(pipeline: Pipeline) -> Compact:
    assert isinstance(pipeline.reader, CompactReader)
    return pipeline.reader.compact


def _scene(pipeline: Pipeline, question: str) -> Scene:
    """What the compact model reads for a question, as the pipeline's reranker does."""
    (case,) = pipeline.retriever.retrieve([Case(question)], pipeline.depth)
    return _model_of(pipeline).read_search(question, case.hits)


def _tell_called(what: str, said: Sequence[bool], asked: Sequence[Question]) -> None:
    """Accuracy and F1 of what was said of questions, with intervals."""
    truth, told = (np.array([question.is_ambiguous for question in asked]), np.array(said))
    counts = np.stack([told == truth, told & truth, told, truth], axis=1).astype(float)
    sums = np.concatenate([counts.sum(axis=0)[None], resampled_sums(counts)])
    figures = {
        "accuracy": sums[:, 0] / len(asked),
        "F1": 2 * sums[:, 1] / np.maximum(sums[:, 2] + sums[:, 3], 1),
    }
    print(f"{what}, {len(asked)} questions, {truth.sum()} of them ambiguous:", end="")
    for name, (value, *drawn) in figures.items():
        low, high = (quantile(np.array(drawn), share) for share in (0.025, 0.975))
        print(f" {name} {100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]", end="")
    print()


def answers(options: argparse.Namespace) -> None:
    """Whether questions are rightly called ambiguous; F1 of the answers before rewriting, as asked, as predicted."""
    pipeline = load(COMPACT, options.index, threads=options.threads)
    policies = {"as asked": FOR_PEOPLE, "as predicted": FOR_BENCHMARKS}
    asked = load_questions(options.dataset)[0][: options.limit]
    told, several = list[bool](), list[bool]()
    scores: dict[str, list[float]] = {name: [] for name in policies}
    for question in asked:
        scene = _scene(pipeline, question.text)
        told.append(scene.is_ambiguous)
        for name, policy in policies.items():
            if policy.careful:
                found = [one.answer for one in choose_answers(scene, policy)]
            else:
                found = [scene.answers[place].text for place in scene.likely()]
            scores[name].append(
                max(f1_answers(gold, found) for gold in question.answer_sets) if found else 0.0
            )
            several += [len(found) > 1] if policy.careful else []
    truth = np.array([question.is_ambiguous for question in asked])
    _tell_called("called ambiguous", told, asked)
    _tell_called("given several answers", several, asked)
    for name, own in scores.items():
        print(
            f"F1ans {name}: {100 * np.mean(own):.1f}, ambiguous questions {100 * np.array(own)[truth].mean():.1f}"
        )


def rewrites(options: argparse.Namespace) -> None:
    """EDIT-F1 and BLEU-4 of rewrites for the gold answers of an annotation, and how many stand twice.

    Of questions that every annotator found ambiguous, as the official script has it; written to --out, they can be
    scored by it, which takes the best annotation: whichsense score ambignq GOLD OUT --allow-missing.
    """
    pipeline = load(COMPACT, options.index, threads=options.threads)
    asked = [one for one in load_questions(options.dataset)[0] if one.several and one.is_ambiguous]
    random.Random(0).shuffle(asked)
    each: list[list[tuple[float, float]]] = []
    written: dict[str, list[dict[str, str]]] = {}
    twice = 0
    for question in asked[: options.limit]:
        annotation = question.several
        assert annotation is not None
        made = _rewritten(pipeline, question.text, annotation)
        scores = [
            question_scores(question.text, "|".join(pair.questions), text) for pair, text in made
        ]
        each.append([(one[-1], one[3]) for one in scores])
        written[question.id] = [
            {"question": text, "answer": pair.answers[0]} for pair, text in made
        ]
        twice += len(made) - len({text.lower() for _, text in made})
    if options.out:
        write_atomically(options.out, as_json(written))
    pairs = np.array([one for own in each for one in own])
    questions = np.array([np.mean(own, axis=0) for own in each])
    means = resampled_sums(questions) / len(questions)
    print(
        f"{len(each)} questions, {len(pairs)} pairs, standing twice {100 * twice / len(pairs):.1f}%"
    )
    for place, name in enumerate(("EDIT-F1", "BLEU-4")):
        low, high = (100 * quantile(means[:, place], share) for share in (0.025, 0.975))
        print(
            f"{name}: {100 * questions[:, place].mean():.1f} [{low:.1f}, {high:.1f}] by questions, ",
            end="",
        )
        print(f"{100 * pairs[:, place].mean():.1f} by pairs")


def _rewritten(
    pipeline: Pipeline, question: str, annotation: Annotation
) -> list[tuple[QAPair, str]]:
    """Each pair with its rewrite; the question itself where there is none."""
    scene = _scene(pipeline, question)
    wanted = [Candidate(pair.answers[0], 1.0) for pair in annotation.pairs]
    readings = rewrite_answers(scene, wanted)
    left = list(_in_order(wanted, readings, question))
    return list(zip(annotation.pairs, left, strict=True))


def _in_order(
    wanted: Sequence[Candidate], found: Sequence[Reading], question: str
) -> Iterator[str]:
    rest = list(found)
    for candidate in wanted:
        if rest and rest[0].answer == candidate.answer:
            yield rest.pop(0).question
        else:
            yield question


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--threads", type=int, default=2)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("sample", help=sample.__doc__)
    first.add_argument("--every", type=int, default=1)
    first.set_defaults(run=sample)
    for verb in (ambiguous, answers):
        third = commands.add_parser(verb.__name__, help=verb.__doc__)
        third.add_argument("dataset")
        third.add_argument("--index")
        third.add_argument("--limit", type=int)
        third.set_defaults(run=verb)
    second = commands.add_parser("rewrites", help=rewrites.__doc__)
    second.add_argument("dataset")
    second.add_argument("--index")
    second.add_argument("--limit", type=int, default=40)
    second.add_argument("--out", type=Path, metavar="FILE")
    second.set_defaults(run=rewrites)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
