"""What two answers have in common when they are of two chains with the same transactions: keys, types and the form of
hexadecimal, and what a transaction, its logs and a simulated call say wherever they are."""

import re

QUANTITY = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)")
DATA = re.compile(r"0x([0-9a-f]{2})*")
# Lengths in hexadecimal of addresses, hashes and blooms: data of another length are something else.
FIXED = {42, 66, 514}
# Fields of any length, which may be as long as a hash by chance.
VARIABLE = {"data", "extraData", "input", "output", "returnData", "returnValue", "code", "raw", "result"}
# Fields of transactions and logs that are the same on both chains; what a log says may hang on its block's number.
SAME = {
    *("accessList", "address", "chainId", "contractAddress", "from", "gas", "input", "maxFeePerGas"),
    *("maxPriorityFeePerGas", "r", "removed", "s", "status", "to", "type", "v", "value", "yParity"),
}
# Fields of simulated calls and blocks that are the same on both.
SAME_OF_CALLS = {"gasUsed", "maxUsedGas", "returnData", "status"}
SAME_OF_BLOCKS = {"extraData", "gasUsed", "logsBloom", "miner", "mixHash"}
# What names an element of a list.
NAMES = ("transactionHash", "txHash", "hash")


def differences(theirs, ours, path="result"):
    """Each difference as one line: where it is, and what it is."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return of_objects(theirs, ours, path)
    if isinstance(theirs, list) and isinstance(ours, list):
        return of_lists(theirs, ours, path)
    allowed, found = forms(theirs), forms(ours)
    if not allowed & found:
        return [f"{path}: {' or '.join(sorted(found))} instead of {' or '.join(sorted(allowed))}"]
    if is_other_length(theirs, ours, path):
        return [f"{path}: {len(ours) // 2 - 1} bytes instead of {len(theirs) // 2 - 1}"]
    return []


def forms(value):
    """What a value can be read as: 0x10 is a quantity, and data of one byte."""
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, (int, float)):
        return {"number"}
    if isinstance(value, (dict, list)):
        return {"object" if isinstance(value, dict) else "list"}
    found = {name for name, form in (("quantity", QUANTITY), ("data", DATA)) if form.fullmatch(value)}
    return found or {"text"}


def is_other_length(theirs, ours, path):
    if not isinstance(theirs, str) or re.sub(r"\[\]|.*\.", "", path) in VARIABLE:
        return False
    return len(theirs) in FIXED and "data" in forms(theirs) and len(ours) != len(theirs)


def of_objects(theirs, ours, path):
    if is_map(theirs | ours):
        return of_lists(*([[*item] for item in one.items()] for one in (theirs, ours)), path)
    found = [f"{path}.{key}: missing" for key in sorted(theirs.keys() - ours.keys())]
    found += [f"{path}.{key}: not in theirs" for key in sorted(ours.keys() - theirs.keys())]
    for key in sorted(theirs.keys() & ours.keys()):
        found += differences(theirs[key], ours[key], f"{path}.{key}")
        found += [f"{path}.{key}: another value"] if key in same_of(theirs) and theirs[key] != ours[key] else []
    return found


def same_of(value):
    """Fields of an object that are the same on both chains."""
    if "transactionHash" in value or "v" in value:
        return SAME
    if "maxUsedGas" in value:
        return SAME_OF_CALLS
    return SAME_OF_BLOCKS if {"calls", "mixHash"} <= value.keys() else set()


def is_map(value):
    """Keys that are slots, addresses or nonces rather than names."""
    return bool(value) and all(key.startswith("0x") or key.isdecimal() for key in value)


def of_lists(theirs, ours, path):
    if bool(theirs) != bool(ours):
        return [f"{path}: {'something' if ours else 'nothing'} in the list"]
    inside = f"{path}[]"
    pairs = by_name(theirs, ours)
    if pairs is None and len(theirs) == len(ours):
        pairs = list(zip(theirs, ours))
    if pairs is not None:
        return unique(line for pair in pairs for line in differences(*pair, inside))
    # Of other transactions: each of ours is of a kind that is among theirs.
    best = (min((differences(one, own, inside) for one in theirs), key=len) for own in ours)
    return unique(line for lines in best for line in lines)


def by_name(theirs, ours):
    """Pairs of elements with the same name; none where they have no names, or none of them is in both."""
    for key in NAMES:
        if all(isinstance(one, dict) and key in one for one in theirs + ours):
            # A name may stand before several elements: a transaction has many logs.
            named = {}
            for own in ours:
                named.setdefault(own[key], []).append(own)
            pairs = []
            for one in theirs:
                if named.get(one[key]):
                    pairs.append((one, named[one[key]].pop(0)))
            return pairs or None
    return None


def unique(lines):
    return list(dict.fromkeys(lines))
