"""The package neardup for Python, as its wheel installs it.

Usage: wheel.py TEST CONNINFO. The server's functions are the reference, and the golden vectors of
crates/sketch/tests.
"""

import copy
import doctest
import importlib.metadata
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

import neardup
import neardup.psycopg
import psycopg
from neardup import Fingerprint, Fingerprint128, Fingerprint256, MinHashSignature

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "crates/sketch/tests"


def raises(error, call, *words):
    """The call raises this error, whose message has the words."""
    try:
        result = call()
    except error as raised:
        for word in words:
            assert word in str(raised), raised
    else:
        raise AssertionError(f"no {error.__name__}, but {result!r}")


def unescape(text):
    return re.sub(r"\\(?:u\{([0-9A-Fa-f]+)\}|\\)",
                  lambda found: chr(int(found[1], 16)) if found[1] else "\\", text)


def golden_lines(name):
    """Columns of a file of golden vectors, with the text in place of its repetitions."""
    text = None
    for line in (GOLDEN / name).read_text().split("\n"):
        columns = line.split("\t")
        if columns[0] == "=":
            text = unescape(columns[2]) * int(columns[1])
        elif len(columns) > 1:
            yield columns, text


def options_of(names):
    """The options that a line of golden vectors names."""
    tokens, shingle, weight, accents, digits, *page = names.split(" ")
    return {"tokens": tokens, "shingle": int(shingle), "weight": weight, "accents": accents,
            "digits": digits, "html": page == ["page"]}


def shown(value):
    return "none" if value is None else str(value)


def golden(_):
    count = 0
    for name, function in (("golden_simhash64.tsv", neardup.simhash),
                           ("golden_simhash128.tsv", neardup.simhash128)):
        for (expected, repeat, escaped), _ in golden_lines(name):
            assert shown(function(unescape(escaped) * int(repeat))) == expected, escaped
            count += 1
    for name in ("golden_simhash_options.tsv", "golden_minhash.tsv"):
        for (names, narrow, wide, *sets), text in golden_lines(name):
            options = options_of(names)
            assert shown(neardup.simhash(text, **options)) == narrow, (names, text[:80])
            assert shown(neardup.simhash128(text, **options)) == wide, (names, text[:80])
            del options["weight"]
            if sets:
                found = [neardup.minhash64(text, **options), neardup.minhash128(text, **options)]
                assert [shown(value) for value in found] == sets[:2], (names, text[:80])
            count += 1
    assert count >= 75 + 75 + 400 + 200, count
    types = {"fingerprint": Fingerprint, "fingerprint128": Fingerprint128,
             "fingerprint256": Fingerprint256, "minhash_signature": MinHashSignature}
    lines = (ROOT / "crates/blocktree/tests/golden_band_keys.tsv").read_text().splitlines()
    for line in lines:
        name, text, bands, rows, keys = line.split("\t")
        found = neardup.neardup_band_keys(types[name](text), int(bands), rows=int(rows))
        assert found == [int(key) for key in keys.split(",")], line
    assert len(lines) >= 24, lines


def server(conninfo):
    """All functions of a text give what the server gives, on the golden texts."""
    functions = [(neardup.simhash, True), (neardup.simhash128, True), (neardup.minhash64, False),
                 (neardup.minhash128, False), (neardup.minhash, False)]
    seen, count = {}, 0
    for (names, *_), text in golden_lines("golden_minhash.tsv"):
        if "\0" not in text:
            seen.setdefault(text, []).append(names)
    with psycopg.connect(conninfo) as connection:
        neardup.psycopg.register(connection)
        for text, options in seen.items():
            for names in options:
                options = options_of(names)
                for function, weighted in functions:
                    given = {name: value for name, value in options.items()
                             if weighted or name != "weight"}
                    named = ", ".join(f"{name} => %({name})s" for name in given)
                    query = f"SELECT {function.__name__}(%(body)s, {named})"
                    row = connection.execute(query, {"body": text, **given}).fetchone()
                    assert function(text, **given) == row[0], (names, function, text[:80])
                    count += 1
    assert count > 1000, count


