from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, SupportsBytes, TypeVar, final, overload

from typing_extensions import Self

__all__ = [
    "Fingerprint",
    "Fingerprint128",
    "Fingerprint256",
    "MinHashSignature",
    "__version__",
    "containment",
    "fingerprint_similarity",
    "hamming_distance",
    "html_text",
    "jaccard_similarity",
    "longest_sentences_hash",
    "minhash",
    "minhash64",
    "minhash64_features",
    "minhash128",
    "minhash128_features",
    "minhash_distance",
    "minhash_features",
    "minhash_similarity",
    "neardup_radius",
    "set_jieba_user_words",
    "simhash",
    "simhash128",
    "simhash128_features",
    "simhash_features",
    "simhash_hashes",
    "text_length",
]

__version__: str

_Accents = Literal["keep", "remove"]
_Digits = Literal["keep", "zero"]
_Weight = Literal["tf", "sqrt", "log", "set"]
_Scheme = Literal["neardup1", "datasketch1", "datasketch2"]
_SimhashScheme = Literal[
    "neardup", "python_simhash", "simhash_py", "yanyiwu_simhash", "md5_middle"
]
_F = TypeVar("_F", Fingerprint, Fingerprint128, Fingerprint256)

class _AnyFingerprint(SupportsBytes):
    BITS: ClassVar[int]
    def __new__(cls, value: str | bytes | bytearray | int | Self, /) -> Self: ...
    def hamming_distance(self, other: Self, /) -> int: ...
    def similarity(self, other: Self, /) -> float: ...
    def bit_count(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __lt__(self, other: Self, /) -> bool: ...
    def __le__(self, other: Self, /) -> bool: ...
    def __gt__(self, other: Self, /) -> bool: ...
    def __ge__(self, other: Self, /) -> bool: ...

@final
class Fingerprint(_AnyFingerprint):
    @staticmethod
    def from_bigint(value: int, /) -> Fingerprint: ...
    def to_bigint(self) -> int: ...

@final
class Fingerprint128(_AnyFingerprint): ...

@final
class Fingerprint256(_AnyFingerprint): ...

@final
class MinHashSignature(SupportsBytes):
    def __new__(
        cls,
        values: str | bytes | Iterable[int] | MinHashSignature,
        /,
        seed: int = 0,
        scheme: _Scheme = "neardup1",
    ) -> MinHashSignature: ...
    @property
    def values(self) -> list[int]: ...
    @property
    def seed(self) -> int: ...
    @property
    def scheme(self) -> str: ...
    def similarity(self, other: MinHashSignature, /) -> float | None: ...
    def distance(self, other: MinHashSignature, /) -> float | None: ...
    def union(self, other: MinHashSignature, /) -> MinHashSignature: ...
    def super_shingles(self, groups: int = 6) -> list[int]: ...
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...

def simhash(
    body: str,
    tokens: str = "word",
    shingle: int = 2,
    weight: _Weight = "sqrt",
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint | None: ...
def simhash128(
    body: str,
    tokens: str = "word",
    shingle: int = 2,
    weight: _Weight = "sqrt",
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint128 | None: ...
def minhash64(
    body: str,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint | None: ...
def minhash128(
    body: str,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint128 | None: ...
def minhash(
    body: str,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    hashes: int = 128,
    seed: int = 0,
    scheme: _Scheme = "neardup1",
) -> MinHashSignature | None: ...
def jaccard_similarity(
    a: str,
    b: str,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> float | None: ...
def containment(
    a: str,
    b: str,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> float | None: ...
def html_text(html: str) -> str: ...
def longest_sentences_hash(body: str, n: int = 3) -> int | None: ...
def text_length(body: str, html: bool = False, accents: _Accents = "keep") -> int: ...
def set_jieba_user_words(words: str, /) -> str: ...
def simhash_features(
    features: Sequence[str],
    weights: Sequence[float] | None = None,
    scheme: _SimhashScheme = "neardup",
) -> Fingerprint | None: ...
def simhash_hashes(
    hashes: Sequence[int],
    weights: Sequence[float] | None = None,
    scheme: _SimhashScheme = "neardup",
) -> Fingerprint | None: ...
def simhash128_features(
    features: Sequence[str], weights: Sequence[float] | None = None
) -> Fingerprint128 | None: ...
def minhash64_features(features: Sequence[str]) -> Fingerprint | None: ...
def minhash128_features(features: Sequence[str]) -> Fingerprint128 | None: ...
def minhash_features(
    features: Sequence[str], hashes: int = 128, seed: int = 0, scheme: _Scheme = "neardup1"
) -> MinHashSignature | None: ...
@overload
def hamming_distance(a: _F, b: _F, /) -> int: ...
@overload
def hamming_distance(a: int, b: int, /) -> int: ...
@overload
def fingerprint_similarity(a: _F, b: _F, /) -> float: ...
@overload
def fingerprint_similarity(a: int, b: int, /) -> float: ...
@overload
def fingerprint_similarity(a: MinHashSignature, b: MinHashSignature, /) -> float | None: ...
def minhash_similarity(a: MinHashSignature, b: MinHashSignature, /) -> float | None: ...
def minhash_distance(a: MinHashSignature, b: MinHashSignature, /) -> float | None: ...
def neardup_radius(
    function: Literal["minhash64", "minhash128"], similarity: float
) -> int: ...
