//! Tests of `units`.

use unisono_base::Wavelets;

/// A wavelet has four bytes. The last wavelet of a vector may be half empty.
#[test]
fn wavelets_hold_all_bytes_and_no_wavelet_more() {
    for bytes in (0..20).flat_map(|elements| [2, 4, 8].map(|each| (elements, each))) {
        let room = 4 * Wavelets::of(bytes.0, bytes.1).0;
        assert!((0..4).contains(&(room - bytes.0 * bytes.1)), "{bytes:?}: {room}");
    }
}
