"""Lattices: what was said is not sure, and a rational kernel takes all that may have been; and the algebra of automata.

python examples/lattices.py
"""

import random

from dotadd import LinearSVM, automata

random.seed(0)
SAY = {
    "music": ["play some jazz", "play the song", "put on music"],
    "weather": ["will it rain", "rain in rome", "is it cold"],
}
OTHERS = {"play": "clay", "song": "sung", "music": "muse", "rain": "train", "rome": "room", "cold": "called"}
with open("heard.sausage", "w") as file:  # confusion networks: of each word what it may have been, and how likely
    for k in range(200):
        intent = random.choice(list(SAY))
        places = []
        for word in random.choice(SAY[intent]).split():
            sure = random.randint(40, 100) / 100
            places.append(f"[ {word} {sure:.2f} {OTHERS.get(word, 'uh')} {1 - sure:.2f} ]")
        file.write(f"{intent}\tcall{k} {' '.join(places)}\n")
print("a line of it:", intent, *places)

svm = LinearSVM("Rational(ngram(1) + ngram(2), bits=16).normalized()", C=10, random_state=0)
svm.fit("heard.sausage")
print(f"right on {svm.score('heard.sausage'):.1%} of 200 lattices")

heard = automata.Automaton.from_string([2, 1, 1]) + 0.5 * automata.Automaton.from_string([2, 1])
counts = automata.project(heard @ automata.ngram(2).transducer(2), "output")
print(f"in b a a, or half as likely b a: b a occurs {counts.weight([2, 1])} times, a a {counts.weight([1, 1])} times")
