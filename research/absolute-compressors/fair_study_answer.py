"""The answer of the second study: on its page, docs/conjecture.md, and in README.md. Every number and every turn of a sentence is computed by the rules
of second/plan.md. Needs nothing but Python."""
import fair_study_inference as inference
from conjecture_study.answer import listed, number_of, paragraph, picture
from conjecture_study.results import markdown
from fair_study_tables import WORDS, ahead_counts, ahead_text, conclusion, counted, counts, counts_in_order, hits_text, of_pair, short_runs

NO_RESULTS = "The study has not run yet."


def answer(budgets):
    """Returns the answer: four sentences, what qualifies them, and the counts behind them."""
    first = budgets[0]
    if not first.has_results:
        return NO_RESULTS
    sentences = []
    for pair in WORDS:
        of = of_pair(first.contrasts, pair)
        opening = "With both sides tuned, at equal uplink bits under EF14, for " if not sentences else "For "
        sentences.append(f"{opening}{WORDS[pair]} {conclusion(of)} by the rule of the plan: from the most similar clients to the most different ones the contrast "
                         f"is {counted(of)}.")
    ahead = [f"{WORDS[pair].split(' against')[0]} is {ahead_text(of_pair(first.ahead[inference.DIFFERENT], pair))}" for pair in WORDS]
    sentences.append(f"Where clients differ most, {', and '.join(ahead)}.")
    sentences.append(f"A formula that predicted the sign of each contrast before the runs has {hits_text(first.contrasts, first.predicted)}.")
    return "\n\n".join([paragraph(first.part.state() + " ".join(sentences)), paragraph(f"{hits_detail(first)} {ahead_hits(first)}"), paragraph(checks_text(first)),
                        counts_table(budgets)])


def hits_detail(budget):
    """Returns how many hits are claims, and how many are groups where no claim was predicted."""
    claimed = sum(one.sign == budget.predicted(one.group) != 0 for one in budget.contrasts)
    rest = inference.hits(budget.contrasts, budget.predicted)["hit"] - claimed
    return f"Of the hits {claimed} are claims of the predicted sign, and {rest} are groups without a claim where none was predicted."


def ahead_hits(budget):
    """Returns how well the formula predicted who is ahead."""
    said = [f"{hits_text(verdicts, budget.predicted_at(level))} where {'rows are dealt at random' if level == inference.ALIKE else 'clients differ most'}"
            for level, verdicts in budget.ahead.items()]
    return f"Its predictions of who is ahead have {'; and '.join(said)}."


def checks_of(budget):
    """Returns {check: {pair: contrasts}} of two checks: without the groups that have short runs, if there are any, and by each group's own variance."""
    own = inference.by_own_variance(budget.contrasts)
    short = {"short": {pair: budget.without_short(pair) for pair in WORDS}} if short_runs(budget.part)[0] else {}
    return {**short, "own": {pair: of_pair(own, pair) for pair in WORDS}}


def shaken(budget):
    """Returns the pairs whose conclusion is another one in a check."""
    return [pair for pair in WORDS if any(conclusion(found[pair]) != conclusion(of_pair(budget.contrasts, pair)) for found in checks_of(budget).values())]


def checks_text(budget):
    """Returns what the two checks show, and whether a conclusion changes."""
    found, total = short_runs(budget.part)
    checks, changed = checks_of(budget), shaken(budget)
    said = [f"The conclusion about {listed([WORDS[pair] for pair in changed])} is not firm." if len(changed) == 1 else
            "Neither conclusion is firm." if changed else "Two checks leave both conclusions as they are."]
    if "short" in checks:
        said.append(f"In {sum(found.values())} of {total:,} runs less than 95% of the budget was sent. Without the groups in which this happened to one of the pair, the "
                    f"contrast of {checked(checks['short'])}.")
    said.append(f"With the variance of each group alone in place of the pooled one, the contrast of {checked(checks['own'])}.")
    return " ".join(said)


def checked(contrasts):
    return "; that of ".join(f"{WORDS[pair]} is {counted(of)}" for pair, of in contrasts.items())


