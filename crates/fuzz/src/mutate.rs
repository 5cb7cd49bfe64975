//! Makes new inputs from old ones.

use crate::{Form, Random, plan_bytes};

/// Seeds of a target, and the words that they contain.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    pub seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

/// Greatest length of an input. Longer inputs are cut, because shorter ones show the same faults sooner.
const LONGEST: usize = 64 << 10;
const MOST_WORDS: usize = 4096;
/// Numbers at the bounds of types, and texts that look like numbers.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "-0",
    "255",
    "256",
    "1023",
    "65535",
    "65536",
    "16777216",
    "2147483647",
    "2147483648",
    "4294967294",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "1e308",
    "1e-320",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "0.5",
    "1_0",
    "0x10",
    "+1",
    "٣",
    "",
];
const ODD: &[&str] = &[
    "\0",
    "é",
    "\u{2028}",
    "\r",
    "\r\n",
    "\t",
    ";",
    "#",
    "[",
    "{",
    "(",
    "\"",
    "'",
    "\\",
    "<!--",
    "]]>",
    "<",
    "&amp;",
    "\u{feff}",
    "𝟘",
    "                                ",
    "|",
    "x",
    "*",
    "..",
    ",",
];
const BRACKETS: &[(&str, &str)] = &[("[", "]"), ("{\"a\":", "}"), ("(", ")"), ("<a>", "</a>"), ("{ ", " }")];

impl Pool {
    pub fn new(seeds: Vec<Vec<u8>>) -> Self {
        let mut pool = Self::default();
        seeds.into_iter().for_each(|seed| pool.add(seed));
        pool
    }

    pub fn add(&mut self, seed: Vec<u8>) {
        if self.words.len() < MOST_WORDS {
            let of = tokens(&seed).into_iter().filter(|t| t.len() > 1 && t.len() < 64 && !t[0].is_ascii_digit());
            for word in of.map(<[u8]>::to_vec).collect::<Vec<_>>() {
                if let Err(at) = self.words.binary_search(&word) {
                    self.words.insert(at, word);
                }
            }
        }
        self.seeds.push(seed);
    }

    /// Returns a changed seed. One in ten, except for plans, combines the beginning of a seed with the end of another.
    pub fn next(&self, form: Form, random: &mut Random) -> Vec<u8> {
        // The seeds added last reach the newest code.
        let recent = self.seeds.len().saturating_sub(16);
        let at = if random.chance(25) {
            recent + random.below(self.seeds.len() - recent)
        } else {
            random.below(self.seeds.len())
        };
        let parent = self.seeds.get(at).map_or(&[][..], |seed| seed);
        let mut input = match form {
            Form::Plan => return plan_bytes::change(parent, random),
            _ if random.chance(10) => self.spliced(parent, random),
            _ => parent.to_vec(),
        };
        for _ in 0..*random.pick(&[1, 1, 1, 2, 2, 3, 5, 8]) {
            match form {
                Form::Text => self.change_text(&mut input, random),
                Form::Draws | Form::Plan => change_bytes(&mut input, random),
            }
            input.truncate(LONGEST);
        }
        input
    }

    fn spliced(&self, parent: &[u8], random: &mut Random) -> Vec<u8> {
        let other = random.pick(&self.seeds);
        let (first, second) = (random.below(parent.len() + 1), random.below(other.len() + 1));
        [&parent[..first], &other[second..]].concat()
    }

    fn change_text(&self, input: &mut Vec<u8>, random: &mut Random) {
        match random.below(100) {
            0..=54 => self.change_tokens(input, random),
            55..=79 => self.change_lines(input, random),
            80..=87 => {
                let at = random.below(input.len() + 1);
                input.splice(at..at, random.pick(ODD).bytes());
            }
            88..=90 => input.truncate(random.below(input.len() + 1)),
            91..=93 => {
                let from = random.below(input.len() + 1);
                let to = (from + 1 + random.below(40)).min(input.len());
                let part = input[from..to].repeat(*random.pick(&[2, 5, 40, 1000]));
                input.splice(from..from, part);
            }
            94..=95 => {
                let (from, depth) = (random.below(input.len() + 1), *random.pick(&[1, 2, 30, 200, 5000]));
                let to = from + random.below(input.len() + 1 - from);
                let (open, close) = random.pick(BRACKETS);
                input.splice(to..to, close.repeat(depth).bytes());
                input.splice(from..from, open.repeat(depth).bytes());
            }
            _ => change_bytes(input, random),
        }
    }

