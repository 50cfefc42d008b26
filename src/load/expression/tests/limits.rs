//! The limits of size, depth and cost.

use super::*;

#[test]
fn an_expression_cannot_hang_or_exhaust_the_memory() {
    let doubling = format!("${{['0123456789abcdef']{}}}", ".map(x, x + x)".repeat(40));
    let lists = format!("${{[[1]]{}}}", ".map(x, [x, x])".repeat(40));
    let loops = "${lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000).map(c, 1)))}";
    let search = "${lists.range(100000).filter(a, a in lists.range(100000))}";
    let replace = format!("${{'aaaaaaaaaa'{}}}", ".replace('a', 'aaaaaaaaaa')".repeat(20));
    let copies = "${lists.range(100000).map(a, lists.range(50000))}";
    for text in [&doubling, &lists, loops, search, &replace, copies] {
        let shown = evaluate(text);
        assert!(shown.contains("the expression exceeds the cost limit"), "{shown:.200}");
    }
}

#[test]
fn an_expression_cannot_overflow_the_stack() {
    for (before, after, times) in
        [("(", ")", 8000), ("[", "]", 8000), ("!", "", 16000), ("-", "", 16000), ("{1:", "}", 4000)]
    {
        let deep = format!("${{{}1{}}}", before.repeat(times), after.repeat(times));
        evaluate(&deep);
    }
    for (first, next, times) in [
        ("1", "+1", 8000),
        ("a", ".b", 8000),
        ("a()", ".b", 8000),
        ("a", "[0]", 5000),
        ("a", "?a:a", 4000),
        ("a", ".?b", 5000),
        ("true", "&&true", 2600),
        ("'a'", ".trim()", 2000),
        ("[1]", ".map(x,x)", 1600),
    ] {
        let deep = format!("${{{first}{}}}", next.repeat(times));
        evaluate(&deep);
        // The maximum depth, on the smallest stack of Purlin's threads.
        for depth in [60, 30] {
            let most = format!("${{{first}{}}}", next.repeat(depth));
            std::thread::Builder::new().stack_size(1 << 20).spawn(move || evaluate(&most)).unwrap().join().unwrap();
        }
    }
    assert_eq!(evaluate(&format!("${{1{}}}", "+1".repeat(60))), "61");
}

#[test]
fn loops_over_small_lists_stay_within_the_budget() {
    assert_eq!(evaluate("${size(lists.range(20000).map(x, x * 2))}"), "20000");
}

/// About a million units.
const COSTLY: &str = "${size(lists.range(100000).map(x, x * 2))}";

fn costly(count: usize) -> Template {
    let json = serde_json::json!({ "list": vec![COSTLY; count] });
    Template::parse_json(&json, &Path::default(), &[]).0
}

#[test]
fn the_expressions_of_a_template_share_a_budget() {
    assert!(costly(1).evaluate(&objects()).is_ok());
    let problems = costly(20).evaluate(&objects()).unwrap_err();
    assert!(problems.len() > 10, "only the first ones fit");
    assert!(problems[0].message().contains("the expression exceeds the cost limit"), "{}", problems[0].message());
}

#[test]
fn the_expressions_of_a_plan_share_a_budget() {
    let evaluate = || costly(1).evaluate(&objects());
    let (mut plan, mut other) = (PlanBudget::new(1_500_000), PlanBudget::new(1_500_000));
    assert!(plan.within(evaluate).is_ok());
    plan.within(|| assert!(other.within(evaluate).is_ok(), "another plan has its own budget"));
    let problem = plan.within(evaluate).unwrap_err()[0].message();
    assert!(problem.contains("the expressions of this plan together exceed the cost limit"), "{problem}");
    assert!(evaluate().is_ok(), "there is no budget outside of a plan");
}
