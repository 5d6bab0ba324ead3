"""Problems with worked answers, drawn from a random generator.

Every function below takes a random.Random and returns (question, solution).  A
solution is a chain of full sentences in which each step follows from the question and
from the steps before it: a reader who understands the task can foresee most words.
The wording alternates, so that copying earlier text foresees little.
"""
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NAMES = """Ada Boris Carmen Dmitri Elena Farid Greta Hugo Ines Jonas Kofi Leila Marek
Nadia Oscar Petra Quentin Rosa Stefan Tamara Ulrich Vera Wanda Xavier Yusuf
Zelda""".split()
GOODS = """apples pears lemons notebooks pencils candles lanterns ropes blankets
baskets plates spoons buckets hammers ribbons kettles mirrors brushes""".split()
TOWNS = """Ashford Brookhaven Carlow Dunmore Eastfield Fernhill Greystone Harwick
Inverlea Kingsbury Langdale Millbrook Northam Oakdale Penrose Ravenna""".split()
LINKS = ["To begin with,", "Next,", "After that,", "Then,", "Moving on,", "Now",
         "Following this,", "Once this is done,"]


def steps(r, patterns, rows):
    """One sentence a row; the wordings alternate and link words keep their order."""
    turn, out = r.randrange(len(patterns)), []
    for i, row in enumerate(rows):
        link = "Finally," if 0 < i == len(rows) - 1 else LINKS[i]
        out.append(f"{link} {patterns[(turn + i) % len(patterns)].format(**row)}")
    return " ".join(out)


def listing(xs):
    xs = [str(x) for x in xs]
    return xs[0] if len(xs) == 1 else ", ".join(xs[:-1]) + " and " + xs[-1]


def equation(r):
    x, a, b, v = r.randint(2, 20), r.randint(2, 9), r.randint(2, 40), r.choice("xyz")
    c = a * x + b
    return f"Find the number {v} for which {a} times {v} plus {b} is equal to {c}.", (
        f"The unknown number {v} is first multiplied by {a}, and afterwards {b} is "
        f"added in order to reach {c}. We undo both operations in the opposite order. "
        f"Taking {b} away from {c} leaves {a * x}, so that {a} times {v} must be equal "
        f"to {a * x}. Dividing {a * x} by {a} on both sides of the equation then gives "
        f"{x}. To make sure that this is right, we put {x} back in the place of {v}: "
        f"{a} times {x} is {a * x}, and together with {b} this makes {c}, exactly as "
        f"it should be. The number {v} that we were looking for is {x}.")


UNITS = [("hours", "minutes", 60), ("feet", "inches", 12), ("yards", "feet", 3),
         ("weeks", "days", 7), ("days", "hours", 24), ("dozens", "pieces", 12)]


def conversion(r):
    u, w, f = r.choice(UNITS)
    n, e, who = r.randint(2, 15), r.randrange(1, f), r.choice(NAMES)
    m = n * f + e
    return f"{who} counts {n} {u} and {e} {w}. How many {w} are there altogether?", (
        f"Because {who} wants to know the answer in {w}, we have to recall that there "
        f"are {f} {w} in every one of the {u}. The {n} whole {u} therefore amount to "
        f"{n} times {f}, which is {n * f} {w}. On top of these come the {e} {w} that "
        f"were left over at the beginning. When we add the {e} {w} to the {n * f} {w} "
        f"that we already have, we arrive at {m}. Therefore {n} {u} and {e} {w} are "
        f"the same as {m} {w}, and this is what {who} should write down.")


