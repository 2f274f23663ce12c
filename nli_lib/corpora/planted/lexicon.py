"""Words of the planted corpus, and the drawing of one set of them per pair.

`draw(n, rng)` fills every slot that the sentence patterns name: {a} "the nurse", {a.kind} "a health worker",
{w} "carried", {w.b} "carry". Each slot comes twice, as `said` and as `otherwise`: the same thing in a synonym, where
there is one. Slots are drawn without regard to any label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def _words(text: str) -> list[str]:
    return text.split()


# A line a kind, five words each; "_" is a blank, "/" parts a word from its synonym.
PEOPLE = {
    "health worker": "doctor/physician dentist nurse surgeon pharmacist/druggist",
    "stage artist": "singer/vocalist dancer magician/conjurer juggler comedian/comic",
    "musician": "violinist/fiddler drummer/percussionist pianist guitarist flutist/flautist",
    "athlete": "swimmer sprinter/runner boxer/prizefighter gymnast goalkeeper/goalie",
    "manual worker": "carpenter/joiner plumber welder blacksmith/smith bricklayer/mason",
    "scientist": "chemist physicist biologist astronomer/stargazer geologist",
    "public official": "mayor judge/magistrate senator ambassador/envoy sheriff",
    "author": "novelist poet journalist/reporter playwright/dramatist essayist",
    "food worker": "cook/chef baker butcher waiter/server bartender/barkeeper",
    "educator": "teacher/instructor professor/academic tutor principal/headmaster lecturer",
    "soldier": "sergeant captain general lieutenant corporal",
    "office worker": "accountant/bookkeeper clerk receptionist typist manager/supervisor",
    "land worker": "farmer/grower shepherd/herder gardener logger/lumberjack beekeeper/apiarist",
    "young person": "toddler boy/lad girl/lass student/pupil teenager/adolescent",
}
THINGS = {
    "musical instrument": "trumpet violin/fiddle drum guitar piano",
    "tool": "hammer/mallet wrench/spanner shovel/spade saw drill",
    "vehicle": "car/automobile bicycle/bike truck/lorry tractor wagon/cart",
    "piece of furniture": "sofa/couch chair table desk wardrobe/closet",
    "piece of fruit": "pear mango peach lemon melon",
    "item of clothing": "jacket/coat hat/cap shirt glove/mitten sweater/pullover",
    "container": "box/crate bucket/pail basket/hamper suitcase/valise barrel/cask",
    "toy": "kite doll puppet/marionette marble yoyo",
    "device": "telephone/phone camera laptop/notebook_computer radio printer",
    "document": "letter contract/agreement map/chart bill/invoice passport",
    "weapon": "sword/blade rifle/gun bow spear/lance pistol/handgun",
    "household good": "pillow/cushion blanket/quilt mirror carpet/rug lamp",
}
# base, or base:past, or base:past:participle
MEET = _words("""
    praise/commend help/assist follow/trail greet/welcome warn/alert hire/employ blame/accuse interrupt
    tease/mock invite comfort/console ignore/disregard admire/respect save/rescue criticize/fault
    select/choose:chose:chosen forgive:forgave:forgiven/pardon beat:beat:beaten/defeat push/shove
    embrace/hug:hugged chase/pursue insult/offend question/interrogate advise/counsel guide/escort
    scold/reprimand surprise/startle notice/spot:spotted encourage thank outrun:outran:outrun
    misunderstand:misunderstood envy
""")
HANDLE = _words("""
    carry/haul repair/fix find:found/discover hide:hid:hidden/conceal drop:dropped lift/raise inspect/examine
    drag:dragged/pull steal:stole:stolen/pinch weigh measure collect/gather pick/select lose:lost/misplace
    deliver photograph draw:drew:drawn/sketch describe/depict move/shift polish/buff destroy/ruin rent/lease
    label/tag:tagged break:broke:broken/smash request/demand wrap:wrapped/pack insure sharpen touch/handle
    decorate/adorn dust trade/swap:swapped
""")
ACT = _words("""
    laugh/chuckle sing:sang dance sleep:slept/doze cry/weep:wept shout/yell wave whistle jog:jogged/run:ran
    rest/relax smile/grin:grinned complain/grumble faint/collapse win:won/triumph pray sneeze cough yawn
    kneel:knelt speak:spoke/talk work/labor study swim:swam argue/quarrel hesitate/waver wait/linger vote
    apologize eat:ate/dine march sigh tremble/shiver stumble/trip:tripped resign/quit:quit celebrate/rejoice
    meditate stretch improvise
