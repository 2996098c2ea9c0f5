"""Readers: one short function for each schema turns the rows of a file into records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import get_args

from whichsense.lab.datasets.records import (
    Annotation,
    Claim,
    ClaimLabel,
    ClarifiedQuestion,
    Condition,
    ConditionalQuestion,
    ConflictDocument,
    ConflictQuestion,
    Context,
    DocumentKind,
    EntityQuestion,
    ErrorSpan,
    FeedbackQuestion,
    FullQuestion,
    GroundedAnswer,
    GroundedLongQuestion,
    GroundedQuestion,
    JudgedQuestion,
    LongQuestion,
    LongReference,
    MissingInformation,
    Preference,
    QAPair,
    Question,
    SearchQuery,
    SentencePassage,
    SituatedQuestion,
)
from whichsense.lab.datasets.rows import (
    IdMaker,
    Row,
    Rows,
    parse_annotations,
    several_answers,
    single_answer,
    split_references,
)
from whichsense.text.clarification import ParsedClarification, category_of, parse_clarification

# Readers of datasets with a question and its answer: NQ-open, TriviaQA, WebQuestions, PopQA.

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


def read_unanswerable(rows: Rows) -> Iterator[Question]:
    """Read questions without an answer."""
    # {id, question, kinds?}
    for row in rows:
        kinds = row.texts("kinds", optional=True)
        yield Question(row.text("id"), row.text("question"), kinds=kinds)


def read_nq_open(rows: Rows) -> Iterator[Question]:
    """Read a question and its aliases, nothing else: NQ-open, its relatives, research samples in the FlashRAG form."""
    # {question, answer: [alias…], id?}; FlashRAG: golden_answers; others: answers
    ids = IdMaker()
    for row in rows:
        text = row.text("question")
        key = ids.make_unique(row.text("id")) if row.has("id") else ids.from_text(text)
        answers = row.texts("answer", "golden_answers", "answers")
        yield Question(key, text, single_answer(answers))


def read_efficientqa_test(rows: Rows) -> Iterator[Question]:
    """Read NQ-open's form, with the judged predictions of the EfficientQA systems."""
    # {question, answer, def_correct_predictions, poss_correct_predictions, def_incorrect_predictions}
    ids = IdMaker()
    for row in rows:
        text = row.text("question")
        yield JudgedQuestion(
            ids.from_text(text),
            text,
            single_answer(row.texts("answer")),
            surely_correct=row.texts("def_correct_predictions", optional=True),
            possibly_correct=row.texts("poss_correct_predictions", optional=True),
            incorrect=row.texts("def_incorrect_predictions", optional=True),
        )


def read_triviaqa(rows: Rows) -> Iterator[Question]:
    """Read TriviaQA's official JSON. The test set comes without answers."""
    # {Data: [{QuestionId, Question, Answer: {Value, Aliases}}]}
    for row in rows.under("Data"):
        answers = trivia_answers(row) if row.has("Answer") else ()
        annotations = single_answer(answers)
        yield Question(row.text("QuestionId"), row.text("Question"), annotations)


def trivia_answers(row: Row, *more: str) -> tuple[str, ...]:
    """Return a TriviaQA answer with its aliases, the main one first; `more` names further alias lists of the file."""
    answer = row.row("Answer")
    aliases = [answer.text("Value")]
    for key in ("Aliases", *more):
        aliases.extend(answer.texts(key, optional=True))
    return tuple(dict.fromkeys(aliases))


def read_webquestions(rows: Rows) -> Iterator[Question]:
    """Read the factoid form (`qText`, `answers`) and the original one (`utterance`, `targetValue`)."""
    # {qId, qText, answers} or {utterance, targetValue}
    ids = IdMaker()
    for row in rows:
        text = row.text("qText", "utterance", "question")
        key = row.text("qId") if row.has("qId") else ids.from_text(text)
        answers = (
            _parse_target(row.text("targetValue"))
            if row.has("targetValue")
            else row.texts("answers")
        )
        yield Question(key, text, single_answer(answers))


