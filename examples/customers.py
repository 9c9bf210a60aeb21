"""A table of numbers, words and text, as people have them, and a model of it.

python examples/customers.py
"""

import csv
import random

from dotadd import LinearSVM

random.seed(0)
with open("customers.csv", "w", newline="", encoding="utf8") as file:
    write = csv.writer(file).writerow
    write(["id", "age", "job", "town", "about", "label"])
    for number in range(2000):
        age, job = random.gauss(40, 12), random.choice(["nurse", "cook", "pilot", "clerk"])
        town = random.choice(["Basel", "Chur", "Genève", "Zürich"])
        likes = random.choice(
            ["music and long walks", "football on sundays", "books about trains", "cats, and only cats"]
        )
        buys = (job == "nurse") + (age > 45) + ("cats" in likes) + random.gauss(0, 0.4) > 1.2
        shown = f"{age:.1f}" if number % 20 else ""
        write([number, shown, job, town, f"likes {likes}", "buys" if buys else "leaves"])

phi = 'Column("about", WordNGrams(1).log().tfidf()) + Number("age").scaled("std") + Category("job") * Category("town")'
svm = LinearSVM(phi, random_state=0).fit("customers.csv")
print(f"accuracy {svm.score('customers.csv'):.3f} on the rows it was trained on, gap {svm.result_.gap:.1e}")
