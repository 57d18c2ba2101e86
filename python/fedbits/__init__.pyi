"""Written by scripts/python_stubs.py."""
from typing import Any, Final, Literal, Mapping, Sequence

from fedbits import export as export, plot as plot
from fedbits._core import ConfigError as ConfigError
from fedbits._core import DataError as DataError
from fedbits._core import DeviceError as DeviceError
from fedbits._core import Error as Error
from fedbits._core import MessageOverflow as MessageOverflow
from fedbits._core import StoreError as StoreError
from fedbits.build import build_info as build_info
from fedbits.compressors import Compressor as Compressor
from fedbits.compressors import Contract as Contract
from fedbits.compressors import Memory as Memory
from fedbits.compressors import Message as Message
from fedbits.compressors import compressors as compressors
from fedbits.data import Dataset as Dataset
from fedbits.feedbacks import Feedback as Feedback
from fedbits.feedbacks import feedbacks as feedbacks
from fedbits.models import DataFacts as DataFacts
from fedbits.models import Model as Model
from fedbits.models import Partitioner as Partitioner
from fedbits.models import Request as Request
from fedbits.models import Rows as Rows
from fedbits.progress import Progress as Progress
from fedbits.scenario import Scenario as Scenario
from fedbits.simulator import Check as Check
from fedbits.simulator import check as check
from fedbits.simulator import plan as plan
from fedbits.simulator import run as run
from fedbits.simulator import suggest as suggest
from fedbits.simulator import sweep as sweep
from fedbits.store import Report as Report
from fedbits.store import Store as Store
from fedbits.store import StudyWarning as StudyWarning

class AbsoluteLowRank(Compressor):
    """Singular values above a threshold; an absolute compressor of matrices.

    threshold: singular values up to here are dropped (> 0, <= 1e+30; default 0.1)
    rule: threshold: in units of the input; the others: in units of the gradient, times the step size. lambda: for unit = "step". gamma: for unit = "update", the step size of a local step. gamma_steps: for unit = "update", that times local.steps ('threshold' or 'lambda' or 'gamma' or 'gamma_steps'; default 'threshold')

    Source: after the outlook of Sahu et al., Rethinking gradient sparsification, NeurIPS 2021."""
    threshold: Final[float]
    rule: Final[Literal['threshold', 'lambda', 'gamma', 'gamma_steps']]
    def __init__(self, *, threshold: float = 0.1, rule: Literal['threshold', 'lambda', 'gamma', 'gamma_steps'] = 'threshold',
                 scope: str = 'model', bucket: int = 0) -> None: ...


