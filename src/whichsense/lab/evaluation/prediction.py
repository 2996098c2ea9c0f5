"""Predict: answer a dataset's questions with a system, one journal line each; a stopped run goes on."""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from whichsense.conversation.replies import understand
from whichsense.conversation.turns import CHOOSE
from whichsense.errors import BadConfig, BadInput, did_you_mean
from whichsense.files import as_json, read_json, write_atomically
from whichsense.jobs.limits import Progress, Stopped, silent, stop_requested
from whichsense.jobs.parts import Lines, closable, same_fingerprint
from whichsense.jobs.workers import Executor, LoadedOnce, run_here
from whichsense.lab.datasets import (
    ClarifiedQuestion,
    ConflictQuestion,
    GroundedQuestion,
    LongQuestion,
    QAPair,
    Question,
    load_questions,
)
from whichsense.lab.metrics.ambignq import best_f1
from whichsense.lab.provenance import provenance
from whichsense.pipeline import Pipeline
from whichsense.protocols import Answerer, Searchable
from whichsense.stages.clarify import ClarifiedReader, offered
from whichsense.stages.verify import LMVerifier, above, tuned_threshold
from whichsense.systems import SystemSettings, built_answerer, travelling
from whichsense.types import (
    FOR_BENCHMARKS,
    FOR_PEOPLE,
    Case,
    Clarification,
    Hit,
    Method,
    Option,
    Passage,
    Policy,
    Reading,
    Span,
    frozen,
)

# What a dataset gives a system beside the question: gold readings, a gold clarification, documents.


def with_gold_readings(question: Question, case: Case) -> Case:
    """The case with the readings that annotators wrote. The evidence of each is the gold context where there is one;
    otherwise the hits that hold its answer."""
    annotation = question.several
    if annotation is None:
        return case
    readings = tuple(
        Reading(
            pair.question or question.text,
            pair.answers[0],
            _gold_context(question, number, pair) or _spans(pair, case.hits),
            confidence=1.0,
        )
        for number, pair in enumerate(annotation.pairs)
    )
    return replace(case, readings=readings, is_ambiguous=True)


def _gold_context(question: Question, number: int, pair: QAPair) -> tuple[Span, ...]:
    if not isinstance(question, LongQuestion) or number >= len(question.contexts):
        return ()
    text = question.contexts[number]
    if not text:
        return ()
    passage = Passage(f"{question.id}/{number}", question.context_pages[number], text)
    return _spans(pair, [Hit(passage, 1.0)]) or (Span(passage, 0, len(text)),)


def _spans(pair: QAPair, hits: Sequence[Hit]) -> tuple[Span, ...]:
    """Return the first place of the answer in every hit that holds it."""
    aliases = "|".join(re.escape(alias) for alias in pair.answers if alias.strip())
    if not aliases:
        return ()
    pattern = rf"(?<!\w)(?:{aliases})(?!\w)"
    return tuple(
        Span(hit.passage, *place.span(), hit.score)
        for hit in hits
        if (place := re.search(pattern, hit.passage.text, re.IGNORECASE))
    )


def with_clarification(question: Question, case: Case) -> Case:
    """Return the case with the gold clarification question; its options are bound to no reading."""
    if not isinstance(question, ClarifiedQuestion):
        raise BadInput(
            f"Question '{question.id}' has no gold clarification. Use one of CAmbigNQ's datasets."
        )
    lead = question.clarification.partition(":")[0]
    clarification = offered(lead, question.category, question.options, ())
    clarification = replace(clarification, question=question.clarification)
    return replace(case, clarification=clarification, is_ambiguous=True)


