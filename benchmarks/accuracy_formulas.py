"""Formulas of numerical practice, as text that every contender reads in its own names.

A line is a name, the formula, and where its variables lie: one letter a variable, of :data:`RANGES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _logarithmic(low: float, high: float, signed: bool) -> Draw:
    """Magnitudes between powers of ten, all alike."""

    def draw(random: np.random.Generator, count: int) -> NDArray[np.float64]:
        value: NDArray[np.float64] = 10.0 ** random.uniform(low, high, count)
        return value * random.choice([-1.0, 1.0], count) if signed else value

    return draw


def _mixed(random: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Scores: most of them ordinary, some far out on either side."""
    value = np.where(random.random(count) < 0.5, random.normal(0, 3, count), random.uniform(-750, 750, count))
    return np.asarray(value)


RANGES: Mapping[str, Draw] = {
    "a": _logarithmic(-12, 3, True),  # any number
    "p": _logarithmic(-12, 6, False),  # positive
    "s": _logarithmic(-14, -1, True),  # small
    "t": _logarithmic(-14, -1, False),  # small and positive
    "b": _logarithmic(2, 12, False),  # large
    "l": _mixed,  # logits
    "u": lambda random, count: random.uniform(0, 1, count),  # probabilities
    "o": lambda random, count: random.uniform(0.5, 2, count),  # of order one
    "n": lambda random, count: random.normal(0, 1, count),  # standardized
    "g": lambda random, count: random.uniform(-3.1, 3.1, count),  # angles
    "e": lambda random, count: random.uniform(-40, 40, count),  # exponents
}


class Formula(NamedTuple):
    """A formula of variables ``x``, ``y``, ``z`` that lie in these ranges."""

    topic: str
    name: str
    text: str
    ranges: str


