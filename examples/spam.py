"""Spam from a CSV file: words of a column, a model in a file, and which words made a prediction.

python examples/spam.py
"""

import csv
import random

from dotadd import LinearSVM, load

random.seed(0)
START = {"spam": ["free", "win", "cheap", "click"], "ham": ["meeting", "lunch", "report", "thanks"]}
END = ["now", "today", "money", "friday", "please", "the office", "your prize", "see you"]
with open("mails.csv", "w", newline="", encoding="utf8") as file:
    write = csv.writer(file).writerow
    write(["date", "text", "label"])
    for day in range(1000):
        label = random.choice(["spam", "ham"])
        own = START[label] if random.random() < 0.9 else START["ham" if label == "spam" else "spam"]
        write([day, " ".join(random.sample(own, 2) + random.sample(END, 3)), label])

svm = LinearSVM('Column("text", WordNGrams((1, 2)).tfidf())', C=1, random_state=0).fit("mails.csv")
svm.save("spam.dotadd")
model = load("spam.dotadd")
print(f"trained on {model.training['rows']:,} mails, right on {model.score('mails.csv'):.1%} of them")

with open("new.csv", "w", encoding="utf8") as file:
    file.write("text\nclick to win money now\nlunch after the meeting\n")
for label, row in zip(model.predict("new.csv"), model.explain("new.csv"), strict=True):
    best = max(row.features, key=lambda feature: abs(feature.contribution))
    print(f"{label}: score {row.score:+.2f}, most of it by {best.name!r}")