    fn change_tokens(&self, input: &mut Vec<u8>, random: &mut Random) {
        let mut all: Vec<Vec<u8>> = tokens(input).into_iter().map(<[u8]>::to_vec).collect();
        if all.is_empty() {
            return;
        }
        let numbers: Vec<usize> = (0..all.len()).filter(|&n| all[n][0].is_ascii_digit()).collect();
        let at = random.below(all.len());
        match random.below(100) {
            0..=39 if !numbers.is_empty() => all[*random.pick(&numbers)] = random.pick(NUMBERS).as_bytes().to_vec(),
            40..=54 if !numbers.is_empty() => {
                let at = *random.pick(&numbers);
                let value = std::str::from_utf8(&all[at]).ok().and_then(|text| text.parse::<i128>().ok());
                let step = *random.pick(&[-1, 1, -2, 2, 10, 100, 1000]);
                if let Some(value) = value {
                    all[at] = (value + step).to_string().into_bytes();
                }
            }
            0..=64 => drop(all.drain(at..(at + *random.pick(&[1, 1, 2, 5])).min(all.len()))),
            65..=74 => {
                let part = all[at..(at + *random.pick(&[1, 3, 6])).min(all.len())].to_vec();
                all.splice(at..at, part);
            }
            75..=82 => {
                let other = random.below(all.len());
                all.swap(at, other);
            }
            _ if !self.words.is_empty() => all[at] = random.pick(&self.words).clone(),
            _ => {}
        }
        *input = all.concat();
    }

    fn change_lines(&self, input: &mut Vec<u8>, random: &mut Random) {
        let mut lines: Vec<Vec<u8>> = input.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(10) {
            0..=2 => drop(lines.remove(at)),
            3..=5 => lines.insert(at, lines[other].clone()),
            6..=7 => lines.swap(at, other),
            _ => {
                let from: Vec<&[u8]> = random.pick(&self.seeds).split(|&b| b == b'\n').collect();
                lines.insert(at, random.pick(&from).to_vec());
            }
        }
        *input = lines.join(&b'\n');
    }
}

/// Splits a text into numbers (with points), words, runs of blanks, and single other bytes.
pub fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let class = |b: u8| match b {
        b'0'..=b'9' | b'.' => 1,
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => 2,
        b' ' | b'\t' => 3,
        _ => 0,
    };
    text.chunk_by(|&a, &b| class(a) == class(b) && class(a) != 0).collect()
}

/// Makes one change at a random position: inserts, removes, copies or overwrites a few bytes, or inverts a bit.
pub fn change_bytes(input: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(8) {
        0 => input.insert(at, random.bits() as u8),
        1 if at < input.len() => drop(input.remove(at)),
        2 if at < input.len() => input[at] ^= 1 << random.below(8),
        3 => overwrite(input, at, &random.bits().to_le_bytes()[..*random.pick(&[1, 2, 4])]),
        4 => overwrite_number(input, at, random),
        5 => {
            let part = input[at..(at + 1 + random.below(16)).min(input.len())].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, part);
        }
        6 => {
            let count = 1 + random.below(24);
            let fresh: Vec<u8> = (0..count).map(|_| random.bits() as u8).collect();
            input.splice(at..at, fresh);
        }
        _ => {
            let end = (at + 1 + random.below(8)).min(input.len());
            input.drain(at..end);
        }
    }
}

/// Overwrites four or eight bytes with a number at the bounds of a type, a number below 16, or one near the present
/// number.
pub fn overwrite_number(input: &mut [u8], at: usize, random: &mut Random) {
    let wide = random.chance(25);
    let small = random.below(16) as u64;
    let bounds = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 1 << 32, 1 << 62, 1 << 63, u64::MAX, small];
    let mut number = random.pick(&bounds).to_le_bytes();
    if random.chance(50) && at + 4 <= input.len() {
        let there = u32::from_le_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]]);
        let near = there.wrapping_add(*random.pick(&[1, 2, u32::MAX, u32::MAX - 1, 1 << 8, 1 << 31]));
        number = u64::from(near).to_le_bytes();
    }
    overwrite(input, at, &number[..if wide { 8 } else { 4 }]);
}

fn overwrite(input: &mut [u8], at: usize, with: &[u8]) {
    let end = (at + with.len()).min(input.len());
    input[at..end].copy_from_slice(&with[..end - at]);
}
