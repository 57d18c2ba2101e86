"""The examples: inputs, and options of every operator and feedback method."""

from published.feedbacks import GAMMA, SEED
from published.operators import segment
from published.words import COMPRESSOR, hash64


# Numbers of two clients over three rounds; what is 4 x 3 of them and three more, to those who look at tensors. "mixed" has ties, zeros, a
# number below 2^-10 and entries of exactly 0.5; "plain" has none of these, and its first tensor changes its norm by half from round 1 to 2.
# "steady" keeps its signs, and of its clients one has positive entries alone, the other negative ones.
CLIENTS, KEY = (3, 7), hash64(hash64(SEED, COMPRESSOR), 0)
INPUTS = {
    "mixed": [
        [[0.75, -1.5, 0.25, -0.25, 0.0, 3.0, -3.0, 0.0007, 0.5, -0.1, 1.2, -0.02, 2.0, -0.6, 0.3],
         [-0.5, 0.9, 0.0, 1.6, -2.25, 0.4, 0.05, -0.7, 1.1, 0.0004, -0.9, 0.35, -0.15, 0.8, 0.0]],
        [[0.6, 1.3, -0.25, 0.45, -0.5, 1.0, -2.0, 0.004, 0.0, 0.7, -1.1, 0.03, 2.0, 0.55, -0.35],
         [0.85, 0.9, -0.3, -1.7, 0.5, 0.65, -0.03125, 0.2, -1.2, 0.0009, 1.9, 0.0, -0.45, 0.8, 0.1]],
        [[-0.8, 0.5, 0.15, -0.65, 0.02, 0.95, 1.75, -0.00003, 0.4, 0.0, -1.4, 0.5, -2.5, 0.3, 0.9],
         [0.0, -1.25, 0.6, 0.0, 1.05, -0.55, 0.5, 2.2, -0.07, 0.33, -1.25, 0.0006, 0.75, -0.2, 1.45]],
    ],
    "plain": [
        [[1.31, -0.42, 0.77, 2.05, 0.13, -1.64, 0.58, -0.91, 0.36, -2.38, 1.02, 0.21, 0.84, -0.49, 1.17],
         [-0.65, 1.88, 0.29, -1.23, 0.54, 0.97, -2.71, 0.11, 1.46, -0.38, 0.72, -1.05, 0.33, 1.59, -0.81]],
        [[0.47, 0.62, -0.35, 0.88, -0.19, 0.53, 0.74, -0.28, 0.96, 0.41, -0.67, 0.15, 0.79, -0.52, 1.24],
         [0.92, -1.37, 0.44, 1.71, 0.83, -0.26, 1.15, -2.02, 0.57, 1.98, -0.73, 0.31, -0.87, 0.16, 1.42]],
        [[-0.56, 0.69, 0.38, 1.09, -0.82, 0.24, 0.45, 1.33, -0.17, 0.61, 0.94, -0.71, -0.12, 2.66, 0.99],
         [0.18, -0.95, 1.28, 0.59, -1.76, 0.34, 0.86, 0.51, -1.44, 0.27, -0.63, 2.11, 1.07, 0.43, -0.22]],
    ],
    "steady": [
        [[1.5, 0.75, 0.9, 0.012, 0.01, 1.3, 0.2, 0.4, 0.06, 1.1, 0.55, 0.005, 0.3, 0.7, 0.15],
         [-0.6, -1.4, -0.35, -0.08, -1.0, -0.25, -0.02, -0.45, -1.9, -0.5, -0.013, -0.9, -0.1, -0.65, -1.2]],
        [[1.6, 0.75, 0.95, 0.012, 0.01, 0.1, 0.3, 0.35, 0.07, 1.0, 0.45, 0.007, 0.5, 0.8, 0.1],
         [-0.7, -1.6, -0.4, -0.07, -1.3, -0.05, -0.03, -0.5, -1.8, -0.15, -0.012, -0.2, -0.3, -0.85, -1.1]],
        [[1.2, 0.85, 0.65, 0.014, 0.02, 1.4, 0.25, 0.6, 0.05, 1.2, 0.5, 0.009, 0.4, 0.9, 0.35],
         [-0.8, -1.3, -0.3, -0.09, -1.1, -0.55, -0.04, -0.2, -1.7, -0.75, -0.015, -0.95, -0.4, -0.1, -1.5]],
    ],
}  # fmt: skip
SCOPES = {"model": [segment(0, 0, 15, 1)], "tensor": [segment(0, 0, 4, 3), segment(1, 12, 3, 1)]}