def sorting(r):
    n = r.randint(4, 5)
    words = r.random() < 0.5
    key = str.lower if words else int
    xs = r.sample(GOODS + NAMES + TOWNS, n) if words else r.sample(range(10, 200), n)
    left, rows = list(xs), []
    while len(left) > 1:
        m = min(left, key=key)
        left.remove(m)
        rows.append(dict(m=m, rest=listing(left),
                         s="s" * (len(left) == 1 and left[0] not in GOODS)))
    kind, place = "ascending", "is smaller than all the other numbers"
    if words:
        kind, place = "alphabetical", "comes before all the others in the alphabet"
    text = steps(r, [
        "we notice that {m} " + place + ", so we write it down, and {rest} remain{s}.",
        "we pick {m} and put it behind the ones that have been placed already, which "
        "means that only {rest} still wait{s} to be put in order."], rows)
    return (f"Put these in {kind} order: {', '.join(map(str, xs))}.",
            f"{text} The last one is {left[0]}, and it closes the list. In {kind} "
            f"order the list reads {', '.join(map(str, sorted(xs, key=key)))}.")


def weekday(r):
    d, n, who = r.randrange(7), r.randint(8, 80), r.choice(NAMES)
    w, m, day = n // 7, n % 7, DAYS[d]
    walk = ", ".join(DAYS[(d + i + 1) % 7] for i in range(m))
    tail = (f"Counting {m} more days from {day} onwards, we pass {walk}. " if m else
            "Nothing is left over, and so the day of the week does not change at all. ")
    return (f"{who} leaves home on a {day} and comes back {n} days later. Which day of "
            "the week is it then?",
            f"The days of the week repeat after every seven days, so that whole weeks "
            f"do not change the day at all. In {n} days there are {w} full weeks, "
            f"because {w} times seven is {w * 7}, and when we take {w * 7} away from "
            f"{n}, there are {m} days left. After those {w} full weeks it is a {day} "
            f"once again. {tail}Therefore {who} comes back home on a "
            f"{DAYS[(d + m) % 7]}.")


def clock(r):
    s, n = r.randrange(6, 12) * 60 + r.randrange(5, 56), r.randint(61, 290)
    who = r.choice(NAMES)
    what = r.choice(["meeting", "concert", "bus ride", "lecture", "long walk"])
    e, a, b = s + n, 60 - s % 60, (s + n) % 60
    first, last = s // 60 + 1, e // 60
    h = last - first
    t = f"{s // 60}:{s % 60:02d}", f"{last}:{b:02d}"
    return (f"The {what} of {who} begins at {t[0]} and ends at {t[1]}. How long is it?",
            f"We walk from the beginning of the {what} at {t[0]} to its end at {t[1]} "
            f"in three pieces. Until the next full hour, which is {first} o'clock, "
            f"there are {a} minutes left. From {first} o'clock until {last} o'clock "
            f"the clock goes around {h} times, which is as much as {h * 60} minutes. "
            f"After {last} o'clock there are {b} minutes more until the {what} is "
            f"over. Adding the {a} minutes and the {h * 60} minutes gives "
            f"{a + h * 60}, and together with the last {b} minutes this "
            f"makes {n} minutes. So the {what} of {who} takes {n} minutes from the "
            f"beginning to the end.")