class GivenDocuments:
    """The documents that come with each question, in the place of an index: a search for a question gives its own."""

    def __init__(self, questions: Iterable[Question]) -> None:
        # All score the same: nobody has searched.
        self._hits = {
            question.text: [
                Hit(Passage(f"{question.id}/{number}", title, text), 1.0)
                for number, (title, text) in enumerate(_documents(question))
            ]
            for question in questions
        }

    def search_many(
        self, questions: Sequence[str], k: int = 100, method: Method | None = None
    ) -> list[list[Hit]]:
        """Return all documents of each question, whatever k and method are."""
        return [self._hits[question] for question in questions]

    def passage(self, identifier: str) -> Passage:
        for hit in chain.from_iterable(self._hits.values()):
            if hit.passage.id == identifier:
                return hit.passage
        raise BadInput(f"No document has the id '{identifier}'.")

    def describe(self) -> dict[str, Any]:
        most = max(map(len, self._hits.values()), default=0)
        return {"index": "documents of the questions", "passages": most}


def _documents(question: Question) -> list[tuple[str, str]]:
    """Return title and text of each document of a question."""
    if isinstance(question, ConflictQuestion):
        return [("", document.text) for document in question.documents]
    if isinstance(question, GroundedQuestion | LongQuestion) and question.passages:
        return [(context.title, context.text) for context in question.passages]
    raise BadInput(
        f"Question '{question.id}' comes without documents. Use a dataset that has them, or give an index."
    )


# The setting of an experiment: what a system predicts, and what the dataset gives it beside the
# question.

Goal = Literal["readings", "ambiguity", "clarification", "clarified answers", "long answer"]
Given = Literal["question", "answers", "clarification", "documents"]
Options = Literal["bound", "read", "dialogue"]
ForWhom = Literal["benchmarks", "people"]

POLICIES: dict[str, Policy] = {"benchmarks": FOR_BENCHMARKS, "people": FOR_PEOPLE}
_KNOWN: dict[str, Collection[str]] = {
    "goal": get_args(Goal),
    "given": get_args(Given),
    "options": get_args(Options),
    "policy": POLICIES,
}

# What a clarification or a long answer can be made from; the other goals need nothing but the question.
_FROM_ANSWERS = ("clarification", "clarified answers", "long answer")


