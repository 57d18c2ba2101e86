"""The head of docs/choose.md with its table of answers, and the sections that rest on properties, on bits in both directions and on times. Every number
and every ranking comes from an Evidence. Needs nothing but Python."""
import statistics

import choose_facts as facts
from choose_evidence import DIFFERENT, USUAL
from choose_sections import CASES, PAIRS, choice_in, claims_text, feedback_operators, ratios_in, settings_of
from choose_words import FEEDBACKS, OPERATORS, TITLES, cases_text, clear_text, grouped, link, method_text, methods_text, points, range_of
from conjecture_study.answer import listed, number_of, paragraph
from conjecture_study.results import markdown
from fair_study_tables import WORDS

UNBIASED_SHOWN = 6  # rows of the table of unbiased operators


def opening():
    return "\n\n".join([
        "# Which one should I take?",
        paragraph("This page names a compressor and an error feedback to begin with, for a network, a model and a kind of clients, and says what each choice rests on. "
                  "`scripts/choose_page.py` writes it from the results that are committed in this repository. No choice here replaces a comparison at equal bits in "
                  "your own setting: [tutorial.md](tutorial.md) shows one, and [studies.md](studies.md#tuning) how thresholds and step sizes are tuned for it.")])


# ---- the answers ----

def answers(found):
    """Returns the table of answers, and what its words mean."""
    rows = [*convex_rows(found.first), *slow_rows(found.small), untuned_row(found), perceptron_row(found.perceptron), cnn_row(found), layers_row(found),
            *property_rows(found), directions_row(found), local_row(found)]
    words = paragraph("*Measured*: a study of this repository that is whole. *In part*: a study, or a part of one, on which its plan rests no conclusion: it is small, beside the "
                      "core, or has not run to its end. *Property*: there is no measurement here, and the choice follows from a property of the parts. Data are *alike* where all "
                      "rows are dealt to the clients at random, and *different* where they are sorted by class. Ratios are of gaps f - f\\* at equal uplink bits and "
                      "have 95% intervals. The sections below have the figures, the limits, and what is not known.")
    return "\n\n".join(["## The answers in one line", markdown(["your case", "take first", "what it rests on"], rows), words])


def rows_of_study(study, where, kind):
    """Returns a row for each method that is chosen, with the cases in which it is, and one for the cases without a clear choice. `kind` is that of the evidence."""
    def best(case):
        method = choice_in(study, case)
        return method if study.is_clear(settings_of(study, [case]), method) else (USUAL, method)

    rows = []
    for chosen, cases in grouped(CASES, best).items():
        is_clear = isinstance(chosen[0], str)
        method = chosen if is_clear else chosen[1]
        ratios = ratios_in(study, settings_of(study, cases), method)
        take = method_text(method) if is_clear else f"no clear choice: {methods_text(chosen)}"
        who = "" if is_clear else f"{TITLES[method[1]]} under {FEEDBACKS[method[0]]} has "
        rows.append([f"{where}: {cases_text(cases)}", take, f"{kind}: {who}{range_of(ratios)} times the gap of Top-k under EF14 in {number_of(len(ratios), 'setting')}, "
                     f"{study.num_seeds()} seeds; {clear_text(ratios)}; the grid was tuned and k was not ([figures](#small-convex-models))"])
    return rows


def convex_rows(first):
    return rows_of_study(first, "small convex model, clients with a memory, uplink bits count", "measured")


def slow_rows(small):
    return rows_of_study(small, "the same with a slow uplink, a fifth of these bits", "in part")


def untuned_row(found):
    ratios, worse = found.published
    return ["no threshold and no grid can be tuned", method_text(USUAL),
            f"in part: the published threshold, untuned, was worse than Top-k by more than a margin of 1.1 in {worse} of {number_of(len(ratios), 'group')}; property: k "
            "follows from the bits ([figures](#without-tuning))"]


