import mpmath
import pytest

from privacy.accounting.gate import gate_delta, gate_delta_without_cap, gate_minimum_k


def test_more_sampling_is_not_more_output():
    needed = [gate_minimum_k(1.0, 1e-6, rate) / rate for rate in (0.25, 0.5, 0.75, 0.95)]
    assert needed == sorted(needed)
    assert needed[-1] > 3 * needed[0]


def test_five_records_of_one_person_break_the_gate():
    assert gate_delta_without_cap(20, 0.3, 0.5, 1) == pytest.approx(2.497e-5, rel=1e-3)
    assert gate_delta_without_cap(20, 0.3, 0.5, 5) == pytest.approx(4.785e-2, rel=1e-3)


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(20, 0.3, 0.5), (3, 0.3, 0.05), (2, 0.8, 1.0)])
def test_one_record_without_a_cap_is_the_gate_itself(k, rate, epsilon):
    assert gate_delta_without_cap(k, rate, epsilon, 1) == pytest.approx(gate_delta(k, rate, epsilon), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "rate", "epsilon", "records"), [(3, 0.3, 0.2, 2), (4, 0.6, 0.1, 3)])
def test_many_records_against_brute_force(k, rate, epsilon, records):
    worst = 0.0
    with mpmath.workdps(40):
        p, grow = mpmath.mpf(rate), mpmath.exp(epsilon)
        rows = [[mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)] for n in range(40)]
        for n in range(records, 40):
            more, fewer = rows[n], rows[n - records] + [mpmath.mpf(0)] * records
            pairs = [*zip(more[k:], fewer[k:], strict=True), (mpmath.fsum(more[:k]), mpmath.fsum(fewer[:k]))]
            worst = max(worst, mpmath.fsum(max(a - grow * b, 0) for a, b in pairs))
            worst = max(worst, mpmath.fsum(max(b - grow * a, 0) for a, b in pairs))
    assert gate_delta_without_cap(k, rate, epsilon, records) == pytest.approx(float(worst), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ((0, 0.3, 0.5, 1), "got 0"),
        ((5, 1.0, 0.5, 1), "got 1.0"),
        ((5, 0.3, 0.5, 0), "got 0"),
        ((5, 0.3, -1, 1), "got -1"),
    ],
)
def test_refusals_name_the_value(arguments, seen):
    with pytest.raises(ValueError, match=seen):
        gate_delta_without_cap(*arguments)
