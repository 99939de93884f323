//! jieba's dictionary: user words, and the savings of preloading it.
use crate::support::waiting::wait_until;
use anyhow::Context;
use neardup_tests::{connect, own_server};
use postgres::Client;

type Outcome = anyhow::Result<()>;

/// A text whose segmentation depends on jieba's words.
const TEXT: &str = "李小福是创新办主任也是云计算方面的专家";
const PLAIN: &str = "主任 也 云 创新 办 专家 方面 是 是 李小福 的 计算";
const WITH_USER_WORDS: &str = "专家 主任 也 云计算 创新办 方面 是 是 李小福 的";

/// Returns the words that a session finds in the text, in the order of their bytes.
fn words(client: &mut Client) -> anyhow::Result<String> {
    let query = "SELECT string_agg(repeat(feature || ' ', weight::int), '' ORDER BY feature \
        COLLATE \"C\") \
        FROM neardup_features($1, tokens => 'jieba', shingle => 1, weight => 'tf')";
    let words: String = client.query_one(query, &[&TEXT])?.get(0);
    Ok(sorted(&words))
}

fn sorted(words: &str) -> String {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    words.join(" ")
}

fn set_user_words(client: &mut Client, words: &str) -> Outcome {
    client.batch_execute("LOAD 'neardup'")?;
    client.batch_execute(&format!(
        "ALTER SYSTEM SET neardup.jieba_user_words = '{words}'"
    ))?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    Ok(())
}

#[test]
fn user_words_reach_all_sessions_at_a_reload() -> Outcome {
    let server = own_server("user_words", &[])?;
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    let mut idle = connect(&server.conninfo("postgres"))?;
    for client in [&mut client, &mut idle] {
        assert_eq!(words(client)?, sorted(PLAIN));
    }
    // No role can set them for a session. Only roles with ALTER SYSTEM can set them at all.
    let refused = client.batch_execute("SET neardup.jieba_user_words = '云计算'");
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "55P02");
    for (list, why) in [
        ("word", "22023"),
        ("云计算 0", "22023"),
        ("云计算 很多", "22023"),
    ] {
        let refused = set_user_words(&mut client, list).unwrap_err();
        let refused = refused.downcast_ref::<postgres::Error>().unwrap();
        assert_eq!(refused.code().unwrap().code(), why, "{list}");
    }

    set_user_words(&mut client, "创新办, 云计算 5")?;
    let mut new = connect(&server.conninfo("postgres"))?;
    for client in [&mut client, &mut idle, &mut new] {
        wait_until(
            client,
            "SELECT current_setting('neardup.jieba_user_words', true) <> ''",
        )?;
        assert_eq!(words(client)?, sorted(WITH_USER_WORDS));
    }
    // In parallel workers too.
    new.batch_execute(
        "CREATE TABLE docs AS SELECT $$李小福是创新办主任也是云计算方面的专家$$::text AS body, n FROM \
            generate_series(1, 5000) n;
         ANALYZE docs;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET \
         min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2",
    )?;
    let query = "SELECT min(simhash(body, tokens => 'jieba')::text), max(simhash(body, tokens => \
        'jieba')::text) FROM docs";
    let plan: Vec<String> = new
        .query(&format!("EXPLAIN {query}"), &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(
        plan.iter().any(|line| line.contains("Workers Planned")),
        "{plan:?}"
    );
    let found = new.query_one(query, &[])?;
    let alone: String = idle
        .query_one("SELECT simhash($1, tokens => 'jieba')::text", &[&TEXT])?
        .get(0);
    assert_eq!(
        [0, 1].map(|at| found.get::<_, String>(at)),
        [alone.clone(), alone]
    );

    client.batch_execute("ALTER SYSTEM RESET neardup.jieba_user_words")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    for client in [&mut client, &mut idle, &mut new] {
        wait_until(
            client,
            "SELECT current_setting('neardup.jieba_user_words') = ''",
        )?;
        assert_eq!(words(client)?, sorted(PLAIN));
    }
    Ok(())
}

