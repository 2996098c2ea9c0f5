"""Lists of rewrites: a topic's rewrite as the question, over the passages of its topic and others beside them.

A true rewrite has its own answer alone. A false one has its answer refuted: what it adds is another's. What else it
asks for is not known, and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whichsense.datasets import Question
from whichsense.text.words import words
from whichsense.train.compact.data.conversion import TrainingQuestion
from whichsense.train.compact.data.corpora import CorpusQuestions, build_corpus
from whichsense.train.compact.data.list_builder import ListBuilder
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.topics import TopicRewrite, Topics, topic_of
from whichsense.types import Passage

SOURCE = "rewrites of topics"
# Kinds of false rewrites that are no lie: one tells nothing apart, the other is bad English.
EMPTY = "empty"
BROKEN = "broken"
_SLOTS = 12  # of a list


def build_rewrite_lists(topics: Topics, vocabulary: Sequence[str]) -> Pack:
    """A list for each rewrite. All passages of its topic are in it: the evidence of all answers."""
    builder = ListBuilder(vocabulary)
    for corpus in topics.corpora():
        for question in corpus.questions:
            rewrites = topics.rewrites.get(question.id, ())
            own = _topic_passages(topics, question.id)
            for asked in convert_topic_rewrites(question, rewrites):
                _add_list(builder, asked, own, corpus)
    return builder.build()


def build_judged_lists(topics: Topics, vocabulary: Sequence[str]) -> Pack:
    """A list for each rewrite that a reader judged."""
    builder = ListBuilder(vocabulary)
    if topics.judged:
        corpus = CorpusQuestions(build_corpus(topics.passages), ())
        for rewrite in topics.judged:
            asked = TrainingQuestion(
                rewrite.rewrite,
                SOURCE,
                ((rewrite.answer,),),
                complete=True,
                refuted=not rewrite.true,
            )
            own = _topic_passages(topics, rewrite.id)
            _add_list(builder, asked, own, corpus)
    return builder.build()


def convert_topic_rewrites(
    question: Question, rewrites: Sequence[TopicRewrite]
) -> Iterator[TrainingQuestion]:
    """Each rewrite of a question as a question of its own, with the answer that it has or refutes."""
    if not question.annotations:
        return
    answers = question.annotations[0].answers
    true = set()
    for rewrite in rewrites:
        if not rewrite.kind:
            true.add((rewrite.answer, *words(rewrite.question)))
    for rewrite in rewrites:
        own = answers[rewrite.answer]
        is_lie = rewrite.kind not in ("", EMPTY, BROKEN)
        # A line that is called false by mistake.
        if is_lie and (rewrite.answer, *words(rewrite.question)) in true:
            continue
        yield TrainingQuestion(
            rewrite.question,
            SOURCE,
            question.answers if rewrite.kind == EMPTY else (own,),
            complete=True,
            refuted=is_lie,
        )


def _topic_passages(topics: Topics, question_id: str) -> list[Passage]:
    topic = topic_of(question_id)
    return [one for one in topics.passages if topic_of(one.id) == topic]


def _add_list(
    builder: ListBuilder,
    asked: TrainingQuestion,
    own: Sequence[Passage],
    corpus: CorpusQuestions,
) -> None:
    answers = builder.answers(asked)
    own_ids = {passage.id for passage in own}
    passages = []
    spans = []
    for passage in own:
        titled = (passage.title, passage.text)
        passages.append(titled)
        spans.append(builder.find_spans(titled, answers))
    # Passages of other topics hold no answer, whatever strings they have.
    for passage in corpus.search(asked.text, _SLOTS):
        if passage.id not in own_ids and len(passages) < _SLOTS:
            passages.append((passage.title, passage.text))
            spans.append([])
    builder.add(asked, passages, spans)