def counts_table(budgets):
    """Returns the counts of both budgets; a budget that is not whole says so."""
    rows = []
    for budget in budgets:
        part = budget.part
        name = f"{budget.name}%" if part.is_whole else f"{budget.name}%, a part: {len(part.runs)} of {part.planned} repetitions"
        for pair in WORDS if budget.has_results else ():
            of, slopes = of_pair(budget.contrasts, pair), of_pair(budget.slopes, pair)
            found = inference.hits(of, budget.predicted)
            ahead = [ahead_counts(of_pair(budget.ahead[level], pair)).values() for level in (inference.ALIKE, inference.DIFFERENT)]
            rows.append([name, " : ".join(pair), *map(with_slashes, [counts_in_order(of), counts_in_order(slopes), *ahead, found.values()])])
    header = ["budget", "pair", "contrasts: for / against / open", "slopes", "at 100%: better / worse / alike / open", "at 0%", "predictions: hit / miss / open"]
    return markdown(header, rows)


def with_slashes(values):
    return " / ".join(map(str, values))


def state_text(parts):
    """Returns which parts are whole, which have run in part, and which have not begun."""
    whole = [f"`{part.name}`" for part in parts if part.is_whole]
    begun = [f"`{part.name}` ({len(part.runs)} of {number_of(part.planned, 'repetition')})" for part in parts if part.runs and not part.is_whole]
    missing = [f"`{part.name}`" for part in parts if not part.runs]
    said = [f"{title}: {listed(names)}." for title, names in (("Whole", whole), ("In part", begun), ("Not begun", missing)) if names]
    return paragraph(" ".join([*said, *(["Nothing is decided about a part that is not whole."] if begun or missing else [])]))


# ---- README.md ----

def short_answer(budget, folder):
    """Returns the answer for README.md in plain sentences, with one picture out of a folder."""
    if not budget.has_results:
        return NO_RESULTS
    advice = "Compare the two at equal bits in your own setting, both tuned ([figures, limits and commands](docs/conjecture.md))."
    about = "Does the hard threshold gain on Top-k as clients differ more? Measured and predicted contrasts by group"
    return "\n\n".join([paragraph(" ".join([opening_text(budget), gained_text(budget), hits_words(budget), checked_text(budget), advice])),
                        picture(f"contrasts-hard-{budget.name}", about, folder)])


def opening_text(budget):
    said = ("Sahu et al. (NeurIPS 2021) conjecture that absolute compressors are the better choice when clients differ. A study, planned and predicted before its runs, "
            "compares two pairs of operators on three small convex problems, at equal uplink bits under EF14, with both sides tuned.")
    return said if budget.part.is_whole else f"{said} So far {len(budget.part.runs)} of {budget.part.planned} repetitions have run, and nothing is decided."


def sides(pair):
    """Returns the operators of a pair in words."""
    return WORDS[pair].split(" against ")


def gained_text(budget):
    """Returns how often each absolute operator gained ground, and how often it is ahead where clients differ most."""
    gains, leads = [], []
    for pair in WORDS:
        absolute, contraction = sides(pair)
        of, ahead = of_pair(budget.contrasts, pair), ahead_counts(of_pair(budget.ahead[inference.DIFFERENT], pair))
        found = counts(of)
        gains.append(f"{absolute} gained on {contraction} in {found['for']} of {number_of(len(of), 'setting')} and lost ground in {found['against']}")
        leads.append(f"{absolute} was better than {contraction} in {ahead['better']} and worse in {ahead['worse']}")
    return (f"From the most similar clients to the most different ones {', and '.join(gains)}; the others are open. With the most different clients "
            f"{', and '.join(leads)}.")


def hits_words(budget):
    found = inference.hits(budget.contrasts, budget.predicted)
    return f"Of {len(budget.contrasts)} predictions {found['hit']} hit, {found['miss']} missed, and {found['open']} are open."


def checked_text(budget):
    """Returns what the gains are in the two checks."""
    checks = checks_of(budget)
    said = ["These counts are not firm:" if shaken(budget) else "Two checks agree:"]
    if "short" in checks:
        gained = [f"{sides(pair)[0]} gained in {counts(of)['for']} of {len(of)}" for pair, of in checks["short"].items()]
        said.append(f"without the settings in which a run ended before it had sent its bits {' and '.join(gained)}, and")
    lost = [f"{sides(pair)[0]} lost ground in {counts(of)['against']}" for pair, of in checks["own"].items()]
    return f"{' '.join(said)} by the variance of each setting alone {' and '.join(lost)}."
