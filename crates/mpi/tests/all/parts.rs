//! Tests of `parts`.

use unisono_mpi::{
    Corners, Layout, Parts,
    internals::parts::{extents, volume},
};

/// Compares `Parts` with a loop over elements, for every box of small arrays within every enclosing box.
#[test]
fn parts_are_those_of_a_loop_over_elements() {
    for shape in [[4, 3, 2], [5, 3, 1], [7, 1, 1], [2, 1, 3]] {
        for element_bytes in [1, 3, 4, 8] {
            let layout = Layout { shape, element_bytes };
            let bytes = layout.bytes().unwrap();
            let array: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
            for outer in boxes([[0; 3], shape]) {
                for part in boxes(outer) {
                    compare(&layout, &array, &part, &outer);
                }
            }
        }
    }
}

fn boxes([first, last]: Corners) -> Vec<Corners> {
    let mut all = vec![[first, last]];
    for d in 0..3 {
        let cut = |b: &Corners| {
            let mut made = Vec::new();
            for low in first[d]..last[d] {
                for high in low + 1..=last[d] {
                    let mut next = *b;
                    (next[0][d], next[1][d]) = (low, high);
                    made.push(next);
                }
            }
            made
        };
        all = all.iter().flat_map(cut).collect();
    }
    all
}

fn compare(layout: &Layout, array: &[u8], part: &Corners, outer: &Corners) {
    let (start, bytes, room) = (2, layout.element_bytes, extents(outer).unwrap());
    let mut parts = Parts::default();
    parts.add(layout, part, start, outer).unwrap();
    let mut expected = vec![255; (start + volume(room).unwrap()) * bytes];
    let mut there = vec![255; array.len()];
    for x in part[0][0]..part[1][0] {
        for y in part[0][1]..part[1][1] {
            for z in part[0][2]..part[1][2] {
                let at = ((x * layout.shape[1] + y) * layout.shape[2] + z) * bytes;
                let (i, j, k) = (x - outer[0][0], y - outer[0][1], z - outer[0][2]);
                let to = (start + (i * room[1] + j) * room[2] + k) * bytes;
                expected[to..to + bytes].copy_from_slice(&array[at..at + bytes]);
                there[at..at + bytes].copy_from_slice(&array[at..at + bytes]);
            }
        }
    }
    let mut packed = vec![255; expected.len()];
    assert!(parts.packed_bytes() <= packed.len() && parts.array_bytes() <= array.len());
    // SAFETY: the assertions above checked the sizes of both memories.
    unsafe { parts.pack(array.as_ptr(), packed.as_mut_ptr()) };
    assert_eq!(packed, expected, "{layout:?} {part:?} {outer:?}");
    let mut back = vec![255; array.len()];
    // SAFETY: the assertions checked both sizes.
    unsafe { parts.unpack(back.as_mut_ptr(), packed.as_ptr()) };
    assert_eq!(back, there, "{layout:?} {part:?} {outer:?}");
}

#[test]
fn a_region_that_lies_together_needs_no_packing() {
    let layout = Layout { shape: [6, 4, 1], element_bytes: 8 };
    let of = |boxes: &[Corners]| Parts::of_region(&layout, boxes.iter().copied()).unwrap().in_place();
    assert_eq!(of(&[[[1, 0, 0], [3, 4, 1]]]), Some((32, 64)));
    assert_eq!(of(&[[[2, 1, 0], [3, 3, 1]]]), Some((72, 16)));
    assert_eq!(of(&[[[1, 0, 0], [3, 3, 1]]]), None);
    assert_eq!(of(&[[[0, 0, 0], [1, 4, 1]], [[2, 0, 0], [3, 4, 1]]]), None);
}

#[test]
fn what_is_not_in_the_array_is_refused() {
    let layout = Layout { shape: [6, 1, 1], element_bytes: 8 };
    let add = |part: Corners, outer: Corners| Parts::default().add(&layout, &part, 0, &outer);
    assert!(add([[0, 0, 0], [7, 1, 1]], [[0, 0, 0], [7, 1, 1]]).is_none());
    assert!(add([[0, 0, 0], [3, 1, 1]], [[1, 0, 0], [3, 1, 1]]).is_none());
    assert!(add([[3, 0, 0], [2, 1, 1]], [[0, 0, 0], [6, 1, 1]]).is_none());
    let huge = Layout { shape: [usize::MAX, 2, 1], element_bytes: 1 };
    assert!(Parts::default().add(&huge, &[[0; 3], [1; 3]], 0, &[[0; 3], [1; 3]]).is_none());
}