class AbsoluteRounding(Compressor):
    """Rounding to a grid of given step; an absolute compressor, unbiased.

    step: t, the step of the grid; a rule may name epsilon, d, gamma (default 0.01)
    rule: step: in units of the input; the others: in units of the gradient, times the step size. lambda: for unit = "step". gamma: for unit = "update", the step size of a local step. gamma_steps: for unit = "update", that times local.steps ('step' or 'lambda' or 'gamma' or 'gamma_steps'; default 'step')
    epsilon: value of epsilon in a rule: squared error allowed per step (> 0; default 0.0)
    rounding: stochastic is unbiased, nearest has half the largest error ('stochastic' or 'nearest'; default 'stochastic')
    deadzone: z: magnitudes below z steps become 0 (>= 0, <= 1000; default 0.0)

    Source: this project; after the outlook of Sahu et al., Rethinking gradient sparsification, NeurIPS 2021."""
    step: Final[float | str]
    rule: Final[Literal['step', 'lambda', 'gamma', 'gamma_steps']]
    epsilon: Final[float]
    rounding: Final[Literal['stochastic', 'nearest']]
    deadzone: Final[float]
    def __init__(self, *, step: float | str = 0.01, rule: Literal['step', 'lambda', 'gamma', 'gamma_steps'] = 'step', epsilon: float = 0.0,
                 rounding: Literal['stochastic', 'nearest'] = 'stochastic', deadzone: float = 0.0, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class Accordion(Compressor):
    """Less compression for layers whose norm changes, more for the others.

    critical: operator for segments in a critical phase (default {'kind': 'top_k', 'ratio': 0.01, 'ties': 'lowest_index', 'value_format': 'native', 'published_bits_per_value': 32, 'count_index_bits': False})
    otherwise: operator for all other segments (default {'kind': 'top_k', 'ratio': 0.01, 'ties': 'lowest_index', 'value_format': 'native', 'published_bits_per_value': 32, 'count_index_bits': False})
    eta: relative change of a segment's norm that makes it critical (> 0, <= 1e+06; default 0.5)
    window: rounds of a client between decisions (>= 1, <= 1e+06; rounds; default 10)

    Source: Agarwal, Wang, Lee, Venkataraman, Papailiopoulos, Accordion, MLSys 2021."""
    critical: Final[Compressor]
    otherwise: Final[Compressor]
    eta: Final[float]
    window: Final[int]
    def __init__(self, *, critical: Compressor = ..., otherwise: Compressor = ..., eta: float = 0.5, window: int = 10, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class AdaQS(Compressor):
    """QSGD whose levels double every E rounds; unbiased.

    levels: s_0, the levels between 0 and the norm in the first rounds (>= 1, <= 1048576; default 1)
    double_every: E: number of rounds after which the levels double (>= 1, <= 4294967295; rounds; default 50)
    max_levels: s_max, where the doubling ends (>= 1, <= 1048576; default 127)
    scaled: divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it (default False)

    Source: Guo, Liu, Wang, Gong, Accelerating distributed deep learning by adaptive gradient quantization, ICASSP 2020."""
    levels: Final[int]
    double_every: Final[int]
    max_levels: Final[int]
    scaled: Final[bool]
    def __init__(self, *, levels: int = 1, double_every: int = 50, max_levels: int = 127, scaled: bool = False, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class AjiDropping(Compressor):
    """Entries that reach a threshold, estimated from a random sample of the magnitudes.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    sample: fraction of a segment's entries that the threshold is estimated from, at least one (> 0, <= 1; default 0.001)
    exact: take the k-th largest magnitude of all entries as the threshold instead of a sample's (default False)

    Source: Aji, Heafield, Sparse communication for distributed gradient descent, EMNLP 2017."""
    k: Final[int]
    ratio: Final[float]
    sample: Final[float]
    exact: Final[bool]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, sample: float = 0.001, exact: bool = False, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class Atomo(Compressor):
    """Random entries or singular triplets with the probabilities of least variance; unbiased.

    atoms: entries of a segment, or singular triplets of a matrix ('entries' or 'singular'; default 'entries')
    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    rank: singular triplets expected of each matrix, for atoms = "singular" (>= 1, <= 1024; default 2)
    scaled: divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it (default False)

    Source: Wang, Sievert, Liu, Charles, Papailiopoulos, Wright, ATOMO, NeurIPS 2018."""
    atoms: Final[Literal['entries', 'singular']]
    k: Final[int]
    ratio: Final[float]
    rank: Final[int]
    scaled: Final[bool]
    def __init__(self, *, atoms: Literal['entries', 'singular'] = 'entries', k: int = 0, ratio: float = 0.01, rank: int = 2,
                 scaled: bool = False, scope: str = 'model', bucket: int = 0) -> None: ...


class DGCSampled(Compressor):
    """A sampled threshold, corrected until about the wanted number is sent; warm-up densities.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.001)
    sample: fraction of a segment's entries that the first threshold is estimated from, at least one (> 0, <= 1; default 0.01)
    rounds: largest number of corrections of the threshold; 0 uses the estimate unchanged (>= 0, <= 1000; default 10)
    tolerance: part of the wanted number by which the number sent may differ, and of a threshold's step (> 0, < 1; default 0.3)
    warmup: densities of the first rounds, each for warmup_rounds; then ratio or k (default [])
    warmup_rounds: rounds that each density of the warm-up lasts (>= 0, <= 1e+09; rounds; default 0)

    Source: Lin, Han, Mao, Wang, Dally, Deep gradient compression, ICLR 2018."""
    k: Final[int]
    ratio: Final[float]
    sample: Final[float]
    rounds: Final[int]
    tolerance: Final[float]
    warmup: Final[Sequence[float]]
    warmup_rounds: Final[int]
    def __init__(self, *, k: int = 0, ratio: float = 0.001, sample: float = 0.01, rounds: int = 10, tolerance: float = 0.3,
                 warmup: Sequence[float] = ..., warmup_rounds: int = 0, scope: str = 'model', bucket: int = 0) -> None: ...


class DQSGD(Compressor):
    """QSGD whose number of levels grows with the norm; absolute and unbiased.

    levels_per_unit: c: a norm of |x| gets ceil(c |x|) levels (> 0, <= 1e+30; default 1.0)
    rule: levels: per unit of the input; the others: per unit of the gradient, divided by the step size. lambda: for unit = "step". gamma: for unit = "update", the step size of a local step. gamma_steps: for unit = "update", that times local.steps ('levels' or 'lambda' or 'gamma' or 'gamma_steps'; default 'levels')
    max_levels: upper bound of s (>= 1, <= 16777215; default 1048576)

    Source: Yan, Huang, Lan, Song, DQ-SGD: Dynamic quantization in SGD, 2021."""
    levels_per_unit: Final[float]
    rule: Final[Literal['levels', 'lambda', 'gamma', 'gamma_steps']]
    max_levels: Final[int]
    def __init__(self, *, levels_per_unit: float = 1.0, rule: Literal['levels', 'lambda', 'gamma', 'gamma_steps'] = 'levels',
                 max_levels: int = 1048576, scope: str = 'model', bucket: int = 0) -> None: ...


class DRIVE(Compressor):
    """The signs of a randomly rotated segment; unbiased, or a contraction.

    scale: unbiased, for means over clients; min_error is a contraction, as error feedback needs it ('unbiased' or 'min_error'; default 'unbiased')

    Source: Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher, DRIVE, NeurIPS 2021."""
    scale: Final[Literal['unbiased', 'min_error']]
    def __init__(self, *, scale: Literal['unbiased', 'min_error'] = 'unbiased', scope: str = 'model', bucket: int = 0) -> None: ...


class Dettmers8(Compressor):
    """8 bits: the nearest entry of a dynamic tree, relative to the largest; a contraction.


    Source: Dettmers, 8-bit approximations for parallelism in deep learning, ICLR 2016."""
    def __init__(self, *, scope: str = 'model', bucket: int = 0) -> None: ...


class Dryden(Compressor):
    """The largest positive and negative entries, each side as its mean.

    ratio: part of the positive and of the negative entries that is kept, at least one of each (> 0, <= 1; default 0.01)

    Source: Dryden, Moon, Jacobs, Van Essen, Communication quantization, MLHPC 2016."""
    ratio: Final[float]
    def __init__(self, *, ratio: float = 0.01, scope: str = 'model', bucket: int = 0) -> None: ...


class EDEN(Compressor):
    """A randomly rotated segment in b bits, levels of the normal law; unbiased, or a contraction.

    bits: b: 2^b levels for each rotated coordinate (>= 1, <= 8; default 2)
    scale: unbiased, for means over clients; min_error is a contraction, as error feedback needs it ('unbiased' or 'min_error'; default 'unbiased')

    Source: Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher, EDEN, ICML 2022."""
    bits: Final[int]
    scale: Final[Literal['unbiased', 'min_error']]
    def __init__(self, *, bits: int = 2, scale: Literal['unbiased', 'min_error'] = 'unbiased', scope: str = 'model',
                 bucket: int = 0) -> None: ...


class EFSign(Compressor):
    """Sign times the mean magnitude of the segment; a contraction, for error feedback.


    Source: Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD, ICML 2019."""
    def __init__(self, *, scope: str = 'model', bucket: int = 0) -> None: ...


class FP8(Compressor):
    """8-bit floats, e4m3 or e5m2, with a scale per segment; a contraction.

    format: e4m3: three bits of mantissa, e5m2: two, and the range of fp16 ('e4m3' or 'e5m2'; default 'e4m3')
    scaled: scale each segment so that its largest magnitude is the format's; false sends the numbers as they are (default True)

    Source: Micikevicius et al., FP8 formats for deep learning, 2022."""
    format: Final[Literal['e4m3', 'e5m2']]
    scaled: Final[bool]
    def __init__(self, *, format: Literal['e4m3', 'e5m2'] = 'e4m3', scaled: bool = True, scope: str = 'model', bucket: int = 0) -> None: ...


class GradZip(Compressor):
    """Low rank by a sweep of alternating least squares from the client's last factor.

    rank: columns of the factors (>= 1, <= 1024; default 2)
    ridge: ridge term, as a part of the mean diagonal entry of the normal matrix (> 0, <= 1e+06; default 0.001)

    Source: Cho, Muthusamy, Nemanich, Puri, GradZip, NeurIPS 2019 workshop."""
    rank: Final[int]
    ridge: Final[float]
    def __init__(self, *, rank: int = 2, ridge: float = 0.001, scope: str = 'model', bucket: int = 0) -> None: ...


class HardThreshold(Compressor):
    """Every entry at least as large as a threshold; an absolute compressor.

    threshold: smallest magnitude that is kept; a rule may name k, epsilon, d, gamma (default 0.01)
    rule: threshold: in units of the input; the others: in units of the gradient, times the step size. lambda: for unit = "step". gamma: for unit = "update", the step size of a local step. gamma_steps: for unit = "update", that times local.steps ('threshold' or 'lambda' or 'gamma' or 'gamma_steps'; default 'threshold')
    k: value of k in a rule: entries that Top-k would keep (>= 1, <= 4294967295; default 0)
    epsilon: value of epsilon in a rule: squared error allowed per step (> 0; default 0.0)
    value_format: number format of the values sent ('native' or 'fp16' or 'bf16' or 'fp32' or 'fp64'; default 'native')

    Source: Dutta et al., On the discrepancy between theory and practice of compressed communication, AAAI 2020."""
    threshold: Final[float | str]
    rule: Final[Literal['threshold', 'lambda', 'gamma', 'gamma_steps']]
    k: Final[int]
    epsilon: Final[float]
    value_format: Final[Literal['native', 'fp16', 'bf16', 'fp32', 'fp64']]
    def __init__(self, *, threshold: float | str = 0.01, rule: Literal['threshold', 'lambda', 'gamma', 'gamma_steps'] = 'threshold',
                 k: int = 0, epsilon: float = 0.0, value_format: Literal['native', 'fp16', 'bf16', 'fp32', 'fp64'] = 'native',
                 scope: str = 'model', bucket: int = 0) -> None: ...


class Identity(Compressor):
    """Sends every value; format = "fp16" or "bf16" sends it in 16 bits.

    format: number format on the wire; native is the scenario's precision ('native' or 'fp16' or 'bf16' or 'fp32' or 'fp64'; default 'native')"""
    format: Final[Literal['native', 'fp16', 'bf16', 'fp32', 'fp64']]
    def __init__(self, *, format: Literal['native', 'fp16', 'bf16', 'fp32', 'fp64'] = 'native', scope: str = 'model',
                 bucket: int = 0) -> None: ...


class Inceptionn(Compressor):
    """Floats cut to fixed point, 16, 8 or no bits by their exponent; absolute.

    error_bits: b: magnitudes below 2^-b become 0 (>= 1, <= 15; default 10)

    Source: Li et al., A network-centric hardware/algorithm co-design to accelerate distributed training, MICRO 2018."""
    error_bits: Final[int]
    def __init__(self, *, error_bits: int = 10, scope: str = 'model', bucket: int = 0) -> None: ...


class Induced(Compressor):
    """A biased operator and an unbiased operator on its error; together unbiased.

    biased: C, a contraction (default {'kind': 'top_k', 'ratio': 0.01, 'ties': 'lowest_index', 'value_format': 'native', 'published_bits_per_value': 32, 'count_index_bits': False})
    unbiased: Q, which compresses the error of C (default {'kind': 'natural', 'rounding': 'stochastic'})

    Source: Horvath, Richtarik, A better alternative to error feedback, ICLR 2021."""
    biased: Final[Compressor]
    unbiased: Final[Compressor]
    def __init__(self, *, biased: Compressor = ..., unbiased: Compressor = ..., scope: str = 'model', bucket: int = 0) -> None: ...


class LGreCo(Compressor):
    """An operator for each layer: the shortest message at the error of a reference.

    reference: the operator whose error on all segments is the allowed error; one of the candidates (default {'kind': 'top_k', 'ratio': 0.01, 'ties': 'lowest_index', 'value_format': 'native', 'published_bits_per_value': 32, 'count_index_bits': False})
    candidates: other operators that a segment may take (default [])
    alpha: error allowed, as a part of the reference's (> 0, <= 1e+06; default 1.0)
    adjust_every: rounds of a client between choices (>= 1, <= 1e+06; rounds; default 10)
    steps: number of steps into which the allowed error is divided (>= 1, <= 1e+06; default 1000)

    Source: Alimohammadi, Markov, Frantar, Alistarh, L-GreCo, MLSys 2024."""
    reference: Final[Compressor]
    candidates: Final[Sequence[Compressor]]
    alpha: Final[float]
    adjust_every: Final[int]
    steps: Final[int]
    def __init__(self, *, reference: Compressor = ..., candidates: Sequence[Compressor] = ..., alpha: float = 1.0, adjust_every: int = 10,
                 steps: int = 1000, scope: str = 'model', bucket: int = 0) -> None: ...


class LPC(Compressor):
    """B-bit integers on a grid over the segment's range, rounded at random; unbiased.

    bits: b, the width of a level (>= 2, <= 16; default 8)
    clip: lambda: the grid ends at lambda max|x|; 1 clips nothing and is unbiased (> 0, <= 1; default 1.0)
    scaled: divide by 1 + omega, as error feedback needs it; without clipping a contraction (default False)

    Source: Yu, Wu, Huang, Double quantization for communication-efficient distributed optimization, NeurIPS 2019."""
    bits: Final[int]
    clip: Final[float]
    scaled: Final[bool]
    def __init__(self, *, bits: int = 8, clip: float = 1.0, scaled: bool = False, scope: str = 'model', bucket: int = 0) -> None: ...


class Natural(Compressor):
    """Powers of two: sign and exponent only.

    rounding: stochastic is unbiased, nearest is a contraction ('stochastic' or 'nearest'; default 'stochastic')

    Source: Horvath, Ho, Horvath, Sahu, Canini, Richtarik, Natural compression, MSML 2022."""
    rounding: Final[Literal['stochastic', 'nearest']]
    def __init__(self, *, rounding: Literal['stochastic', 'nearest'] = 'stochastic', scope: str = 'model', bucket: int = 0) -> None: ...


class NaturalDithering(Compressor):
    """Random rounding to powers of two of the segment's norm; unbiased.

    levels: s, the powers of two between 0 and the norm, 1 included (>= 1, <= 60; default 8)
    norm: the p-norm that a segment is divided by ('l1' or 'l2' or 'max'; default 'l2')
    scaled: divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it (default False)

    Source: Horvath, Ho, Horvath, Sahu, Canini, Richtarik, Natural compression, MSML 2022."""
    levels: Final[int]
    norm: Final[Literal['l1', 'l2', 'max']]
    scaled: Final[bool]
    def __init__(self, *, levels: int = 8, norm: Literal['l1', 'l2', 'max'] = 'l2', scaled: bool = False, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class OneBit(Compressor):
    """The means of the negative and of the other entries; a contraction, for error feedback.


    Source: Seide, Fu, Droppo, Li, Yu, 1-bit stochastic gradient descent, INTERSPEECH 2014."""
    def __init__(self, *, scope: str = 'model', bucket: int = 0) -> None: ...


class PermK(Compressor):
    """The clients' own parts of one random permutation; the mean of equal vectors is exact.

    clients: clients n that share a permutation, each sending 1/n of the entries; 0 = all clients of the run (>= 0, <= 4294967295; default 0)
    value_format: number format of the values sent ('native' or 'fp16' or 'bf16' or 'fp32' or 'fp64'; default 'native')

    Source: Szlendak, Tyurin, Richtarik, Permutation compressors, ICLR 2022."""
    clients: Final[int]
    value_format: Final[Literal['native', 'fp16', 'bf16', 'fp32', 'fp64']]
    def __init__(self, *, clients: int = 0, value_format: Literal['native', 'fp16', 'bf16', 'fp32', 'fp64'] = 'native',
                 scope: str = 'model', bucket: int = 0) -> None: ...


class PowerSGD(Compressor):
    """Low-rank factors of matrices by one shared step of power iteration.

    rank: columns of the factors (>= 1, <= 1024; default 2)
    warm_start: start the power iteration from the factor of the round before (default True)

    Source: Vogels, Karimireddy, Jaggi, PowerSGD, NeurIPS 2019."""
    rank: Final[int]
    warm_start: Final[bool]
    def __init__(self, *, rank: int = 2, warm_start: bool = True, scope: str = 'model', bucket: int = 0) -> None: ...


class QSGD(Compressor):
    """Random rounding to s levels of the segment's norm; unbiased.

    levels: s, the levels between 0 and the norm; 127 fills 8 bits with the sign (>= 1, <= 1048576; default 127)
    norm: what a segment is divided by ('l2' or 'max'; default 'l2')
    scaled: divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it (default False)

    Source: Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NeurIPS 2017."""
    levels: Final[int]
    norm: Final[Literal['l2', 'max']]
    scaled: Final[bool]
    def __init__(self, *, levels: int = 127, norm: Literal['l2', 'max'] = 'l2', scaled: bool = False, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class Qsparse(Compressor):
    """The k largest entries, quantised to random levels or to signs.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    quantizer: random levels of the kept entries' norm, or their signs times their mean magnitude ('qsgd' or 'sign'; default 'qsgd')
    levels: s, the levels between 0 and the norm, for quantizer = "qsgd" (>= 1, <= 1048576; default 15)
    scaled: divide by 1 + beta, which makes it a contraction for any s (default True)

    Source: Basu, Data, Karakus, Diggavi, Qsparse-local-SGD, NeurIPS 2019."""
    k: Final[int]
    ratio: Final[float]
    quantizer: Final[Literal['qsgd', 'sign']]
    levels: Final[int]
    scaled: Final[bool]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, quantizer: Literal['qsgd', 'sign'] = 'qsgd', levels: int = 15,
                 scaled: bool = True, scope: str = 'model', bucket: int = 0) -> None: ...


class RandomK(Compressor):
    """K random entries, scaled by d/k (unbiased) or not (a contraction).

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    scaled: multiply by d/k: unbiased, but not a contraction (error feedback needs false) (default False)
    value_format: number format of the values sent ('native' or 'fp16' or 'bf16' or 'fp32' or 'fp64'; default 'native')
    positions: whether positions travel, or both sides draw them from a common seed: for each client, or one set for all clients ('sent' or 'seed' or 'common'; default 'sent')

    Source: Stich, Cordonnier, Jaggi, Sparsified SGD with memory, NeurIPS 2018."""
    k: Final[int]
    ratio: Final[float]
    scaled: Final[bool]
    value_format: Final[Literal['native', 'fp16', 'bf16', 'fp32', 'fp64']]
    positions: Final[Literal['sent', 'seed', 'common']]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, scaled: bool = False,
                 value_format: Literal['native', 'fp16', 'bf16', 'fp32', 'fp64'] = 'native',
                 positions: Literal['sent', 'seed', 'common'] = 'sent', scope: str = 'model', bucket: int = 0) -> None: ...


class RankRSVD(Compressor):
    """The best approximation of rank r of every matrix.

    rank: singular triplets kept of each matrix (>= 1, <= 1024; default 2)

    Source: Eckart, Young, 1936; Vogels, Karimireddy, Jaggi, PowerSGD, NeurIPS 2019."""
    rank: Final[int]
    def __init__(self, *, rank: int = 2, scope: str = 'model', bucket: int = 0) -> None: ...


class SIDCo(Compressor):
    """Entries above a quantile of a distribution that is fitted to the magnitudes, in stages.

    ratio: fraction of a segment's entries that is wanted (> 0, < 1; default 0.01)
    fit: distribution of the magnitudes: exponential, generalised Pareto, or gamma followed by generalised Pareto ('exponential' or 'pareto' or 'gamma_pareto'; default 'exponential')
    stages: number of fits, each on the magnitudes above the previous threshold; 0 adapts the number (>= 0, <= 64; default 0)
    first_ratio: ratio of the first of several stages (> 0, < 1; default 0.25)
    update_every: rounds of a client after which an adapted number of stages is revised (>= 1, <= 1e+06; default 5)

    Source: Abdelmoniem, Elzanaty, Alouini, Canini, SIDCo, MLSys 2021."""
    ratio: Final[float]
    fit: Final[Literal['exponential', 'pareto', 'gamma_pareto']]
    stages: Final[int]
    first_ratio: Final[float]
    update_every: Final[int]
    def __init__(self, *, ratio: float = 0.01, fit: Literal['exponential', 'pareto', 'gamma_pareto'] = 'exponential', stages: int = 0,
                 first_ratio: float = 0.25, update_every: int = 5, scope: str = 'model', bucket: int = 0) -> None: ...


class STC(Compressor):
    """Sparse ternary: the k largest entries as signs times their mean magnitude.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)

    Source: Sattler, Wiedemann, Mueller, Samek, TNNLS 2020."""
    k: Final[int]
    ratio: Final[float]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, scope: str = 'model', bucket: int = 0) -> None: ...


class SZ(Compressor):
    """Rounding to a grid, and differences to a prediction; absolute, with a bound for each entry.

    error_bound: eb, the largest error of an entry; a rule may name epsilon, d, gamma (default 0.01)
    rule: error_bound: in units of the input; the others: in units of the gradient, times the step size. lambda: for unit = "step". gamma: for unit = "update", the step size of a local step. gamma_steps: for unit = "update", that times local.steps ('error_bound' or 'lambda' or 'gamma' or 'gamma_steps'; default 'error_bound')
    epsilon: value of epsilon in a rule: squared error allowed per step (> 0; default 0.0)
    predictor: the prediction of a number: 0, the number before it, or the plane through three neighbours in its matrix ('none' or 'previous' or 'plane'; default 'previous')

    Source: Di, Cappello, Fast error-bounded lossy HPC data compression with SZ, IPDPS 2016."""
    error_bound: Final[float | str]
    rule: Final[Literal['error_bound', 'lambda', 'gamma', 'gamma_steps']]
    epsilon: Final[float]
    predictor: Final[Literal['none', 'previous', 'plane']]
    def __init__(self, *, error_bound: float | str = 0.01, rule: Literal['error_bound', 'lambda', 'gamma', 'gamma_steps'] = 'error_bound',
                 epsilon: float = 0.0, predictor: Literal['none', 'previous', 'plane'] = 'previous', scope: str = 'model',
                 bucket: int = 0) -> None: ...


class ScaledInteger(Compressor):
    """Integers on a fixed grid that may be added before decoding; absolute.

    alpha: grid points per unit of the input; a power of two keeps the decoding exact (> 0, <= 1e+30; default 1048576.0)
    bits: width of an integer: 8, 16 or 32 (>= 8, <= 32; default 32)
    rounding: stochastic is unbiased ('nearest' or 'stochastic'; default 'nearest')

    Source: Sapio et al., SwitchML, NSDI 2021."""
    alpha: Final[float]
    bits: Final[int]
    rounding: Final[Literal['nearest', 'stochastic']]
    def __init__(self, *, alpha: float = 1048576.0, bits: int = 32, rounding: Literal['nearest', 'stochastic'] = 'nearest',
                 scope: str = 'model', bucket: int = 0) -> None: ...


class Schedule(Compressor):
    """Different operators in successive rounds, such as a warm-up.

    stages: operators, one after another (default [{'kind': 'top_k', 'ratio': 0.01, 'ties': 'lowest_index', 'value_format': 'native', 'published_bits_per_value': 32, 'count_index_bits': False}])
    from_: the first round of each stage; ascending, the first is 1 (>= 1, <= 4294967295; default [1])"""
    stages: Final[Sequence[Compressor]]
    from_: Final[Sequence[int]]
    def __init__(self, *, stages: Sequence[Compressor] = ..., from_: Sequence[int] = ..., scope: str = 'model',
                 bucket: int = 0) -> None: ...


class Sign(Compressor):
    """+1 or -1, one bit; for majority votes (server kind "sign_sgd").


    Source: Bernstein, Wang, Azizzadenesheli, Anandkumar, signSGD, ICML 2018."""
    def __init__(self, *, scope: str = 'model', bucket: int = 0) -> None: ...


class SketchML(Compressor):
    """The mean of the quantile bucket that an entry falls into.

    buckets: q, the quantile buckets of each segment (>= 2, <= 65536; default 256)

    Source: Jiang, Fu, Yang, Cui, SketchML, SIGMOD 2018."""
    buckets: Final[int]
    def __init__(self, *, buckets: int = 256, scope: str = 'model', bucket: int = 0) -> None: ...


class SketchedSGD(Compressor):
    """Heavy entries of the mean, found in a count sketch that adds up; two phases.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    rows: hash functions of the sketch; the median of as many estimates is taken (>= 1, <= 101; default 5)
    columns: counters of each hash function (>= 1, <= 268435456; default 1000)

    Source: Ivkin, Rothchild, Ullah, Braverman, Stoica, Arora, Sketched-SGD, NeurIPS 2019."""
    k: Final[int]
    ratio: Final[float]
    rows: Final[int]
    columns: Final[int]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, rows: int = 5, columns: int = 1000, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class StochasticRounding(Compressor):
    """Random rounding to fixed point of IL.FL bits; absolute and unbiased.

    integer_bits: IL, bits before the point, the sign's included (>= 1, <= 32; default 2)
    fraction_bits: FL, bits after the point: the step is 2^-FL (>= 0, <= 40; default 14)
    rounding: stochastic is unbiased; nearest rounds ties to even ('stochastic' or 'nearest'; default 'stochastic')

    Source: Gupta, Agrawal, Gopalakrishnan, Narayanan, Deep learning with limited numerical precision, ICML 2015."""
    integer_bits: Final[int]
    fraction_bits: Final[int]
    rounding: Final[Literal['stochastic', 'nearest']]
    def __init__(self, *, integer_bits: int = 2, fraction_bits: int = 14, rounding: Literal['stochastic', 'nearest'] = 'stochastic',
                 scope: str = 'model', bucket: int = 0) -> None: ...


class Strom(Compressor):
    """+tau or -tau for every entry whose magnitude exceeds tau; for error feedback.

    tau: magnitude that an entry must exceed to be sent, and its magnitude at the receiver (> 0, <= 1e+30; default 0.01)

    Source: Strom, Scalable distributed DNN training using commodity GPU cloud computing, INTERSPEECH 2015."""
    tau: Final[float]
    def __init__(self, *, tau: float = 0.01, scope: str = 'model', bucket: int = 0) -> None: ...


class TernGrad(Compressor):
    """0 or +- the largest magnitude, at random, after clipping.

    clip: c: entries are clipped to c standard deviations of their segment; 0 clips nothing and is unbiased (>= 0; default 2.5)
    scaled: divide by 1 + omega, as error feedback needs it; without clipping a contraction (default False)

    Source: Wen, Xu, Yan, Wu, Wang, Chen, Li, TernGrad, NeurIPS 2017."""
    clip: Final[float]
    scaled: Final[bool]
    def __init__(self, *, clip: float = 2.5, scaled: bool = False, scope: str = 'model', bucket: int = 0) -> None: ...


class ThreeLC(Compressor):
    """-1, 0 or 1 times the largest magnitude and a multiplier; a contraction.

    sparsity: s, the sparsity multiplier: a larger one sends more zeros (>= 1, < 2; default 1.0)

    Source: Lim, Andersen, Kaminsky, 3LC, MLSys 2019."""
    sparsity: Final[float]
    def __init__(self, *, sparsity: float = 1.0, scope: str = 'model', bucket: int = 0) -> None: ...


class TopK(Compressor):
    """The k entries of largest magnitude, exactly.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    ties: lowest_index keeps exactly k entries, all keeps every entry as large as the k-th ('lowest_index' or 'all'; default 'lowest_index')
    value_format: number format of the values sent ('native' or 'fp16' or 'bf16' or 'fp32' or 'fp64'; default 'native')
    published_bits_per_value: what the published count charges for a value: 32, or 64 with an int32 index (>= 1, <= 128; bits; default 32)
    count_index_bits: add ceil(log2 P) bits for each index to the published count (default False)

    Source: Aji, Heafield, Sparse communication for distributed gradient descent, EMNLP 2017."""
    k: Final[int]
    ratio: Final[float]
    ties: Final[Literal['lowest_index', 'all']]
    value_format: Final[Literal['native', 'fp16', 'bf16', 'fp32', 'fp64']]
    published_bits_per_value: Final[int]
    count_index_bits: Final[bool]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, ties: Literal['lowest_index', 'all'] = 'lowest_index',
                 value_format: Literal['native', 'fp16', 'bf16', 'fp32', 'fp64'] = 'native', published_bits_per_value: int = 32,
                 count_index_bits: bool = False, scope: str = 'model', bucket: int = 0) -> None: ...


class VQSGD(Compressor):
    """Random vertices of the cross polytope around the segment; unbiased.

    repetitions: R, the vertices drawn for each segment (>= 1, <= 1048576; default 8)
    scaled: divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it (default False)

    Source: Gandikota, Kane, Maity, Mazumdar, vqSGD, AISTATS 2021."""
    repetitions: Final[int]
    scaled: Final[bool]
    def __init__(self, *, repetitions: int = 8, scaled: bool = False, scope: str = 'model', bucket: int = 0) -> None: ...


class VarianceBased(Compressor):
    """Entries whose accumulated value is large relative to their noise; has its own memory.

    alpha: an entry is sent when the square of its accumulated value exceeds alpha times its variance (> 0, <= 1e+06; default 1.0)
    zeta: factor by which the variance of an entry that is not sent shrinks in each round (> 0, <= 1; default 0.999)

    Source: Tsuzuku, Imachi, Akiba, Variance-based gradient compression, ICLR 2018 workshop."""
    alpha: Final[float]
    zeta: Final[float]
    def __init__(self, *, alpha: float = 1.0, zeta: float = 0.999, scope: str = 'model', bucket: int = 0) -> None: ...


class Wangni(Compressor):
    """Random entries with the probabilities of least variance; unbiased.

    k: entries kept in each segment; without it the ratio decides (>= 1, <= 4294967295; default 0)
    ratio: fraction kept: max(1, floor(ratio * size)) entries of each segment (> 0, <= 1; default 0.01)
    scaled: multiply by k/d: no longer unbiased, but a contraction, as error feedback needs it (default False)
    corrections: largest number of times that the probabilities are raised until they add up to k (>= 0, <= 1e+06; default 100)

    Source: Wangni, Wang, Liu, Zhang, Gradient sparsification, NeurIPS 2018."""
    k: Final[int]
    ratio: Final[float]
    scaled: Final[bool]
    corrections: Final[int]
    def __init__(self, *, k: int = 0, ratio: float = 0.01, scaled: bool = False, corrections: int = 100, scope: str = 'model',
                 bucket: int = 0) -> None: ...


class ZFP(Compressor):
    """Cosine transforms of blocks, rounded to a grid; absolute, with a bound for each entry.

    error_bound: eb, the largest error of an entry; a rule may name epsilon, d, gamma (default 0.01)
    rule: error_bound: in units of the input; the others: in units of the gradient, times the step size. lambda: for unit = "step". gamma: for unit = "update", the step size of a local step. gamma_steps: for unit = "update", that times local.steps ('error_bound' or 'lambda' or 'gamma' or 'gamma_steps'; default 'error_bound')
    epsilon: value of epsilon in a rule: squared error allowed per step (> 0; default 0.0)
    block: numbers that are transformed together: four in order, or 4 x 4 of a matrix ('line' or 'square'; default 'line')

    Source: Lindstrom, Fixed-rate compressed floating-point arrays, IEEE TVCG 2014."""
    error_bound: Final[float | str]
    rule: Final[Literal['error_bound', 'lambda', 'gamma', 'gamma_steps']]
    epsilon: Final[float]
    block: Final[Literal['line', 'square']]
    def __init__(self, *, error_bound: float | str = 0.01, rule: Literal['error_bound', 'lambda', 'gamma', 'gamma_steps'] = 'error_bound',
                 epsilon: float = 0.0, block: Literal['line', 'square'] = 'line', scope: str = 'model', bucket: int = 0) -> None: ...


class CAFe(Feedback):
    """Compressed differences to the server's last aggregate; clients keep nothing.


    Source: Ortega, Huang, Li, Jafarkhani, 2025."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class CSER(Feedback):
    """Error reset: clients compute at their own models, which are synchronised every few rounds.

    reset_every: H: the error is reset in rounds H, 2H, ... (>= 1, <= 4294967295; rounds; default 8)

    Not usable here: 'cser' works in the simulator alone: its clients compute at models of their own.

    Source: Xie, Zheng, Koyejo, Gupta, Li, Lin, NeurIPS 2020."""
    reset_every: Final[int]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, reset_every: int = 8, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class Clip21(Feedback):
    """Clipped differences to a shift.

    tau: largest norm of a client's difference (> 0; default 1.0)

    Source: Khirirat, Gorbunov, Horvath, Islamov, Karray, Richtarik, 2023."""
    tau: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, tau: float = 1.0, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class DASHA(Feedback):
    """Compressed differences of variance-reduced gradients, never uncompressed.

    a: rate at which the estimate forgets its bias; theory: 1/(1+2 omega) (> 0, <= 1; default 0.1)
    init: first message: Q(g), or g itself (its bits are counted) ('compressed' or 'dense'; default 'compressed')

    Source: Tyurin, Richtarik, ICLR 2023."""
    a: Final[float]
    init: Final[Literal['compressed', 'dense']]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, a: float = 0.1,
                 init: Literal['compressed', 'dense'] = 'compressed', num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class DIANA(Feedback):
    """Unbiased compression of differences to a learned shift.

    alpha: step of the shift; theory: at most 1/(1+omega) (> 0, <= 1; default 0.5)

    Source: Mishchenko, Gorbunov, Takac, Richtarik, 2019."""
    alpha: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, alpha: float = 0.5, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class ECDIANA(Feedback):
    """Error feedback with learned shifts: two operators.

    alpha: step of the shift; theory: at most 1/(1+omega) of [compressor.up.shift] (> 0, <= 1; default 0.1)

    Source: Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020."""
    alpha: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, alpha: float = 0.1, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class ECGDStar(Feedback):
    """Error feedback on gradients minus those at the optimum.


    Not usable here: 'ec_gd_star' works in the simulator alone: its clients subtract their gradients at the optimum.

    Source: Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class ECLSVRG(Feedback):
    """Error feedback on variance-reduced gradients (L-SVRG).


    Not usable here: 'ec_lsvrg' works in the simulator alone: its clients compute what local kind "lsvrg" sends.

    Source: Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EControl(Feedback):
    """Error feedback with a controlled share of the error.

    eta: share of the error in the message; of the order of delta, 0 = EF21 (>= 0, <= 1; default 0.1)
    init: first message: C(g) from h = 0, whose error is kept; g itself (its bits are counted); or C(g), whose error is not kept ('zero' or 'dense' or 'message'; default 'zero')

    Source: Gao, Islamov, Stich, ICLR 2024."""
    eta: Final[float]
    init: Final[Literal['zero', 'dense', 'message']]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, eta: float = 0.1,
                 init: Literal['zero', 'dense', 'message'] = 'zero', num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EF14(Feedback):
    """Error feedback: the error of a message is added to the next input.


    Source: Seide et al., INTERSPEECH 2014; Stich, Cordonnier, Jaggi, NeurIPS 2018; Karimireddy et al., ICML 2019."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EF21(Feedback):
    """Compressed differences to a shift; momentum gives EF21-SGDM.

    init: first message: C(g) from h = 0, or g itself (its bits are counted) ('compressed' or 'dense'; default 'compressed')
    momentum: eta of EF21-SGDM, v <- (1-eta) v + eta g; 1 = plain EF21 (> 0, <= 1; default 1.0)

    Source: Richtarik, Sokolov, Fatkhullin, NeurIPS 2021; Fatkhullin, Tyurin, Richtarik, NeurIPS 2023."""
    init: Final[Literal['compressed', 'dense']]
    momentum: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, init: Literal['compressed', 'dense'] = 'compressed',
                 momentum: float = 1.0, num_clients: int, P: int | None = None, shapes: Sequence[Sequence[int]] | None = None,
                 weights: Sequence[float] | None = None, unit: str | None = None, seed: int = 1, dtype: Any = ...) -> None: ...


