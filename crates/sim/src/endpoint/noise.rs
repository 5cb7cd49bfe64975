//! Noise: the time that the operating system takes from a CPU.
//!
//! The noise lengthens each use of a CPU by a task or an arriving message; a send also leaves later by this amount. The
//! amount depends only on the seed, the task and the direction.

use unisono_base::{mix, rounded};

/// Distribution of the added ticks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Noise {
    /// Uniform from 0 to `most`.
    Uniform {
        most: f64,
    },
    /// Normal around `mean`, never less than 0.
    Normal {
        mean: f64,
        deviation: f64,
    },
    Exponential {
        mean: f64,
    },
}

impl Noise {
    /// Returns the same noise in another unit of time. One present unit is `factor` new units.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Noise::Uniform { most } => Noise::Uniform { most: most * factor },
            Noise::Normal { mean, deviation } => Noise::Normal { mean: mean * factor, deviation: deviation * factor },
            Noise::Exponential { mean } => Noise::Exponential { mean: mean * factor },
        }
    }
}

impl Noise {
    /// Returns the added ticks of the draw with number `what`. They depend only on the arguments.
    pub fn ticks(self, seed: u64, what: u64) -> u64 {
        // Draws are in (0, 1], because the logarithm of 0 is not finite.
        let draw =
            |n: u64| ((mix(mix(seed ^ mix(2 * what + n)).wrapping_add(n)) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let ticks = match self {
            Noise::Uniform { most } => most * draw(0),
            // The method of Box and Muller, 1958.
            Noise::Normal { mean, deviation } => {
                mean + deviation * (-2.0 * draw(0).ln()).sqrt() * (std::f64::consts::TAU * draw(1)).cos()
            }
            Noise::Exponential { mean } => -mean * draw(0).ln(),
        };
        // Casts saturate, so negative values become 0.
        rounded(ticks)
    }

    /// Returns the first parameter that is not from 0 to 8.64e16 ticks, if any.
    pub(super) fn wrong(self) -> Option<f64> {
        let parameters = match self {
            Noise::Uniform { most } => [most, 0.0],
            Noise::Normal { mean, deviation } => [mean, deviation],
            Noise::Exponential { mean } => [mean, 0.0],
        };
        // A day, if a tick is a picosecond.
        parameters.into_iter().find(|p| !(0.0..=8.64e16).contains(p))
    }
}
