"""Worked answers to problems that the package reasoning-gym draws."""
import reasoning_gym
from reasoning_gym.arithmetic.leg_counting import ANIMALS

from problems import listing, steps

_sets = {}


def draw(r, name, **config):
    """The metadata of one problem of reasoning-gym, its question and answer added."""
    if name not in _sets or _sets[name][1] == 500:
        data = reasoning_gym.create_dataset(name, size=500, seed=r.randrange(2 ** 31),
                                            **config)
        _sets[name] = [data, 0]
    item = _sets[name][0][_sets[name][1]]
    _sets[name][1] += 1
    return dict(item["metadata"], answer=item["answer"], question=item["question"])


def rg_story(r):
    m = draw(r, "gsm_symbolic")
    question = m["question"].split(" Give the result as")[0]
    work = m["answer_cot"].split("####")[0].strip()
    return question, f"{work}\nThe answer is {m['answer']}."


def rg_gcd(r):
    m = draw(r, "gcd", max_value=200)
    a, b = sorted(m["numbers"], reverse=True)
    rows, x, y = [], a, b
    while y:
        rows.append(dict(x=x, y=y, q=x // y, p=x // y * y, r=x % y))
        x, y = y, x % y
    if len(rows) > 4:
        return rg_gcd(r)
    text = steps(r, [
        "we divide {x} by {y} and see that it goes {q} times, which covers {p}, so "
        "that a remainder of {r} is left.",
        "we ask how often {y} fits into {x}, and the answer is {q} times with a "
        "remainder of {r}."], rows)
    return (f"Find the greatest common divisor of {a} and {b}.",
            f"We follow the old method of Euclid and divide again and again until the "
            f"remainder is 0. {text} The last number by which we divided was {x}, and "
            f"so the greatest common divisor of {a} and {b} is {x}.")


def rg_chain(r):
    m = draw(r, "chain_sum", min_terms=4, max_terms=4, min_digits=2, max_digits=2)
    e = m["expression"].split()
    rows, t = [], int(e[0])
    for op, x in zip(e[1::2], e[2::2]):
        u = t + int(x) if op == "+" else t - int(x)
        rows.append(dict(t=t, x=x, u=u, w=["subtract", "add"][op == "+"],
                         way=["down", "up"][op == "+"]))
        if u < 0:
            return rg_chain(r)
        t = u
    text = steps(r, [
        "the sign in front of {x} tells us to {w} it, and this takes us {way} from {t} "
        "to {u}.",
        "we have to {w} {x}, so that the result goes {way} from {t} and becomes {u}."],
        rows)
    return (f"Compute {m['expression']}.", f"We work through the expression from the "
            f"left to the right and start with the number {e[0]}. {text} Nothing is "
            f"left to be done, and the final result is {t}.")


def rg_legs(r):
    m = draw(r, "leg_counting", min_animals=3, max_animals=4, max_instances=9)
    rows, t = [], 0
    for a, n in m["animals"].items():
        k = ANIMALS[a]
        t += n * k
        rows.append(dict(a=a, n=n, k=k, c=n * k, u=t))
    text = steps(r, [
        "every single {a} has {k} legs, and because there are {n} of this kind, we "
        "count {c} legs here, which makes {u} so far.",
        "we look at the {a} and know that it walks on {k} legs, so that {n} of them "
        "bring {c} legs along and the sum becomes {u}."], rows)
    zoo = listing(f"{a} ({n})" for a, n in m["animals"].items())
    return (f"How many legs do these animals have: {zoo}?",
            f"{text} All of the animals together have {t} legs.")


COUNTS = ["no", "one", "two", "three", "four", "five"]


def rg_letters(r):
    m = draw(r, "letter_counting", min_words=4, max_words=6)
    c, rows, t = m["target_letter"], [], 0
    for w in m["span"]:
        n = w.lower().count(c)
        t += n
        rows.append(dict(w=w, c=c, t=t, n=COUNTS[n], s="s" * (n != 1)))
    text = steps(r, [
        'we read the word "{w}" and find {n} letter{s} {c} in it, so that the count is '
        "{t}.",
        'when we go through the letters of "{w}", the letter {c} turns up {n} time{s}, '
        "and the count is now {t}."], rows)
    return (f'How often does the letter {c} occur in "{" ".join(m["span"])}"?',
            f"{text} This means that the letter {c} occurs {t} time{'s' * (t != 1)}.")


def rg_filter(r):
    m = draw(r, "number_filtering", min_numbers=4, max_numbers=5, max_decimals=0,
             min_value=1, max_value=99)
    op, size = m["operation"].split("_")
    v, rows = float(m["filter_value"]), []
    for x in m["original_numbers"]:
        hit = float(x) > v if size == "larger" else float(x) < v
        rows.append(dict(x=x, v=m["filter_value"], size=size,
                         not_="" if hit else "not ",
                         do="keep" if hit == (op == "keep") else "remove"))
    text = steps(r, [
        "we compare {x} with {v} and see that it is {not_}{size}, which means that we "
        "have to {do} it.",
        "the number {x} is {not_}{size} than {v}, and so the rule tells us to {do} "
        "this one."], rows)
    return (f"From the list {', '.join(m['original_numbers'])}, {op} all numbers that "
            f"are {size} than {m['filter_value']}.", f"{text} The list that remains is "
            f"{', '.join(m['result']) or 'empty'}.")


def rg_hanoi(r):
    m = draw(r, "tower_of_hanoi", min_disks=3, max_disks=3, min_pegs=3, max_pegs=3)
    moves = m["answer"] if isinstance(m["answer"], list) else m["answer"].split("\n")
    size = {"1": "small", "2": "middle", "3": "large"}
    rows = []
    for s in moves:
        d, a, b = (w for w in s.split() if w.isdigit())
        rows.append(dict(d=size[d], a=a, b=b))
    text = steps(r, [
        "we take the {d} disk from the top of peg {a} and move it over to peg {b}.",
        "the {d} disk is lifted off peg {a}, and we put it down on peg {b}."], rows)
    a, b = m["start_peg"], m["target_peg"]
    return (f"Move a tower of three disks from peg {a} to peg {b}, one disk at a time, "
            "and never put a larger disk onto a smaller one.",
            f"{text} All three disks are on peg {b} after {len(moves)} moves.")


def rg_reverse(r):
    ws = [w.lower() for w in draw(r, "word_sequence_reversal", min_words=4,
                                  max_words=6)["words"]]
    rows = [dict(w=w, k=COUNTS[k] if k < 6 else "six",
                 c="none is" if k == 1 else "only one is" if k == 2 else
                 COUNTS[k - 1] + " are") for k, w in reversed(list(enumerate(ws, 1)))]
    text = steps(r, [
        "we take the word {w} from place number {k} and write it down, after which {c} "
        "left.",
        "at place number {k} of the list there is the word {w}, and when it has been "
        "copied, {c} left."], rows)
    return (f"Write this list of words in the opposite order: {', '.join(ws)}.",
            f"There are {len(ws)} words in the list, and we copy them one by one from "
            f"the back to the front. {text} In the opposite order the list reads "
            f"{', '.join(ws[::-1])}.")
