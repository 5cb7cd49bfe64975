//! Tests of `rules::full`.

use unisono_discover::{
    Box3, Geometry, Mapper, Region, Side, Sides, Split,
    internals::{
        exchange::{OwnedRegion, need},
        full::{is_halo, probes, someone_needs},
        side::{Form, SideId},
    },
};

#[test]
fn probes_stand_for_all() {
    let mut random = unisono_base::Random(11);
    let mut below = |n: i64| random.below(n as u64) as i64;
    let (mut probed, mut halos) = (0, 0);
    for _ in 0..20_000 {
        let flat = below(3) > 0;
        let whole = if flat { Box3::of_size([400, 1, 1]) } else { Box3::of_size([60, 50, 1]) };
        let mut sides = Sides::default();
        let nodes = 33 + below(150) as u32;
        let mut side = |mapper: Mapper, below: &mut dyn FnMut(i64) -> i64| {
            let sizes = if flat { vec![400 - below(9)] } else { vec![60 - below(5), 50 - below(5)] };
            let mut geometry = Geometry::of(&sizes).with_granularity([1 + below(2), 1, 1]);
            geometry.offset[0] = below(4);
            if !flat {
                geometry = geometry.with_split(Split::TwoD);
            }
            let dims = sizes.len();
            let rules = mapper.rules(&geometry, &whole, dims, false).expect("it fits");
            let side = Side::of_mappers(&geometry, nodes, &[(mapper, rules)], whole, dims).expect("it fits");
            sides.intern(side)
        };
        let wide = [below(9), if flat { 0 } else { below(3) }, 0];
        let mapper = if below(2) == 0 { Mapper::Neighborhood(wide) } else { Mapper::Shift(wide) };
        let (owner, reader) = (side(Mapper::OneToOne, &mut below), side(mapper, &mut below));
        let (low, high) = (below(40), whole.max[0] - below(40).min(20));
        let cut = Box3::new([low.min(20), 0, 0], [high, whole.max[1], 1]);
        let region =
            Region::from(cut).intersect(&Region::of((0..nodes).flat_map(|k| sides[owner].at(k).boxes().to_vec())));
        let part = OwnedRegion { region, owner, holders: Vec::new() };
        let all = sides[reader].touching(&part.region);
        probed += u32::from(probes(&sides, reader, &part).len() < all.len() as usize);
        let needs = all.iter().any(|rank| !need(&sides, rank, reader, &part).is_empty());
        assert_eq!(someone_needs(&sides, reader, &part), needs);
        let columns = |id: SideId| match &sides[id].form {
            Form::Affine(affine) => affine.axes[1].parts,
            Form::Table(_) => 1,
        };
        let c = columns(reader);
        let near = all.iter().all(|rank| {
            let from = sides[owner].touching(&need(&sides, rank, reader, &part));
            from.iter().all(|k| (rank / c).abs_diff(k / c) <= 1 && (rank % c).abs_diff(k % c) <= 1)
        });
        let halo = needs && near && c == columns(owner);
        assert_eq!(is_halo(&sides, reader, &part), halo, "{:?} {:?} {}", sides[owner], sides[reader], part.region);
        halos += u32::from(halo);
    }
    assert!(probed > 2000 && halos > 2000, "{probed} probed, {halos} halos");
}