def _parse_target(target: str) -> tuple[str, ...]:
    """Return the answers of WebQuestions' Lisp form.

    >>> _parse_target('(list (description "Lawyer") (description Jamaica))')
    ('Lawyer', 'Jamaica')
    """
    return tuple([quoted or bare for quoted, bare in _DESCRIPTION.findall(target)])


def read_popqa(rows: Rows) -> Iterator[Question]:
    """Read PopQA with its metadata."""
    # {id, question, golden_answers, metadata: {subj, prop, s_pop}}
    for row in rows:
        metadata = row.row("metadata")
        popularity = metadata.field("s_pop")
        yield EntityQuestion(
            row.text("id"),
            row.text("question"),
            single_answer(row.texts("golden_answers")),
            kinds=(metadata.text("prop"),),
            subject=metadata.text("subj"),
            popularity=popularity if isinstance(popularity, int) else 0,
        )


# Readers of datasets about ambiguity: AmbigNQ, CAmbigNQ, SituatedQA, CondAmbigQA, RAMDocs.


def read_ambignq(rows: Rows) -> Iterator[Question]:
    """Read AmbigNQ's light release, and the embedded sample, which adds `kinds` and `evidence`."""
    # {id, question, annotations: [{type, answer} or {type, qaPairs: [{question, answer}]}]}
    for row in rows:
        yield Question(
            row.text("id"),
            row.text("question"),
            parse_annotations(row),
            row.texts("kinds", optional=True),
        )


def read_ambignq_full(rows: Rows) -> Iterator[Question]:
    """Read AmbigNQ's full release."""
    # AmbigNQ's row with viewed_doc_titles, used_queries: [{query, results}], nq_answer, nq_doc_title
    for row in rows:
        yield FullQuestion(
            row.text("id"),
            row.text("question"),
            parse_annotations(row),
            viewed_titles=row.texts("viewed_doc_titles"),
            searches=_parse_searches(row),
            nq_answers=row.texts("nq_answer"),
            nq_title=row.text("nq_doc_title", default=""),
        )


def _parse_searches(row: Row) -> tuple[SearchQuery, ...]:
    return tuple(
        SearchQuery(
            item.text("query"),
            tuple(
                Context(hit.text("title"), hit.text("snippet", default=""))
                for hit in item.rows("results")
            ),
        )
        for item in row.rows("used_queries", optional=True)
    )


def read_cambignq(rows: Rows) -> Iterator[Question]:
    """Read CAmbigNQ: AmbigNQ's full record with the clarification question and the answers of its options.

    The release has `dqs`, the rewrites that the options stand for, in place of AmbigNQ's annotations.
    """
    # AmbigNQ's full row with clarification_question, clarification_answers: [[alias…]…], dqs
    for row in rows:
        clarification = row.text("clarification_question")
        answers = row.text_lists("clarification_answers")
        parsed = parse_clarification(clarification, expected=len(answers)) or ParsedClarification(
            "", ()
        )
        annotations = (
            parse_annotations(row)
            if row.has("annotations")
            else _pair_up(row.texts("dqs"), answers)
        )
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            annotations,
            viewed_titles=row.texts("viewed_doc_titles", optional=True),
            searches=_parse_searches(row),
            nq_answers=row.texts("nq_answer", optional=True),
            nq_title=row.text("nq_doc_title", default=""),
            clarification=clarification,
            clarified_answers=answers,
            category=parsed.category,
            options=parsed.options,
        )


def _pair_up(
    rewrites: tuple[str, ...], answers: tuple[tuple[str, ...], ...]
) -> tuple[Annotation, ...]:
    if not answers:
        return ()
    wordings = list(map(split_references, rewrites))
    if len(wordings) != len(answers):
        # which rewrite belongs to which answer is unknown then
        wordings = [()] * len(answers)
    return (Annotation("multipleQAs", tuple(map(QAPair, answers, wordings))),)