@frozen
class Setting:
    """One experiment over a dataset."""

    goal: Goal = "readings"
    given: Given = "question"
    """The question alone; gold answers with their rewrites; the gold clarification question; or the documents that
    come with each question, which are read in place of a search."""
    options: Options = "bound"
    """How an option is answered: by the reading that it is bound to; by reading the clarified question anew, as
    CAmbigNQ does; or in a dialogue (its appendix E): the person replies with the option's words, and what is
    understood of them decides. An option without a reading is always read."""
    policy: ForWhom = "benchmarks"
    """Answer everything, as benchmarks want it, or what `ask` would show to a person."""

    def __post_init__(self) -> None:
        for key, known in _KNOWN.items():
            value = getattr(self, key)
            if value not in known:
                raise BadInput(f"There is no {key} '{value}'. {did_you_mean(value, known)}")
        if self.given == "answers" and self.goal not in _FROM_ANSWERS:
            raise BadInput(
                f"Gold answers are given for the goals {', '.join(_FROM_ANSWERS)}, not for '{self.goal}'."
            )
        if self.given == "clarification" and self.goal != "clarified answers":
            raise BadInput(
                f"A gold clarification is given for the goal 'clarified answers', not for '{self.goal}'."
            )

    def run(self, answerer: Answerer, questions: Sequence[Question]) -> list[Case]:
        """Return the cases of some questions, as far as the goal needs them."""
        texts = [question.text for question in questions]
        if self.goal == "readings":
            return answerer.run(texts)
        if not isinstance(answerer, Pipeline):
            raise BadInput(
                f"A system that rewrites before it reads has no goal but 'readings'; this is '{self.goal}'."
            )
        if self.given in ("question", "documents"):
            cases = answerer.run(texts, _STEPS[self.goal])
            return [self._with_choices(answerer, case) for case in cases]
        evidence = answerer.run(texts, "evidence")
        return list(map(partial(self._advance, answerer), questions, evidence))

    def _with_choices(self, pipeline: Pipeline, case: Case) -> Case:
        """CAmbigNQ asks about every question: where there is one reading only, the next one is offered beside it. What
        would be answered without asking stays."""
        is_asked = self.goal in ("clarification", "clarified answers")
        if not is_asked or case.policy.careful or len(case.readings) > 1:
            return case
        offering = replace(pipeline, policy=replace(case.policy, least=_CHOICES))
        (offered,) = offering.run([case.question], "clarification")
        return replace(case, clarification=offered.clarification)

    def _advance(self, pipeline: Pipeline, question: Question, case: Case) -> Case:
        """Return the case with what the dataset gives, and with what is made from it."""
        if self.given == "clarification":
            return with_clarification(question, case)
        case = with_gold_readings(question, case)
        if self.goal == "long answer":
            return replace(case, long_answer=pipeline.summarize(case))
        return replace(case, clarification=pipeline.clarify(case))

    def prediction(self, answerer: Answerer, case: Case, rewrites: bool) -> Any:
        """Return what is written of a case, as JSON values."""
        if self.goal == "ambiguity":
            return {"ambiguous": is_called_ambiguous(case), "score": case.ambiguous}
        if self.goal == "clarification":
            return case.clarification.question if case.clarification else ""
        if self.goal == "clarified answers":
            return self._clarified_answers(answerer, case)
        if self.goal == "long answer":
            return _long_answer(case)
        return official_readings(case.readings, rewrites)

    def _clarified_answers(self, answerer: Answerer, case: Case) -> dict[str, Any]:
        """Return the options with an answer each; the answers without asking; whether the system would ask."""
        clarification = case.clarification
        options = []
        if clarification is not None and isinstance(answerer, Pipeline):
            clarification = replace(clarification, options=_ungrouped(clarification))
            case = replace(case, clarification=clarification)
            answers = self._answer_options(answerer, case, clarification)
            options = [
                {"option": option.label, "answer": answer}
                for option, answer in zip(clarification.options, answers, strict=True)
            ]
        return {
            "asked": len(options) > 1 and not _is_held_back(answerer, case),
            "clarification": clarification.question if clarification else "",
            "options": options,
            "answers": [reading.answer for reading in case.readings],
        }

    def _answer_options(
        self, pipeline: Pipeline, case: Case, clarification: Clarification
    ) -> list[str]:
        answers = [
            option.readings[0].answer if option.readings and self.options != "read" else ""
            for option in clarification.options
        ]
        if not all(answers):
            if pipeline.reader is None:
                raise BadInput(
                    "The options of a clarification are to be read, and the system has no reader. Add [reader]."
                )
            reader = ClarifiedReader(pipeline.reader, pipeline.reranker)
            pairs = zip(answers, reader.answer_options(case), strict=True)
            answers = [answer or reading.answer for answer, reading in pairs]
        if self.options == "dialogue":
            answers = _in_dialogue(case.question, clarification, answers)
        return answers


_CHOICES = 2  # options that a clarification offers at least

# How far a pipeline goes for each goal.
_STEPS: dict[str, Literal["readings", "clarification", "long answer"]] = {
    "ambiguity": "readings",
    "clarification": "clarification",
    "clarified answers": "clarification",
    "long answer": "long answer",
}


def _is_held_back(answerer: Answerer, case: Case) -> bool:
    """Tell whether a system that has a detector calls the question unambiguous: then nothing is asked."""
    has_detector = isinstance(answerer, Pipeline) and answerer.detector is not None
    return has_detector and case.is_ambiguous is False


def _ungrouped(clarification: Clarification) -> tuple[Option, ...]:
    """Return the options that have no narrower ones."""
    return tuple(
        chain.from_iterable(option.options or (option,) for option in clarification.options)
    )