def op(kind, label="default", input_="mixed", scope="model", **o):
    return {"label": label, "input": input_, "scope": scope, "part": {"kind": kind, **o}}


TOP2, TOP4 = {"kind": "top_k", "k": 2}, {"kind": "top_k", "k": 4}
OPERATOR_CASES = [
    op("absolute_low_rank", scope="tensor", threshold=1.2),
    op("absolute_rounding", step=0.3),
    op("absolute_rounding", "nearest_with_deadzone", step=0.25, rounding="nearest", deadzone=1.0),
    op("accordion", input_="plain", scope="tensor", critical=TOP2, otherwise={"kind": "random_k", "k": 2}, eta=0.5, window=1),
    op("accordion", "window_of_two", "plain", "tensor", critical=TOP2, otherwise={"kind": "top_k", "k": 1}, eta=0.5, window=2),
    op("adaqs", levels=1, double_every=1, max_levels=3),
    op("adaqs", "scaled", levels=2, double_every=2, max_levels=8, scaled=True),
    op("aji_dropping", ratio=0.4, sample=0.4),
    op("aji_dropping", "exact", ratio=0.2, exact=True),
    op("atomo", k=7),
    op("atomo", "scaled", k=7, scaled=True),
    op("atomo", "singular", scope="tensor", atoms="singular", rank=1),
    op("dettmers8"),
    op("dgc_sampled", ratio=0.4, sample=0.4),
    op("dgc_sampled", "warm_up", ratio=0.2, sample=0.4, rounds=1, tolerance=0.1, warmup=[0.6, 0.4], warmup_rounds=1),
    op("dqsgd", levels_per_unit=0.7),
    op("drive"),
    op("drive", "min_error", scale="min_error"),
    op("drive", "tensors", scope="tensor"),
    op("dryden", ratio=0.5),
    op("dryden", "one_side", "steady", ratio=0.3),
    op("eden", bits=2),
    op("eden", "min_error", bits=3, scale="min_error"),
    op("ef_sign"),
    op("ef_sign", "tensors", scope="tensor"),
    op("fp8"),
    op("fp8", "e5m2", format="e5m2"),
    op("fp8", "unscaled", scaled=False),
    op("fp8", "e5m2_unscaled", format="e5m2", scaled=False),
    op("gradzip", scope="tensor", rank=2, ridge=0.1),
    op("hard_threshold", threshold=0.5),
    op("identity"),
    op("identity", "fp16", format="fp16"),
    op("identity", "bf16", format="bf16"),
    op("inceptionn"),
    op("inceptionn", "coarse", error_bits=5),
    op("induced", biased=TOP2, unbiased={"kind": "natural"}),
    op("lgreco", input_="plain", scope="tensor", reference={"kind": "top_k", "ratio": 0.5},
       candidates=[{"kind": "top_k", "ratio": ratio} for ratio in (0.34, 0.67, 1.0)], alpha=1.7, adjust_every=2),
    op("lpc", bits=3),
    op("lpc", "clipped", bits=3, clip=0.6),
    op("lpc", "scaled", bits=3, scaled=True),
    op("natural"),
    op("natural", "nearest", rounding="nearest"),
    op("natural_dithering", levels=3),
    op("natural_dithering", "l1_scaled", levels=4, norm="l1", scaled=True),
    op("natural_dithering", "l2_scaled", levels=4, scaled=True),
    op("natural_dithering", "max", levels=3, norm="max"),
    op("natural_dithering", "max_scaled", levels=3, norm="max", scaled=True),
    op("one_bit"),
    op("one_bit", "one_side", "steady"),
    op("powersgd", scope="tensor", rank=1),
    op("powersgd", "rank_two", scope="tensor", rank=2),
    op("powersgd", "cold", scope="tensor", rank=1, warm_start=False),
    op("qsgd", levels=4),
    op("qsgd", "max", levels=4, norm="max"),
    op("qsgd", "scaled", levels=4, scaled=True),
    op("qsgd", "coarse_scaled", levels=2, scaled=True),
    op("qsgd", "max_scaled", levels=3, norm="max", scaled=True),
    op("qsgd", "max_coarse_scaled", levels=1, norm="max", scaled=True),
    op("qsgd", "tensors", scope="tensor", levels=4),
    op("qsparse", k=4, levels=3),
    op("qsparse", "coarse", k=4, levels=1),
    op("qsparse", "unscaled", k=4, levels=3, scaled=False),
    op("qsparse", "sign", k=5, quantizer="sign"),
    op("random_k", k=4),
    op("random_k", "scaled", k=4, scaled=True),
    op("random_k", "half", k=7),
    op("random_k", "most", k=11),
    op("rank_r_svd", scope="tensor", rank=1),
    op("scaled_integer", alpha=4.0, bits=8),
    op("scaled_integer", "stochastic", alpha=64.0, bits=8, rounding="stochastic"),
    op("schedule", stages=[{"kind": "top_k", "k": 6}, {"kind": "ef_sign"}, {"kind": "three_lc", "sparsity": 1.25}], **{"from": [1, 2, 3]}),
    op("sidco", input_="plain", ratio=0.1, update_every=1),
    op("sidco", "pareto", ratio=0.4, fit="pareto", stages=1),
    op("sidco", "gamma_pareto", "plain", ratio=0.15, fit="gamma_pareto", stages=2),
    op("sidco", "gamma", "steady", ratio=0.425, fit="gamma_pareto", stages=1),
    op("sidco", "exponential", ratio=0.15, stages=2),
    op("sidco", "three_stages", "steady", ratio=0.07, first_ratio=0.5, stages=3),
    op("sidco", "wanted_in_one_stage", "steady", ratio=0.25, stages=2),
    op("sidco", "adapts_within_bounds", "plain", ratio=0.26, first_ratio=0.5, update_every=1),
    op("sidco", "adapts_slowly", "plain", ratio=0.18, update_every=2),
    op("sign"),
    op("sketched_sgd", k=4, rows=3, columns=5),
    op("sketchml", buckets=4),
    op("stc", k=4),
    op("stochastic_rounding", integer_bits=2, fraction_bits=3),
    op("stochastic_rounding", "nearest", integer_bits=3, fraction_bits=1, rounding="nearest"),
    op("strom", tau=0.5),
    op("terngrad", clip=0.0),
    op("terngrad", "clipped", clip=1.2),
    op("terngrad", "scaled", clip=0.0, scaled=True),
    op("three_lc"),
    op("three_lc", "sparser", sparsity=1.5),
    op("top_k", k=4),
    op("top_k", "all_ties", k=4, ties="all"),
    op("variance_based", alpha=1.2, zeta=0.9),
    op("variance_based", "steady", "steady", alpha=1.0, zeta=0.8),
    op("vqsgd", repetitions=6),
    op("vqsgd", "scaled", repetitions=3, scaled=True),
    op("wangni", k=6),
    op("wangni", "one_correction", k=7, corrections=1),
    op("wangni", "scaled", k=6, scaled=True),
]

