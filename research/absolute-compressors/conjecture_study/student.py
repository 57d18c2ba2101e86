"""Student's t distribution: p-values and quantiles by the incomplete beta function, whose continued fraction is evaluated by Lentz's method."""
import functools
import math

LEAST = 1e-300  # in the place of a zero denominator


def continued_fraction(a, b, x):
    """Returns the continued fraction of the incomplete beta function (NIST Digital Library of Mathematical Functions, 8.17.22)."""
    def nonzero(value):
        return value if abs(value) > LEAST else LEAST

    front, back = 1.0, 1 / nonzero(1 - (a + b) * x / (a + 1))
    total = back
    for m in range(1, 1000):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            back, front = 1 / nonzero(1 + term * back), nonzero(1 + term / front)
            total *= front * back
        if abs(front * back - 1) < 1e-15:
            break
    return total


def two_sided_p(t, freedom):
    """Returns P(|T| >= |t|): the regularised incomplete beta function at freedom / (freedom + t^2)."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)
    if x == 1:
        return 1.0
    factor = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return factor * continued_fraction(a, b, x) / a
    return 1 - factor * continued_fraction(b, a, 1 - x) / b


@functools.cache
def quantile(freedom, level=0.05):
    """Returns the value that |T| exceeds with probability `level`, by bisection."""
    low, high = 0.0, 1e4
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, freedom) > level else (low, middle)
    return high
