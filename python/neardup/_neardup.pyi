from collections.abc import Iterable
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
    "minhash64_many",
    "minhash128",
    "minhash128_features",
    "minhash128_many",
    "minhash_distance",
    "minhash_features",
    "minhash_many",
    "minhash_similarity",
    "neardup_band_keys",
    "neardup_radius",
    "set_jieba_user_words",
    "simhash",
    "simhash128",
    "simhash128_features",
    "simhash128_many",
    "simhash_features",
    "simhash_hashes",
    "simhash_many",
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
    @overload
    def hamming_distance(self, other: Self, /) -> int: ...
    @overload
    def hamming_distance(self, other: None, /) -> None: ...
    @overload
    def similarity(self, other: Self, /) -> float: ...
    @overload
    def similarity(self, other: None, /) -> None: ...
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
    def similarity(self, other: MinHashSignature | None, /) -> float | None: ...
    def distance(self, other: MinHashSignature | None, /) -> float | None: ...
    @overload
    def union(self, other: MinHashSignature, /) -> MinHashSignature: ...
    @overload
    def union(self, other: None, /) -> None: ...
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...

def simhash(
    body: str | None,
    tokens: str = "word",
    shingle: int = 2,
    weight: _Weight = "sqrt",
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint | None: ...
def simhash_many(
    texts: Iterable[str | None],
    tokens: str = "word",
    shingle: int = 2,
    weight: _Weight = "sqrt",
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    *,
    threads: int = 1,
) -> list[Fingerprint | None]: ...
def simhash128(
    body: str | None,
    tokens: str = "word",
    shingle: int = 2,
    weight: _Weight = "sqrt",
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint128 | None: ...
def simhash128_many(
    texts: Iterable[str | None],
    tokens: str = "word",
    shingle: int = 2,
    weight: _Weight = "sqrt",
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    *,
    threads: int = 1,
) -> list[Fingerprint128 | None]: ...
def minhash64(
    body: str | None,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint | None: ...
def minhash64_many(
    texts: Iterable[str | None],
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    *,
    threads: int = 1,
) -> list[Fingerprint | None]: ...
def minhash128(
    body: str | None,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> Fingerprint128 | None: ...
def minhash128_many(
    texts: Iterable[str | None],
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    *,
    threads: int = 1,
) -> list[Fingerprint128 | None]: ...
def minhash(
    body: str | None,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    hashes: int = 128,
    seed: int = 0,
    scheme: _Scheme = "neardup1",
) -> MinHashSignature | None: ...
def minhash_many(
    texts: Iterable[str | None],
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
    hashes: int = 128,
    seed: int = 0,
    scheme: _Scheme = "neardup1",
    *,
    threads: int = 1,
) -> list[MinHashSignature | None]: ...
def jaccard_similarity(
    a: str | None,
    b: str | None,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> float | None: ...
def containment(
    a: str | None,
    b: str | None,
    tokens: str = "word",
    shingle: int = 3,
    html: bool = False,
    accents: _Accents = "keep",
    digits: _Digits = "keep",
) -> float | None: ...
@overload
def html_text(html: str) -> str: ...
@overload
def html_text(html: None) -> None: ...
def longest_sentences_hash(body: str | None, n: int = 3) -> int | None: ...
@overload
def text_length(body: str, html: bool = False, accents: _Accents = "keep") -> int: ...
@overload
def text_length(body: None, html: bool = False, accents: _Accents = "keep") -> None: ...
def set_jieba_user_words(words: str, /) -> str: ...
def simhash_features(
    features: Iterable[str] | None,
    weights: Iterable[float] | None = None,
    scheme: _SimhashScheme = "neardup",
) -> Fingerprint | None: ...
def simhash_hashes(
    hashes: Iterable[int] | None,
    weights: Iterable[float] | None = None,
    scheme: _SimhashScheme = "neardup",
) -> Fingerprint | None: ...
def simhash128_features(
    features: Iterable[str] | None, weights: Iterable[float] | None = None
) -> Fingerprint128 | None: ...
def minhash64_features(features: Iterable[str] | None) -> Fingerprint | None: ...
def minhash128_features(features: Iterable[str] | None) -> Fingerprint128 | None: ...
def minhash_features(
    features: Iterable[str] | None, hashes: int = 128, seed: int = 0, scheme: _Scheme = "neardup1"
) -> MinHashSignature | None: ...
@overload
def hamming_distance(a: _F, b: _F, /) -> int: ...
@overload
def hamming_distance(a: int, b: int, /) -> int: ...
@overload
def hamming_distance(a: object, b: None, /) -> None: ...
@overload
def hamming_distance(a: None, b: object, /) -> None: ...
@overload
def fingerprint_similarity(a: _F, b: _F, /) -> float: ...
@overload
def fingerprint_similarity(a: int, b: int, /) -> float: ...
@overload
def fingerprint_similarity(a: MinHashSignature, b: MinHashSignature, /) -> float | None: ...
@overload
def fingerprint_similarity(a: object, b: None, /) -> None: ...
@overload
def fingerprint_similarity(a: None, b: object, /) -> None: ...
def minhash_similarity(
    a: MinHashSignature | None, b: MinHashSignature | None, /
) -> float | None: ...
def minhash_distance(
    a: MinHashSignature | None, b: MinHashSignature | None, /
) -> float | None: ...
@overload
def neardup_band_keys(
    value: _AnyFingerprint | MinHashSignature | int, /, bands: int, rows: int
) -> list[int]: ...
@overload
def neardup_band_keys(value: None, /, bands: int, rows: int) -> None: ...
def neardup_radius(
    function: Literal["minhash64", "minhash128"], similarity: float
) -> int: ...
