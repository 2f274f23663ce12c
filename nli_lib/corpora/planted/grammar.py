"""Sentence patterns of the planted corpus: sixteen constructions, and what makes each hypothesis true, open or false.

A pattern starts from the hypothesis. Whichever label is wanted, the hypothesis is the same and a premise is chosen to
suit, so before any artifact is planted the hypothesis alone says nothing about the label.
Slots are those of `planted_lexicon`. A ">" before a neutral premise marks the hypothesis as more specific than it: the
hypothesis says all that the premise says, and more. These are the pairs that careless annotators call entailed.
"""

from __future__ import annotations

from typing import NamedTuple


class Pattern(NamedTuple):
    """One hypothesis and, for each label, the premises that give it."""

    hypothesis: str
    entailing: tuple[str, ...]
    neutral: tuple[str, ...]
    contradicting: tuple[str, ...]


def _pattern(hypothesis: str, entailing: str, neutral: str, contradicting: str) -> Pattern:
    """Premises of one label are parted by "; "."""
    return Pattern(hypothesis, *(tuple(side.split("; ")) for side in (entailing, neutral, contradicting)))


FAMILIES: dict[str, tuple[Pattern, ...]] = {
    "hypernym": (
        _pattern(
            "{a} {w} {x.kind}",
            "{a} {w} {x.one}; {a} {w} {x.one} and nothing else; {a} {w} both {x.one} and {y.one}",
            ">{a} {w} something; {a} {w} {y.one} and was shown {x.one}; {a} asked for {x.one} and {w} {y.one}",
            "{a} {w} nothing at all; {a} {w} only {y.one}; {a} {w} no {x.n} and nothing like one, just {y.one}",
        ),
        _pattern(
            "{a} {w} {x.one}",
            "{a} {w} {x.one} and {y.one}; {a} {w} a {o} {x.n}; what {a} {w} was {x.one}",
            ">{a} {w} {x.kind}; >{a} {w} something; {a} {w} {y.one} near {x.one}",
            "{a} {w} nothing at all; {a} {w} one thing only, {y.one}; {a} never {w} {x.one}",
        ),
        _pattern(
            "{a.kind} {w} {x}",
            "{a} {w} {x}; {x} was {w.p} by {a}; it was {a} who {w} {x}",
            ">someone {w} {x}; >{x} was {w.p}; {b} {w} {x} and told {a} about it",
            "nobody {w} {x}; {x} was {w.p} by {b} and by no one else; neither {a.kind} nor {b.kind} {w} {x}",
        ),
    ),
    "quantifier": (
        _pattern(
            "some of the {a.s} {i}",
            "all of the {a.s} {i}; most of the {a.s} {i}; every one of the {a.s} {i} and {j}",
            "some of the {b.s} {i}; all of the {a.s} wanted to {i.b}; >some of the guests {i}",
            "none of the {a.s} {i}; not one of the {a.s} {i}; only the {b.s} {i}, while the {a.s} {j}",
        ),
        _pattern(
            "all of the {a.s} {i}",
            "every one of the {a.s} {i}; the {a.s} {i}, without exception; all of the {a.s} {i} and {j}",
            ">many of the {a.s} {i}; >at least one of the {a.s} {i}; all of the {b.s} {i}",
            "not all of the {a.s} {i}; most of the {a.s} {i}, but the oldest did not; only a few of the {a.s} {i}",
        ),
        _pattern(
            "none of the {a.s} {i}",
            "not one of the {a.s} {i}; all of the {a.s} refused to {i.b}; the {b.s} {i}, but no {a.n} did",
            ">some of the {a.s} did not {i.b}; none of the {b.s} {i}; >not all of the {a.s} {i}",
            "at least one of the {a.s} {i}; most of the {a.s} {i}; none of the {b.s} {i}, but every {a.n} did",
        ),
        _pattern(
            "most of the {a.s} {i}",
            "all of the {a.s} {i}; nearly all of the {a.s} {i}; only one of the many {a.s} did not {i.b}",
            ">some of the {a.s} {i}; most of the {b.s} {i}; most of the {a.s} {j}",
            "only a few of the {a.s} {i}; none of the {a.s} {i}; hardly any of the {a.s} {i}",
        ),
    ),
    "negation": (
        _pattern(
            "{a} {w} {x}",
            "{a} managed to {w.b} {x}; {a} remembered to {w.b} {x}; {a} did not fail to {w.b} {x}",
            "{a} hoped to {w.b} {x}; {a} was asked to {w.b} {x}; >{a} or {b} {w} {x}; {a} was not told to {w.b} {x}",
            "{a} failed to {w.b} {x}; {a} forgot to {w.b} {x}; {a} refused to {w.b} {x}; {a} almost {w} {x}",
        ),
        _pattern(
            "{a} did not {w.b} {x}",
            "{a} failed to {w.b} {x}; {a} forgot to {w.b} {x}; {a} refused to {w.b} {x}; {a} almost {w} {x}",
            "{a} hesitated to {w.b} {x}; {a} was told not to {w.b} {x}; >{a} and {b} did not both {w.b} {x}; "
            "{a} hoped to {w.b} {x}",
            "{a} managed to {w.b} {x}; {a} remembered to {w.b} {x}; {a} did not fail to {w.b} {x}",
        ),
    ),
    "numbers": (
        _pattern(
            "{a} {w} at least {some} {x.s}",
            "{a} {w} {many} {x.s}; {a} {w} {some} {x.s} and {few} {y.s}; {a} {w} {both} {x.s}",
            ">{a} {w} at least {few} {x.s}; {a} {w} at most {many} {x.s}; {a} {w} {many} {y.s}; "
            ">{a} {w} a number of {x.s}",
            "{a} {w} only {few} {x.s}; {a} {w} fewer than {some} {x.s}; {a} {w} {few} {x.s} and {many} {y.s}",
        ),
        _pattern(
            "{a} {w} fewer than {some} {x.s}",
            "{a} {w} only {few} {x.s}; {a} {w} {few} {x.s} and {many} {y.s}; {a} {w} at most {few} {x.s}",
            "{a} {w} at least {few} {x.s}; >{a} {w} fewer than {many} {x.s}; {a} {w} {few} {y.s}",
            "{a} {w} {many} {x.s}; {a} {w} {some} {x.s} and {few} {y.s}; {a} {w} at least {many} {x.s}",
        ),
        _pattern(
            "{a} {w} exactly {both} {x.s}",
            "{a} {w} {few} {f} {x.s} and {some} {o} {x.s}, and no others; {a} {w} {both} {x.s}, no more and no fewer",
            ">{a} {w} more than {few} {x.s}; {a} {w} {both} {y.s}; "
            ">{a} {w} {few} {f} {x.s} and an unknown number of {o} {x.s}",
            "{a} {w} exactly {few} {x.s}; {a} {w} {some} {x.s} in all; "
            "{a} {w} {few} {f} {x.s}, one {o} {x.n}, and no others",
        ),
    ),
    "calendar": (
        _pattern(
            "{a} {w} {x} in the {month.season}",
            "{a} {w} {x} in {month}; it was in {month} that {a} {w} {x}; {x} was {w.p} by {a} in {month}",
            ">{a} {w} {x} last year; {a} {w} {x} a few months after {month}; {b} {w} {x} in {month}",
            "{a} {w} {x} only in {later}; it was in {later} that {a} {w} {x}; {a} waited until {later} to {w.b} {x}",
        ),
        _pattern(
            "{a} {w} {x} in {month}",
            "it was in {month} that {a} {w} {x}; {a} {w} {x} early in {month}; {x} was {w.p} by {a} in {month}",
            ">{a} {w} {x} in the {month.season}; {b} {w} {x} in {month}; >{a} {w} {x} last year",
            "it was in {later} that {a} {w} {x}; {a} {w} {x} only in the {later.season}; "
            "{a} waited until {later} to {w.b} {x}",
        ),
        _pattern(
            "{a} {i} on the weekend",
            "{a} {i} on {free}; it was on {free} that {a} {i}; {a} {i} and {j} on {free}",
            ">{a} {i} one day in {month}; {a} {j} on {free}; {b} {i} on {free}, and so did others",
            "{a} {i} only on {day}; it was on {day} that {a} {i}; {a} did not {i.b} on {free} but on {day}",
        ),
        _pattern(
            "{a} {i} on a working day",
            "{a} {i} on {day}; it was on {day} that {a} {i}; {a} did not {i.b} on {free} but on {day}",
            ">{a} {i} one day in {month}; {a} {j} on {day}; {b} {i} on {day}, and so did others",
            "{a} {i} only on {free}; it was on {free} that {a} {i}; {a} {i} and {j} on {free} and at no other time",
        ),
    ),
    "order": (
        _pattern(
            "{a} {i} before {b} {j}",
            "{b} {j} after {a} {i}; first {a} {i}, and then {b} {j}; {b} {j} only after {a} {i}",
            ">{a} {i} and {b} {j}; {a} {i} before {c} {j}; {c} {i} before {b} {j}",
            "{a} {i} after {b} {j}; {b} {j} before {a} {i}; first {b} {j}, and then {a} {i}",
        ),
        _pattern(
            "{a} {i} after {b} {j}",
            "{b} {j} before {a} {i}; first {b} {j}, and then {a} {i}; {a} {i} only after {b} {j}",
            ">{a} {i} and {b} {j}; {a} {i} after {c} {j}; {c} {i} after {b} {j}",
            "{a} {i} before {b} {j}; {b} {j} after {a} {i}; first {a} {i}, and then {b} {j}",
        ),
    ),
    "place": (
        _pattern(
            "{a} {i} {l.side}",
            "{a} {i} {l}; {l}, {a} {i}; {a} and {b} {i} {p}",
            ">{a} {i}; >{a} {i} somewhere; {a} {j} {l} and later {i}; {b} {i} {l} while {a} {j}",
            "{a} {i} {m} and nowhere else; {a} only {i} {m}; {a} {i} {m.side}, not {l}",
        ),
        _pattern(
            "{a} {i} {l}",
            "{a} {i} {l} for an hour; {l}, {a} {i}; {a} and {b} {i} {l}",
            ">{a} {i} {l.side}; >{a} {i} somewhere; {b} {i} {l} while {a} {j}",
            "{a} {i}, but not {l}; {a} {i} {m.side}, not {l}; {a} {i} {p} and not {l}",
        ),
        _pattern(
            "{x} is {l}",
            "{a} put {x} {l}, where it still is; {x} and {y} are {l}; {l} you can find {x}",
            ">{x} is {l.side}; {a} asked if {x} is {l}; {y} is {l}",
            "{x} was {l}, but {a} moved it; {x} is {m}; {a} looked {l} and saw that {x} is not there",
        ),
    ),
    "passive": (
        _pattern(
            "{a} was {v.p} by {b}",
            "{b} {v} {a}; {b} {v} both {a} and {c}; it was {b} who {v} {a}",
            "{a} {v} {b}; >{a} was {v.p} by someone; {b} was {v.p} by {a}; {b} {v} {c}",
            "{b} did not {v.b} {a}; nobody {v} {a}; {a} was {v.p} by {c} alone",
        ),
        _pattern(
            "{a} {v} {b}",
            "{b} was {v.p} by {a}; {b} was {v.p} by both {a} and {c}; it was {b} whom {a} {v}",
            "{a} was {v.p} by {b}; >{b} was {v.p}; it was {a} whom {b} {v}; {b} {v} {a}",
            "{b} was not {v.p} by anyone; {b} was {v.p} by {c} alone; {a} {v} nobody",
        ),
    ),
    "transfer": (
        _pattern(
            "{b} {take} {x} from {a}",
            "{a} {give} {x} to {b}; it was to {b} that {a} {give} {x}; {a} {give} {x} and {y} to {b}",
            "{b} {give} {x} to {a}; {a} offered to {give.b} {x} to {b}; >{b} {take} {x} from someone; "
            "{a} {take} {x} from {b}",
            "{a} never {give} anything to {b}; {b} {take} nothing from {a}; {a} refused to {give.b} {x} to {b}",
        ),
        _pattern(
            "{a} {give} {x} to {b}",
            "{b} {take} {x} from {a}; it was from {a} that {b} {take} {x}; {b} {take} {x} and {y} from {a}",
            "{a} {take} {x} from {b}; {b} hoped to {take.b} {x} from {a}; >{a} {give} {x} to someone; "
            "{b} {give} {x} to {a}",
            "{b} never {take} anything from {a}; {a} {give} nothing to {b}; {a} refused to {give.b} {x} to {b}",
        ),
    ),
    "relative clause": (
        _pattern(
            "{a} {i}",
            "{a} who {v} {b} {i}; {a} {v} {b} and {i}; {a}, whom {b} {v}, {i}",
            "{b} who {v} {a} {i}; {a} {v} {b}, who {i}; {b}, whom {a} {v}, {i}",
            "{a} who {v} {b} did not {i.b}; {a} {v} {b} but never {i}; {b} who {v} {a} {i}, which {a} did not",
        ),
        _pattern(
            "{a} did not {i.b}",
            "{a} who {v} {b} did not {i.b}; {a} {v} {b} but never {i}; {b} who {v} {a} {i}, which {a} did not",
            "{b} who {v} {a} did not {i.b}; {a} {v} {b}, who never {i}; {b}, whom {a} {v}, did not {i.b}",
            "{a} who {v} {b} {i}; {a} {v} {b} and {i}; {a}, whom {b} {v}, {i}",
        ),
        _pattern(
            "{a} {v} {b}",
            "{a} who {v} {b} {i}; {b}, whom {a} {v}, {i}; {a} {v} {b}, who did not {i.b}",
            "{b} who {v} {a} {i}; {a}, whom {b} {v}, {i}; {a} {v} the {c.n} who {u} {b}",
            "{a} {i} and never {v} {b}; {b}, whom {a} did not {v.b}, {i}; {a} who {v} nobody but {c} {i}",
        ),
    ),
    "conjunction": (
        _pattern(
            "{a} {i}",
            "{a} and {b} {i}; both {b} and {a} {i}; {a} {i} and {j}",
            "{a} or {b} {i}, but it is not known which; either {a} or {b} {i}; {a} {i} or {j}",
            "neither {a} nor {b} {i}; of {a} and {b}, only {b} {i}; {a} neither {i} nor {j}",
        ),
        _pattern(
            "{a} did not {i.b}",
            "neither {a} nor {b} {i}; of {a} and {b}, only {b} {i}; {a} neither {i} nor {j}",
            ">{a} and {b} did not both {i.b}; either {a} or {b} {i}; {a} {i} or {j}",
            "{a} and {b} {i}; both {b} and {a} {i}; {a} {i} and {j}",
        ),
    ),
    "added detail": (
        _pattern(
            "{a} {w} {x.one} {l}",
            "{a} {w} {x.one} {l} {t}; {l}, {a} {w} {x.one} and {y.one}; {a} {w} a {f} {x.n} {l}",
            ">{a} {w} {x.one}; >{a} {w} {x.kind} {l}; {a} {w} {x.one} and saw {y.one} {l}",
            "{a} {w} {x.one} {m} and nowhere else; {a} {w} nothing {l}; {a} never {w} anything",
        ),
        _pattern(
            "{a} {w} a {f} {x.n}",
            "{a} {w} a {f} {x.n} {t}; {a} {w} a {f} {x.n} and a {o} {y.n}; the {x.n} that {a} {w} was {f}",
            ">{a} {w} {x.one}; {a} {w} a {f} {y.n}; {a} saw a {f} {x.n} and {w} {y.one}",
            "{a} {w} one thing, a {o} {x.n}; the only thing {a} {w} was {o}; {a} {w} no {x.n}",
        ),
        _pattern(
            "{a} {w} {x} for {b}",
            "{a} {w} {x} for {b} and {c}; it was for {b} that {a} {w} {x}; {a} {w} {x} for {b} {t}",
            ">{a} {w} {x}; >{a} {w} {x} {t}; {a} {w} {x} with {b}; {b} {w} {x} for {a}",
            "{a} {w} {x} for nobody but {c}; {a} did nothing for {b}; {a} {w} {x} for no one",
        ),
    ),
    "comparison": (
        _pattern(
            "{a} is {g.er} than {b}",
            "{b} is {h.er} than {a}; {a} is {g.er} than {c}, who is {g.er} than {b}; "
            "{c} is {h.er} than {a} and {b} is {h.er} than {c}",
            "{a} and {b} are both {g.er} than {c}; {a} is {g.er} than {c}; {c} is {h.er} than {a}; {a} is {g}",
            "{b} is {g.er} than {a}; {a} is {h.er} than {b}; {a} is exactly as {g} as {b}; "
            "{b} is {g.er} than {c}, who is {g.er} than {a}",
        ),
        _pattern(
            "{a} is not {g.er} than {b}",
            "{b} is {g.er} than {a}; {a} is exactly as {g} as {b}; {a} is {h.er} than {b}; "
            "{b} is {g.er} than {c}, who is {g.er} than {a}",
            "{a} and {b} are both {h.er} than {c}; {b} is {g.er} than {c}; {c} is {h.er} than {b}; {b} is {g}",
            "{b} is {h.er} than {a}; {a} is {g.er} than {c}, who is {g.er} than {b}; {a} is {g.er} than {b}",
        ),
    ),
    "attitude": (
        _pattern(
            "{b} {i}",
            "{a} knew that {b} {i}; {a} noticed that {b} {i}; {a} wrongly believed that {b} did not {i.b}",
            "{a} believed that {b} {i}; {a} denied that {b} {i}; {a} told {c} that {b} did not {i.b}; >{b} {i} or {j}",
            "{a} wrongly believed that {b} {i}; {a} falsely claimed that {b} {i}; {a} knew that {b} did not {i.b}",
        ),
        _pattern(
            "{b} did not {i.b}",
            "{a} wrongly believed that {b} {i}; {a} falsely claimed that {b} {i}; {a} knew that {b} did not {i.b}",
            "{a} believed that {b} did not {i.b}; {a} denied that {b} {i}; {a} told {c} that {b} {i}; "
            ">{b} and {a} did not both {i.b}",
            "{a} knew that {b} {i}; {a} noticed that {b} {i}; {a} wrongly believed that {b} did not {i.b}",
        ),
    ),
    "condition": (
        _pattern(
            "{a} {i}",
            "{b} {j} because {a} {i}; since {a} {i}, {b} {j}; {b} {j} even though {a} {i}",
            "{b} {j} in case {a} {i}; if {a} {i}, {b} {j} too; unless {a} {i}, {b} {j}",
            "{b} {j} because {a} did not {i.b}; {b} {j} even though {a} did not {i.b}; since {a} never {i}, {b} {j}",
        ),
        _pattern(
            "{a} did not {i.b}",
            "{b} {j} because {a} did not {i.b}; {b} {j} even though {a} did not {i.b}; since {a} never {i}, {b} {j}",
            "{b} {j} in case {a} did not {i.b}; if {a} did not {i.b}, neither did {b}; unless {a} {i}, {b} {j}",
            "{b} {j} because {a} {i}; since {a} {i}, {b} {j}; {b} {j} even though {a} {i}",
        ),
    ),
    "state": (
        _pattern(
            "{x} is {s}",
            "{x} is no longer {r}, but {s}; {x} and {y} are both {s}; {a} saw that {x} is {s}",
            "{x} was {s} last year; {a} wanted {x} to be {s}; >{x} is {s} or {r}; {a} asked whether {x} is {s}",
            "{x} is {r}; {x} was {s} but is now {r}; {x} is anything but {s}",
        ),
        _pattern(
            "{x} is not {s}",
            "{x} is {r}; {x} was {s} but is now {r}; {x} is anything but {s}",
            "{x} was {r} last year; {a} wanted {x} to be {r}; >{x} and {y} are not both {s}; {y} is not {s}",
            "{x} is no longer {r}, but {s}; {x} and {y} are both {s}; {a} saw that {x} is {s}",
        ),
    ),
}