class EF21Normalised(Feedback):
    """EF21 whose steps have the length of the step size.

    momentum: eta of v <- (1-eta) v + eta g; 1 = no momentum (> 0, <= 1; default 1.0)

    Source: Khirirat, Sadiev, Riabinin, Gorbunov, Richtarik, 2024."""
    momentum: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, momentum: float = 1.0, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EF21P(Feedback):
    """Error feedback of models on the downlink; DCGD or DIANA on the uplink.

    alpha: step of DIANA's shift on the uplink, at most 1/(1+omega); 0 = DCGD (>= 0, <= 1; default 0.0)

    Not usable here: 'ef21_p' works in the simulator alone: it compresses the models that the server sends.

    Source: Gruntkowska, Tyurin, Richtarik, ICML 2023."""
    alpha: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, alpha: float = 0.0, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EF21Plus(Feedback):
    """The better of the compressed gradient and EF21's difference, client by client.


    Source: Richtarik, Sokolov, Fatkhullin, NeurIPS 2021."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EF21SGDM(Feedback):
    """Compressed differences of a momentum to a shift.

    momentum: eta of v <- (1-eta) v + eta g; 1 = EF21 (> 0, <= 1; default 0.1)

    Source: Fatkhullin, Tyurin, Richtarik, NeurIPS 2023."""
    momentum: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, momentum: float = 0.1, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class EFBV(Feedback):
    """One rule between EF21 and DIANA.

    lambda_: step of the shift (> 0, <= 1; default 1.0)
    nu: weight of the compressed difference in the estimate (> 0; default 1.0)

    Source: Condat, Yi, Richtarik, NeurIPS 2022."""
    lambda_: Final[float]
    nu: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, lambda_: float = 1.0, nu: float = 1.0, num_clients: int,
                 P: int | None = None, shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None,
                 unit: str | None = None, seed: int = 1, dtype: Any = ...) -> None: ...


class FedCOMGATE(Feedback):
    """Gradient tracking around compressed updates.


    Not usable here: 'fedcomgate' works in the simulator alone: its clients compute what local kind "fedcomgate" sends.

    Source: Haddadpour, Kamani, Mokhtari, Mahdavi, AISTATS 2021."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class FedDyn(Feedback):
    """Sums of the sent updates, which FedDyn's clients and server use.


    Not usable here: 'feddyn' works in the simulator alone: its clients compute what local kind "feddyn" sends.

    Source: Acar et al., ICLR 2021."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class FedPAQ(Feedback):
    """Unbiased quantisation of updates after local steps, without memory.


    Source: Reisizadeh, Mokhtari, Hassani, Jadbabaie, Pedarsani, AISTATS 2020."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class LAG(Feedback):
    """Lazy aggregation: a client is silent while its gradient has changed little.

    xi: weight of the model's recent movement in the trigger; 0 = always send (>= 0; default 0.1)
    memory: D: how many past model differences count (>= 1, <= 1000; default 10)

    Not usable here: 'lag' works in the simulator alone: its clients compare the models of past rounds.

    Source: Chen, Giannakis, Sun, Yin, NeurIPS 2018."""
    xi: Final[float]
    memory: Final[int]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, xi: float = 0.1, memory: int = 10, num_clients: int,
                 P: int | None = None, shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None,
                 unit: str | None = None, seed: int = 1, dtype: Any = ...) -> None: ...