""")
INDOORS = _words("""
    in_the_kitchen in_the_library in_the_classroom in_the_lobby/in_the_foyer in_the_basement/in_the_cellar
    in_the_office in_the_attic in_the_hallway/in_the_corridor in_the_gym in_the_bedroom
    in_the_laboratory/in_the_lab in_the_waiting_room
""")
OUTDOORS = _words("""
    in_the_park on_the_beach/on_the_shore in_the_garden/in_the_yard by_the_river/by_the_stream on_the_hillside
    in_the_meadow/in_the_pasture at_the_campsite in_the_orchard in_the_vineyard on_the_sidewalk/on_the_pavement
    in_the_forest/in_the_woods in_the_field
""")
TIMES = _words("""
    before_lunch after_dinner/after_supper at_noon/at_midday at_midnight during_the_storm in_the_morning
    at_dawn/at_daybreak at_dusk/at_nightfall on_a_holiday after_the_meeting during_the_strike before_the_wedding
""")
SEASONS = {
    "winter": ("December", "January", "February"),
    "spring": ("March", "April", "May"),
    "summer": ("June", "July", "August"),
    "fall/autumn": ("September", "October", "November"),
}
WEEKDAYS, WEEKEND = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"), ("Saturday", "Sunday")
# "|" parts a word from its opposite
GRADES = _words("""
    tall:taller|short:shorter old:older|young:younger fast:faster|slow:slower rich:richer/wealthier|poor:poorer
    strong:stronger|weak:weaker loud:louder/noisier|quiet:quieter calm:calmer|nervous:more_nervous
    kind:kinder|cruel:crueler brave:braver|timid:more_timid happy:happier|sad:sadder/unhappier
    busy:busier|idle:more_idle
""")
LOOKS = _words("""
    large/big|small/little wooden|metal round|square plain|striped red|blue heavy|light cheap|costly new|used
    white|black soft|hard
""")
STATES = _words("""
    clean|dirty wet|dry broken|intact hidden/concealed|visible hot|cold locked|unlocked empty|full safe|unsafe
""")
TRANSFERS = _words("""
    sell:sold|buy:bought/purchase lend:lent/loan|borrow:borrowed give:gave/hand|receive/get:got
    rent_out/lease_out|rent/lease mail/post|get:got/receive
""")
NUMBERS = _words("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three twenty-four twenty-five
""")

Column = NDArray[np.object_]


@dataclass(frozen=True)
class Slots:
    """For each slot name, N phrases; `said` and `otherwise` differ where the word has a synonym."""

    said: dict[str, Column]
    otherwise: dict[str, Column]


def draw(n: int, rng: np.random.Generator) -> Slots:
    """One set of words for each of n pairs; people, things and verbs of one pair differ from each other."""
    slots = Slots({}, {})
    _nouns(slots, "abcd", PEOPLE, n, rng)
    _nouns(slots, "xy", THINGS, n, rng)
    for names, verbs in (("vu", MEET), ("w", HANDLE), ("ijk", ACT)):
        picks = _distinct(n, len(verbs), len(names), rng)
        for name, pick in zip(names, picks.T, strict=True):
            _put(slots, name, [_verb(entry) for entry in verbs], pick, rng)
    _places(slots, n, rng)
    _calendar(slots, n, rng)
    _numbers(slots, n, rng)
    _opposites(slots, ("g", "h"), [[_grade(side) for side in entry.split("|")] for entry in GRADES], n, rng)
    for names, table in ((("f", "o"), LOOKS), (("s", "r"), STATES)):
        _opposites(slots, names, [[_plain(side) for side in entry.split("|")] for entry in table], n, rng)
    deals = [[_verb(side) for side in entry.split("|")] for entry in TRANSFERS]
    pick = rng.integers(len(deals), size=n)
    for side, name in enumerate(("give", "take")):
        _put(slots, name, [deal[side] for deal in deals], pick, rng)
    return slots


def _nouns(slots: Slots, names: str, table: dict[str, str], n: int, rng: np.random.Generator) -> None:
    """Nouns of different kinds, so that no one of them is covered by the kind of another."""
    entries = [_noun(word, kind) for kind, words in table.items() for word in words.split()]
    kinds = _distinct(n, len(table), len(names), rng)
    picks = kinds * 5 + rng.integers(5, size=kinds.shape)
    for name, pick in zip(names, picks.T, strict=True):
        _put(slots, name, entries, pick, rng)