#[test]
fn whoever_sets_user_words_is_warned() -> Outcome {
    let server = own_server("user_words_warning", &[])?;
    let run = |sql: &str| -> anyhow::Result<String> {
        let output = server
            .psql("postgres")
            .args(["-X", "-c", "LOAD 'neardup'", "-c", sql])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let warned = run("ALTER SYSTEM SET neardup.jieba_user_words = '云计算'")?;
    assert!(
        warned.contains("WARNING") && warned.contains("change the fingerprints"),
        "{warned}"
    );
    // There is no second warning for a value that is already in force.
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("LOAD 'neardup'; SELECT pg_reload_conf()")?;
    wait_until(
        &mut client,
        "SELECT current_setting('neardup.jieba_user_words') <> ''",
    )?;
    let again = run("ALTER SYSTEM SET neardup.jieba_user_words = '云计算'")?;
    assert!(!again.contains("WARNING"), "{again}");
    Ok(())
}

/// Memory in kB that a process has for itself alone.
#[cfg(target_os = "linux")]
fn private_memory(pid: i32) -> anyhow::Result<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kilobytes = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<u64>().ok())
    };
    Ok(maps
        .lines()
        .filter(|line| line.starts_with("Private_Dirty"))
        .filter_map(kilobytes)
        .sum())
}

/// The first use of jieba loads the dictionary into a backend, unless it was preloaded.
#[cfg(target_os = "linux")]
#[test]
fn a_preloaded_dictionary_is_shared() -> Outcome {
    let grown_by_first_use = |preload| -> anyhow::Result<u64> {
        let settings = [
            ("shared_preload_libraries", preload),
            ("neardup.jieba_user_words", "创新办, 云计算 5"),
        ];
        let server = own_server("preload", &settings)?;
        connect(&server.conninfo("postgres"))?.batch_execute("CREATE EXTENSION neardup")?;
        let mut client = connect(&server.conninfo("postgres"))?;
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        // Loads everything but the dictionary.
        client.query_one(
            "SELECT simhash($1), count(*) FROM neardup_features($1, shingle => 1)",
            &[&TEXT],
        )?;
        let before = private_memory(pid)?;
        assert_eq!(words(&mut client)?, sorted(WITH_USER_WORDS));
        Ok(private_memory(pid)?.saturating_sub(before))
    };
    let (alone, shared) = (grown_by_first_use("")?, grown_by_first_use("neardup")?);
    assert!(alone > 20 << 10, "{alone} kB");
    assert!(shared < 4 << 10, "{shared} kB");
    Ok(())
}

