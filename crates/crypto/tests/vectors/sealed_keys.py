"""Opens a sealed key file (format 1 or 2) without this project's code: python3 sealed_keys.py FILE PASSPHRASE

Needs `cryptography` 44 or later. Prints the scheme and both secrets in hexadecimal.
"""
import re, struct, sys
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id


def hchacha20(key, nonce):
    """draft-irtf-cfrg-xchacha-03, section 2.2."""
    state = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce))

    def rotate(x, n):
        return ((x << n) | (x >> (32 - n))) & 0xFFFFFFFF

    def quarter(a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotate(state[z] ^ state[x], n)

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<8I", *(state[:4] + state[12:]))


text = open(sys.argv[1]).read()
header, sealed = re.fullmatch(r'(.*\n)sealed = "([0-9a-f]*)"\n', text, re.S).groups()
field = dict(re.findall(r'^(\w+) = "(.*)"$', header, re.M))
assert field["format"] in ("quorate-sealed-keys-1", "quorate-sealed-keys-2")
assert (field["kdf"], field["cipher"]) == ("argon2id", "xchacha20-poly1305")
key = Argon2id(
    salt=bytes.fromhex(field["salt"]), length=32, iterations=int(field["passes"]),
    lanes=int(field["lanes"]), memory_cost=int(field["memory_kib"]),
).derive(sys.argv[2].encode())
nonce = bytes.fromhex(field["nonce"])
cipher = ChaCha20Poly1305(hchacha20(key, nonce[:16]))
plain = cipher.decrypt(bytes(4) + nonce[16:], bytes.fromhex(sealed), header.encode())
print(field["scheme"], plain[:32].hex(), plain[32:].hex())
