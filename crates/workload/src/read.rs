//! The reader of programs in any known format, which is detected from the contents of files.

use unisono_base::excerpt;

use crate::{ReadError, WorkloadGraph, chakra, error::Wrong, hlo, kineto};

/// The name of a file, for messages, and its bytes.
pub type SourceFile = (String, Vec<u8>);

#[derive(Clone, Copy)]
pub struct Format {
    pub name: &'static str,
    pub is_it: fn(&[u8]) -> bool,
    /// Reads files. With `strict`, an operation of unknown time is an error.
    pub read: fn(&[SourceFile], bool) -> Result<WorkloadGraph, ReadError>,
}

/// The formats in the order of detection: Kineto last, because any JSON may be a Kineto trace, even a file of groups.
const FORMATS: &[Format] = &[
    Format { name: "Chakra execution traces", is_it: chakra::is_it, read: chakra::read },
    Format { name: "HLO text", is_it: hlo::is_it, read: one_hlo },
    Format { name: "Kineto traces", is_it: kineto::is_it, read: kineto::read },
];

/// Reads a program. With `strict`, an operation of unknown time is an error.
///
/// # Errors
/// Returns an error if there are no files or the format is unknown, or the first error of the format's reader.
pub fn read(files: &[SourceFile], strict: bool) -> Result<WorkloadGraph, ReadError> {
    read_also(&[], files, strict)
}

/// Reads a program in a known format or in one of `others`, which are tried last.
///
/// # Errors
/// Returns the errors of [`read`].
pub fn read_also(others: &[Format], files: &[SourceFile], strict: bool) -> Result<WorkloadGraph, ReadError> {
    let formats = || FORMATS.iter().chain(others);
    let accepted = || formats().map(|format| format.name).collect::<Vec<_>>().join(", ");
    let Some((origin, bytes)) = files.first() else {
        return Err(Wrong::file(format!("there is no file; accepted are {}", accepted())).of("the program"));
    };
    match formats().find(|format| files.iter().any(|(_, bytes)| (format.is_it)(bytes))) {
        Some(format) => (format.read)(files, strict),
        None => {
            let begin = excerpt(&String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
            Err(Wrong::file(format!("the file begins with '{begin}'; accepted are {}", accepted())).of(origin))
        }
    }
}

fn one_hlo(files: &[SourceFile], strict: bool) -> Result<WorkloadGraph, ReadError> {
    let [(origin, bytes)] = files else {
        let (origin, _) = &files[1];
        return Err(Wrong::file("HLO text is one file for all devices; name one file alone").of(origin));
    };
    let text = std::str::from_utf8(bytes).map_err(|e| {
        Wrong::file(format!("byte {} is not text; accepted is HLO text in UTF-8", e.valid_up_to())).of(origin)
    })?;
    hlo::read(text, origin, strict)
}