def _in_dialogue(question: str, clarification: Clarification, answers: Sequence[str]) -> list[str]:
    """What a person gets who replies with the words of each option: its answer, another one's, or none where the reply
    is not understood as a choice."""
    by_id = dict(zip((option.id for option in clarification.options), answers, strict=True))

    def answer(option: Option) -> str:
        intent = understand(option.label, clarification, question)
        is_choice = intent.kind == CHOOSE and len(intent.options) == 1
        return by_id.get(intent.options[0], "") if is_choice else ""

    return list(map(answer, clarification.options))


def is_called_ambiguous(case: Case) -> bool:
    """Return what the system's detector says; without one, whether there are several readings."""
    if case.is_ambiguous is None:
        return len(case.readings) > 1
    return case.is_ambiguous


def official_readings(readings: Sequence[Reading], rewrites: bool) -> list[Any]:
    """AmbigNQ's official form. Pairs also say how probable the answer is, where the system gives a probability; the
    official script passes over it."""
    if not rewrites:
        return [reading.answer for reading in readings]
    pairs = []
    for reading in readings:
        pair: dict[str, Any] = {"question": reading.question, "answer": reading.answer}
        # Some verifiers score by log probabilities, and some systems not at all.
        if 0 < reading.confidence <= 1:
            pair["confidence"] = round(reading.confidence, 4)
        pairs.append(pair)
    return pairs


def _long_answer(case: Case) -> dict[str, Any]:
    """The text, and ALCE's form of its citations: documents, and the numbers of those that each sentence cites."""
    if case.long_answer is None:
        return {"text": "", "sentences": [], "documents": []}
    documents: dict[str, dict[str, str]] = {}
    sentences = []
    for citation in case.long_answer.sentences:
        numbers = []
        for passage in citation.passages:
            documents.setdefault(passage.id, {"title": passage.title, "text": passage.text})
            numbers.append(list(documents).index(passage.id) + 1)
        sentences.append({"sentence": citation.sentence, "citations": numbers})
    return {
        "text": case.long_answer.text,
        "sentences": sentences,
        "documents": list(documents.values()),
    }


READINGS = Setting()


# The answers to a dataset's questions so far, on disk: a run that was stopped or killed resumes after
# the last one.


class Journal:
    """A record for each question, under a fingerprint of the system and of the questions.

    It is kept in `out.partial` until the work is finished, held by one run at a time. Without `out` it is kept in
    memory alone.
    """

    def __init__(
        self, out: Path | None, about: Mapping[str, Any], questions: Sequence[Question]
    ) -> None:
        if out and out.is_dir():
            raise BadInput(f"'{out}' is a folder. Choose a file for the result.")
        _refuse_repeated_ids(questions)
        self.questions = questions
        self.path = out.with_name(f"{out.name}.partial") if out else None
        self._fingerprint = dict(about) | {"ids": _digest(questions)}
        self._records: dict[str, dict[str, Any]] = {}
        self._resources = contextlib.ExitStack()
        self._lines: Lines | None = None

    def __enter__(self) -> Journal:
        if self.path:
            self._lines = Lines(self.path, self._fingerprint, "give another --out")
            self._resources.callback(self._lines.close)
            self._stop = self._resources.enter_context(stop_requested())
            self._records = self._lines.done
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def batches(self, size: int, progress: Progress) -> Iterator[Sequence[Question]]:
        """The questions without a record, `size` at a time. A stop that is requested takes effect after a batch."""
        for batch in self.missing(size):
            yield batch
            self.report(progress)

    def missing(self, size: int) -> list[Sequence[Question]]:
        """Return the questions without a record, in batches of `size`."""
        todo = [question for question in self.questions if question.id not in self._records]
        return [todo[start : start + size] for start in range(0, len(todo), size)]

    def report(self, progress: Progress) -> None:
        """Show how much is done. Raises Stopped where a stop was requested and something is left."""
        total, done = len(self.questions), len(self._records)
        progress(done / total, done)
        if self._lines and self._stop() and done < total:
            raise Stopped("Stopped. Run the same command again: it resumes with the next question.")

    def add(self, question: Question, record: Mapping[str, Any]) -> None:
        if self._lines:
            self._lines.append(question.id, record)
        else:
            self._records[question.id] = dict(record)

    def records(self) -> list[dict[str, Any]]:
        """Return one for each question, in their order, once all are done."""
        return [self._records[question.id] for question in self.questions]

    def answered(self) -> Iterator[tuple[Question, dict[str, Any]]]:
        """Yield the questions that have a record, in their order, each with it."""
        for question in self.questions:
            if question.id in self._records:
                yield question, self._records[question.id]

    def finish(self) -> None:
        """Remove the journal: its result is written."""
        if self.path:
            # Another run may have found everything done, too, and removed it.
            self.path.unlink(missing_ok=True)


