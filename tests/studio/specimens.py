"""One question of each kind over the sample, and annotations that may be submitted."""

from __future__ import annotations

from typing import Any

QUESTION = "Who played the Joker?"
READINGS = [
    {
        "question": "Who played the Joker in the 2008 film The Dark Knight?",
        "answers": ["Heath Ledger"],
        "context": {
            "title": "The Dark Knight",
            "text": "Christopher Nolan directed The Dark Knight, released in 2008. Heath Ledger plays the Joker.",
        },
    },
    {
        "question": "Who played the Joker in the 2019 film Joker?",
        "answers": ["Joaquin Phoenix", "Phoenix"],
        "context": {
            "title": "Joker (2019 film)",
            "text": "In the 2019 film Joker, directed by Todd Phillips, Joaquin Phoenix plays the Joker.",
        },
    },
]
PAIRS = [{"question": one["question"], "answers": one["answers"]} for one in READINGS]
SEVERAL = {"outcome": "several", "pairs": PAIRS}
SINGLE = {"outcome": "single", "answers": ["Joaquin Phoenix"]}
DRAFT = "Which film: The Dark Knight, or Joker?"
STORY = (
    "Several actors have played the Joker. Heath Ledger played him in The Dark Knight of 2008, and Joaquin Phoenix "
    "in Joker of 2019."
)
LIST = "The Joker was played by Heath Ledger. He was also played by Joaquin Phoenix, by Jack Nicholson and by others."
SENTENCE = "In the 2019 film Joker, Joaquin Phoenix plays the Joker."
JUDGED: list[dict[str, Any]] = [
    {
        "rewrite": READINGS[1]["question"],
        "answer": "Joaquin Phoenix",
        "source": "joker-4",
        "title": "Joker (2019 film)",
        "sentence": SENTENCE,
        "start": SENTENCE.index("Joaquin"),
        "end": SENTENCE.index(" plays"),
    },
    {
        "rewrite": "Who played the Joker in the 1989 film Batman?",
        "answer": "Jack Nicholson",
        "source": "joker-2",
        "title": "Batman (1989 film)",
        "sentence": "Jack Nicholson plays the Joker.",
        "start": 0,
        "end": 14,
    },
]
ROWS: dict[str, dict[str, Any]] = {
    "generate": {"question": QUESTION},
    "validate": {
        "question": QUESTION,
        "annotations": [SEVERAL, SINGLE],
        "pages": ["The Dark Knight", "Joker (2019 film)"],
    },
    "clarification": {"question": QUESTION, "readings": READINGS, "draft": DRAFT},
    "preference": {"question": QUESTION, "readings": READINGS, "clarification": DRAFT},
    "long-answer": {"question": QUESTION, "readings": READINGS},
    "compare": {"question": QUESTION, "readings": READINGS, "answers": [STORY, LIST]},
    "readings": {"question": QUESTION, "readings": JUDGED},
}