def others(conninfo):
    """The remaining functions give what the server gives."""
    features = ["the", "quick", "brown", "fox"]
    weights = [1.0, 2.5, 0.0, 3.0]
    text, other = "The quick brown fox. It jumps!", "A quick brown fox jumps over it."
    page = "<p>The <b>quick</b> fox</p><script>x</script>"
    schemes = ("neardup", "python_simhash", "simhash_py", "yanyiwu_simhash", "md5_middle")
    hashes = [-5, 7, 2**63 - 1, -2**63]
    calls = [
        ("simhash(%s::text[], NULL)", [features], neardup.simhash_features(features)),
        ("simhash128(%s::text[], %s::float8[])", [features, weights],
         neardup.simhash128_features(features, weights)),
        ("minhash64(%s::text[])", [features], neardup.minhash64_features(features)),
        ("minhash128(%s::text[])", [features], neardup.minhash128_features(features)),
        ("minhash(%s::text[], 64, -3)", [features],
         neardup.minhash_features(features, hashes=64, seed=-3)),
        ("minhash(%s, hashes => 32, seed => 9, scheme => 'datasketch2')", [text],
         neardup.minhash(text, hashes=32, seed=9, scheme="datasketch2")),
        ("jaccard_similarity(%s, %s, shingle => 1)", [text, other],
         neardup.jaccard_similarity(text, other, shingle=1)),
        ("containment(%s, %s, shingle => 1)", [text, other],
         neardup.containment(text, other, shingle=1)),
        ("html_text(%s)", [page], neardup.html_text(page)),
        ("longest_sentences_hash(%s, 1)", [text], neardup.longest_sentences_hash(text, 1)),
        ("neardup_text_length(%s, html => true)", [page], neardup.text_length(page, html=True)),
        ("neardup_band_keys(-5::bigint, 6, 20)", [], neardup.neardup_band_keys(-5, 6, 20)),
        ("neardup_band_keys(NULL::bigint, 6, 20)", [], neardup.neardup_band_keys(None, 6, 20)),
        ("neardup_radius('minhash64', 0.8)", [], neardup.neardup_radius("minhash64", 0.8)),
        ("neardup_radius('minhash128', 0.73)", [], neardup.neardup_radius("minhash128", 0.73)),
    ]
    for scheme in schemes:
        calls += [
            ("simhash(%s::text[], %s::float8[], %s)", [features, weights, scheme],
             neardup.simhash_features(features, weights, scheme)),
            ("simhash(%s::bigint[], %s::float8[], %s)", [hashes, weights, scheme],
             neardup.simhash_hashes(hashes, weights, scheme)),
            ("simhash(%s::text[], NULL, %s)", [[], scheme],
             neardup.simhash_features([], scheme=scheme))]
    pairs = [(neardup.minhash64(text, shingle=1), neardup.minhash64(other, shingle=1)),
             (neardup.simhash128(text), neardup.simhash128(other)),
             (Fingerprint256(1), Fingerprint256(2**256 - 1))]
    for a, b in pairs:
        calls += [("%s <~> %s", [a, b], neardup.hamming_distance(a, b)),
                  ("fingerprint_similarity(%s, %s)", [a, b], neardup.fingerprint_similarity(a, b)),
                  ("bit_count(%s)", [b], b.bit_count())]
    a, b = neardup.minhash(text, shingle=1), neardup.minhash(other, shingle=1)
    odd = neardup.minhash(text, hashes=64)
    calls += [
        ("%s::bigint <~> %s::bigint", [-1, 12], neardup.hamming_distance(-1, 12)),
        ("%s::bigint", [pairs[0][0]], pairs[0][0].to_bigint()),
        ("(-17)::bigint::fingerprint", [], Fingerprint.from_bigint(-17)),
        ("%s::numeric", [pairs[1][0]], int(pairs[1][0])),
        ("%s <%%> %s", [a, b], neardup.minhash_distance(a, b)),
        ("minhash_similarity(%s, %s)", [a, b], neardup.minhash_similarity(a, b)),
        ("minhash_similarity(%s, %s)", [a, odd], neardup.minhash_similarity(a, odd)),
        ("minhash_union(%s, %s)", [a, b], a.union(b)),
        ("minhash_values(%s)", [a], a.values),
        ("minhash_from_values(%s, 4, 'datasketch1')", [list(range(16))],
         MinHashSignature(range(16), seed=4, scheme="datasketch1")),
    ]
    with psycopg.connect(conninfo) as connection:
        neardup.psycopg.register(connection)
        for expression, arguments, result in calls:
            row = connection.execute(f"SELECT {expression}", arguments or None).fetchone()
            assert row[0] == result, (expression, arguments, row[0], result)