class MARINA(Feedback):
    """Compressed gradient differences with occasional full rounds.

    p: probability of a round with uncompressed gradients (> 0, <= 1; default 0.1)

    Not usable here: 'marina' works in the simulator alone: its clients compute what local kind "gradient_difference" sends.

    Source: Gorbunov, Burlachenko, Li, Richtarik, ICML 2021."""
    p: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, p: float = 0.1, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class MimeLite(Feedback):
    """The server's momentum of MimeLite: two channels up, the momentum down.


    Not usable here: 'mime_lite' works in the simulator alone: its clients compute what local kind "mime_lite" sends.

    Source: Karimireddy et al., NeurIPS 2021."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class MomentumCorrection(Feedback):
    """Momentum before compression, with momentum factor masking (DGC).

    momentum: mu of u <- mu u + g (>= 0, < 1; default 0.9)
    masking: momentum factor masking: u and v are cleared where an entry was sent (default True)

    Source: Lin, Han, Mao, Wang, Dally, ICLR 2018."""
    momentum: Final[float]
    masking: Final[bool]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, momentum: float = 0.9, masking: bool = True, num_clients: int,
                 P: int | None = None, shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None,
                 unit: str | None = None, seed: int = 1, dtype: Any = ...) -> None: ...


class NoFeedback(Feedback):
    """No memory: the error of a message is lost."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class PowerEF(Feedback):
    """Error feedback that compresses the remaining error again, p times; perturbed gradients.

    steps: p: number of compressions in a round, each of the error of the previous one; 1 = ef14 (>= 1, <= 16; default 2)
    perturbation: r: approximate norm of the noise that is added to gradients; 0 = none (>= 0; default 0.0)

    Source: Chen, Li, Chi, AISTATS 2024."""
    steps: Final[int]
    perturbation: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, steps: int = 2, perturbation: float = 0.0, num_clients: int,
                 P: int | None = None, shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None,
                 unit: str | None = None, seed: int = 1, dtype: Any = ...) -> None: ...