def read_cambignq_part(rows: Rows) -> Iterator[Question]:
    """Read CAmbigNQ's questions in CLAMBER, joined with AmbigNQ: the options are a list, their answers have rewrites.

    A question whose options do not match AmbigNQ's answers in number has no answers.
    """
    # {…, category, options, clarification_answers: [{question, answer, clarification}] or []}
    for row in rows:
        options = row.texts("options")
        paired = row.rows("clarification_answers")
        if paired:
            _check_options(row, options, paired)
        pairs = []
        for item in paired:
            rewrite = split_references(item.text("question"))
            pairs.append(QAPair(item.texts("answer"), rewrite))
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            (Annotation("multipleQAs", tuple(pairs)),) if pairs else (),
            clarification=row.text("clarification_question"),
            clarified_answers=tuple(pair.answers for pair in pairs),
            category=category_of(row.text("category")),
            options=options,
        )


def _check_options(row: Row, options: tuple[str, ...], paired: list[Row]) -> None:
    """Each answer repeats the option that it belongs to, in the same order."""
    repeated = tuple(item.text("clarification") for item in paired)
    if repeated != options:
        raise row.bad("'clarification_answers' are not those of 'options'")


def read_situatedqa(rows: Rows) -> Iterator[Question]:
    """Read SituatedQA, by time or by place."""
    # {id, question, edited_question, answer, any_answer, date or location}
    ids = IdMaker()
    for row in rows:
        prompt = row.text("id")
        if not (row.has("date") or row.has("location")):
            raise row.bad("no field 'date' or 'location'")
        yield SituatedQuestion(
            ids.make_unique(prompt),
            row.text("question"),
            single_answer(row.texts("answer")),
            prompt_id=prompt,
            rewrite=row.text("edited_question"),
            date=row.text("date", default=""),
            place=row.text("location", default=""),
            any_answers=row.texts("any_answer"),
        )


def read_condambigqa(rows: Rows) -> Iterator[Question]:
    """Read CondAmbigQA: conditions, what is true under each, the retrieved passages."""
    # {id, question, properties: [{condition, groundtruth, citations}], ctxs: [{title, text}]}
    for row in rows:
        conditions = tuple(map(_parse_condition, row.rows("properties")))
        if not conditions:
            raise row.bad("'properties' is empty")
        pairs = [QAPair((" ".join(one.statements),), (one.condition,)) for one in conditions]
        yield ConditionalQuestion(
            row.text("id"),
            row.text("question"),
            several_answers(tuple(pairs)),
            passages=tuple(map(_parse_context, row.rows("ctxs"))),
            conditions=conditions,
        )


def _parse_condition(row: Row) -> Condition:
    citations = map(_parse_context, row.rows("citations", optional=True))
    return Condition(row.text("condition"), row.texts("groundtruth"), tuple(citations))


def _parse_context(row: Row) -> Context:
    return Context(row.text("title"), row.text("text"))


def read_ramdocs(rows: Rows) -> Iterator[Question]:
    """Read RAMDocs: documents that are right, wrong or irrelevant, and a right answer for each entity of the name."""
    # {question, documents: [{text, type, answer}], disambig_entity, gold_answers, wrong_answers}
    ids = IdMaker()
    for row in rows:
        text = row.text("question")
        entities = row.texts("disambig_entity")
        answers = row.texts("gold_answers")
        if not answers:
            raise row.bad("'gold_answers' is empty")
        if len(entities) != len(answers):
            raise row.bad("'disambig_entity' and 'gold_answers' differ in number")
        yield ConflictQuestion(
            ids.from_text(text),
            text,
            several_answers(tuple(QAPair((answer,)) for answer in answers)),
            documents=tuple(map(_parse_document, row.rows("documents"))),
            entities=entities,
            wrong_answers=row.texts("wrong_answers"),
        )