def values(_):
    """Forms, order and equality of values; errors."""
    for cls, digits in ((Fingerprint, 16), (Fingerprint128, 32), (Fingerprint256, 64)):
        text = "0123456789abcdef" * (digits // 16)
        value = cls(text.upper())
        assert (str(value), int(value), bytes(value).hex()) == (text, int(text, 16), text)
        assert repr(value) == f"{cls.__name__}('{text}')" and eval(repr(value)) == value
        assert cls(int(value)) == cls(bytes(value)) == cls(bytearray(bytes(value))) == cls(value)
        assert cls.BITS == 4 * digits and {value: 1}[cls(text)] == 1
        assert cls(1) < cls(2**255 % 2**cls.BITS or 2**(cls.BITS - 1)) and cls(0) != 0
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
        for bad in (text[1:], "g" + text[1:], " " + text[1:], -1, 2**cls.BITS, b"1", text + "0"):
            raises(ValueError, lambda: cls(bad), cls.__name__)
        raises(TypeError, lambda: cls(1.5), "float")
        raises(AttributeError, lambda: setattr(value, "bits", 1))
    raises(TypeError, lambda: Fingerprint(0).hamming_distance(Fingerprint128(0)))
    raises(TypeError, lambda: neardup.hamming_distance(Fingerprint(0), 0), "one width")
    raises(ValueError, lambda: neardup.hamming_distance(2**64, 0), "64 bits")
    assert neardup.hamming_distance(2**64 - 1, -1) == 0
    signature = neardup.minhash("a b c d")
    assert pickle.loads(pickle.dumps(signature)) == copy.copy(signature) == signature
    assert MinHashSignature(str(signature)) == MinHashSignature(bytes(signature)) == signature
    assert MinHashSignature(signature.values) == signature and len({signature, signature}) == 1
    for bad in ("", "neardup1/16/0/00", "other/16/0/" + "0" * 128, str(signature)[:-8], b"",
                bytes(signature)[:-1], [1] * 15, [0] * 1025, [2**32] * 16):
        raises((ValueError, OverflowError), lambda: MinHashSignature(bad))
    raises(ValueError, lambda: MinHashSignature([1] * 16, seed=-1, scheme="datasketch1"), "seed")
    raises(ValueError, lambda: signature.union(neardup.minhash("a", seed=1)), "compared")


def errors(_):
    """Bad options say what is known."""
    simhash, minhash = neardup.simhash, neardup.minhash
    raises(ValueError, lambda: simhash("a", tokens="words"), "tokens", "words", "jieba_search")
    raises(ValueError, lambda: simhash("a", tokens="jieba_tfidf:0"), "10000")
    raises(ValueError, lambda: simhash("a", shingle=0), "shingle 0", "100")
    raises(ValueError, lambda: simhash("a", weight="none"), "tf, sqrt, log, set")
    raises(ValueError, lambda: simhash("a", accents="drop"), "keep, remove")
    raises(ValueError, lambda: simhash("a", digits="drop"), "keep, zero")
    raises(ValueError, lambda: minhash("a", hashes=15), "16", "1024")
    raises(ValueError, lambda: minhash("a", scheme="x"), "datasketch2")
    raises(ValueError, lambda: minhash("a", seed=-1, scheme="datasketch1"), "seed -1")
    raises(ValueError, lambda: simhash("\ud800"))
    raises(ValueError, lambda: neardup.simhash_features(["a"], [1.0, 2.0]), "2 weights")
    raises(ValueError, lambda: neardup.simhash_features(["a"], [float("nan")]), "weight 1")
    raises(ValueError, lambda: neardup.neardup_radius("simhash", 0.8), "minhash64")
    raises(ValueError, lambda: neardup.neardup_band_keys(5, 0, 16), "bands", "from 1 to")
    raises(ValueError, lambda: neardup.neardup_band_keys(5, 65, 16), "bands", "1 to 64")
    raises(ValueError, lambda: neardup.neardup_band_keys(5, 4, 65), "rows", "1 to 64")
    raises(TypeError, lambda: neardup.neardup_band_keys("5", 4, 16), "str")
    raises(ValueError, lambda: neardup.neardup_radius("minhash64", 80), "0.8")
    raises(ValueError, lambda: neardup.longest_sentences_hash("a", 0), "1000")
    raises(ValueError, lambda: neardup.set_jieba_user_words("abc"))
    raises(TypeError, lambda: simhash(b"a"))
    raises(TypeError, lambda: simhash("a", tokens=None))
    raises(TypeError, lambda: simhash("a", shingle=1.5))
    raises(TypeError, lambda: simhash("a", words=1))
    raises(TypeError, lambda: neardup.minhash64("a", weight="tf"))
    # Numbers of any size.
    huge = (10**30, -10**30, 2**63, -2**63 - 1, 10**5000)
    signature = minhash("a b c d")
    numbers = [("n", lambda n: neardup.longest_sentences_hash("a", n)),
               ("value", lambda n: MinHashSignature([n] * 16)),
               ("the bigint", lambda n: Fingerprint.from_bigint(n)),
               ("shingle", lambda n: neardup.jaccard_similarity("a", "b", shingle=n)),
               ("shingle", lambda n: neardup.containment("a", "b", shingle=n)),
               ("seed", lambda n: MinHashSignature([1] * 16, seed=n)),
               ("seed", lambda n: neardup.minhash_features(["a"], seed=n)),
               ("hashes", lambda n: neardup.minhash_features(["a"], hashes=n))]
    for name in ("simhash", "simhash128", "minhash64", "minhash128", "minhash"):
        function, many = getattr(neardup, name), getattr(neardup, f"{name}_many")
        numbers += [("shingle", lambda n, function=function: function("a", shingle=n)),
                    ("shingle", lambda n, many=many: many(["a"], shingle=n)),
                    ("threads", lambda n, many=many: many(["a"], threads=n))]
    numbers += [("hashes", lambda n: minhash("a", hashes=n)),
                ("seed", lambda n: minhash("a", seed=n)),
                ("seed", lambda n: neardup.minhash_many(["a"], seed=n))]
    for name, call in numbers:
        for number in huge:
            raises(ValueError, lambda: call(number), f"{name} ", "out of range",
                   str(number) if number < 10**70 else "")
    for name in ("simhash_features", "simhash128_features"):
        raises(ValueError, lambda: getattr(neardup, name)(["a"], [10**400]), "weight 1")
    raises(ValueError, lambda: neardup.simhash_hashes([1], [10**400]), "weight 1")
    raises(ValueError, lambda: neardup.simhash_hashes([2**64]), "64 bits")
    raises(ValueError, lambda: neardup.neardup_radius("minhash64", 10**400), "similarity")
    raises(ValueError, lambda: minhash("a", seed=2**32, scheme="datasketch2"), "seed")


def inputs(_):
    """None is what NULL is in SQL, and features come from any iterable."""
    fp, signature = neardup.minhash64("a b c"), neardup.minhash("a b c")
    for name in ("simhash", "simhash128", "minhash64", "minhash128", "minhash", "html_text",
                 "longest_sentences_hash", "text_length"):
        assert getattr(neardup, name)(None) is None, name
    for name in ("simhash_features", "simhash_hashes", "simhash128_features", "minhash64_features",
                 "minhash128_features", "minhash_features"):
        assert getattr(neardup, name)(None) is None, name
        assert getattr(neardup, name)([]) is None, name
    for name, value in (("jaccard_similarity", "a"), ("containment", "a"),
                        ("hamming_distance", fp), ("hamming_distance", 7),
                        ("fingerprint_similarity", fp), ("fingerprint_similarity", signature),
                        ("minhash_similarity", signature), ("minhash_distance", signature)):
        function = getattr(neardup, name)
        for pair in ((None, value), (value, None), (None, None)):
            assert function(*pair) is None, (name, pair)
    assert fp.hamming_distance(None) is fp.similarity(None) is None
    assert signature.similarity(None) is signature.distance(None) is None
    assert signature.union(None) is None
    # A wrong type raises TypeError, with None as the other argument as well.
    raises(TypeError, lambda: neardup.hamming_distance("a", None), "have no distance")
    raises(TypeError, lambda: neardup.fingerprint_similarity(None, 1.5), "have no distance")
    raises(TypeError, lambda: neardup.minhash_similarity(fp, None))

    words = ["the", "quick", "brown", "fox"]
    for function in (neardup.simhash_features, neardup.simhash128_features,
                     neardup.minhash64_features, neardup.minhash128_features,
                     neardup.minhash_features):
        expected = function(words)
        for features in (set(words), frozenset(words), tuple(words), iter(words),
                         (word for word in words), dict.fromkeys(words),
                         dict.fromkeys(words).keys(),
                         map(str.lower, words)):
            assert function(features) == expected, (function, features)
        raises(TypeError, lambda: function("the quick"), "iterable of str, not str")
        raises(TypeError, lambda: function(b"the quick"), "not bytes")
        raises(TypeError, lambda: function(7), "not int")
        raises(TypeError, lambda: function(["a", None]), "NoneType")
        raises(ZeroDivisionError, lambda: function(str(1 // n) for n in (1, 0)))
    weights = [1.0, 2.5, 0.0, 3.0]
    for function in (neardup.simhash_features, neardup.simhash128_features):
        assert function(iter(words), (w for w in weights)) == function(words, weights)
        raises(TypeError, lambda: function(set(words), weights), "not a set")
        raises(TypeError, lambda: function(words, ["a", "b", "c", "d"]))
    raises(TypeError, lambda: neardup.simhash_hashes({1, 2}, [1.0, 2.0]), "not a set")
    assert neardup.simhash_hashes({1, 2}) == neardup.simhash_hashes(range(1, 3))
    assert MinHashSignature(iter(range(16))) == MinHashSignature(range(16))


def lists(_):
    """A list of texts gives what each of them gives, in several threads and without the lock."""
    texts = [None if n % 7 == 0 else "" if n % 11 == 0 else f"text {n} of some words {n * n}"
             for n in range(1000)]
    options = {"tokens": "char", "shingle": 5}
    for name in ("simhash", "simhash128", "minhash64", "minhash128", "minhash"):
        function, many = getattr(neardup, name), getattr(neardup, f"{name}_many")
        expected = [function(text, **options) for text in texts]
        assert None in expected and expected[1] is not None
        for threads in (1, 2, 7):
            assert many(texts, **options, threads=threads) == expected, (name, threads)
        assert many(text for text in texts[:130]) == [function(text) for text in texts[:130]]
        assert many([]) == many({}) == []
        raises(TypeError, lambda: many("a text"), "iterable of str, not str")
        raises(TypeError, lambda: many(None), "iterable of str")
        raises(TypeError, lambda: many(["a", 7]), "int")
        raises(ValueError, lambda: many(["a"], tokens="words"), "jieba_search")
        raises(ValueError, lambda: many(["a"], threads=0), "threads 0")
    assert neardup.minhash_many(["a b c"], hashes=64, seed=-3, scheme="neardup1") == [
        neardup.minhash("a b c", hashes=64, seed=-3)]
    assert neardup.simhash_many(["a b a"], weight="tf") == [neardup.simhash("a b a", weight="tf")]
    # Other threads run meanwhile, even while all texts are short.
    texts = [f"word{n} and some others" for n in range(400_000)]
    ticks, done = 0, threading.Event()

    def work():
        neardup.minhash_many(texts)
        done.set()

    thread = threading.Thread(target=work)
    sys.setswitchinterval(1e-4)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 2, ticks

    # A signal stops it in all threads.
    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    raises(KeyboardInterrupt, lambda: neardup.minhash_many(texts * 20, hashes=1024, threads=3))
    assert time.monotonic() - started < 20
    assert neardup.minhash64_many(["a b c"], threads=2) == [neardup.minhash64("a b c")]


def threads(_):
    """Without the interpreter's lock others run, and a signal ends a long computation."""
    text = " ".join(f"word{n}" for n in range(3_000_000))
    ticks, done = 0, threading.Event()

    def work():
        neardup.minhash64(text)
        done.set()

    thread = threading.Thread(target=work)
    # If the lock were held, this thread would not return before the other one is done.
    sys.setswitchinterval(1e-4)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 2, ticks

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    text *= 4
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    raises(KeyboardInterrupt, lambda: neardup.simhash(text))
    # The thread can continue to compute.
    assert neardup.simhash("a b c") is not None


def chinese(conninfo):
    """User words are those of the server with the same list."""
    text, words = "他们用云计算创新办的办法", "云计算 7, 创新办"
    plain = neardup.simhash(text, tokens="jieba")
    with psycopg.connect(conninfo) as connection:
        empty, = connection.execute("SELECT neardup_jieba_words_hash()").fetchone()
    assert neardup.set_jieba_user_words("") == empty
    assert neardup.set_jieba_user_words(words) != empty
    assert neardup.simhash(text, tokens="jieba") != plain
    neardup.set_jieba_user_words("")
    assert neardup.simhash(text, tokens="jieba") == plain


def documentation(_):
    """The README's example, that of the module, a docstring for each public name, licences."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(block, {})
    result = doctest.testmod(neardup)
    assert (result.failed, result.attempted) == (0, 4), result
    for name in neardup.__all__:
        assert name == "__version__" or getattr(neardup, name).__doc__, name
    package = Path(neardup.__file__).parent
    assert (package / "py.typed").exists()
    stub = (package / "_neardup.pyi").read_text()
    for name in neardup.__all__:
        assert re.search(rf"^(def|class) {name}\b|^{name}:", stub, re.M), name
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert neardup.__version__ == version
    licences = {path.name: path for path in importlib.metadata.files("neardup")
                if "licenses" in path.parts}
    assert licences.keys() >= {"LICENSE", "LICENSE-jieba.md", "COPYRIGHT"}, licences
    copyright = licences["COPYRIGHT"].locate().read_text()
    assert copyright == (ROOT / "python/COPYRIGHT").read_text()
    assert "\npyo3 0." in copyright and "\nLicence: MIT\n\n" in copyright


def sources(_):
    """The source archive holds what cargo needs to build the package."""
    maturin = Path(sys.executable).parent / "maturin"
    with tempfile.TemporaryDirectory() as folder:
        command = [maturin, "sdist", "--manifest-path", ROOT / "python/Cargo.toml", "--out", folder]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        archive, = Path(folder).glob("neardup-*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        unpacked = Path(folder) / archive.name.removesuffix(".tar.gz")
        for name in ("LICENSE", "LICENSE-jieba.md", "COPYRIGHT", "PKG-INFO", "pyproject.toml",
                     "Cargo.lock", "neardup/django.py", "neardup/py.typed", "python/src/lib.rs",
                     "crates/sketch/src/lib.rs", "crates/sketch/data/jieba_idf.bin"):
            assert (unpacked / name).is_file(), name
        assert not (unpacked / "src").exists() and not (unpacked / "xtask").exists()
        # The crates have the same versions as in the workspace.
        run = subprocess.run(["cargo", "metadata", "--offline", "--format-version", "1"],
                             cwd=unpacked, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        versions = {(package["name"], package["version"])
                    for package in json.loads(run.stdout)["packages"]}
        locked = (ROOT / "Cargo.lock").read_text()
        for name, version in versions:
            assert f'name = "{name}"\nversion = "{version}"\n' in locked, (name, version)
        assert {"neardup-python", "neardup-sketch", "pyo3"} <= {name for name, _ in versions}


def main():
    test, conninfo = sys.argv[1:]
    globals()[test](conninfo)
    print(f"{test}: done", flush=True)
    os._exit(0)


main()
