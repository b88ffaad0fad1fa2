"""A bill of materials (CycloneDX 1.5) of what cargo says a binary is built from.

Arguments: a file of lines `name version`, the output of `cargo metadata`, Cargo.lock, and the version of the release.
The same arguments give the same bytes: there is no date and no number drawn by chance in it.
"""

import json
import sys
import tomllib


def main(components, metadata, lock, version):
    with open(components, encoding="utf-8") as lines:
        wanted = {tuple(line.split()[:2]) for line in lines if line.strip()}
    with open(metadata, encoding="utf-8") as text:
        packages = {(p["name"], p["version"]): p for p in json.load(text)["packages"]}
    with open(lock, "rb") as text:
        hashes = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(text)["package"]}
    unknown = sorted(wanted - packages.keys())
    if unknown:
        sys.exit(f"cargo metadata does not know {unknown}")
    name = "quorate-cli"
    others = sorted(key for key in wanted if key[0] != name)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(packages[name, version], hashes) | {"type": "application"}},
        "components": [component(packages[key], hashes) for key in others],
    }
    json.dump(bill, sys.stdout, indent=1)
    print()


def component(package, hashes):
    name, version = package["name"], package["version"]
    url = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    if package["license"]:
        # "MIT/Apache-2.0" is how older crates write "MIT OR Apache-2.0".
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if hashes.get((name, version)):
        found["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
    return found


main(*sys.argv[1:])
