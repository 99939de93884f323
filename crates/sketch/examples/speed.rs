//! x
#![allow(unsafe_code, missing_docs)]
use neardup_sketch::options::*;
use neardup_sketch::*;
fn cpu() -> f64 {
    #[repr(C)]
    struct Ts {
        s: i64,
        n: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(c: i32, t: *mut Ts) -> i32;
    }
    let mut t = Ts { s: 0, n: 0 };
    unsafe {
        clock_gettime(3, &mut t);
    }
    t.s as f64 + t.n as f64 * 1e-9
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let filter = args.get(1).cloned().unwrap_or_default();
    for set in ["en_edits", "pgdoc_en", "field_code", "zh_edits", "pgdoc_zh"] {
        let data = std::fs::read(format!("/tmp/speed/{set}.bin")).unwrap();
        let mut docs = vec![];
        let mut at = 0;
        while at < data.len() {
            let n = u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
            docs.push(std::str::from_utf8(&data[at + 4..at + 4 + n]).unwrap());
            at += 4 + n;
        }
        let bytes: usize = docs.iter().map(|d| d.len()).sum();
        for (name, tokens, shingle) in [
            ("word2", Tokens::Word, 2),
            ("word3", Tokens::Word, 3),
            ("char1", Tokens::Char, 1),
            ("char3", Tokens::Char, 3),
            ("char5", Tokens::Char, 5),
            ("char9", Tokens::Char, 9),
            ("line1", Tokens::Line, 1),
        ] {
            if !format!("{set}/{name}").contains(&filter) {
                continue;
            }
            let options = TextOptions {
                tokens,
                shingle,
                ..TextOptions::SIMHASH
            };
            let mut best = f64::MAX;
            let mut all = 0;
            for _ in 0..std::env::var("N").map_or(7, |n| n.parse().unwrap()) {
                let t = cpu();
                for d in &docs {
                    all ^= simhash64_text(d, &options, &mut || ()).unwrap_or(0);
                }
                best = best.min(cpu() - t);
            }
            println!(
                "{set:12} {name:7} {:7.1} MB/s  avg doc {:6}  {all:016x}",
                bytes as f64 / best / 1e6,
                bytes / docs.len()
            );
        }
    }
}
