//! Files that may be compressed by gzip.

use std::{borrow::Cow, io::Read};

use flate2::read::MultiGzDecoder;

/// The maximum number of bytes of an unpacked file.
const MOST_BYTES: u64 = 1 << 28;

fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Returns the contents of a file, unpacked if it is compressed.
pub fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !is_packed(bytes) {
        return Ok(bytes.into());
    }
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut unpacked);
    read.map_err(|_| "the compressed file is damaged or cut off".to_owned())?;
    if unpacked.len() as u64 > MOST_BYTES {
        return Err(format!("the trace has more than {MOST_BYTES} bytes"));
    }
    Ok(unpacked.into())
}

/// Returns the contents of a file or, if it is compressed, their first 4 KiB, as far as they can be unpacked.
pub fn beginning(bytes: &[u8]) -> Cow<'_, [u8]> {
    const LOOKED_AT: usize = 1 << 12;
    if !is_packed(bytes) {
        return bytes.into();
    }
    let mut begin = vec![0; LOOKED_AT];
    let mut decoder = MultiGzDecoder::new(bytes);
    let mut filled = 0;
    while let Ok(count @ 1..) = decoder.read(&mut begin[filled..]) {
        filled += count;
    }
    begin.truncate(filled);
    begin.into()
}
