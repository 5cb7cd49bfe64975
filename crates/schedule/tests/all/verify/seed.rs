//! Tests of `verify::seed`.

use unisono_schedule::verify::Seed;

#[test]
fn seeds_read_back() {
    let seed = Seed::random();
    assert_eq!(seed.to_string().parse(), Ok(seed));
    assert_eq!("ff".parse::<Seed>().unwrap().to_string(), format!("{}ff", "0".repeat(30)));
    for wrong in ["", "0x1", "+1", "g", &"1".repeat(33)] {
        assert!(wrong.parse::<Seed>().unwrap_err().to_string().contains("1 to 32 hexadecimal digits"), "{wrong}");
    }
}
