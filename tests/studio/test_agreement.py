"""Agreement: our measures against nltk's, what is undefined and why, and adjudication."""

from __future__ import annotations

import contextlib
import math
import random
from typing import Any

import numpy as np
import pytest

from conftest import PEOPLE, Make, annotate, client, served
from whichsense.errors import BadInput
from whichsense.studio import KINDS, adjudication, reports
from whichsense.studio.agreement import masi, measure_all, row
from whichsense.studio.history import Stale
from whichsense.studio.items import Item
from whichsense.studio.members import Member
from whichsense.studio.reliability import cohen, fleiss, interval, krippendorff

nltk = pytest.importorskip("nltk.metrics.agreement", reason="needs nltk")

JUDGE = Member("jo", "jo", "adjudicator")
ONE = {"outcome": "single", "answers": ["Ann Lee"]}
OTHER = {"outcome": "single", "answers": ["Bo Ray"]}


def several(*answers: str) -> dict[str, Any]:
    pairs = [{"question": f"In {n}?", "answers": [a]} for n, a in enumerate(answers)]
    return {"outcome": "several", "pairs": pairs}


def random_units(seed: int, raters: int, missing: float) -> list[dict[str, str]]:
    rng = random.Random(seed)
    units = []
    for _ in range(60):
        true = rng.choice("abc")
        said = {
            f"r{n}": true if rng.random() < 0.7 else rng.choice("abc")
            for n in range(raters)
            if rng.random() >= missing
        }
        units.append(said)
    return units


def task(units: list[Any], distance: Any = None) -> Any:
    rows = [
        (who, str(number), label)
        for number, unit in enumerate(units)
        for who, label in unit.items()
    ]
    extra = {} if distance is None else {"distance": distance}
    return nltk.AnnotationTask(rows, **extra)


@pytest.mark.parametrize("seed", range(3))
def test_kappas_are_nltks(seed: int) -> None:
    two = random_units(seed, 2, 0)
    assert cohen(two)(np.ones(60)) == pytest.approx(task(two).kappa())
    four = random_units(seed, 4, 0)
    assert cohen(four)(np.ones(60)) == pytest.approx(task(four).kappa())
    assert fleiss(four)(np.ones(60)) == pytest.approx(task(four).pi())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_alpha_is_nltks(seed: int, missing: float) -> None:
    units = random_units(seed, 3, missing)
    # Items with one label cannot be compared; nltk counts them among the expected.
    units = [unit for unit in units if len(unit) > 1]
    ours = krippendorff(units)(np.ones(len(units)))
    assert ours == pytest.approx(task(units).alpha())


@pytest.mark.parametrize("seed", range(3))
def test_alpha_over_sets_is_nltks(seed: int) -> None:
    rng = random.Random(seed)
    units = []
    for _ in range(50):
        true = rng.sample("abcdef", rng.randint(1, 3))
        said = {}
        for who in ("x", "y", "z"):
            own = [letter for letter in true if rng.random() < 0.8]
            said[who] = frozenset(own or rng.sample("xyz", 1))
        units.append(said)

    def distance(one: frozenset[str], other: frozenset[str]) -> float:
        return 1 - masi(one, other)

    ours = krippendorff(units, masi)(np.ones(50))
    assert ours == pytest.approx(task(units, distance).alpha())
    # nltk's own MASI rounds the thirds to two digits.
    from nltk.metrics.distance import masi_distance

    assert ours == pytest.approx(task(units, masi_distance).alpha(), abs=0.01)


def test_the_interval_holds_the_value_and_shrinks() -> None:
    few, many = random_units(1, 2, 0)[:20], random_units(1, 2, 0) * 4
    bounds = [interval(cohen(units), len(units)) for units in (few, many)]
    widths = []
    for bound, units in zip(bounds, (few, many), strict=True):
        assert bound is not None
        assert bound[0] < cohen(units)(np.ones(len(units))) < bound[1]
        widths.append(bound[1] - bound[0])
    assert widths[1] < widths[0]


def items(*values: list[dict[str, Any]]) -> list[Item]:
    return [
        Item(
            {"id": str(number), "question": "Who won?"},
            number=number,
            values={f"a{n}": one for n, one in enumerate(own)},
        )
        for number, own in enumerate(values, 1)
    ]


def test_every_item_says_what_it_means() -> None:
    rows = [
        row(KINDS["generate"], item)
        for item in items([ONE, ONE], [ONE, OTHER], [ONE, several("Ann Lee", "Bo Ray")])
    ]
    assert [one["says"] for one in rows] == [
        "All 2 agree.",
        "The 2 annotations have nothing in common: F1ans 0.00.",
        "The 2 annotations agree in part: F1ans 0.67.",
    ]
    alone, none = (row(KINDS["generate"], item) for item in items([ONE], []))
    assert alone["agreement"] is None and alone["says"].startswith("Undefined: ")
    assert alone["says"].endswith("there is one.")
    assert none["says"].endswith("there is none.")


def test_undefined_measures_explain_themselves() -> None:
    nothing = measure_all(KINDS["generate"], items([ONE]))
    assert all(one.value is None for one in nothing)
    assert {one.says for one in nothing} == {"Undefined: no item has two annotations yet."}
    same = {one.name: one for one in measure_all(KINDS["generate"], items([ONE, ONE]))}
    assert same["F1ans"].value == 1.0
    kappa = same["Cohen's kappa, outcome"]
    assert kappa.value is None and "every annotation says the same" in kappa.says
    table = items([ONE, ONE], [several("x", "y"), several("x", "z")], [OTHER, ONE])
    measures = {one.name: one for one in measure_all(KINDS["generate"], table)}
    alpha = measures["Krippendorff's alpha, MASI over answers"]
    assert alpha.value is not None and not math.isnan(alpha.value) and alpha.units == 3
    assert measures["Cohen's kappa, outcome"].value == pytest.approx(1)