class SAPEF(Feedback):
    """Step-ahead partial error feedback: a share of the error moves where clients compute.

    alpha: share of the error by which clients step ahead; 0 = ef14, 1 = SAEF (>= 0, <= 1; default 0.85)

    Not usable here: 'sa_pef' works in the simulator alone: its clients compute at models of their own.

    Source: Redie, Arablouei, Werner, TMLR 2026."""
    alpha: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, alpha: float = 0.85, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class SCAFCOM(Feedback):
    """SCALLION with a local momentum, for biased operators.

    momentum: beta of v <- (1-beta) v + beta G; 1 = no momentum (> 0, <= 1; default 0.2)

    Not usable here: 'scafcom' works in the simulator alone: its clients compute what local kind "scallion" sends.

    Source: Huang, Li, Li, ICLR 2024."""
    momentum: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, momentum: float = 0.2, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class SCAFFOLD(Feedback):
    """Control variates of SCAFFOLD: two channels, state both ways.


    Not usable here: 'scaffold' works in the simulator alone: its clients compute what local kind "scaffold" sends.

    Source: Karimireddy et al., ICML 2020."""
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class SCALLION(Feedback):
    """SCAFFOLD's controls with one vector up, compressed without bias.

    alpha: step of the controls, at most 1/(1+omega) (> 0, <= 1; default 0.1)
    estimate: direction of the server's step: c + mean d as published, an average over rounds, or c + mean d / alpha ('averaged' or 'unbiased'; default 'averaged')

    Not usable here: 'scallion' works in the simulator alone: its clients compute what local kind "scallion" sends.

    Source: Huang, Li, Li, ICLR 2024."""
    alpha: Final[float]
    estimate: Final[Literal['averaged', 'unbiased']]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, alpha: float = 0.1,
                 estimate: Literal['averaged', 'unbiased'] = 'averaged', num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class Signum(Feedback):
    """A momentum of the gradient is compressed; with sign and sign_sgd it is Signum.

    momentum: beta of m <- beta m + (1 - beta) g (>= 0, < 1; default 0.9)

    Source: Bernstein, Wang, Azizzadenesheli, Anandkumar, signSGD, ICML 2018."""
    momentum: Final[float]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, momentum: float = 0.9, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


