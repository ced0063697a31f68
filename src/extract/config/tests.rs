use super::*;

fn read(toml: &str) -> ExtractorConfig {
    toml::from_str(toml).unwrap()
}

fn definition(toml: &str, content: Option<&str>) -> Definition {
    match read(toml).build(content).unwrap() {
        Declaration::Complete(definition) => definition,
        Declaration::Command(spec) => panic!("{spec:?} is not complete"),
    }
}

fn error(toml: &str) -> KeyError {
    read(toml).build(Some("a\nb")).unwrap_err()
}

#[test]
fn the_examples_of_the_design_are_read() {
    let person = "name = 'person'\nkind = 'regex'\npattern = '(?P<first>[A-Z][a-z]{1,15}) (?P<last>[A-Z][a-z]{1,20})'";
    let Definition::Extracts(person) = definition(person, None) else { panic!() };
    assert_eq!((person.kind(), person.schema().len()), (Kind::Regex, 2));
    let topic = "name = 'topic'\nkind = 'dictionary'\nterms = 'topics.txt'\nwhole_word = true\nignore_case = true";
    let Definition::Extracts(topic) = definition(topic, Some("IR\nCIM")) else { panic!() };
    let Extractor::Dictionary(terms) = &*topic else { panic!() };
    assert_eq!(terms.len(), 2);
    let talk = "name = 'talk'\nkind = 'record'\nscope = 400\npairing = 'nearest'\nattributes = { speaker = 'person', \
                time = 'time', place = 'room', topics = { extractor = 'topic', many = true, optional = true } }";
    let Definition::Joins(record) = definition(talk, None) else { panic!() };
    let names: Vec<_> = record.schema().attributes().iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["speaker", "time", "place", "topics"], "the file's order, not the alphabet's");
    let entity = "name = 'entity'\nkind = 'command'\ncommand = ['python3', 'entity.py']\nscope = 200\ncontext = 50\n\
                  offsets = 'char'\ntimeout = '30s'\nprice_per_mb = 0.0";
    let Declaration::Command(spec) = read(entity).build(None).unwrap() else { panic!() };
    assert_eq!((spec.timeout.as_secs(), spec.declared.scope), (30, Some(200)));
}

#[test]
fn errors_name_the_key_and_the_fix() {
    let cases = [
        ("name = 'A b'\nkind = 'regex'\npattern = 'a'", "name"),
        ("name = 'a'\nkind = 'regex'", "pattern"),
        ("name = 'a'\nkind = 'regex'\npattern = 'a'\npatterns = ['b']", "patterns"),
        ("name = 'a'\nkind = 'regex'\npattern = 'a'\nterms = 'x'", "terms"),
        ("name = 'a'\nkind = 'regex'\npattern = 'a'\nscope = 0", "scope"),
        ("name = 'a'\nkind = 'record'\nscope = 9\ncontext = 2\nattributes = { a = 'b' }", "context"),
        ("name = 'a'\nkind = 'record'\nattributes = { a = 'b' }", "scope"),
        ("name = 'a'\nkind = 'record'\nscope = 9", "attributes"),
        ("name = 'a'\nkind = 'record'\nscope = 9\nattributes = { url = 'b' }", "attributes"),
        ("name = 'a'\nkind = 'record'\nscope = 9\nattributes = { a = { extractor = 'b', many = true } }", "attributes"),
        ("name = 'a'\nkind = 'record'\nscope = 9\nkey = 'c'\nattributes = { a = 'b' }", "key"),
        ("name = 'a'\nkind = 'command'", "command"),
        ("name = 'a'\nkind = 'command'\ncommand = ['x']\ntimeout = 'soon'", "timeout"),
    ];
    for (toml, key) in cases {
        let error = error(toml);
        assert_eq!(error.key, key, "{toml}: {error}");
        assert!(!error.fix.is_empty());
    }
    assert_eq!(read("name = 'a'\nkind = 'dictionary'\nterms = 'x'").build(Some("\n \n")).unwrap_err().key, "terms");
}

#[test]
fn unknown_keys_are_refused() {
    assert!(toml::from_str::<ExtractorConfig>("name = 'a'\nkind = 'regex'\npatern = 'a'").is_err());
    assert!(toml::from_str::<ExtractorConfig>("name = 'a'\nkind = 'lexicon'").is_err());
    let part = "name = 'a'\nkind = 'record'\nattributes = { a = { extractor = 'b', may = true } }";
    assert!(toml::from_str::<ExtractorConfig>(part).is_err());
}

#[test]
fn records_join_extractors_that_exist() {
    let parts = |of: &str| read(&format!("name = 'r'\nkind = 'record'\nscope = 9\nattributes = {{ a = '{of}' }}"));
    let plain = read("name = 'p'\nkind = 'regex'\npattern = 'a'");
    assert!(check_together(&[plain.clone(), parts("p")]).is_ok());
    assert_eq!(check_together(&[plain.clone(), parts("q")]).unwrap_err().0, 1);
    assert!(check_together(&[plain.clone(), parts("r")]).unwrap_err().1.problem.contains("record itself"));
    assert_eq!(check_together(&[plain.clone(), plain]).unwrap_err().1.key, "name");
}

/// As part of a whole file, where the order of attributes has to survive too.
#[test]
fn extractors_are_read_inside_a_file() {
    #[derive(serde::Deserialize)]
    struct File {
        extractor: Vec<ExtractorConfig>,
    }
    let text = "[[extractor]]\nname = 'p'\nkind = 'regex'\npattern = 'a'\n\n[[extractor]]\nname = 'r'\nkind = 'record'\nscope = 9\n\
                [extractor.attributes]\nz = 'p'\na = { extractor = 'p', optional = true }\nm = 'p'\n";
    let file: File = toml::from_str(text).unwrap();
    let attributes = file.extractor[1].attributes.as_ref().unwrap().in_order();
    assert_eq!(attributes.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["z", "a", "m"]);
}

/// A command is what its file says as far as that decides the mentions; how long it may take does not.
#[test]
fn a_declared_command_is_identified_by_what_decides_its_mentions() {
    let base = "name = 'a'\nkind = 'command'\ncommand = ['x', 'y']";
    let identity = |toml: &str| read(toml).build(None).unwrap().identity("1");
    for more in ["timeout = '9s'", "in_flight = 3", "price_per_mb = 2.5"] {
        assert_eq!(identity(&format!("{base}\n{more}")), identity(base), "{more}");
    }
    let others = [
        "name = 'a'\nkind = 'command'\ncommand = ['x y']".to_owned(),
        "name = 'a'\nkind = 'command'\ncommand = ['x', 'y', '']".to_owned(),
        format!("{base}\nscope = 9"),
        format!("{base}\ncontext = 9"),
        format!("{base}\nscope = 9\ncontext = 0"),
        format!("{base}\nunit = 'line'"),
        format!("{base}\noffsets = 'byte'"),
    ];
    let mut all: Vec<_> = others.iter().map(|toml| identity(toml)).chain([identity(base)]).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), others.len() + 1);
}
