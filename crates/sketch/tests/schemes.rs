//! Fingerprints of other programs.
//!
//! The values are from tests and documentation of those programs (marked as published), or were
//! computed with them: `simhash` 2.1.2 of PyPI under NumPy 2.4, `simhash-py` 0.4.0,
//! `yanyiwu/simhash`. Some thousand random inputs for each program, with whole and fractional
//! weights, also gave equal values.

use neardup_sketch::WeightError;
use neardup_sketch::foreign_schemes::SimhashScheme;

fn of(scheme: SimhashScheme, features: &[(&str, f64)]) -> u64 {
    let hashes = features
        .iter()
        .map(|(feature, weight)| (scheme.hash(feature.as_bytes()), *weight));
    scheme.simhash64(hashes).unwrap().unwrap()
}

fn unweighted(scheme: SimhashScheme, features: &[&str]) -> u64 {
    let features: Vec<_> = features.iter().map(|&feature| (feature, 1.0)).collect();
    of(scheme, &features)
}

/// Features of several lengths and scripts, including an empty one.
const FEATURES: [&str; 6] = ["the quick", "quick brown", "brown fox", "你好", "😀", ""];

fn weighted() -> Vec<(&'static str, f64)> {
    FEATURES
        .into_iter()
        .zip([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
        .collect()
}

#[test]
fn simhash_of_pypi() {
    let scheme = SimhashScheme::PythonSimhash;
    // Published: test_simhash.py.
    assert_eq!(unweighted(scheme, &["aaa", "bbb"]), 57_087_923_692_560_392);
    let numbers: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    assert_eq!(unweighted(scheme, &numbers), 7_984_652_473_404_407_437);
    let weighted_numbers: Vec<_> = numbers
        .iter()
        .zip(0..)
        .map(|(&n, i)| (n, 50.0 * f64::from(i)))
        .collect();
    assert_eq!(of(scheme, &weighted_numbers), 3_372_825_719_632_739_723);
    // Computed.
    assert_eq!(unweighted(scheme, &["a"]), 3_585_878_926_028_121_697);
    assert_eq!(unweighted(scheme, &[]), 0);
    assert_eq!(of(scheme, &[("a", 0.0)]), 0);
    assert_eq!(unweighted(scheme, &FEATURES), 16_762_468_903_644_319_686);
    assert_eq!(of(scheme, &weighted()), 16_762_505_260_680_431_606);
    // Rounded sums. Exact sums would give other bits.
    for (features, rounded, exact) in [
        (
            &[("b", 0.3), ("a", 0.3), ("c", 0.7), ("e", 0.1)][..],
            1_253_285_133_222_633_267,
            3_559_137_213_944_127_283,
        ),
        (
            &[("c", 0.1), ("c", 0.6), ("a", 0.7)],
            1_243_151_965_341_550_113,
            10_764_887_580_597_772_083,
        ),
        (
            &[("c", 0.1), ("e", 0.7), ("a", 0.6)],
            2_386_917_974_738_037_810,
            3_558_012_344_967_851_571,
        ),
    ] {
        assert_eq!(of(scheme, features), rounded);
        let hashes = features
            .iter()
            .map(|(feature, weight)| (scheme.hash(feature.as_bytes()), *weight));
        assert_eq!(SimhashScheme::Neardup.simhash64(hashes), Ok(Some(exact)));
    }
}

#[test]
fn simhash_py_and_simhash_cpp() {
    let scheme = SimhashScheme::SimhashPy;
    let hashes = |hashes: &[u64]| scheme.simhash64(hashes.iter().map(|&hash| (hash, 1.0)));
    // Published: test-simhash.cpp.
    assert_eq!(hashes(&[]), Ok(Some(0)));
    assert_eq!(hashes(&[0xDEAD_BEEF; 100]), Ok(Some(0xDEAD_BEEF)));
    assert_eq!(hashes(&[0xDEAD_BEEF, !0xDEAD_BEEF]), Ok(Some(0)));
    assert_eq!(hashes(&[0xABCD, 0xBCDE, 0xCDEF]), Ok(Some(0xADCF)));
    // Computed.
    assert_eq!(scheme.hash(b"aaa"), 5_169_259_116_506_947_400);
    assert_eq!(unweighted(scheme, &FEATURES), 7_501_141_929_137_078_272);
}

#[test]
fn simhash_of_yanyiwu() {
    let scheme = SimhashScheme::YanyiwuSimhash;
    // Published: README.md and TSimhash.cpp.
    assert_eq!(scheme.hash("你好".as_bytes()), 17_676_873_585_679_812_141);
    let keywords = [
        ("蓝翔", 11.7392),
        ("CEO", 11.7392),
        ("升职", 10.8562),
        ("加薪", 10.6426),
        ("手扶拖拉机", 10.0089),
    ];
    assert_eq!(of(scheme, &keywords), 17_831_459_094_038_722_629);
    let hashes = [
        (15_142_046_212_652_221_781, 318.452),
        (2_117_559_126_361_955_906, 151.001),
        (14_814_508_906_697_812_479, 140.87),
        (13_004_687_738_940_023_035, 106.978),
        (18_264_030_747_823_598_625, 103.739),
    ];
    assert_eq!(
        scheme.simhash64(hashes),
        Ok(Some(15_286_165_794_479_097_173))
    );
    // Computed: each length of a last block, and rounded sums.
    let alphabet = b"abcdefghijklmnopqrstuvwxyz";
    let hashes: Vec<u64> = (0..26).map(|len| scheme.hash(&alphabet[..len])).collect();
    assert_eq!(
        hashes,
        [
            16_045_690_984_833_335_023,
            6_401_452_390_262_130_604,
            18_137_025_801_885_425_906,
            1_024_980_344_035_851_934,
            13_111_254_622_571_189_242,
            174_922_258_409_396_447,
            15_490_782_027_391_180_964,
            12_761_746_300_746_866_077,
            2_996_516_351_244_670_244,
            12_422_461_268_241_384_703,
            10_085_761_815_768_086_784,
            6_873_036_157_963_540_596,
            4_617_025_777_147_645_632,
            10_556_764_051_697_085_288,
            3_150_354_770_272_906_176,
            12_235_875_250_100_414_214,
            1_239_741_632_792_480_550,
            9_887_762_171_359_371_623,
            2_083_745_372_350_334_966,
            191_418_686_392_761_613,
            3_974_153_659_008_925_767,
            16_114_917_732_042_557_574,
            12_210_710_575_255_944_872,
            5_631_118_012_023_613_608,
            1_973_456_155_371_730_766,
            7_793_978_205_126_275_853
        ]
    );
    assert_eq!(unweighted(scheme, &[]), 0);
    assert_eq!(unweighted(scheme, &FEATURES), 13_118_419_357_127_185_453);
    assert_eq!(of(scheme, &weighted()), 17_838_193_970_114_262_191);
    for (features, rounded, exact) in [
        (
            &[("a", 0.6), ("a", 0.3), ("e", 0.6), ("d", 0.3)][..],
            6_828_807_803_725_339_566,
            6_396_382_507_652_498_348,
        ),
        (
            &[
                ("e", 0.2),
                ("a", 0.3),
                ("d", 0.2),
                ("e", 0.1),
                ("b", 0.3),
                ("d", 0.1),
            ],
            6_828_803_405_678_697_102,
            6_828_803_405_678_696_590,
        ),
    ] {
        assert_eq!(of(scheme, features), rounded);
        let hashes = features
            .iter()
            .map(|(feature, weight)| (scheme.hash(feature.as_bytes()), *weight));
        assert_eq!(SimhashScheme::Neardup.simhash64(hashes), Ok(Some(exact)));
    }
}

/// md5("abc") is 900150983cd24fb0d6963f7d28e17f72 (RFC 1321).
#[test]
fn parts_of_md5() {
    assert_eq!(SimhashScheme::SimhashPy.hash(b"abc"), 0x9001_5098_3cd2_4fb0);
    assert_eq!(SimhashScheme::Md5Middle.hash(b"abc"), 0x3cd2_4fb0_d696_3f7d);
    assert_eq!(
        SimhashScheme::PythonSimhash.hash(b"abc"),
        0xd696_3f7d_28e1_7f72
    );
    assert_eq!(
        unweighted(SimhashScheme::Md5Middle, &["abc"]),
        0x3cd2_4fb0_d696_3f7d
    );
    assert_eq!(unweighted(SimhashScheme::Md5Middle, &[]), 0);
}

#[test]
fn own_scheme_is_that_of_the_crate() {
    let own = neardup_sketch::simhash64_features(weighted());
    assert_eq!(Ok(Some(of(SimhashScheme::Neardup, &weighted()))), own);
    assert_eq!(SimhashScheme::Neardup.simhash64([]), Ok(None));
}

#[test]
fn bad_weights_are_refused() {
    for scheme in [
        SimhashScheme::Neardup,
        SimhashScheme::PythonSimhash,
        SimhashScheme::SimhashPy,
        SimhashScheme::YanyiwuSimhash,
    ] {
        for weight in [f64::NAN, f64::INFINITY, -1.0] {
            let error = scheme.simhash64([(1, 1.0), (2, weight)]).unwrap_err();
            assert_eq!(error, WeightError { index: 1, weight });
        }
    }
}