class ThreePC(Feedback):
    """Three point compressors: EF21, lazy aggregation and methods between them.

    variant: the three point compressor ('ef21' or 'lag' or 'clag' or 'v2' or 'v4' or 'v5' or 'adacgd'; default 'clag')
    zeta: weight of the gradient's last change in the trigger (lag, clag, adacgd) (>= 0; default 1.0)
    p: probability of a round with uncompressed gradients (v5) (> 0, <= 1; default 0.1)
    levels: number of operators to choose from (adacgd) (>= 2, <= 16; default 3)
    estimate: direction of the server's step: h_mean before the round plus the cohort's mean change, or h_mean after it ('cohort' or 'shifts'; default 'cohort')

    Source: Richtarik, Sokolov, Fatkhullin, Gasanov, Li, Gorbunov, ICML 2022; Makarenko et al., 2022."""
    variant: Final[Literal['ef21', 'lag', 'clag', 'v2', 'v4', 'v5', 'adacgd']]
    zeta: Final[float]
    p: Final[float]
    levels: Final[int]
    estimate: Final[Literal['cohort', 'shifts']]
    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *,
                 variant: Literal['ef21', 'lag', 'clag', 'v2', 'v4', 'v5', 'adacgd'] = 'clag', zeta: float = 1.0, p: float = 0.1,
                 levels: int = 3, estimate: Literal['cohort', 'shifts'] = 'cohort', num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None,
                 seed: int = 1, dtype: Any = ...) -> None: ...


__version__: str
