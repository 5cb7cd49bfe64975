use unisono_algorithms::multiplying::{Count, Stages, Wrap, count, list, orders, within_nodes};

fn refused(text: &str, ranks: u32) -> String {
    let error = Stages::parse(text, ranks).unwrap_err().to_string();
    let head = format!("schedule '{text}' does not fit {ranks} ranks: ");
    error.strip_prefix(&head).unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn what_is_printed_reads_back() {
    for ranks in 1..=24 {
        for stages in list(ranks) {
            assert_eq!(Stages::parse(&stages.to_string(), ranks), Ok(stages));
        }
    }
    assert_eq!(Stages::parse("", 1).unwrap().to_string(), "");
}

#[test]
fn each_mistake_is_named_with_its_place() {
    let forms = "accepted are aB, cTmB, eTmB, mRgGaB and nRgGaB with whole numbers, such as a8, c6m2 or m1g2a3";
    assert_eq!(refused("a2,b3", 6), format!("stage 2 is 'b3'; {forms}"));
    for text in ["", " ", "a", "a+2", "a02", "a2,", "c6", "m1g2", "a99999999999", "ä2", "a2 ,a3", "c6mm2"] {
        assert!(refused(text, 6).ends_with(forms) || text.is_empty(), "{text}: {}", refused(text, 6));
    }
    assert_eq!(refused("", 6), "its factors multiply to 1; accepted is a product of 6");
    assert_eq!(refused("a2,a4", 6), "its factors multiply to 8; accepted is a product of 6");
    assert_eq!(refused("a4294967295,a4294967295,a4294967295", 6).split(';').count(), 2);
    assert_eq!(refused("a1,a6", 6), "stage 1 has factor 1; accepted are factors from 2 on");
    assert_eq!(refused("c6m2,a2,a1,e6m2", 7), "stage 3 has factor 1; accepted are factors from 2 on");
    let paired = "accepted there is aB, because c comes first with e last, and m first with n last";
    assert_eq!(refused("a2,c6m2,a2", 7), format!("stage 2 is 'c6m2'; {paired}"));
    assert_eq!(refused("c6m2,a2,a2", 7), format!("stage 1 is 'c6m2'; {paired}"));
    assert_eq!(refused("a2,a2,e6m2", 7), format!("stage 3 is 'e6m2'; {paired}"));
    assert_eq!(refused("m1g2a3,a2", 7), format!("stage 1 is 'm1g2a3'; {paired}"));
    assert_eq!(refused("a2,n1g3a2", 7), format!("stage 2 is 'n1g3a2'; {paired}"));
    assert_eq!(refused("c6m2,m1g2a2,n1g2a2,e6m2", 9), format!("stage 2 is 'm1g2a2'; {paired}"));
    assert_eq!(refused("c6m2,n1g3a2", 7), format!("stage 1 is 'c6m2'; {paired}"));
    assert_eq!(refused("c6m2,a2,a2,e4m2", 7), "stage 4 is 'e4m2'; accepted there is e6m2");
    assert_eq!(refused("c6m2,a2,a3,e6m2", 7), "its plain factors multiply to 6; accepted is a product of 4");
    assert_eq!(
        refused("c5m2,a2,a2,e5m2", 7),
        "stage 1 collapses the first 5 ranks; accepted are multiples of 2 from 2 to 6"
    );
    assert_eq!(refused("c9m9,e9m9", 7), "stage 1 collapses 9 ranks into one; accepted are at most 7");
    assert_eq!(refused("c0m0,e0m0", 7), "stage 1 has factor 0; accepted are factors from 2 on");
    assert_eq!(refused("m1g2a3,n1g2a2", 7), "stage 2 is 'n1g2a2'; accepted there is n1g3a2");
    assert_eq!(refused("m1g3a3,n1g3a2", 7), "stage 1 is 'm1g3a3'; accepted there is m1g2a3");
    assert_eq!(refused("m1g2a3,n2g3a2", 7), "stage 2 is 'n2g3a2'; accepted there is n1g3a2");
    assert_eq!(refused("m4g2a2,n4g2a2", 7), "stage 1 sets 4 ranks apart; accepted are 1 to 3");
    assert_eq!(refused("m1g1a3,n1g1a3", 4), "stage 1 sets 1 ranks apart; a merge needs at least 5 ranks");
    assert_eq!(refused("m0g0a0,n0g0a0", 7), "stage 1 has factor 0; accepted are factors from 2 on");
    assert_eq!(
        refused("m2g2a2,n2g2a2", 7),
        "its factors, those of m and n included, multiply to 4; accepted is a product of 5"
    );
    assert_eq!(Stages::new(12, Wrap::Plain, vec![5]).unwrap_err().schedule, "a5");
}

/// Compares the counts of all N <= 64 together with those of a symbolic execution of the corrected rules.
#[test]
fn as_many_schedules_as_the_rules_allow() {
    let mut all = Count::default();
    for ranks in 2..=64 {
        let n = count(ranks);
        all = Count { factored: all.factored + n.factored, split: all.split + n.split, merge: all.merge + n.merge };
    }
    assert_eq!(all, Count { factored: 440, split: 31_949, merge: 7_886 });
    for ranks in 1..=30 {
        let (mut listed, mut texts) = (Count::default(), Vec::new());
        for stages in list(ranks) {
            match stages.wrap() {
                Wrap::Plain => listed.factored += 1,
                Wrap::Split { .. } => listed.split += 1,
                Wrap::Merge { .. } => listed.merge += 1,
            }
            texts.push(stages.to_string());
        }
        assert_eq!(listed, count(ranks), "{ranks}");
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len() as u64, listed.factored + listed.split + listed.merge, "{ranks}: each once");
    }
    assert_eq!(count(0), Count::default());
}

fn text(stages: impl Iterator<Item = Stages>) -> Vec<String> {
    stages.map(|s| s.to_string()).collect()
}

#[test]
fn orders_of_the_plain_factors() {
    let plain = Stages::parse("a3,a2,a2", 12).unwrap();
    assert_eq!(text(orders(&plain)), ["a2,a2,a3", "a2,a3,a2", "a3,a2,a2"]);
    let merge = Stages::parse("m1g12a2,a3,a2,n1g12a2", 25).unwrap();
    assert_eq!(text(orders(&merge)), ["m1g12a2,a2,a3,n1g12a2", "m1g12a2,a3,a2,n1g12a2"]);
    assert_eq!(orders(&Stages::parse("", 1).unwrap()).count(), 1);
    assert_eq!(orders(&Stages::new(4096, Wrap::Plain, vec![2; 12]).unwrap()).count(), 1);
}

#[test]
fn early_stages_stay_inside_a_node() {
    let order = |text: &str, ranks, node| within_nodes(&Stages::parse(text, ranks).unwrap(), node).to_string();
    assert_eq!(order("a5,a3,a4", 60, 12), "a3,a4,a5");
    assert_eq!(order("a4,a4,a3,a2", 96, 24), "a4,a3,a2,a4");
    assert_eq!(order("a5,a5", 25, 24), "a5,a5");
    // The leaders of three ranks each: two stages of factor two fill a node of twelve ranks.
    assert_eq!(order("c60m3,a5,a2,a2,e60m3", 60, 12), "c60m3,a2,a2,a5,e60m3");
    assert_eq!(order("m1g30a2,a5,a3,n1g30a2", 61, 6), "m1g30a2,a3,a5,n1g30a2");
}
