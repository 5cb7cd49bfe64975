//! The writer of the text of a program.

use std::fmt::Write;

use super::{
    ops::Buffer,
    program::{Block, COLLECTIVES, Program, Step},
};

pub fn buffer_name(buffer: Buffer) -> &'static str {
    match buffer {
        Buffer::Input => "i",
        Buffer::Output => "o",
        Buffer::Scratch => "s",
    }
}

/// Writes a program. Attributes are in the order of msccl-tools, followed by those that only the executor requires and
/// this project's own.
pub fn write(p: &Program) -> String {
    let mut to = String::new();
    let number = |yes: bool| u8::from(yes);
    let coll = COLLECTIVES.name(p.kind);
    let mut open = format!(
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{coll}\" \
         inplace=\"{}\" outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\"",
        escaped(&p.name),
        escaped(&p.protocol),
        p.channels,
        p.chunks,
        p.gpus.len(),
        number(p.in_place),
        number(p.out_of_place),
        p.min_bytes,
        p.max_bytes
    );
    let m = &p.meaning;
    let own = [
        ("elements", m.elements.map(|n| n.to_string())),
        ("dtype", m.dtype.map(|d| d.to_string())),
        ("op", m.operator.map(|o| o.to_string())),
        ("root", m.root.map(|r| r.to_string())),
    ];
    for (name, value) in own {
        if let Some(value) = value {
            let _ = write!(open, " {name}=\"{value}\"");
        }
    }
    let _ = writeln!(to, "{open}>");
    for (id, gpu) in p.gpus.iter().enumerate() {
        let _ = writeln!(
            to,
            "  <gpu id=\"{id}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">",
            gpu.input, gpu.output, gpu.scratch
        );
        gpu.blocks.iter().enumerate().for_each(|(id, block)| write_block(id, block, &mut to));
        to.push_str("  </gpu>\n");
    }
    to.push_str("</algo>\n");
    to
}

fn write_block(id: usize, block: &Block, to: &mut String) {
    let peer = |p: Option<u32>| p.map_or(-1, i64::from);
    let _ = writeln!(
        to,
        "    <tb id=\"{id}\" send=\"{}\" recv=\"{}\" chan=\"{}\">",
        peer(block.send),
        peer(block.receive),
        block.channel
    );
    for (s, step) in block.steps.iter().enumerate() {
        let Step { kind, source, destination, count, waits_for, is_awaited, .. } = step;
        let (block, earlier) = waits_for.map_or((-1, -1), |(b, s)| (i64::from(b), i64::from(s)));
        let _ = writeln!(
            to,
            "      <step s=\"{s}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{count}\" \
             depid=\"{block}\" deps=\"{earlier}\" hasdep=\"{}\"/>",
            kind.name(),
            buffer_name(source.buffer),
            source.chunk,
            buffer_name(destination.buffer),
            destination.chunk,
            u8::from(*is_awaited)
        );
    }
    to.push_str("    </tb>\n");
}

/// Returns the first 200 characters. Characters that XML escapes, or that are not visible ASCII, are replaced by `_`,
/// because the executor's parser does not decode escapes.
fn escaped(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_ascii_graphic() && !"\"'<>&".contains(c) { c } else { '_' }).collect()
}