_TEXT = """
# statistics
logistic log likelihood | log(1/(1+exp(-x))) | l
log of one minus a logistic probability | log(1-1/(1+exp(-x))) | l
cross entropy of a logit | -y*log(1/(1+exp(-x)))-(1-y)*log(1-1/(1+exp(-x))) | lu
cross entropy by sigmoid | -y*log(sigmoid(x))-(1-y)*log(1-sigmoid(x)) | lu
log odds of a logit | log(sigmoid(x)/(1-sigmoid(x))) | e
log odds of a probability | log(x/(1-x)) | u
variance of a Bernoulli variable by its logit | sigmoid(x)*(1-sigmoid(x)) | l
one minus a logistic probability | 1-sigmoid(x) | l
Gaussian log density | log(exp(-(x-y)**2/2)/2.5066282746310002) | la
Gaussian log density with scale | log(exp(-((x-y)/z)**2/2)/(z*2.5066282746310002)) | nno
log of a mixture | log(y*exp(-x**2)+(1-y)*exp(-(x-3)**2)) | lu
logarithm of two exponentials | log(exp(x)+exp(y)) | ll
logarithm of three exponentials | log(exp(x)+exp(y)+exp(z)) | lll
posterior of two classes | exp(x)/(exp(x)+exp(y)) | ll
log posterior of two classes | log(exp(x)/(exp(x)+exp(y))) | ll
exponential log likelihood | log(x*exp(-x*y)) | pp
survival of an exponential variable | 1-exp(-x) | p
Weibull survival | 1-exp(-(x**y)) | po
log survival of a Weibull variable | log(1-exp(-(x**y))) | oo
Poisson log rate | log(exp(x)) * y - exp(x) | ep
Poisson with no event | log(1-exp(-exp(x))) | e
complementary log log | 1-exp(-exp(x)) | e
entropy of a coin | -x*log(x)-(1-x)*log(1-x) | u
divergence of two coins | x*log(x/y)+(1-x)*log((1-x)/(1-y)) | uu
likelihood ratio of rates | x*log(x/y)-(x-y) | oo
Cauchy log density | -log(1+x**2) | a
Student log density | -(y+1)/2*log(1+x**2/y) | ap
Box-Cox transform | (x**y-1)/y | pt
log of a ratio plus one | log(1+x/y) | sp
odds ratio to probability | exp(x)/(1+exp(x)) | l
upper tail of the normal distribution | 0.5*(1-erf(x/1.4142135623730951)) | n
tail by erf | 1-erf(x) | p
log of an upper tail | log(0.5*erfc(x/1.4142135623730951)) | l
sum of squares by differences | x**2-y**2 | oo
shifted second moment | (x+y)**2-x**2 | bs
relative difference | (x-y)/x | oo
geometric growth rate | exp(log(1+x)*12)-1 | s
Fisher z transform | 0.5*log((1+x)/(1-x)) | s
Fisher z of a product of logs | 0.5*(log(1+x)-log(1-x)) | s
Gumbel log density | -x-exp(-x) | e
Laplace smoothing | log((exp(x)+1)/(exp(y)+2)) | ll
coefficient from a logit | exp(x-y)/(1+exp(x-y)) | ll
# machine learning
softplus | log(1+exp(x)) | l
softplus of minus | log(1+exp(-x)) | l
logistic function | 1/(1+exp(-x)) | l
logistic function of a positive exponent | exp(x)/(1+exp(x)) | l
silu | x/(1+exp(-x)) | l
silu by the other quotient | x*exp(x)/(1+exp(x)) | l
tanh by exponentials | (exp(x)-exp(-x))/(exp(x)+exp(-x)) | l
tanh by one exponential | (1-exp(-2*x))/(1+exp(-2*x)) | l
tanh by quotient | sinh(x)/cosh(x) | l
derivative of tanh | 1-tanh(x)**2 | e
log of the derivative of tanh | log(1-tanh(x)**2) | l
mish | x*tanh(log(1+exp(x))) | l
gelu | 0.5*x*(1+tanh(0.7978845608028654*(x+0.044715*x**3))) | n
gelu by erf | 0.5*x*(1+erf(x/1.4142135623730951)) | n
elu | where(x > 0, x, exp(x)-1) | e
selu | 1.0507009873554805*where(x > 0, x, 1.6732632423543772*(exp(x)-1)) | e
log cosh loss | log(cosh(x-y)) | ll
log of two sigmoids | log(sigmoid(x)*sigmoid(y)) | ll
focal loss | -(1-sigmoid(x))**2*log(sigmoid(x)) | l
hinge, smoothed | log(1+exp(1-x*y)) | el
Huber loss, smooth | sqrt(1+x**2)-1 | a
Charbonnier loss | sqrt(x**2+y**2)-y | st
cosine distance of angles | 1-cos(x-y) | gs
reparametrized scale | log(exp(x)-1) | p
inverse softplus | log(exp(x)-1) | t
bound of a variational mean | 0.5*(exp(x)+y**2-1-x) | sn
divergence of Gaussians | log(y/x)+(x**2+z**2)/(2*y**2)-0.5 | oon
attention weight of two keys | exp(x*y)/(exp(x*y)+exp(x*z)) | enn
temperature softmax | exp(x/z)/(exp(x/z)+exp(y/z)) | ent
log of a temperature softmax | x/z-log(exp(x/z)+exp(y/z)) | nnt
normalized difference | (exp(x)-exp(y))/(exp(x)+exp(y)) | ll
gate and its complement | sigmoid(x)*y+(1-sigmoid(x))*z | lnn
Adam's correction | x/(1-0.999**y) | ob
rectified exponential | exp(maximum(x, 0.0))-1 | s
# physics
Lorentz factor | 1/sqrt(1-x**2) | u
kinetic energy, relativistic | 1/sqrt(1-x**2)-1 | s
addition of velocities | (x+y)/(1+x*y) | uu
Doppler shift | sqrt((1+x)/(1-x))-1 | s
time dilation, difference | 1-sqrt(1-x**2) | s
Planck's law | x**3/(exp(x)-1) | p
Bose occupation | 1/(exp(x)-1) | t
Fermi occupation | 1/(exp(x)+1) | l
Fermi, hole | 1-1/(exp(x)+1) | l
Langevin function | 1/tanh(x)-1/x | o
Debye factor | x/(exp(x)-1) | s
Einstein heat capacity | x**2*exp(x)/(exp(x)-1)**2 | p
Brillouin tanh | tanh(x)-x | s
partition of two levels | log(exp(-x)+exp(-y)) | ll
free energy, oscillator | log(1-exp(-x)) | p
free energy with zero point | x/2+log(1-exp(-x)) | p
barometric difference | 1-exp(-x/8400) | p
lens sagitta | x-sqrt(x**2-y**2) | bo
chord of an arc | sqrt(2-2*cos(x)) | s
haversine of a difference | sin((x-y)/2)**2 | gs
distance by cosines | arccos(1-x) | t
small rotation | 1-cos(x) | s
pendulum correction | 1/cos(x)-1 | s
sinc | sin(x)/x | a
one minus sinc | 1-sin(x)/x | o
difference of sines | sin(x+y)-sin(x) | gs
difference of cosines | cos(x+y)-cos(x) | gs
difference of tangents | tan(x+y)-tan(x) | ns
difference of angles | arctan(x+1)-arctan(x) | b
angle of nearly parallel | arctan(x)-arctan(y) | oo
Coulomb force | y*x/sqrt(x*x+z*z)**3 | ooo
potential difference | 1/x-1/(x+y) | bo
second difference of a potential | 1/(x+1)-2/x+1/(x-1) | b
reduced mass | x*y/(x+y) | pp
field of two charges | 1/(x-y)**2-1/(x+y)**2 | os
norm of two | sqrt(x*x+y*y) | aa
norm of three | sqrt(x*x+y*y+z*z) | aaa
difference of roots | sqrt(x+1)-sqrt(x) | b
difference of inverse roots | 1/sqrt(x)-1/sqrt(x+1) | b
difference of cube roots | (x+1)**(1/3)-x**(1/3) | b
root of the quadratic formula | (-x+sqrt(x*x-4*y))/2 | bo
small root, halved | x-sqrt(x*x-y) | bo
hyperbola | sqrt(x*x+1)-x | b
arcsinh by logarithm | log(x+sqrt(x*x+1)) | a
arccosh by logarithm | log(1+x+sqrt(2*x+x*x)) | t
arctanh by logarithm | log((1+x)/(1-x))/2 | s
sinh by exponentials | (exp(x)-exp(-x))/2 | a
cosh minus one | cosh(x)-1 | s
hyperbolic cosecant | 2/(exp(x)-exp(-x)) | a
hyperbolic secant squared | 1/cosh(x)**2 | l
exponential growth difference | exp(x)-exp(y) | on
decay between two times | exp(-x)-exp(-(x+y)) | os
# finance
continuous rate | log(1+x) | s
rate of a year from a month | (1+x)**12-1 | s
rate of a month from a year | (1+x)**(1/12)-1 | s
annuity | (1-(1+x)**(-y))/x | to
annuity by discount | (1-exp(-x*y))/x | to
future value of an annuity | ((1+x)**y-1)/x | to
mortgage payment | x/(1-(1+x)**(-y)) | to
discount factor difference | 1-1/(1+x) | s
forward rate | (1+x)/(1+y)-1 | ss
log return | log(x)-log(y) | oo
log return of close prices | log(x+1)-log(x) | b
excess over the geometric mean | x-x**2/2-log(1+x) | s
spread of two rates | exp(x*y)-exp(x*z) | sno
convexity adjustment | exp(x**2/2)-1 | s
lower Black-Scholes bound | x-y*exp(-z) | oot
implied growth | exp(y*log(1+x))-1 | so
call payoff, smoothed | log(1+exp((x-y)*z))/z | oob
probability of default | 1-exp(-x*y) | to
hazard from survival | -log(1-x)/y | to
digital option | 0.5*(1+erf((x-y)/(z*1.4142135623730951))) | oot
# calculus
difference quotient of a square | ((x+y)**2-x**2)/y | os
difference quotient of exp | (exp(x+y)-exp(x))/y | ns
difference quotient of log | (log(x+y)-log(x))/y | os
difference of products | x*(y+1)-x*y | oo
quotient of quotients | x/y/y/(y+1) | pp
expanded square | x*x+2*x*y+y*y | oo
expanded difference | x*x-2*x*y+y*y | oo
polynomial at its root | (x-1)**3-(x**3-3*x**2+3*x-1) | o
difference of reciprocals | 1/x-1/y | oo
log of a power | log(x**8) | p
power of a log | exp(y*log(x)) | oo
masked logarithm | where(x > 0, log(where(x > 0, x, 1.0)), 0.0) | a
product and its expansion | x*y+x | on
unit minus square | 1-x*x | u
"""


def formulas() -> list[Formula]:
    """All formulas, in order."""
    found, topic = [], ""
    for line in _TEXT.strip().splitlines():
        if line.startswith("#"):
            topic = line[1:].strip()
        else:
            name, text, ranges = (part.strip() for part in line.split("|"))
            found.append(Formula(topic, name, text, ranges))
    return found


def points(formula: Formula, count: int, seed: int) -> list[NDArray[np.float64]]:
    """Values of its variables, an array each."""
    random = np.random.default_rng([seed, *formula.name.encode()])
    return [RANGES[kind](random, count) for kind in formula.ranges]