def perceptron_row(study):
    chosen = grouped(CASES, study.ties)
    texts = [f"{methods_text(methods)} ({cases_text(cases)})" for methods, cases in chosen.items()]
    gains = [study.difference(case, study.best(case), USUAL) for case in CASES]
    return ["perceptron", "; ".join(texts), f"in part: {range_of(gains, points)} points of accuracy above Top-k under EF14, {gains[0].samples} seeds, one data set; "
            "thresholds and grids were tuned and k was not ([figures](#perceptrons-and-cnns))"]


def cnn_row(found):
    rests = f"an exploratory study of a small CNN has {claims_text(found.cnn)}" + (", and the part on images of the second study" if found.images else "")
    return ["CNN", f"not known; compare {link('top_k')} and {link('absolute_rounding')} under {link('ef14')}", f"in part: {rests} ([figures](#perceptrons-and-cnns))"]


def layers_row(found):
    losses = powersgd_losses(found)
    return ["large model with layers", f"not known; begin with {link('top_k')} under {link('ef14')}",
            f"in part: at equal bits the accuracy of PowerSGD minus that of Top-k was {range_of(losses, points)} points in {number_of(len(losses), 'setting')} of a small perceptron "
            "([figures](#large-models-with-layers-and-embeddings))"]


def property_rows(found):
    return [["embeddings, or other gradients with many zeros", f"{link('hard_threshold')} under {link('ef14')}",
             "property: a threshold above 0 never sends a zero, and Top-k always sends k entries ([reasons](#large-models-with-layers-and-embeddings))"],
            ["clients without a memory (cross-device, each seen once)", f"{link(found.unbiased[0].name)} under {link('fedpaq')}",
             "property: an unbiased operator needs no memory ([reasons](#clients-without-memory))"]]


def directions_row(found):
    medians = {operator: value for (feedback, operator), value in down_medians(found.first).items() if feedback == USUAL[0]}
    least, most = min(medians, key=medians.get), max(medians, key=medians.get)
    return ["both directions count", f"{link(OPERATORS[least])} under {link('ef14')}, and a compressed downlink (`compressor.down`)",
            f"measured: under EF14 with a plain downlink the bits down were {medians[least]:.0f} times those up with {TITLES[least]}, and up to {medians[most]:.0f} times with "
            f"{TITLES[most]}; property: a compressed downlink sends one short message to a client that missed no round ([figures](#both-directions))"]


def local_row(found):
    at_1, _ = ours(found.hooks)
    return ["local network, 1 Gbit/s or more", f"{link('identity')} under {link('none')}",
            f"measured: compressed steps of ResNet-18 took {min(at_1.values()):.2f} to {max(at_1.values()):.2f} times an uncompressed step of PyTorch at 1 Gbit/s "
            "([figures](#local-networks))"]


# ---- large models, embeddings ----

def powersgd_losses(found):
    differences = found.powersgd.differences(("powersgd", "top-k"))
    return [differences[at] for at in sorted(differences)]