def receipt(r):
    who, k = r.choice(NAMES), 3
    items = [(g, r.randint(2, 9), r.randint(2, 12)) for g in r.sample(GOODS, k)]
    rows, total = [], 0
    for g, n, p in items:
        rows.append(dict(g=g, n=n, p=p, c=n * p, u=total + n * p, who=who))
        total += n * p
    text = steps(r, [
        "{who} has to pay for the {n} {g}, and since one of them costs {p} coins, this "
        "comes to {c} coins, so that the bill now stands at {u} coins.",
        "the merchant adds the price of the {g}, namely {n} times {p} coins, which is "
        "{c} coins, and the whole bill has grown to {u} coins."], rows)
    paid = (total // 50 + 1) * 50
    lst = listing(f"{n} {g} for {p} coins each" for g, n, p in items)
    return (f"{who} buys {lst}, and pays with {paid} coins. How much comes back?",
            f"{text} Because {who} has handed over {paid} coins and the bill says "
            f"{total} coins, the merchant gives {paid - total} coins back to {who}.")


def average(r):
    xs, who = [r.randint(5, 40) for _ in range(4)], r.choice(NAMES)
    xs[-1] += -sum(xs) % 4
    rows, t = [], xs[0]
    for x in xs[1:]:
        rows.append(dict(t=t, x=x, u=t + x))
        t += x
    text = steps(r, [
        "we take the number {x} and add it to the {t} that we have so far, which "
        "brings the sum up to {u}.",
        "the number {x} has to be counted as well, and when it joins the {t} from "
        "before, the sum grows to {u}."], rows)
    return (f"{who} writes down the numbers {listing(xs)}. What is their mean?",
            f"The mean is the sum of all the numbers divided by how many there are, so "
            f"we add them up one after the other and start with {xs[0]}. {text} There "
            f"are four numbers in the list, and dividing the sum of {t} by four gives "
            f"{t // 4}. The mean of the numbers that {who} wrote down is {t // 4}.")


def journey(r):
    towns, who = r.sample(TOWNS, 4), r.choice(NAMES)
    legs, t, rows = [r.randint(5, 50) for _ in towns[1:]], 0, []
    for a, b, m in zip(towns, towns[1:], legs):
        t += m
        rows.append(dict(a=a, b=b, m=m, t=t, who=who))
    text = steps(r, [
        "the road leads {who} from {a} to {b}, and as this piece is {m} miles long, "
        "{who} has come {t} miles since the start.",
        "{who} leaves {a} behind and reaches {b} after {m} miles, so that the whole "
        "way up to this point measures {t} miles."], rows)
    via = listing(f"{m} miles to {b}" for b, m in zip(towns[1:], legs))
    return (f"{who} starts in {towns[0]} and travels {via}. How long is the way?",
            f"{text} The whole way from {towns[0]} to {towns[3]} is therefore {t} "
            f"miles long, and the longest piece of it measures {max(legs)} miles.")


def stock(r):
    who, other, town, day = *r.sample(NAMES, 2), r.choice(TOWNS), r.choice(DAYS)
    g, h = r.sample(GOODS, 2)
    a, b, x, y, z = (r.randint(30, 90), r.randint(20, 90), r.randint(3, 15),
                     r.randint(3, 15), r.randint(2, 9))
    return (f"{who} keeps a shop in {town} with {a} {g} and {b} {h}. On {day} {other} "
            f"buys {x} {g}, a cart brings {y} {h}, and {z} {g} break. What is left?",
            f"Early in the morning of {day} the shelves of the little shop in {town} "
            f"hold {a} {g} and {b} {h}. When {other} walks out of the door with {x} "
            f"{g}, {who} looks at the shelf once more and counts {a - x} {g}. Around "
            f"noon the cart stops in front of the shop and brings {y} more {h}, so "
            f"that there are now {b + y} {h} to be sold. Sadly, {z} of the {g} fall to "
            f"the floor in the afternoon and break into pieces, and only {a - x - z} "
            f"{g} are left. When the sun goes down over {town}, {who} closes the shop "
            f"and writes into the book that there are still {a - x - z} {g} and "
            f"{b + y} {h}.")


def delivery(r):
    who, g, towns = r.choice(NAMES), r.choice(GOODS), r.sample(TOWNS, 3)
    n, rows = r.randint(70, 150), []
    left, drops = n, [r.randint(4, 20) for _ in towns]
    for town, d in zip(towns, drops):
        left -= d
        rows.append(dict(who=who, g=g, town=town, d=d, left=left))
    text = steps(r, [
        "the cart of {who} rolls into {town}, where {d} of the {g} are taken down and "
        "carried into the market hall, and {left} {g} stay on the cart.",
        "the people of {town} are already waiting for {who}, and as soon as they have "
        "received their {d} {g}, there are {left} {g} left for the rest of the way."],
        rows)
    lst = listing(f"{d} to {t}" for t, d in zip(towns, drops))
    return (f"A cart with {n} {g} is driven by {who}, who delivers {lst}. How many {g} "
            "remain?", f"{text} In the evening {who} drives back home with the {left} "
            f"{g} that nobody has ordered.")


def ages(r):
    names, age = r.sample(NAMES, 4), r.randint(20, 40)
    rows, facts, first = [], [], age
    for a, b in zip(names, names[1:]):
        d, older = r.randint(1, 12), r.random() < 0.5 or age < 15
        w, age2 = ("older" if older else "younger"), age + (d if older else -d)
        facts.append(f"{b} is {d} years {w} than {a}")
        rows.append(dict(a=a, b=b, d=d, w=w, x=age, y=age2))
        age = age2
    text = steps(r, [
        "we know already that the age of {a} is {x}, and because {b} is {d} years {w} "
        "than {a}, the age of {b} must be {y}.",
        "we compare {b} with {a}, who is {x} years old: being {w} by {d} years, {b} "
        "has to be {y} years old."], rows)
    return (f"{names[0]} is {first} years old. {'. '.join(facts)}. How old is "
            f"{names[3]}?", f"{text} So the answer to the question is that {names[3]} "
            f"is {age} years old.")


def rectangle(r):
    a, b, who = r.randint(3, 20), r.randint(3, 20), r.choice(NAMES)
    cost = r.randint(2, 6)
    what, h = r.choice(["garden", "meadow", "courtyard", "field"]), a + b
    return (f"The {what} of {who} is {a} metres long and {b} metres wide. What does a "
            f"fence around it cost at {cost} coins a metre?",
            f"The fence has to run along all four sides of the {what}, and so we need "
            f"to know how long the four sides are together. One long side and one "
            f"short side measure {a} metres and {b} metres, which makes {h} metres in "
            f"all. Since there are two long sides and two short sides, the whole fence "
            f"must be twice as long, and that is {h * 2} metres. Every single metre of "
            f"the fence costs {cost} coins, so that {who} has to pay {h * 2} times "
            f"{cost} coins, which is {h * 2 * cost} coins. The fence around the {what} "
            f"of {who} costs {h * 2 * cost} coins.")


def sharing(r):
    a, b, c = r.sample(NAMES, 3)
    g, k, x, y = r.choice(GOODS), r.randint(6, 30), r.randint(2, 5), r.randint(2, 5)
    n = 3 * k
    return (f"{a}, {b} and {c} share {n} {g} equally. Then {a} gives {x} {g} to {b}, "
            f"and {b} gives {y} {g} to {c}. What does each of them have?",
            f"There are {n} {g} for three people, and when they are shared equally, "
            f"each of the three receives {k} {g}. Then {a} gives {x} of them away, "
            f"which leaves {a} with {k - x} {g}, while {b} now holds {k + x} {g}. "
            f"After that, {b} hands {y} {g} over to {c}, so that {b} keeps {k + x - y} "
            f"{g} and {c} ends up with {k + y} {g}. In the end {a} has {k - x} {g}, "
            f"{b} has {k + x - y} {g}, and {c} has {k + y} {g}, which are still {n} "
            f"{g} in all.")


def queue(r):
    names = r.sample(NAMES, 5)
    moves, line, rows = [], list(names), []
    for _ in range(3):
        i = r.randrange(1, len(line))
        who = line.pop(i) if r.random() < 0.6 else None
        if who:
            line.insert(0, who)
            what = f"{who} goes to the front"
        else:
            what = f"{line[0]} goes to the back"
            line.append(line.pop(0))
        moves.append(what)
        rows.append(dict(what=what, line=listing(line)))
    text = steps(r, [
        "{what} of the line, and everybody else keeps the order, so that the line is "
        "now made of {line}.",
        "we see that {what}, and looking from the front to the back, we find {line}."],
        rows)
    return (f"In a line stand {listing(names)}. {'. Then '.join(moves)}. Who is first?",
            f"{text} The person who stands at the front of the line is {line[0]}, and "
            f"the last one is {line[-1]}.")
