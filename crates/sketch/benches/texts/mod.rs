//! Generated texts to measure with: the same in every run, with words and characters about as frequent
//! as in real ones.

/// A small generator with a fixed seed (xorshift64*), so that every run measures the same texts.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// 0 to n - 1, small numbers far more often, as words are in texts.
    fn zipf(&mut self, n: u64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((n as f64).powf(uniform) - 1.0) as u64
    }
}

/// Words made of `letters`, each of a length around that of English words.
fn vocabulary(random: &mut Random, letters: &[char], size: u64) -> Vec<String> {
    (0..size)
        .map(|rank| {
            let length =
                1 + random.below(4) + random.below(4) + u64::from(rank > 50) * random.below(5);
            (0..length)
                .map(|_| letters[random.below(letters.len() as u64) as usize])
                .collect()
        })
        .collect()
}

/// Letters of English, each as often as in texts.
pub const LATIN: &str = "eeeeeetttttaaaaooooiiiinnnnsssshhhrrrdddlllcuumwfgypbvk";

/// Sentences of words with capitals, commas and full stops.
pub fn spaced(letters: &str, bytes: usize) -> String {
    let mut random = Random(20_021);
    let letters: Vec<char> = letters.chars().collect();
    let words = vocabulary(&mut random, &letters, 30_000);
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for at in 0..6 + random.below(14) {
            if at > 0 {
                text += if random.below(12) == 0 { ", " } else { " " };
            }
            let word = &words[random.zipf(words.len() as u64) as usize];
            if at == 0 {
                text += &word.to_uppercase()
            } else {
                text += word
            }
        }
        text += if random.below(8) == 0 { ".\n" } else { ". " };
    }
    text
}

/// Chinese-like: Han characters, full-width punctuation, now and then a number or a Latin word.
pub fn chinese(bytes: usize) -> String {
    let mut random = Random(2007);
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for _ in 0..5 + random.below(12) {
            let rank = random.zipf(5000) as u32;
            text.push(char::from_u32(0x4E00 + rank * 4).unwrap());
        }
        match random.below(20) {
            0 => text += "SQL 2007",
            1 => text += "100",
            2..8 => text += "。",
            _ => text += "，",
        }
    }
    text
}

/// Cuts a text into documents of about `bytes`.
pub fn documents(text: &str, bytes: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while rest.len() > bytes {
        let (document, after) = rest.split_at(rest.ceil_char_boundary(bytes));
        documents.push(document);
        rest = after;
    }
    documents.push(rest);
    documents
}
