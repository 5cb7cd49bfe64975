use unisono_cost::network::NetworkPart;
use unisono_machine::{Machine, network::Network};
use unisono_synthesis::Roots;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let bytes: f64 = a[2].parse().unwrap();
    let text = std::fs::read_to_string(format!("/work/main/machines/{}.toml", a[1])).unwrap();
    let m = Machine::from_toml(&text, "x").unwrap();
    let n = m.get::<Network>().unwrap();
    let t = n.topology("x").unwrap();
    let ranks = t.accelerators();
    let part = NetworkPart::new(n, (0..ranks).collect(), &[ranks]).unwrap();
    let f = &part.fabric;
    let s = std::time::Instant::now();
    let cut = f.cut(Roots::All).time();
    eprintln!("cut {cut} in {:?} arcs {}", s.elapsed(), f.graph().arcs().len());
    let least = f.least_depth(Roots::All).unwrap();
    for d in a[3].split(',') {
        let d: u32 = d.parse().unwrap();
        let d = d.max(least);
        let s = std::time::Instant::now();
        let p = f.packing(Roots::All, Some(d)).unwrap();
        println!("depth {d} packing {:.4} trees {} in {:?}", p.time / cut, p.trees.len(), s.elapsed());
        for c in a[4].split(',') {
            let c: u32 = c.parse().unwrap();
            let s = std::time::Instant::now();
            let fo = f.forest(Roots::All, Some(d), c).unwrap();
            let e1 = s.elapsed();
            let hop = f.hop((bytes / f64::from(c)) as u64);
            let end = fo.end(f.graph(), hop) / f64::from(c);
            println!(
                "  chunks {c} rounded {:.4} table {:.4} (no hop {:.4}) depth {} in {e1:?} {:?}",
                fo.time / cut,
                end / cut,
                fo.end(f.graph(), 0.0) / f64::from(c) / cut,
                fo.depth,
                s.elapsed()
            );
        }
    }
}
