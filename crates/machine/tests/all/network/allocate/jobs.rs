//! Tests of `network::allocate::jobs`.

use unisono_machine::network::{
    Boards,
    allocate::{Job, Jobs, Sizes, TRACE},
};

#[test]
fn quantiles_are_those_of_the_trace() {
    let sizes = Sizes::trace();
    for &(share, size) in TRACE {
        assert_eq!(sizes.at(share).boards, size);
        assert!(share == 1.0 || sizes.at(share + 1e-6).boards > size);
    }
    assert_eq!(sizes.at(0.0).boards, 1);
}

/// A user's distribution, with quantiles of equal size.
#[test]
fn files_of_sizes() {
    let boards = Boards { count: [4, 8], board: [2, 2], leaf: [4, 8], adjacent: false };
    let parse = |text: &str| Jobs::parse(text, "sizes.txt", "small", &boards);
    let Ok(Jobs::Drawn(sizes)) = parse("# of a trace\n50% 1\n51 % 1\n90% 4 # boards\n100% 4\n") else { panic!() };
    let sizes = |share: f64| sizes.at(share).boards;
    assert_eq!([0.0, 0.5, 0.505, 0.51, 0.52, 0.9, 0.95, 1.0].map(sizes), [1, 1, 1, 1, 2, 4, 4, 4]);
    let trace: String = TRACE.iter().map(|(share, size)| format!("{}% {size}\n", 100.0 * share)).collect();
    let Ok(Jobs::Drawn(same)) = parse(&trace) else { panic!("the trace is a file too") };
    for k in 0..=1000 {
        assert_eq!(same.at(f64::from(k) / 1000.0), Sizes::trace().at(f64::from(k) / 1000.0));
    }
    for (text, why) in [
        ("50% 1\n4", "sizes.txt, line 2: '4' is no size of jobs: a size is SHARE% BOARDS, such as 76.43% 1"),
        ("4\n50% 1", "line 2: '50% 1' is no size of jobs: a file has jobs or sizes, not both"),
        ("50% 0", "boards at least 1"),
        ("0% 1", "shares are above 0 and at most 100"),
        ("101% 1", "shares are above 0 and at most 100"),
        ("nan% 1", "shares are above 0 and at most 100"),
        ("50% 2\n50% 3", "shares rise from line to line, and boards do not fall"),
        ("50% 2\n60% 1", "shares rise from line to line, and boards do not fall"),
        ("50% 2", "sizes.txt ends at 50 % of the jobs; the last line of sizes is that of 100%"),
    ] {
        let said = parse(text).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn files_of_jobs() {
    let boards = Boards { count: [4, 8], board: [2, 2], leaf: [4, 8], adjacent: false };
    let parse = |text: &str| Jobs::parse(text, "jobs.txt", "small", &boards);
    let list = [Job { boards: 3, shape: None }, Job { boards: 16, shape: Some([8, 2]) }];
    assert_eq!(parse("# two\n3\n\n8x2 # turned\n"), Ok(Jobs::List(list.to_vec())));
    for (text, why) in [
        ("", "jobs.txt holds no job"),
        ("4\nmany", "jobs.txt, line 2: 'many' is no job"),
        ("0", "line 1: '0'"),
        ("33", "jobs.txt, line 1: a job of 33 boards is larger than small, which has 4x8"),
        ("5x5", "a job of 5x5 boards"),
    ] {
        let said = parse(text).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}