def layers(found):
    losses, low = powersgd_losses(found), found.low_rank.differences(("low-rank", "rank-r"))
    different = [one for (_, _, level), one in sorted(low.items()) if level == DIFFERENT]
    at_100 = ours(found.hooks)[1]
    measured = (f"No study here trains a large model. On a perceptron with 16 units under EF14, the accuracy of PowerSGD of rank 1 minus that of Top-k with 5% of the entries, "
                f"at equal bits, is {range_of(losses, points)} points ({clear_text(losses, bound='0')}; {losses[0].samples} seeds, step sizes tuned on two seeds). With singular "
                f"values above a tuned threshold ({link('absolute_low_rank')}) in place of a fixed rank of 1 ({link('rank_r_svd')}) the accuracy changes by "
                f"{range_of(different, points)} points where data are different ({clear_text(different, bound='0')}).")
    time = (f"In time, over a link of 100 Mbit/s a training step of ResNet-18 took {at_100['top-1%']:.2f} times the uncompressed step with Top-1% and {at_100['PowerSGD, rank 2']:.2f} times "
            "with PowerSGD of rank 2 ([benchmarks.md](../bench/results/python.md#hooks-of-distributeddataparallel)); accuracy was not measured there.")
    scope = ("Layers have gradients of unlike size. With `scope = \"model\"`, the default, Top-k and thresholds compare all entries with each other, so a layer with small "
             "gradients may wait long; with `scope = \"tensor\"` every tensor is compressed by itself, and `exclude` sends named layers uncompressed "
             f"([keys](scenario-reference.md)). Low-rank operators work on matrices and send other tensors uncompressed ({link('powersgd')}). Which scope is better is not "
             "measured here.")
    zeros = ("**Embeddings.** A client's gradient is 0 in the rows of tokens, users or items that it does not have. A threshold above 0 sends none of these zeros "
             f"({link('hard_threshold')}), while {link('top_k')} sends k entries even if fewer are not 0. Operators with a level for every entry (QSGD, 3LC, rounding) send the "
             "level 0 as well, for the few bits that the entropy code takes. No study here has an embedding, so this is a property and not a result; "
             "`scenarios/library/ncf-movielens.toml` is a scenario to begin with.")
    return "\n\n".join(["## Large models with layers, and embeddings", *map(paragraph, (measured, time, scope, zeros))])


# ---- clients without memory ----

def memoryless(found):
    feedbacks = facts.feedbacks(found.parts)
    without = [name for name, part in feedbacks.items() if not facts.keeps_state(found.root, part)]
    always = [name for name in without if facts.fact(feedbacks[name], "participation")]
    kept = (f"{len(feedbacks) - len(without)} of {len(feedbacks)} feedbacks keep vectors of the size of the model at each client, EF14, EF21 and EControl among them. They cannot "
            f"help a client that is seen once, or that forgets. {listed(list(map(link, without)))} keep none; of these {listed(list(map(link, always)))} needs every client "
            "in every round. (The page reads this from each feedback's list of slots.)")
    why = (f"A biased operator without a memory need not converge ({link('fedpaq')}), so these clients need an unbiased one, whose squared error is on average at most omega times "
           "the squared length of its input. A larger omega needs a smaller step ([theorem 8 of Sahu et al.](maths.md#rules-and-step-sizes-of-theorems)). The table has the "
           f"unbiased operators with the smallest product of 1 + omega and bits, with default options on 1,000 parameters, out of {len(found.unbiased)}. omega is a worst case, and "
           "the product is a rule of thumb, not a result. No export in this repository has a method that compresses and keeps no state, so it is not known here how far such methods are "
           "behind error feedback.")
    rows = [[link(one.name), f"{one.omega:g}", f"{one.bits:,}", f"{one.cost:,.0f}", "a small bias remains" if one.is_approximate else "unbiased"]
            for one in found.unbiased[:UNBIASED_SHOWN]]
    rare = ("Clients that keep a memory and take part rarely are the case of a tenth of the clients [above](#which-error-feedback). What was not sent waits until a client "
            "returns; `participation.absent` says whether it is kept ([maths.md](maths.md#participation-and-weights)).")
    header = ["operator", "omega", "bits", "(1 + omega) bits", "expectation"]
    return "\n\n".join(["## Clients without memory", paragraph(kept), paragraph(why), markdown(header, rows), paragraph(rare)])


# ---- both directions ----

def down_medians(first):
    """Returns {method: median over settings and seeds of the bits down over the bits up}."""
    values = {}
    for (_, method), ratios in first.down.items():
        values.setdefault(method, []).extend(ratios)
    return {method: statistics.median(ratios) for method, ratios in values.items()}