def _parse_document(row: Row) -> ConflictDocument:
    kind = row.choice("type", get_args(DocumentKind))
    return ConflictDocument(row.text("text"), kind, row.text("answer"))


# Readers of datasets with long answers: ASQA, QA-Feedback, ClapNQ.

_NO_CONTEXT = "No context provided"  # ASQA's sentence in place of a missing context
_PREDICTIONS = ("prediction 1", "prediction 2", "prediction 3", "prediction 4")


def read_asqa(rows: Rows) -> Iterator[LongQuestion]:
    """Read ASQA as released (one file, splits inside, keyed by id) and as a list or JSON lines (Hugging Face)."""
    # {ambiguous_question, qa_pairs: [{question, short_answers, context, wikipage}], wikipages, annotations}
    for row in rows.under(rows.inside):
        pairs = row.rows("qa_pairs")
        long_answers = tuple(map(_parse_long_answer, row.rows("annotations")))
        if not pairs or not long_answers:
            raise row.bad("'qa_pairs' or 'annotations' is empty")
        contexts = []
        context_pages = []
        for pair in pairs:
            context = pair.text("context", default="")
            contexts.append("" if context == _NO_CONTEXT else context)
            context_pages.append(pair.text("wikipage", default=""))
        pages = row.rows("wikipages", optional=True)
        yield LongQuestion(
            row.text("sample_id", "id"),
            row.text("ambiguous_question", "question"),
            _parse_disambiguations(pairs),
            long_answers=long_answers,
            contexts=tuple(contexts),
            context_pages=tuple(context_pages),
            pages=tuple(page.text("title") for page in pages),
        )


def _parse_disambiguations(rows: list[Row]) -> tuple[Annotation, ...]:
    pairs = []
    for row in rows:
        answers = row.texts("short_answers")
        if not answers:
            raise row.bad("'short_answers' is empty")
        pairs.append(QAPair(answers, split_references(row.text("question"))))
    return (Annotation("multipleQAs", tuple(pairs)),)


def _parse_long_answer(row: Row) -> LongReference:
    pieces = [
        _parse_piece(piece)
        for piece in row.rows("knowledge", optional=True)
        if piece.has("content")
    ]
    return LongReference(row.text("long_answer"), tuple(pieces))


def _parse_piece(row: Row) -> Context:
    return Context(row.text("wikipage", default=""), row.text("content"))


def read_asqa_part(rows: Rows) -> Iterator[Question]:
    """Read ASQA's train questions in QA-Feedback: passages for the whole question, none for a disambiguation."""
    # {id, question, split, long_answers, passages: [{content, wikipage}], qa_pairs}
    for row in rows:
        pairs = row.rows("qa_pairs")
        long_answers = tuple(map(LongReference, row.texts("long_answers")))
        if not pairs or not long_answers:
            raise row.bad("'qa_pairs' or 'long_answers' is empty")
        missing = ("",) * len(pairs)
        yield LongQuestion(
            row.text("id"),
            row.text("question"),
            _parse_disambiguations(pairs),
            long_answers=long_answers,
            contexts=missing,
            context_pages=missing,
            passages=tuple(map(_parse_piece, row.rows("passages"))),
            split=row.text("split"),
        )


def read_qa_feedback(rows: Rows) -> Iterator[Question]:
    """Read QA-Feedback: four predictions for each question, and human feedback."""
    # {question, passages: [[title, sentence…]…], gold, prediction 1 … 4, feedback, preference}
    ids = IdMaker()
    for row in rows:
        text = row.text("question")
        feedback = row.row("feedback")
        predictions = tuple(row.text(key) for key in _PREDICTIONS)
        passages = tuple(map(_split_title, row.text_lists("passages")))
        missing = feedback.rows("missing-info")
        yield FeedbackQuestion(
            ids.from_text(text),
            text,
            single_answer((row.text("gold"),)),
            passages=passages,
            predictions=predictions,
            errors=_parse_errors(feedback, len(predictions[0])),
            missing=tuple(_parse_missing(item, passages) for item in missing),
            corrected=feedback.text("corrected-prediction"),
            preferences=_parse_preferences(row),
        )


