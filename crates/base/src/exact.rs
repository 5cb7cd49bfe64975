//! Readers of arrays of a fixed length in files. The TOML reader drops values beyond the length without an error. So
//! fields of array types name a function of this module in `deserialize_with`.

use serde::{Deserialize, Deserializer, de::Error};

/// Reads an array of exactly N values.
///
/// # Errors
/// Returns an error for fewer or more values, or another type.
pub fn array<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(source: D) -> Result<[T; N], D::Error> {
    let values = Vec::<T>::deserialize(source)?;
    let found = values.len();
    values.try_into().map_err(|_| D::Error::custom(format_args!("found {found} values; accepted are {N}")))
}

/// Reads an array of exactly N values for an optional key. The field also needs the attribute `default`.
///
/// # Errors
/// Returns the errors of [`array`].
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    source: D,
) -> Result<Option<[T; N]>, D::Error> {
    array(source).map(Some)
}