def directions(found):
    medians = down_medians(found.first)
    rows = [[f"`{OPERATORS[operator]}`", *(f"{medians[feedback, operator]:.1f}" for feedback in FEEDBACKS)] for operator in feedback_operators(found.first)]
    said = []
    for pair in PAIRS:
        ratios = [ratio for (_, _, of), ratio in sorted(found.both.items()) if of == pair]
        said.append(f"{WORDS[pair]}, {clear_text(ratios)}")
    measured = ("In the first study the server sends each client the coordinates that changed, or the model if that is shorter. The clients' changes add up there. "
                "The table has the bits down over the bits up at the end of the runs, medians over all settings, levels and seeds of the budget of 5%:")
    part = found.second_parts["both-5"]
    equal = (f"At equal bits up and down together, with everything tuned for the uplink alone, the ratios of gaps are: {'; '.join(said)}. Which of the four operators is best at "
             "these bits is not known, since only pairs were compared there. The part `both-5` of the second study, which tunes for both directions, has "
             f"{len(part.runs)} of {part.planned} repetitions.")
    bound = ("With an operator other than `identity` in `compressor.down`, the model at the clients moves by the compressed difference to the server's model, so what was not sent "
             f"is part of the next difference, and a client that missed rounds is sent the shorter of all messages that it missed and the model ([maths.md](maths.md#methods)). So a "
             f"compressed downlink saves most where all clients take part, and little where few do. {link('stc')} is published for both directions, and {link('ef21_p')} with unbiased "
             "operators up and a contraction down. No study here has a compressed downlink. Methods whose step moves every coordinate, such as EF21, do not gain from a server that sends "
             "the changed coordinates alone.")
    return "\n\n".join(["## Both directions", paragraph(measured), markdown(["operator", *FEEDBACKS.values()], rows), paragraph(equal), paragraph(bound)])


# ---- local networks ----

def ours(hooks):
    """Returns the ratios of the hooks of fedbits that compress, at 1 Gbit/s and at 100 Mbit/s."""
    named = {name: ratios for name, ratios in hooks.items() if not name.startswith(("Distributed", "PyTorch", "Identity"))}
    return {name: ratios[0] for name, ratios in named.items()}, {name: ratios[1] for name, ratios in named.items()}


def local_network(found):
    at_1, at_100 = ours(found.hooks)
    measured = (f"Two processes train ResNet-18 (11.2 million parameters) on one machine, with a link of a given rate between them. At 1 Gbit/s a compressed step took "
                f"{min(at_1.values()):.2f} to {max(at_1.values()):.2f} times the step of DistributedDataParallel without a hook, and at 100 Mbit/s {min(at_100.values()):.2f} to "
                f"{max(at_100.values()):.2f} times ([medians of three or four steps](../bench/results/python.md#hooks-of-distributeddataparallel), without intervals).")
    limits = ("A compressor cannot save time on a link that carries the uncompressed vector in the time that the compressor takes. These are the rates of such links for 10 million "
              "float32 numbers and one core, error feedback included, encoding and decoding left out ([measured times](../bench/results/operators.md#operators-10m-float32)):")
    rows = [[name, f"{time:g} ms", f"{rate:.0f} Gbit/s"] for name, (time, rate) in sorted(found.times.items(), key=lambda one: one[1][0])]
    return "\n\n".join(["## Local networks", paragraph(measured), paragraph(limits), markdown(["operator", "time", "no gain in time above"], rows)])


# ---- what is not known ----

def unknown(found):
    operators = len(found.parts) - len(facts.feedbacks(found.parts))
    both = found.second_parts["both-5"]
    said = [
        "Large models, embeddings and text: no study here has trained one to a result with several compressors.",
        "Clients without a memory: no export here has a method that compresses and keeps no state.",
        "A compressed downlink: no export here has one."
        + ("" if both.is_whole else f" Operators that are tuned for both directions: {len(both.runs)} of {both.planned} repetitions have run."),
        f"Most operators: {operators} are implemented, and the choices above for convex models and perceptrons are among four.",
        "Clients with unequal amounts of data or work, more than 20 clients, and splits other than similarity: the choices above have none of them.",
        "Momentum at the server and decaying step sizes: the choices above have neither. [The study](../research/absolute-compressors/first/page.md#robustness) has the first for one pair of operators.",
    ]
    return "\n\n".join(["## What is not known here", "\n".join(paragraph(text, "- ", "  ") for text in said)])
