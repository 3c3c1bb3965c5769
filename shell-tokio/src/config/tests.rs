use super::*;
use kvmirror_core::id::Rank;

const EXAMPLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/serve.example.toml"));

fn error(text: &str) -> String {
    ServeConfig::parse(text, "serve.toml").unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(ServeConfig::parse("", "x").unwrap(), ServeConfig::default());
    assert_eq!(ServeConfig::default().listen.to_string(), DEFAULT_LISTEN);
}

#[test]
fn the_example_shows_every_default() {
    let example = ServeConfig::parse(EXAMPLE, "example").unwrap();
    assert_eq!(example.sources.len(), 2);
    let without_sources = ServeConfig { sources: Vec::new(), ..example.clone() };
    assert_eq!(without_sources, ServeConfig::default());
    // Every key of the top level and of [follow] is written out, so that defaults cannot drift.
    let table: toml::Table = EXAMPLE.parse().unwrap();
    assert_eq!(table.len(), 7);
    assert_eq!(table["follow"].as_table().unwrap().len(), 20);

    let registrations = example.registrations().unwrap();
    assert_eq!(registrations[0].instance.as_str(), "engine-a");
    assert_eq!(registrations[0].topic, "kv-events");
    assert_eq!(registrations[1].rank, Rank(1));
    assert_eq!(registrations[1].instance.to_json(), serde_json::json!(7));
    assert_eq!(registrations[1].image_token_id, Some(151_655));
}

#[test]
fn the_command_line_says_the_same_as_the_file() {
    let mut config = ServeConfig::default();
    config
        .add_sources(&[
            "instance=engine-a,endpoint=tcp://127.0.0.1:5557,replay=tcp://127.0.0.1:5558,model=m,\
             block_size=16,rank=0,tenant=default,duplicates=counted,topic=kv-events,type=vllm",
            "instance=7,endpoint=tcp://127.0.0.1:5657,model=vl,block_size=64,rank=1,\
             image_token_id=151655,video_token_id=151656,eagle=false",
        ])
        .unwrap();
    let file = ServeConfig::parse(EXAMPLE, "example").unwrap();
    assert_eq!(config.registrations().unwrap(), file.registrations().unwrap());
}

#[test]
fn remote_addresses_need_a_word() {
    for listen in ["0.0.0.0:7117", "[::]:7117", "10.0.0.1:7117"] {
        let message = error(&format!("listen = \"{listen}\""));
        assert!(message.contains("serve.toml: listen") && message.contains("allow_remote = true"));
        let allowed = format!("listen = \"{listen}\"\nallow_remote = true");
        assert!(ServeConfig::parse(&allowed, "x").is_ok());
    }
    for listen in ["127.0.0.1:0", "127.3.2.1:7117", "[::1]:7117"] {
        assert!(ServeConfig::parse(&format!("listen = \"{listen}\""), "x").is_ok(), "{listen}");
    }
}

#[test]
fn errors_name_file_key_and_fix() {
    let source = "[[source]]\ninstance = \"a\"\nendpoint = \"tcp://h:1\"\nmodel = \"m\"\n";
    for (text, words) in [
        ("lisen = 1", ["serve.toml", "lisen", "listen"]),
        ("listen = \"localhost\"", ["serve.toml", "listen", "127.0.0.1:7117"]),
        ("default_min_trust = \"fenced\"", ["serve.toml", "default_min_trust", "suspect"]),
        ("max_registrations = 0", ["serve.toml", "max_registrations", "at least 1"]),
        ("[follow]\nsilence = \"5 parsecs\"", ["serve.toml", "silence", "200ms"]),
        ("[follow]\nsilence = -1", ["serve.toml", "silence", "milliseconds"]),
        ("[follow]\nconnect_timeout = 0", ["serve.toml", "follow.connect_timeout", "1ms"]),
        ("[follow]\nrecovery_attempts = 0", ["serve.toml", "follow.recovery_attempts", "64"]),
        ("[follow]\nheal_backoff = \"1m\"", ["serve.toml", "follow.heal_backoff_max", "caps"]),
        ("[follow]\npending_bytes = 1", ["serve.toml", "follow.pending_bytes", "1024"]),
        ("[[source]]\n", ["serve.toml", "source", "missing field"]),
        (&format!("{source}block_size = 0"), ["serve.toml", "block_size", "nonzero"]),
        (
            &format!("{source}block_size = 4\ntype = \"Mooncake\""),
            ["serve.toml", "source[0].type", "engines"],
        ),
        (
            &format!("{source}block_size = 4\ntype = \"x\""),
            ["serve.toml", "source[0].type", "SGLang"],
        ),
        (
            &format!("{source}block_size = 4\nduplicates = \"x\""),
            ["serve.toml", "source[0].duplicates", "counted"],
        ),
        (
            &format!("{source}block_size = 4\nreplay = \"tcp://*:0\""),
            ["serve.toml", "source[0].replay_endpoint", "port 0"],
        ),
        (
            &format!("{source}block_size = 4\nmodel_name = \"n\""),
            ["serve.toml", "model", "duplicate"],
        ),
    ] {
        let message = error(text);
        for word in words {
            assert!(message.contains(word), "{text}\n{message}\nlacks {word}");
        }
    }
}

#[test]
fn sources_that_contradict_each_other_are_refused() {
    let a = "instance=a,endpoint=tcp://h:1,model=m,block_size=4";
    for (b, word) in [
        (a, "repeats"),
        ("instance=a,endpoint=tcp://h:2,model=m,block_size=4", "another endpoint"),
        ("instance=a,endpoint=tcp://h:2,model=m,block_size=8,rank=1", "another block_size"),
    ] {
        let mut config = ServeConfig::default();
        let message = config.add_sources(&[a, b]).unwrap_err().to_string();
        assert!(message.contains(&format!("--source {b}")) && message.contains("source[1]"));
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn broken_source_texts_say_what_is_wrong() {
    for (text, word) in [
        ("", "not key=value"),
        ("instance", "not key=value"),
        ("instance=a,instance=b", "twice"),
        ("instance=a,block_size=x", "block_size"),
        ("instance=a,eagle=x", "true or false"),
        ("instance=a,colour=red", "colour"),
        ("instance=a,endpoint=tcp://h:1,model=m", "block_size"),
        ("instance=a,endpoint=tcp://h:1,model=,block_size=4", "empty"),
        ("instance=,endpoint=tcp://h:1,model=m,block_size=4", "empty"),
        ("instance=a,endpoint=h:1,model=m,block_size=4", "not an address"),
        ("instance=a,endpoint=tcp://h:1,model=m,block_size=-4", "block_size"),
    ] {
        let mut config = ServeConfig::default();
        let message = config.add_sources(&[text]).unwrap_err().to_string();
        assert!(message.contains(word), "{text}: {message}");
    }
}

#[test]
fn files_are_named_when_they_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("serve.toml");
    let message = ServeConfig::load(&path).unwrap_err().to_string();
    assert!(message.contains("serve.toml"), "{message}");
    std::fs::write(&path, EXAMPLE).unwrap();
    assert_eq!(ServeConfig::load(&path).unwrap(), ServeConfig::parse(EXAMPLE, "x").unwrap());
}
