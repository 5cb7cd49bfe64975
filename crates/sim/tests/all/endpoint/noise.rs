//! Tests of `endpoint::noise`.

use unisono_sim::endpoint::Noise;

#[test]
fn draws_have_their_mean() {
    let mean = |noise: Noise| (0..100_000).map(|n| noise.ticks(7, n) as f64).sum::<f64>() / 1e5;
    for (noise, expected) in [
        (Noise::Uniform { most: 2000.0 }, 1000.0),
        (Noise::Normal { mean: 1000.0, deviation: 100.0 }, 1000.0),
        (Noise::Exponential { mean: 1000.0 }, 1000.0),
    ] {
        let found = mean(noise);
        assert!((found - expected).abs() < 15.0, "{noise:?}: {found}");
    }
}
