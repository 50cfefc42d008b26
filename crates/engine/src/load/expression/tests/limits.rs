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

/// An object with a text of a megabyte, which all readers share.
struct Large(Value);

impl Scope for Large {
    fn object(&self, address: &Address) -> Option<Value> {
        (address.key == InstanceKey::None).then(|| self.0.clone())
    }

    fn namespace(&self) -> Value {
        Value::Null
    }
}

fn large() -> Large {
    Large(Value::map([("text", Value::String("x".repeat(1 << 20).into()))]))
}

#[test]
fn copies_of_large_values_exceed_the_budget() {
    let copies = |copy: &str, separator: &str| vec![copy; 500].join(separator);
    for text in [
        copies("${large.text}", ""),
        copies("${large.text + 'x'}", ""),
        format!("${{[{}]}}", copies("large.text", ", ")),
        format!("${{[{}]}}", copies("?large.?text", ", ")),
        format!("${{{{{}}}}}", (0..900).map(|i| format!("{i}: large.text")).collect::<Vec<_>>().join(", ")),
        format!("${{math.greatest({})}}", copies("large.text", ", ")),
        "${lists.range(10000).map(i, {large.text: i})}".to_owned(),
        "${lists.range(10000).map(i, [large.text])}".to_owned(),
        format!("${{size([{}])}}", copies("large.text.split('')", ", ")),
        "${json.unmarshal('[' + large.text.replace('x', '0,0,0,0,0,') + '0]')}".to_owned(),
    ] {
        let template = Template::parse_json(&serde_json::json!({ "a": text }), &Path::default(), &[]).0;
        let problems = template.evaluate(&large()).expect_err(&text[..80.min(text.len())]);
        let message = problems[0].message();
        assert!(message.contains("the expression exceeds the cost limit"), "{text:.80}: {message:.200}");
    }
}

#[test]
fn a_value_that_shares_large_parts_has_a_maximum_size() {
    let evaluate = |count: usize| {
        let json = serde_json::json!({ "list": vec!["${large.text}"; count] });
        Template::parse_json(&json, &Path::default(), &[]).0.evaluate(&large())
    };
    assert!(evaluate(15).is_ok());
    let message = evaluate(9_000).unwrap_err()[0].message();
    assert!(message.contains("is larger than 16 MiB"), "{message}");
}

#[test]
fn a_tree_has_a_maximum_number_and_length_of_expressions() {
    let parse = |texts: Vec<String>| {
        let json = serde_json::json!(texts);
        Template::parse_json(&json, &Path::default(), &[]).2.iter().map(Diagnostic::message).collect::<Vec<_>>()
    };
    assert!(parse(vec!["${a.b}${c.d + 'x'}".to_owned(); 5_000]).is_empty());
    let many = parse(vec!["${a.b}".to_owned(); 20_000]);
    assert!(many.len() == 1 && many[0].contains("more than 10000 expressions"), "{many:?}");
    let long = parse(vec![format!("${{'{}'}}", "x".repeat(16_000)); 40]);
    assert!(long.len() == 1 && long[0].contains("more than 512 KiB"), "{long:.500?}");
    let invalid = parse(vec!["${a.b".to_owned(); 20_000]);
    assert_eq!(invalid.len(), 10_001, "invalid expressions count as well");
}

/// These took minutes when each reference was compared with all others of its string, and each literal was copied.
#[test]
fn a_long_string_is_parsed_in_linear_time() {
    let references: String = (0..10_000).map(|i| format!("${{object{i}.x}} ")).collect();
    let escapes = format!("{}${{a.b}}", "$${ ".repeat(300_000));
    let (_, found, problems) = Template::parse_json(&serde_json::json!([references, escapes]), &Path::default(), &[]);
    assert_eq!((found.len(), problems.len()), (10_000, 1), "the last expression exceeds the maximum number");
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

#[test]
fn a_regular_expression_costs_by_its_size() {
    assert_eq!(evaluate(r#"${lists.range(100).all(i, "x".matches("^\\w{50}|x"))}"#), "true", "it is compiled once");
    assert_eq!(evaluate(r#"${"a-b".matches("^[a-z0-9-]+$") && matches("ab", "^\\w{1,63}$")}"#), "true");
    let long = format!(r#"${{"x".matches("{}")}}"#, "x".repeat(1001));
    let exceeds = "the expression exceeds the cost limit";
    for (text, problem) in [
        (r#"${"x".matches("^\\w{200}|x")}"#, r"the regular expression `^\w{200}|x` is too large"),
        (r#"${matches("x", "((((x{9}){99}){99}){99}){99}")}"#, "is too large"),
        (r#"${"x".matches("(x")}"#, "the regular expression `(x` is invalid: unclosed group"),
        (&long, "the regular expression is longer than 1000 bytes"),
        (r#"${lists.range(200).all(i, !"x".matches("^\\w{50}y" + string(i)))}"#, exceeds),
        (r#"${lists.range(2000).all(i, !"x".matches("(?i)[^a][^b][^c][^d]" + string(i)))}"#, exceeds),
        (r#"${lists.range(20000).map(i, "xxxxxxxxxx").join("").matches("(\\bx?){400}y")}"#, exceeds),
    ] {
        let shown = evaluate(text);
        assert!(shown.contains(problem), "{text}: {shown}");
    }
}
