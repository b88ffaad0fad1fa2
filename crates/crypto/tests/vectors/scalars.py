"""Arithmetic modulo the order of BLS12-381's groups, in Python's integers: python3 scalars.py > scalars.json"""
import json, math

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def show(number):
    return (number % R).to_bytes(32, "big").hex()


def arithmetic(left, right):
    return {
        "left": left.to_bytes(64, "big").hex(),
        "right": right.to_bytes(64, "big").hex(),
        "left_reduced": show(left),
        "sum": show(left + right),
        "product": show(left * right),
        "negated": show(-left),
        "inverse": show(pow(left % R, R - 2, R)),
    }


def lagrange(members):
    """At zero, member i at i + 1."""
    points = [member + 1 for member in members]
    coefficients = []
    for own in points:
        above = math.prod(other for other in points if other != own)
        below = math.prod(other - own for other in points if other != own)
        coefficients.append(show(above * pow(below, -1, R)))
    return {"members": members, "coefficients": coefficients}


def polynomial(coefficients, members):
    values = [sum(c * (m + 1) ** k for k, c in enumerate(coefficients)) for m in range(members)]
    return {"coefficients": [show(c) for c in coefficients], "values": [show(v) for v in values]}


interesting = [1, 2, R - 1, R + 1, 2 * R + 5, 2**255, 2**256 - 1, 2**256, 2**511 + 12345, 2**512 - 1, 0]
print(json.dumps({
    "arithmetic": [arithmetic(a, b) for a, b in zip(interesting, interesting[1:] + interesting[:1])],
    "lagrange": [lagrange(members) for members in (
        [0], [5], [0, 1], [1, 2, 4], [0, 3, 6, 9], list(range(7)), list(range(60, 209, 3)), [0, 65534])],
    "polynomials": [polynomial([R - 7], 3), polynomial([3**150, 5**100, 7**80], 7)],
}, indent=1))