def _split_title(passage: tuple[str, ...]) -> SentencePassage:
    """QA-Feedback writes a passage as its title, then its sentences."""
    title, *sentences = passage or ("",)
    return SentencePassage(title, tuple(sentences))


def _parse_errors(feedback: Row, length: int) -> tuple[ErrorSpan, ...]:
    """Return the error spans of a prediction of `length` characters."""
    errors = []
    for row in feedback.rows("errors"):
        start = row.number("start")
        end = row.number("end")
        if not 0 <= start <= end <= length:
            raise row.bad(f"'start' and 'end' must lie in 0 … {length}")
        explanation = row.text("explanation", default="")
        errors.append(ErrorSpan(row.text("error type"), start, end, explanation))
    return tuple(errors)


def _parse_missing(row: Row, passages: tuple[SentencePassage, ...]) -> MissingInformation:
    passage = row.number("passage_id")
    sentences = row.numbers("sentence_id")
    if not 1 <= passage <= len(passages):
        raise row.bad(f"'passage_id' must lie in 1 … {len(passages)}")
    # 0 is the title, so that the last number equals the number of sentences
    last = len(passages[passage - 1].sentences)
    if not all(0 <= number <= last for number in sentences):
        raise row.bad(f"'sentence_id' must lie in 0 … {last}")
    return MissingInformation(row.text("error type"), passage, sentences)


def _parse_preferences(row: Row) -> tuple[Preference, ...]:
    """Parse the numbers of all pairs, one each, in the order 1-2, 1-3, 1-4, 2-3, 2-4, 3-4.

    0 is no preference, 1 prefers the first of the pair, 2 the second.
    """
    pairs = list(combinations(range(len(_PREDICTIONS)), 2))
    choices = row.numbers("preference")
    if len(choices) != len(pairs) or not {0, 1, 2}.issuperset(choices):
        raise row.bad(f"'preference' must be {len(pairs)} numbers, each 0, 1 or 2")
    preferences = [
        Preference(*pair, pair[choice - 1] if choice else None)
        for pair, choice in zip(pairs, choices, strict=True)
    ]
    return tuple(preferences)


def read_clapnq(rows: Rows) -> Iterator[Question]:
    """Read ClapNQ: the passage is gold where the question has an answer in it."""
    # {id, input, passages: [{title, text, sentences}], output: [{answer, selected_sentences, meta}]}
    for row in rows:
        long_answers = tuple(map(_parse_grounded_answer, row.rows("output")))
        texts = tuple(answer.text for answer in long_answers if answer.text)
        passages = []
        sentences = []
        for item in row.rows("passages"):
            gold = bool(texts)
            passages.append(Context(item.text("title"), item.text("text"), gold))
            sentences.append(item.texts("sentences"))
        yield GroundedLongQuestion(
            row.text("id"),
            row.text("input"),
            single_answer(texts),
            passages=tuple(passages),
            sentences=tuple(sentences),
            long_answers=long_answers,
        )


def _parse_grounded_answer(row: Row) -> GroundedAnswer:
    meta = row.row("meta")
    return GroundedAnswer(
        row.text("answer"),
        row.texts("selected_sentences"),
        annotators=meta.numbers("annotator"),
        round=meta.number("round"),
        has_minimal_answer=meta.flag("has_minimal_answer"),
        non_consecutive=meta.flag("non_consecutive"),
        skipped=meta.flag("skip"),
    )


# Readers of datasets with passages: SQuAD, NQ's gold passages, HotpotQA, MuSiQue, and the claims of
# WiCE.


