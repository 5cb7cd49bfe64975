//! What the benches share: measurements of this process, and a process for each case.
#![allow(dead_code, reason = "each bench uses its part")]

use std::process::Command;

/// Runs the case for which this process was started. Otherwise prints `header`, and runs each case whose name contains
/// a word of the command line, `prepare`d here, in its own process, so that memory is measured per case.
pub fn each_alone(header: &str, names: impl Iterator<Item = String>, prepare: fn(&str), run: fn(&str)) {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &words[..]
        && flag == "--only"
    {
        run(name);
        return;
    }
    println!("{header}");
    let program = std::env::current_exe().expect("this program has a path");
    for name in names.filter(|name| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()))) {
        prepare(&name);
        let status = Command::new(&program).args(["--only", &name]).status().expect("this program runs");
        assert!(status.success(), "{name} failed");
    }
}

/// Returns the CPU time of this thread, or NaN if the system does not report it.
pub fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

/// Returns the peak memory of this process, or 0 if the system does not report it.
pub fn peak_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
