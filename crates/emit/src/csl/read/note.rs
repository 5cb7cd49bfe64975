//! The collective as the layout's note says it.

use unisono_collective::Collective;

pub fn collective(note: &str) -> Result<Collective, String> {
    let words: Vec<&str> = note.split_whitespace().collect();
    let ["collective", kind, "ranks", ranks, "elements", elements, "root", root, "operator", operator, "dtype", dtype] =
        words[..]
    else {
        return Err(format!("the note `{note}` is not emitted"));
    };
    let number = |what, text: &str| text.parse::<u64>().map_err(|_| format!("{what} `{text}` is not a number"));
    let ranks = number("ranks", ranks)?;
    Collective::new(
        kind.parse().map_err(text)?,
        u32::try_from(ranks).map_err(|_| format!("{ranks} ranks"))?,
        number("elements", elements)?,
        number("root", root)?,
        operator.parse().map_err(text)?,
        dtype.parse().map_err(text)?,
    )
    .map_err(text)
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}
