//! Tests of `network::allocate::jobs`.

use unisono_machine::network::allocate::{Job, JobSpace, Jobs, Rule, Sizes, TRACE};

fn mesh() -> JobSpace {
    JobSpace { count: vec![4, 8], board: vec![2, 2], leaf: vec![4, 8], rule: Rule::Crossings }
}

#[test]
fn quantiles_are_those_of_the_trace() {
    let sizes = Sizes::trace();
    for &(share, size) in TRACE {
        assert_eq!(sizes.at(share).boards, size);
        assert!(share == 1.0 || sizes.at(share + 1e-6).boards > size);
    }
    assert_eq!(sizes.at(0.0).boards, 1);
}

/// A user's distribution, with several quantiles of equal size.
#[test]
fn files_of_sizes() {
    let parse = |text: &str| Jobs::parse(text, "sizes.txt", "small", &mesh());
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
    let parse = |text: &str| Jobs::parse(text, "jobs.txt", "small", &mesh());
    let list = [Job { boards: 3, shape: None }, Job { boards: 16, shape: Some(vec![8, 2]) }];
    assert_eq!(parse("# two\n3\n\n8x2 # turned\n"), Ok(Jobs::List(list.to_vec())));
    for (text, why) in [
        ("", "jobs.txt holds no job"),
        ("4\nmany", "jobs.txt, line 2: 'many' is no job"),
        ("0", "line 1: '0'"),
        ("33", "jobs.txt, line 1: a job of 33 boards is larger than small, which has 4x8"),
        ("5x5", "a job of 5x5 boards"),
        ("2x2x2", "line 1: '2x2x2' is no job; accepted are a number of boards, or rows x columns as in 4x8"),
    ] {
        let said = parse(text).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}

/// A shape with fewer sides uses some of the dimensions; on any boards, only the product of its sides counts.
#[test]
fn jobs_of_other_dimensions() {
    let of = |rule, count: &[u32], text: &str| {
        let count = count.to_vec();
        let space = JobSpace { board: vec![1; count.len()], leaf: count.clone(), count, rule };
        Jobs::parse(text, "jobs.txt", "other", &space).map_err(|e| e.to_string())
    };
    let (torus, any) = (Rule::SubBox { wraps: true }, Rule::Blocks { sizes: vec![8], aligned: false });
    for (rule, count, text, boards) in [
        (&torus, &[3, 4, 5][..], "4x5", 20),
        (&torus, &[3, 4, 5], "5x4x3", 60),
        (&any, &[32], "4x8", 32),
        (&any, &[32], "2x2x2x2x2", 32),
    ] {
        let Ok(Jobs::List(jobs)) = of(rule.clone(), count, text) else { panic!("{text}") };
        assert_eq!(jobs[0].boards, boards);
    }
    for (rule, count, text, why) in [
        (&torus, &[3, 4, 5][..], "5x5", "a job of 5x5 boards is larger than other, which has 3x4x5 of them"),
        (&torus, &[3, 4, 5], "1x1x1x1", "accepted are a number of boards, or up to 3 sides as in 4x8x2"),
        (&torus, &[5], "1x1", "accepted are a number of boards"),
        (&any, &[32], "4x9", "larger than other, which has 32 of them"),
        (&any, &[32], "4x", "accepted are a number of boards, or sides as in 4x8, whose product counts"),
    ] {
        let said = of(rule.clone(), count, text).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}