QSGD, QSGD8 = {"kind": "qsgd", "levels": 4}, {"kind": "qsgd", "levels": 8}
TWO_OF_THREE = {"kind": "cyclic", "clients": 2}


def fb(kind, label="default", up=TOP2, local=None, **case):
    """case: o (the method's options), channels, participation, down, server."""
    local = {"kind": "gradient", "learning_rate": GAMMA, **(local or {})}
    return {"label": label, "feedback": {"kind": kind, **case.pop("o", {})}, "local": local, "up": up, **case}


def sgd(kind="sgd", **o):
    return {"kind": kind, "steps": 2, **o}


FEEDBACK_CASES = [
    fb("none"),
    fb("none", "cohorts", participation=TWO_OF_THREE),
    fb("ef14", "gradient", {**TOP2, "unit": "gradient"}, {"warmup_rounds": 2}),
    fb("ef14", "step", {**TOP2, "unit": "step"}, {"warmup_rounds": 2}),
    fb("ef14", "cohorts", participation=TWO_OF_THREE),
    fb("cafe", participation=TWO_OF_THREE),
    fb("clip21", o={"tau": 0.8}),
    fb("cser", up={**TOP2, "unit": "step"}, channels={"reset": {"kind": "top_k", "k": 3, "unit": "step"}}, o={"reset_every": 2}),
    fb("dasha", up=QSGD, o={"a": 0.3, "init": "compressed"}),
    fb("dasha", "mvr_dense", QSGD, {"kind": "mvr", "batch": 2, "momentum": 0.4}, o={"a": 0.3, "init": "dense"}),
    fb("diana", up=QSGD, o={"alpha": 0.5}),
    fb("diana", "cohorts", QSGD, o={"alpha": 0.5}, participation=TWO_OF_THREE),
    fb("ec_diana", up={**TOP2, "unit": "step"}, channels={"shift": {**QSGD, "unit": "step"}}, o={"alpha": 0.4}),
    fb("ec_gd_star", up={**TOP2, "unit": "step"}, local={"kind": "gradient", "subtract": "optimum"}),
    fb("ec_lsvrg", up={**TOP2, "unit": "step"}, local={"kind": "lsvrg", "batch": 1, "p": 0.5}),
    fb("econtrol", o={"eta": 0.3}),
    fb("ef21"),
    fb("ef21", "long_steps", TOP4, {"learning_rate": 0.6}),
    fb("ef21", "dense", o={"init": "dense"}),
    fb("ef21", "cohorts", participation=TWO_OF_THREE),
    fb("ef21_normalised", o={"momentum": 1.0}),
    fb("ef21_normalised", "momentum", o={"momentum": 0.4}),
    fb("ef21_p", up=QSGD, o={"alpha": 0.0}, down={"kind": "top_k", "k": 3}),
    fb("ef21_p", "diana", QSGD, o={"alpha": 0.5}, down={"kind": "top_k", "k": 3}),
    fb("ef21_plus", up=TOP4, local={"learning_rate": 0.6}),
    fb("ef21_sgdm", o={"momentum": 0.3}),
    fb("ef_bv", o={"lambda": 0.6, "nu": 0.8}),
    fb("ef_bv", "unbiased", QSGD, o={"lambda": 0.5, "nu": 0.8}),
    fb("fedcomgate", up=QSGD, local=sgd("fedcomgate")),
    fb("feddyn", local=sgd("feddyn", alpha=0.3), participation=TWO_OF_THREE),
    fb("fedpaq", up=QSGD, local=sgd()),
    fb("lag", up={"kind": "identity"}, o={"xi": 1.0, "memory": 2}),
    fb("lag", "compressed", o={"xi": 2.0, "memory": 1}),
    fb("marina", up=QSGD, local={"kind": "gradient_difference", "batch": 2}, o={"p": 0.7}),
    fb("mime_lite", local=sgd("mime_lite", momentum=0.8), channels={"momentum": {"kind": "top_k", "k": 3}}, participation=TWO_OF_THREE),
    fb("momentum_correction", o={"momentum": 0.7, "masking": True}),
    fb("momentum_correction", "no_masking", o={"momentum": 0.7, "masking": False}),
    fb("power_ef", channels={"power2": {"kind": "ef_sign"}}, o={"steps": 2, "perturbation": 0.1}),
    fb("sa_pef", local=sgd(), o={"alpha": 0.6}),
    fb("scafcom", local=sgd("scallion"), o={"momentum": 0.4}, participation=TWO_OF_THREE),
    fb("scaffold", local=sgd("scaffold"), channels={"control": {"kind": "top_k", "k": 3}}, participation=TWO_OF_THREE),
    fb("scallion", up=QSGD, local=sgd("scallion"), o={"alpha": 0.6}, participation=TWO_OF_THREE),
    fb("signum", o={"momentum": 0.6}),
    fb("signum", "vote", {"kind": "sign"}, o={"momentum": 0.6}, server={"kind": "sign_sgd", "learning_rate": 0.5}),
    fb("three_pc", "ef21_of_four", TOP4, o={"variant": "ef21"}),
    fb("three_pc", "lag", {"kind": "identity"}, o={"variant": "lag", "zeta": 2.5}),
    fb("three_pc", "clag", o={"variant": "clag", "zeta": 2.0}),
    fb("three_pc", "v2", channels={"drift": QSGD}, o={"variant": "v2"}),
    fb("three_pc", "v4", channels={"first": {"kind": "top_k", "k": 1}}, o={"variant": "v4"}),
    fb("three_pc", "v5", o={"variant": "v5", "p": 0.7}),
    fb("three_pc", "adacgd", TOP4, channels={"level1": {"kind": "top_k", "k": 1}, "level2": {"kind": "top_k", "k": 3}},
       o={"variant": "adacgd", "zeta": 2.0, "levels": 3}),
]
