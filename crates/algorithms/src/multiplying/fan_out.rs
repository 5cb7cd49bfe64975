//! The best number of messages that each rank sends in a stage.

use std::f64::consts::E;

/// Returns the number b of messages per stage for which N ranks take the least time, (alpha_p + b alpha_r) log_{b+1} N
/// (Eq. 4). It depends only on `ratio`, r = alpha_p / alpha_r: b = exp(W((r - 1) / e) + 1) - 1, with Lambert's W.
/// Returns NaN for a ratio under 0.
///
/// Eq. 5 as printed lacks the 1/e. Setting the derivative of Eq. 4 to zero gives (b+1) ln(b+1) = r + b, hence with u =
/// ln(b+1) - 1: u e^u = (r - 1) / e.
pub fn best_fan_out(ratio: f64) -> f64 {
    if ratio.is_nan() || ratio < 0.0 {
        return f64::NAN;
    }
    // For a ratio of 0 the argument equals the lower end of the domain of W, up to rounding.
    (lambert_w::lambert_w0(((ratio - 1.0) / E).max(lambert_w::SMALLEST_F64_IN_DOMAIN)) + 1.0).exp() - 1.0
}