def _places(slots: Slots, n: int, rng: np.random.Generator) -> None:
    """{l} and {p} are two places on one side of the door, {m} is on the other; {l.side} says which."""
    entries = [_plain(place) | {".side": ("indoors", "indoors")} for place in INDOORS]
    entries += [_plain(place) | {".side": ("outdoors", "outdoors")} for place in OUTDOORS]
    door, two, other = rng.integers(2, size=n), _distinct(n, len(INDOORS), 2, rng), rng.integers(len(OUTDOORS), size=n)
    for name, side, pick in (("l", door, two[:, 0]), ("p", door, two[:, 1]), ("m", 1 - door, other)):
        _put(slots, name, entries, side * len(INDOORS) + pick, rng)
    _put(slots, "t", [_plain(time) for time in TIMES], rng.integers(len(TIMES), size=n), rng)


def _calendar(slots: Slots, n: int, rng: np.random.Generator) -> None:
    """{month} lies in {month.season}, {later} in {later.season}, another; {day} is a weekday, {free} is not."""
    entries = [_plain(month) | {".season": _two(season)} for season, months in SEASONS.items() for month in months]
    seasons = _distinct(n, len(SEASONS), 2, rng)
    for name, season in zip(("month", "later"), seasons.T, strict=True):
        _put(slots, name, entries, season * 3 + rng.integers(3, size=n), rng)
    for name, days in (("day", WEEKDAYS), ("free", WEEKEND)):
        _put(slots, name, [_plain(day) for day in days], rng.integers(len(days), size=n), rng)


def _numbers(slots: Slots, n: int, rng: np.random.Generator) -> None:
    """{few} < {some} < {many}, and {both} = {few} + {some}."""
    few = rng.integers(2, 9, size=n)
    some = few + rng.integers(1, 6, size=n)
    many = some + rng.integers(1, 5, size=n)
    entries = [_plain(number) for number in NUMBERS]
    for name, value in (("few", few), ("some", some), ("many", many), ("both", few + some)):
        _put(slots, name, entries, value, rng)


def _opposites(slots: Slots, names: tuple[str, str], table: list[list[dict]], n: int, rng: np.random.Generator) -> None:
    """Two slots that exclude each other, either way round."""
    flat = [entry for pair in table for entry in pair]
    pick, side = rng.integers(len(table), size=n), rng.integers(2, size=n)
    for name, which in zip(names, (side, 1 - side), strict=True):
        _put(slots, name, flat, 2 * pick + which, rng)


def _put(slots: Slots, name: str, entries: list[dict], pick: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Fill slot `name` in all its forms with entries[pick]; which of two synonyms is said is a coin toss per pair."""
    swap = rng.integers(2, size=len(pick))
    for form in entries[0]:
        words = np.array([entry[form] for entry in entries], dtype=object)  # (words, 2)
        slots.said[name + form], slots.otherwise[name + form] = words[pick, swap], words[pick, 1 - swap]


def _distinct(n: int, size: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n, k) integers below `size`, no two alike in a row."""
    return rng.random((n, size)).argsort(axis=1)[:, :k]


def _two(entry: str) -> tuple[str, str]:
    """The word and its synonym, or the word twice."""
    words = entry.replace("_", " ").split("/")
    return words[0], words[-1]


def _plain(entry: str) -> dict[str, tuple[str, str]]:
    return {"": _two(entry)}


def _grade(entry: str) -> dict[str, tuple[str, str]]:
    base, comparative = entry.split(":")
    return {"": (base, base), ".er": _two(comparative)}


def _noun(entry: str, kind: str) -> dict[str, tuple[str, str]]:
    one, other = _two(entry)
    forms = {"": "the {}".format, ".n": str, ".one": _article, ".s": _plural}
    return {form: (make(one), make(other)) for form, make in forms.items()} | {".kind": (_article(kind),) * 2}


def _verb(entry: str) -> dict[str, tuple[str, str]]:
    """Forms of a verb and its synonym: "" past, ".b" base, ".p" participle."""
    both = [_conjugate(verb) for verb in entry.replace("_", " ").split("/")]
    return {form: (both[0][form], both[-1][form]) for form in both[0]}


def _conjugate(verb: str) -> dict[str, str]:
    base, *forms = verb.split(":")
    head, _, tail = base.partition(" ")  # "rent out"
    ending = "d" if head.endswith("e") else "ied" if head[-1] == "y" and head[-2] not in "aeiou" else "ed"
    regular = (head[:-1] if ending == "ied" else head) + ending + (f" {tail}" if tail else "")
    past = forms[0] if forms else regular
    return {"": past, ".b": base, ".p": forms[-1] if forms else regular}


def _article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else noun + "s"