/// Cached plans return results for the words in force.
#[test]
fn cached_plans_follow_the_words() -> Outcome {
    let server = own_server("cached_plans", &[])?;
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute(&format!(
        "CREATE EXTENSION neardup;
         CREATE FUNCTION kept() RETURNS text LANGUAGE plpgsql AS
             $$ BEGIN RETURN simhash('{TEXT}', tokens => 'jieba'); END $$"
    ))?;
    let calls = [
        format!("simhash('{TEXT}', tokens => 'jieba')"),
        format!("simhash128('{TEXT}', tokens => 'jieba_search')"),
        format!("simhash('{TEXT}', tokens => 'jieba_tfidf')"),
        format!("minhash64('{TEXT}', tokens => 'jieba', shingle => 1)"),
        format!("minhash128('{TEXT}', tokens => 'jieba', shingle => 1)"),
        format!("minhash('{TEXT}', tokens => 'jieba', shingle => 1)"),
        format!("jaccard_similarity('{TEXT}', '云计算', tokens => 'jieba', shingle => 1)"),
        format!("containment('创新 专家', '{TEXT}', tokens => 'jieba', shingle => 1)"),
        format!("neardup_explain('{TEXT}', 'a', tokens => 'jieba')"),
        "kept()".to_owned(),
    ];
    for (n, call) in calls.iter().enumerate() {
        client.batch_execute(&format!("PREPARE kept_{n} AS SELECT ({call})::text"))?;
    }
    let kept = |client: &mut Client| -> anyhow::Result<Vec<String>> {
        let results = (0..calls.len()).map(|n| {
            let rows = client.simple_query(&format!("EXECUTE kept_{n}"))?;
            let text = rows.iter().find_map(|row| match row {
                postgres::SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            Ok(text.unwrap_or_default().to_owned())
        });
        results.collect()
    };
    // More executions than the server needs to choose a generic plan.
    let before = kept(&mut client)?;
    for _ in 0..6 {
        assert_eq!(kept(&mut client)?, before);
    }
    set_user_words(&mut client, "创新办, 云计算 5")?;
    wait_until(
        &mut client,
        "SELECT current_setting('neardup.jieba_user_words', true) <> ''",
    )?;
    let mut new = connect(&server.conninfo("postgres"))?;
    for ((call, old), kept) in calls.iter().zip(&before).zip(kept(&mut client)?) {
        let fresh: String = new
            .query_one(&format!("SELECT ({call})::text"), &[])?
            .get(0);
        assert_eq!(kept, fresh, "{call}");
        assert_ne!(&kept, old, "{call}");
    }
    Ok(())
}

/// A database with a recorded hash of its words warns sessions that use other words.
#[test]
fn other_words_than_those_of_the_database_are_noticed() -> Outcome {
    let server = own_server(
        "words_hash",
        &[("neardup.jieba_user_words", "云计算 5, 创新办")],
    )?;
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    let hash = |client: &mut Client| -> anyhow::Result<String> {
        Ok(client
            .query_one("SELECT neardup_jieba_words_hash()", &[])?
            .get(0))
    };
    let first = hash(&mut client)?;
    client.batch_execute(&format!(
        "ALTER DATABASE postgres SET neardup.jieba_words_hash = '{first}'"
    ))?;
    let wrong = client
        .batch_execute("SET neardup.jieba_words_hash = 'x'")
        .unwrap_err();
    assert_eq!(wrong.code().context("a code")?.code(), "22023");
    let said = |statements: &[&str]| -> anyhow::Result<String> {
        let mut psql = server.psql("postgres");
        psql.arg("-X");
        for statement in statements {
            psql.args(["-c", statement]);
        }
        Ok(String::from_utf8_lossy(&psql.output()?.stderr).into_owned())
    };
    let words = "SELECT simhash('好', tokens => 'jieba')";
    let others = "SELECT simhash('好')";
    assert_eq!(said(&[words, words])?, "");
    set_user_words(&mut client, "创新办")?;
    wait_until(
        &mut client,
        "SELECT current_setting('neardup.jieba_user_words') = '创新办'",
    )?;
    let second = hash(&mut client)?;
    assert_ne!(first, second);
    // Warns once in a session, and only if it uses jieba.
    let warned = said(&[others, words, words])?;
    assert_eq!(warned.matches("WARNING").count(), 1, "{warned}");
    assert!(
        warned.contains(&first) && warned.contains(&second),
        "{warned}"
    );
    assert_eq!(said(&[others])?, "");
    // Warns until the recorded hash is updated or removed.
    let set = format!("SET neardup.jieba_words_hash = '{second}'");
    assert_eq!(said(&[&set, words])?, "");
    assert_eq!(said(&["SET neardup.jieba_words_hash = ''", words])?, "");
    client.batch_execute("ALTER SYSTEM SET neardup.jieba_user_words = '创新办, 云计算 5'; ")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until(
        &mut client,
        "SELECT current_setting('neardup.jieba_user_words') <> '创新办'",
    )?;
    assert_eq!(
        hash(&mut client)?,
        first,
        "the order of the words does not matter"
    );
    assert_eq!(said(&[words])?, "");
    Ok(())
}
