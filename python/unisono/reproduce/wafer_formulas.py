"""The formulas of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) as printed, evaluated without the library.

P and M x N count PEs, B counts wavelets of the vector, T_R = 2; every result is in cycles. Eq. 1 is
max(C, E/N + L) + 5 D.
"""

import math
from collections.abc import Callable

__all__ = [
    "FORMULAS",
    "auto_gen",
    "auto_gen_energy",
    "broadcast_2d",
    "chain",
    "lower_bound_1d",
    "lower_bound_2d",
    "message",
    "ring",
    "star",
    "star_of_two",
    "star_of_two_of_grid",
    "star_sharper",
    "tree",
    "two_phase",
]

#: 2 T_R + 1 cycles: down the ramp, up the ramp, one cycle to store.
_STEP = 5

#: 2 T_R cycles: down the ramp and up the ramp.
_RAMPS = 4


def message(pes: int, length: int) -> float:
    """Returns the cycles of a message by Section 4.1 and Lemma 4.1: B + P + 2 T_R."""
    return length + pes + _RAMPS


def star(pes: int, length: int) -> float:
    """Returns the cycles of a star by Lemma 5.1, an upper bound."""
    return max(length * (pes - 1), pes / 2 * length + pes - 1) + _STEP


def star_sharper(pes: int, length: int) -> float:
    """Returns the cycles of a star whose root receives one element in each cycle (section 5.1, after Lemma 5.1)."""
    return length * (pes - 1) + _STEP


def star_of_two(pes: int, length: int) -> float:
    """Returns by Eq. 1 the cycles of an AllReduce by stars to the two middle PEs, which exchange their sums.

    Each receives its half's vectors and the other's sum, and broadcasts to its half.
    """
    half = pes // 2
    return max(half * length, half) + 2 * _STEP + message(half, length)


def star_of_two_of_grid(rows: int, columns: int, length: int) -> float:
    """Returns by Eq. 1 the cycles of an AllReduce by stars to two PEs in the middle of a whole grid.

    Each of the two receives the vectors of its half and the sum of the other, and floods the total over its half.
    """
    half = rows * columns // 2
    return half * length + 2 * _STEP + broadcast_2d(rows, columns // 2, length)


def chain(pes: int, length: int) -> float:
    """Returns the cycles of a chain by Lemma 5.2."""
    return length + (_STEP + 1) * (pes - 1)


def tree(pes: int, length: int) -> float:
    """Returns the cycles of a tree by Lemma 5.3; P is a power of two."""
    rounds = math.log2(pes)
    return max(length * rounds, length * pes / (2 * (pes - 1)) * rounds + pes - 1) + _STEP * rounds


def two_phase(pes: int, length: int) -> float:
    """Returns the cycles of Two-Phase by Lemma 5.4; P is a square."""
    side = math.sqrt(pes)
    return max(2 * length, 2 * length - 2 * length / side + pes) + (2 * side - 2) * _STEP


def ring(pes: int, length: int) -> float:
    """Returns the cycles of a ring by Lemma 6.1; P divides B."""
    return 2 * (pes - 1) * length / pes + 4 * pes - 6 + 2 * (pes - 1) * _STEP


def broadcast_2d(rows: int, columns: int, length: int) -> float:
    """Returns the cycles of a 2D broadcast by Lemma 7.1."""
    return length + rows + columns - 2 + _STEP


def lower_bound_1d(pes: int, length: int) -> float:
    """Returns the least of B E*(P, 1, D) / (P-1) + P - 1 + 5 D for all D (section 5.6, E* by Lemma 5.5).

    E*(1, 1, D) = 0, and E*(P, 1, 0) is infinite for P > 1. The result is infinite for P = 1.
    """
    energy = [math.inf] * (pes + 1)
    energy[1] = 0.0
    best = math.inf
    for depth in range(1, pes):
        # Every energy is at least P - 1, so that a larger depth cannot be better.
        if length + pes - 1 + _STEP * depth >= best:
            break
        deeper = [math.inf, 0.0]
        for p in range(2, pes + 1):
            deeper.append(min(deeper[i] + energy[p - i] + min(i, p - i + 1) for i in range(1, p)))
        energy = deeper
        best = min(best, length * energy[pes] / (pes - 1) + pes - 1 + _STEP * depth)
    return best


def lower_bound_2d(rows: int, columns: int, length: int) -> float:
    """Returns the lower bound of a 2D Reduce by Lemma 7.2."""
    return max(length, length / 8 + rows + columns - 1) + _STEP


def auto_gen_energy(pes: int, depth: int, contention: int) -> float:
    """Returns the least energy e(P, D, C) of a tree for one wavelet (section 5.5), infinite without a tree.

    The recursion e(P, D, C) = min over i of e(i, D, C-1) + e(P-i, D-1, C) + i is a (min, +) convolution of convex
    functions: slope k occurs binom(D+k-1, k) times for 1 <= k <= C, and e is the sum of the P-1 smallest slopes.
    """
    left, energy = pes - 1, 0
    for slope in range(1, contention + 1):
        taken = min(left, math.comb(depth + slope - 1, slope))
        energy += slope * taken
        left -= taken
        if left == 0:
            break
    return energy if left == 0 else math.inf


def auto_gen(pes: int, length: int) -> float:
    """Returns the least cycles by Eq. 1 for all depths and contentions (section 5.5)."""
    best = math.inf
    for depth in range(1, pes):
        contention = 1
        while math.comb(depth + contention, contention) < pes:
            contention += 1
        energy = auto_gen_energy(pes, depth, contention)
        time = max(length * contention, length * energy / (pes - 1) + pes - 1) + _STEP * depth
        best = min(best, time)
    return best if pes > 1 else 0.0


def _xy(line: Callable[[int, int], float], rows: int, columns: int, length: int) -> float:
    return line(columns, length) + line(rows, length)


#: Formulas by the names in claims; their arguments are the numbers of a claim's `points`.
FORMULAS: dict[str, Callable[..., float]] = {
    "auto-gen": auto_gen,
    "broadcast-2d": broadcast_2d,
    # Section 7.1, for a square of P PEs: 2 sqrt P + 2 T_R - 1 + B.
    "broadcast-square": lambda rows, columns, length: 2 * math.sqrt(rows * columns) + _RAMPS - 1 + length,
    "chain": chain,
    "chain-broadcast": lambda pes, length: chain(pes, length) + message(pes, length),
    "lemma-5.5": lower_bound_1d,
    "lemma-7.2": lower_bound_2d,
    "message": message,
    "ring": ring,
    "snake": lambda rows, columns, length: chain(rows * columns, length),
    "star": star,
    "star-sharper": star_sharper,
    "tree": tree,
    "two-phase": two_phase,
    "xy-chain": lambda rows, columns, length: _xy(chain, rows, columns, length),
    "xy-chain-broadcast": lambda rows, columns, length: (
        _xy(chain, rows, columns, length) + broadcast_2d(rows, columns, length)
    ),
    "xy-chain-broadcast-per-axis": lambda rows, columns, length: (
        _xy(chain, rows, columns, length) + _xy(message, rows, columns, length)
    ),
    "gain-xy-reduce": lambda rows, columns, length: (
        _xy(chain, rows, columns, length) / _xy(auto_gen, rows, columns, length)
    ),
    "gain-xy-allreduce": lambda rows, columns, length: (
        (_xy(chain, rows, columns, length) + broadcast_2d(rows, columns, length))
        / (_xy(auto_gen, rows, columns, length) + broadcast_2d(rows, columns, length))
    ),
}