def test_adjudication_is_blind_until_all_have_submitted(make: Make, database_url: str) -> None:
    studio = make("generate", overlap=2, database=database_url)
    annotate(studio, PEOPLE[0], 1, ONE)
    assert adjudication.queue(studio, JUDGE) == []
    with pytest.raises(BadInput, match="until then nobody sees"):
        adjudication.open_case(studio, JUDGE, 1)
    annotate(studio, PEOPLE[1], 1, OTHER)
    annotate(studio, PEOPLE[0], 2, ONE)
    annotate(studio, PEOPLE[1], 2, ONE)
    assert [one["item"] for one in adjudication.queue(studio, JUDGE)] == [1, 2]
    case = adjudication.open_case(studio, JUDGE, 1)
    assert [one["value"] for one in case["annotations"]] == [ONE, OTHER]
    assert (case["version"], case["final"], case["difference"]) == (0, None, 1.0)
    assert studio.view(PEOPLE[0], 1)["final"] is None
    decided = adjudication.decide(studio, JUDGE, 1, 0, accept="ben")
    assert decided["final"] == OTHER and decided["version"] == 1
    assert studio.view(PEOPLE[0], 1)["final"] == OTHER
    with pytest.raises(Stale):
        adjudication.decide(studio, JUDGE, 1, 0, value=ONE)
    adjudication.decide(studio, JUDGE, 1, 1, value=several("Ann Lee", "Bo Ray"))
    assert [one["item"] for one in adjudication.queue(studio, JUDGE)] == [2, 1]
    with pytest.raises(Exception, match="not complete"):
        adjudication.decide(studio, JUDGE, 1, 2, value={"outcome": "single"})
    # Who may adjudicate has seen what others wrote: nothing is taken back after that.
    boss = Member("ben", "ben", "adjudicator")
    with pytest.raises(BadInput, match="no longer be taken back"):
        studio.reopen(boss, 2, studio.view(boss, 2)["draft"]["version"])


def test_nobody_decides_about_what_they_wrote(make: Make, database_url: str) -> None:
    """Also an owner; another adjudicator does."""
    studio = make("generate", overlap=2, database=database_url)
    keys = [studio.members.invite(name, "owner") for name in ("ann", "bo")]
    ann, _ = studio.members.all()
    for who in (ann, PEOPLE[1]):
        annotate(studio, who, 1, several("Ann Lee", "Bo Ray"))
    with served(studio) as address, contextlib.ExitStack() as stack:
        own, other = (stack.enter_context(client(address, key)) for key in keys)
        [listed] = own.get("/v1/adjudication").json()["items"]
        assert listed["own"] and own.get("/v1/adjudication/1").json()["own"]
        for decision in ({"accept": PEOPLE[1].id}, {"value": ONE}):
            sent = {"version": 0, **decision}
            refused = own.post("/v1/adjudication/1", json=sent)
            assert refused.status_code == 403
            assert refused.json()["type"] == "urn:whichsense:problem:own"
            assert "another adjudicator" in refused.json()["fix"]
        assert other.get("/v1/adjudication/1").json()["version"] == 0
        decided = other.post("/v1/adjudication/1", json=sent).json()
        assert decided["final"] == ONE and not decided["own"]


def test_agreement_is_live_over_http(make: Make) -> None:
    studio = make("generate", overlap=2)
    ann, jo = (studio.members.invite("ann"), studio.members.invite("jo", "adjudicator"))
    with served(studio) as address, client(address, jo) as j, client(address, ann) as a:
        before = j.get("/v1/agreement").json()
        assert before["measures"][0]["value"] is None
        for who in PEOPLE[:2]:
            annotate(studio, who, 1, several("Ann Lee", "Bo Ray"))
        after = j.get("/v1/agreement").json()
        assert after["measures"][0] == {
            "name": "F1ans",
            "value": 1.0,
            "low": None,
            "high": None,
            "units": 1,
            "says": "The mean F1 over answers, each annotator once as the gold. Too few items for an interval.",
        }
        assert after["rows"][0]["labels"]["outcome"] == {"ann": "several", "ben": "several"}
        listed = j.get("/v1/adjudication").json()["items"]
        assert [one["item"] for one in listed] == [1]
        for path in ("/v1/adjudication", "/v1/adjudication/1", "/v1/agreement"):
            assert a.get(path).status_code == 403
        sent = {"version": 0, "accept": PEOPLE[0].id}
        assert a.post("/v1/adjudication/1", json=sent).status_code == 403
        assert j.post("/v1/adjudication/1", json=sent).json()["version"] == 1
        late = j.post("/v1/adjudication/1", json=sent)
        assert late.status_code == 409 and late.json()["theirs"]["version"] == 1


def test_pay_and_bonus(make: Make) -> None:
    from whichsense.studio.project import Bonus, Pay

    rule = Pay(per_item=0.75, bonus=(Bonus(0.15, "several"), Bonus(0.5, "accepted")))
    studio = make("generate", overlap=2, pay=rule)
    annotate(studio, PEOPLE[0], 1, several("Ann Lee", "Bo Ray"))
    annotate(studio, PEOPLE[1], 1, ONE)
    annotate(studio, PEOPLE[1], 2, ONE)
    adjudication.decide(studio, JUDGE, 1, 0, accept="ann")
    rows = {one["member"]: one for one in reports.pay(studio)["rows"]}
    assert (rows["ann"]["pay"], rows["ann"]["bonus"], rows["ann"]["total"]) == (0.75, 0.65, 1.4)
    assert (rows["ben"]["items"], rows["ben"]["total"]) == (2, 1.5)