def read_squad(rows: Rows) -> Iterator[Question]:
    """Read SQuAD 1.1 and 2.0: the official JSON (`data`, answers with offsets) and a plain list with answer texts."""
    # {title, paragraphs: [{context, qas: [{id, question, answers, is_impossible}]}]}
    for article in rows.under("data"):
        title = article.text("title").replace("_", " ")
        for paragraph in article.rows("paragraphs"):
            passage = Context(title, paragraph.text("context"), gold=True)
            for row in paragraph.rows("qas"):
                yield GroundedQuestion(
                    row.text("id"),
                    row.text("question"),
                    single_answer(_squad_answers(row)),
                    passages=(passage,),
                )


def _squad_answers(row: Row) -> tuple[str, ...]:
    if row.value.get("is_impossible"):
        return ()
    value = row.field("answers")
    answers: tuple[str, ...]
    if isinstance(value, list) and any(isinstance(item, str) for item in value):
        answers = row.texts("answers")
    else:
        answers = tuple(item.text("text") for item in row.rows("answers"))
    if not answers:
        raise row.bad("no answer, though 'is_impossible' does not say so")
    return tuple(dict.fromkeys(answers))


def read_gold_passages(rows: Rows) -> Iterator[Question]:
    """Read NQ-open questions with the passage that Natural Questions' annotators marked."""
    # {question, answers, ctxs: [{title, text, isgold}]}
    ids = IdMaker()
    for row in rows:
        passages = [
            Context(item.text("title"), item.text("text"), bool(item.field("isgold")))
            for item in row.rows("ctxs")
        ]
        text = row.text("question")
        yield GroundedQuestion(
            ids.from_text(text), text, single_answer(row.texts("answers")), passages=tuple(passages)
        )


def read_hotpotqa(rows: Rows) -> Iterator[Question]:
    """Read HotpotQA: ten pages in sentences, some of them supporting."""
    # {_id, question, answer, supporting_facts: [[title, n]…], context: [[title, [sentence…]]…]}
    for row in rows:
        supporting = {str(title) for title, _ in row.field("supporting_facts")}
        passages = []
        try:
            for title, sentences in row.field("context"):
                passages.append(Context(title, "".join(sentences), title in supporting))
        except (TypeError, ValueError):
            raise row.bad("'context' must be a list of [title, sentences]") from None
        yield GroundedQuestion(
            row.text("_id", "id"),
            row.text("question"),
            single_answer((row.text("answer"),)),
            passages=tuple(passages),
        )


def read_musique(rows: Rows) -> Iterator[Question]:
    """Read MuSiQue: twenty paragraphs, some of them supporting."""
    # {id, question, answer, answer_aliases, paragraphs: [{title, paragraph_text, is_supporting}]}
    for row in rows:
        passages = [
            Context(
                item.text("title"),
                item.text("paragraph_text"),
                bool(item.value.get("is_supporting")),
            )
            for item in row.rows("paragraphs")
        ]
        answers = (row.text("answer"), *row.texts("answer_aliases", optional=True))
        yield GroundedQuestion(
            row.text("id"), row.text("question"), single_answer(answers), passages=tuple(passages)
        )


def read_wice(rows: Rows) -> Iterator[Claim]:
    """Read WiCE: a claim, its label, and the sentences of the cited page that support it."""
    # {claim, label, supporting_sentences: [[n…]…], evidence: [sentence…], meta: {id, claim_title, …}}
    for row in rows:
        meta = row.row("meta")
        evidence = row.texts("evidence")
        supporting = row.number_lists("supporting_sentences")
        for positions in supporting:
            if not all(0 <= position < len(evidence) for position in positions):
                raise row.bad(f"'supporting_sentences' must be below {len(evidence)}")
        yield Claim(
            meta.text("id"),
            row.text("claim"),
            label=row.choice("label", get_args(ClaimLabel)),
            evidence=evidence,
            supporting=supporting,
            title=meta.text("claim_title"),
            section=meta.text("claim_section"),
            context=meta.text("claim_context"),
        )