def _refuse_repeated_ids(questions: Sequence[Question]) -> None:
    for name, count in Counter(question.id for question in questions).items():
        if count > 1:
            raise BadInput(f"Several questions have the id {name!r}. Give each an id of its own.")


def _digest(questions: Sequence[Question]) -> str:
    rows = [f"{question.id}\t{question.text}" for question in questions]
    return hashlib.sha256("\n".join(rows).encode(errors="surrogatepass")).hexdigest()


# Predict: a system over a dataset, one prediction for each question. What was answered is never
# answered twice.

_BATCH = 8


@frozen
class Predicted:
    """What was written, and how fast."""

    path: Path
    questions: int
    seconds_per_question: float
    provenance: Mapping[str, Any]


def questions_of(
    dataset: str, data_dir: str | Path | None = None, limit: int | None = None
) -> tuple[list[Question], list[Path]]:
    """Return the questions of a dataset, and the files that they are from.

    `dataset` is a name, a file in AmbigNQ's form, or several joined by "+".
    """
    questions: list[Question] = []
    paths = []
    for name in [dataset] if Path(dataset).is_file() else dataset.split("+"):
        own, path = load_questions(name.strip(), data_dir)
        if not own:
            raise BadInput(f"'{name}' holds no questions.")
        questions += own
        paths.append(path)
    return questions[:limit], paths


def loaded_elsewhere(
    settings: SystemSettings, index: Searchable, policy: Policy
) -> LoadedOnce[Answerer]:
    """Return a system as each worker of an executor loads it. One core is a worker's share."""
    return LoadedOnce(partial(built_answerer, settings, travelling(index), policy, 1))


@dataclass(frozen=True)
class _Answering:
    """What a worker does: answer a batch of questions."""

    load: Callable[[], Answerer]
    setting: Setting
    rewrites: bool

    def __call__(self, questions: Sequence[Question]) -> list[dict[str, Any]]:
        answerer, setting = self.load(), self.setting
        began = time.perf_counter()
        predictions = [
            setting.prediction(answerer, case, self.rewrites)
            for case in setting.run(answerer, questions)
        ]
        seconds = (time.perf_counter() - began) / len(questions)
        return [{"prediction": one, "seconds": seconds} for one in predictions]


def predict(
    answerer: Answerer | LoadedOnce[Answerer],
    dataset: str,
    out: str | Path,
    *,
    setting: Setting = READINGS,
    system: Mapping[str, Any] | None = None,
    rewrites: bool = True,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    batch: int = _BATCH,
    progress: Progress = silent,
    executor: Executor = run_here,
) -> Predicted:
    """Predict for every question of a dataset; `out` appears when all are done.

    `setting` says what is predicted and what is given; the form of a prediction follows from its goal.

    Until then the answers lie in `out.partial`: a run that was killed or stopped goes on with the question after the
    last one there, and a second run beside one that goes on is refused. `system` says what answers; going on with
    another one is refused. Without `rewrites` only answers are written, without questions. `batch` questions are
    answered at once: more keep a GPU busier. For an executor whose workers are elsewhere, `answerer` is `LoadedOnce`.
    """
    out = Path(out)
    questions, paths = questions_of(dataset, data_dir, limit)
    if out.exists() and any(map(out.samefile, paths)):
        raise BadInput(
            f"'{out}' holds the questions; predictions would replace them. Give another --out."
        )
    about = {
        "system": dict(system or {}),
        "dataset": dataset,
        "setting": asdict(setting),
        "rewrites": rewrites,
    }
    with Journal(out, about, questions) as journal:
        load = answerer if isinstance(answerer, LoadedOnce) else lambda: answerer
        work = _Answering(load, setting, rewrites)
        with closing(closable(executor(work, journal.missing(batch)))) as answered:
            for some, records in answered:
                for question, record in zip(some, records, strict=True):
                    journal.add(question, record)
                journal.report(progress)
    done = journal.records()
    taken = sum(one["seconds"] for one in done) / len(questions)
    where = provenance(paths)
    where |= {key: about[key] for key in ("system", "dataset", "setting")}
    written = {
        question.id: record["prediction"] for question, record in zip(questions, done, strict=True)
    }
    write_atomically(out, as_json(written))
    facts = {"questions": len(questions), "seconds_per_question": taken, "provenance": where}
    write_atomically(beside(out), as_json(facts, indent=2))
    journal.finish()
    return Predicted(out, len(questions), taken, where)


def beside(out: Path) -> Path:
    """Return where the facts about a prediction file lie: what made it, and how long it took."""
    return out.with_name(f"{out.name}.about.json")


def is_of(out: Path, system: Mapping[str, Any], dataset: str, setting: Setting = READINGS) -> bool:
    """Tell whether a prediction file is there and was made by this very system over this dataset in this setting."""
    if not out.exists() or not beside(out).exists():
        return False
    where = read_json(beside(out))["provenance"]
    written = {key: where.get(key) for key in ("system", "dataset", "setting")}
    wanted = {"system": system, "dataset": dataset, "setting": asdict(setting)}
    return same_fingerprint(written, wanted)


# Tune: the threshold of LM verification, on questions with gold answers that a system was not trained
# on.


@frozen
class Tuned:
    """The best threshold, and F1ans over all questions with it, with the given one, and without verification."""

    threshold: float
    f1_ans: float
    f1_ans_given: float
    f1_ans_unverified: float
    questions: int


def tune(pipeline: Pipeline, questions: Sequence[Question], progress: Progress = silent) -> Tuned:
    """Answer all questions once, then try every threshold on what the verifier scored."""
    verifier = pipeline.verifier
    if not isinstance(verifier, LMVerifier):
        raise BadConfig(
            "Only LM verification has a threshold. Give the system a [verifier] with a model."
        )
    unverified = replace(pipeline, verifier=None)
    answered: list[Sequence[Reading]] = []
    scored: list[Sequence[Reading]] = []
    for start in range(0, len(questions), _BATCH):
        batch = questions[start : start + _BATCH]
        cases = unverified.run([question.text for question in batch])
        answered.extend(case.readings for case in cases)
        scored.extend(case.readings for case in verifier.score(cases))
        progress(len(answered) / len(questions), len(answered))
    threshold, score = tuned_threshold(scored, questions, _f1)
    given = [above(readings, verifier.threshold) for readings in scored]
    return Tuned(
        threshold, score, _mean(questions, given), _mean(questions, answered), len(questions)
    )


def _mean(questions: Sequence[Question], readings: Sequence[Sequence[Reading]]) -> float:
    return sum(map(_f1, questions, readings)) / len(questions)


def _f1(question: Question, readings: Sequence[Reading]) -> float:
    return best_f1(question.answer_sets, [one.answer for one in readings])
